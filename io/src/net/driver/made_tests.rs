use super::super::super::MADE;
use super::*;

#[test]
fn what_has_to_be_made_first_is_made_a_little_in_each_turn_whoever_wants_it() {
    let (fake, mut bench) = bench(1, 0);
    plan(&fake, HERE, Plan::Accepts(0));
    let (links, pieces) = (20, 5);
    for index in 0..links {
        bench.connect(link(index), "127.0.0.1", NOT_TLS, b"ask");
        bench.driver.server.links.get_mut(&link(index)).unwrap().to_make = pieces;
    }
    let made = |bench: &Bench<Fake>| -> Vec<usize> { (0..links).map(|index| bench.told(link(index)).made).collect() };
    let sum = |bench: &Bench<Fake>| made(bench).iter().sum::<usize>();
    // Everybody begins at once.
    bench.turns(2);
    assert!(made(&bench).iter().all(|made| (1..=2).contains(made)), "{:?}", made(&bench));
    let mut before = sum(&bench);
    for _ in 0..links as usize * pieces {
        bench.turns(1);
        let (now, each) = (sum(&bench), made(&bench));
        assert!(now <= before + MADE, "{each:?}");
        let spread = each.iter().max().unwrap() - each.iter().min().unwrap();
        assert!(spread <= 1, "nobody comes before the others: {each:?}");
        before = now;
    }
    assert_eq!(made(&bench), vec![pieces; links as usize]);
    assert_eq!(fake.take(0, 10_000).len(), 3 + 100 * pieces);
}
