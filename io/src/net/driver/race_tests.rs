//! Several addresses of a host, one tried beside the other (RFC 8305).

use super::*;

fn v4(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

fn v6(last: u16) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last).into()
}

/// A link to a name whose addresses do this.
fn racing(plans: &[(IpAddr, Plan)]) -> (Fake, Bench<Fake>) {
    let (fake, mut bench) = bench(1, 0);
    fake.0.borrow_mut().step = Duration::from_millis(1);
    name(&fake, "origin.example", 0, &plans.iter().map(|(address, _)| *address).collect::<Vec<_>>());
    for (address, does) in plans {
        plan(&fake, *address, *does);
    }
    bench.connect(link(0), "origin.example", NOT_TLS, b"ask");
    (fake, bench)
}

/// ms since the beginning.
fn elapsed(fake: &Fake) -> u64 {
    fake.0.borrow().now.as_micros() / 1000
}

/// Turns until so much time has passed.
fn until(fake: &Fake, bench: &mut Bench<Fake>, ms: u64) {
    for _ in 0..1_000_000 {
        if elapsed(fake) >= ms {
            return;
        }
        bench.turns(1);
    }
    panic!("time stands still at {} ms", elapsed(fake));
}

#[test]
fn an_address_that_leads_nowhere_costs_one_delay() {
    let (fake, mut bench) = racing(&[(v6(1), Plan::Silent), (v4(1), Plan::Accepts(1))]);
    until(&fake, &mut bench, 249);
    assert_eq!(tried(&fake), [v6(1)]);
    until(&fake, &mut bench, 250);
    bench.turns(5);
    assert_eq!(tried(&fake), [v6(1), v4(1)]);
    assert_eq!((bench.told(link(0)).address, elapsed(&fake)), (Some((v4(1), 80).into()), 250));
    assert_eq!(fake.open_descriptors(), 1, "the other is closed");
    assert_eq!(fake.take(1, 100), b"ask");
    assert_eq!(bench.driver.timeout(), None, "nothing is waited for");
    bench.close(link(0));
    assert_eq!(fake.open_descriptors(), 0);
    bench.end();
}

#[test]
fn the_first_that_connects_is_taken_though_it_began_first() {
    // A poll of a kernel that is busy takes 10 µs: this one takes 300 ms.
    let (fake, mut bench) = racing(&[(v4(1), Plan::Accepts(30_000)), (v4(2), Plan::Silent), (v4(3), Plan::Accepts(1))]);
    until(&fake, &mut bench, 280);
    assert_eq!((bench.told(link(0)).address, fake.open_descriptors()), (None, 2));
    bench.turns(5000);
    assert_eq!(bench.told(link(0)).address, Some((v4(1), 80).into()));
    assert_eq!((tried(&fake), fake.open_descriptors()), (vec![v4(1), v4(2)], 1));
}

#[test]
fn one_that_fails_makes_way_for_the_next_at_once() {
    let (fake, mut bench) = racing(&[(v4(1), Plan::Silent), (v4(2), Plan::Refuses(1)), (v4(3), Plan::Accepts(1))]);
    until(&fake, &mut bench, 250);
    bench.turns(10);
    assert_eq!(bench.told(link(0)).address, Some((v4(3), 80).into()));
    assert_eq!((elapsed(&fake), fake.open_descriptors()), (250, 1));
}

#[test]
fn as_long_as_one_may_still_connect_the_link_does_not_fail() {
    let (fake, mut bench) = racing(&[(v4(1), Plan::Silent), (v4(2), Plan::Refuses(1))]);
    until(&fake, &mut bench, 250);
    bench.turns(20);
    assert_eq!((&bench.told(link(0)).failed, fake.open_descriptors()), (&None, 1));
    assert_eq!(bench.driver.timeout(), None, "how long it may take is for the server to know");
    let (fake, mut bench) = racing(&[(v4(1), Plan::Refuses(30_000)), (v4(2), Plan::Unreachable(1))]);
    until(&fake, &mut bench, 299);
    assert_eq!((&bench.told(link(0)).failed, tried(&fake).len()), (&None, 2));
    bench.turns(500);
    assert_eq!((&bench.told(link(0)).failed, fake.open_descriptors()), (&Some(ConnectError::Refused), 0));
    bench.end();
}

#[test]
fn no_more_than_some_are_tried_at_once() {
    let silent: Vec<_> = (1..=100).map(|last| (v4(last), Plan::Silent)).collect();
    let (fake, mut bench) = racing(&silent);
    for number in 1..ADDRESSES {
        until(&fake, &mut bench, 250 * number as u64 - 1);
        assert_eq!((tried(&fake).len(), fake.open_descriptors()), (number, number.min(ATTEMPTS)));
        bench.turns(3);
    }
    assert_eq!((tried(&fake).len(), fake.open_descriptors()), (ADDRESSES, ATTEMPTS));
    assert_eq!(bench.driver.timeout(), None);
    bench.close(link(0));
    assert_eq!(fake.open_descriptors(), 0);
    bench.end();
}

#[test]
fn a_link_that_is_closed_tries_nothing_more() {
    let (fake, mut bench) = racing(&[(v4(1), Plan::Silent), (v4(2), Plan::Accepts(1))]);
    bench.turns(2);
    bench.close(link(0));
    assert_eq!((fake.open_descriptors(), bench.driver.timeout()), (0, None));
    // The same place, used again at once.
    bench.connect(LinkId::from_parts(0, 1), "origin.example", NOT_TLS, b"");
    until(&fake, &mut bench, 200);
    assert_eq!(tried(&fake), [v4(1), v4(1)]);
}

#[test]
fn families_take_turns() {
    for (known, order) in [
        (vec![v6(1), v6(2), v4(1), v4(2)], vec![v6(1), v4(1), v6(2), v4(2)]),
        (vec![v4(1), v4(2), v4(3), v6(1)], vec![v4(1), v6(1), v4(2), v4(3)]),
        (vec![v6(1)], vec![v6(1)]),
        (Vec::new(), Vec::new()),
    ] {
        assert_eq!(interleaved(known), order);
    }
}
