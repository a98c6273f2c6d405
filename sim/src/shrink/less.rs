//! Less of a list for as long as it still fails (delta debugging: A. Zeller, R. Hildebrandt, 2002).

/// Tries to do without each half, then each quarter, and so on down to each single thing, again and again until all that is left
/// is needed. `fails` says what of the rest is enough to fail, that it fails no more, or that there is no time for more.
pub(super) fn less<T: Clone>(all: Vec<T>, fails: impl FnMut(&[T]) -> Tried<T>) -> Vec<T> {
    less_coarse(all, 1, fails)
}

/// The same down to stretches of `least` things.
pub(super) fn less_coarse<T: Clone>(all: Vec<T>, least: usize, mut fails: impl FnMut(&[T]) -> Tried<T>) -> Vec<T> {
    let mut kept = all;
    let mut chunk = kept.len().div_ceil(2).max(1);
    while chunk >= least {
        let mut shrunk = false;
        // From the end: what comes late seldom matters to what is before it.
        let mut until = kept.len();
        while until > 0 {
            let from = until.saturating_sub(chunk);
            let rest: Vec<T> = kept[..from].iter().chain(&kept[until..]).cloned().collect();
            match fails(&rest) {
                Tried::Fails(enough) => (kept, shrunk) = (enough, true),
                Tried::Holds => {}
                Tried::NoTime => return kept,
            }
            until = from.min(kept.len());
        }
        match (chunk, shrunk) {
            (1, false) => return kept,
            (1, true) => {}
            _ => chunk = chunk.div_ceil(2).max(1).min(kept.len().div_ceil(2).max(1)),
        }
    }
    kept
}

/// What became of a list with less in it.
pub(super) enum Tried<T> {
    /// It still fails, and so much of it is enough.
    Fails(Vec<T>),
    Holds,
    /// It was not tried.
    NoTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_left_and_nothing_else() {
        let mut tried = 0;
        let left = less((0..1000).collect(), |rest: &[i32]| {
            tried += 1;
            tried_with([17, 400, 999].iter().all(|needed| rest.contains(needed)), rest)
        });
        assert_eq!(left, [17, 400, 999]);
        assert!(tried < 200, "{tried}");
        assert!(less(vec![1, 2, 3], |rest| tried_with(true, rest)).is_empty());
        assert_eq!(less(vec![1, 2, 3], |_| Tried::Holds), [1, 2, 3]);
    }

    fn tried_with<T: Clone>(fails: bool, rest: &[T]) -> Tried<T> {
        if fails { Tried::Fails(rest.to_vec()) } else { Tried::Holds }
    }

    #[test]
    fn without_time_what_was_reached_is_left_and_a_coarse_look_stops_at_large_pieces() {
        let mut tries = 0;
        let left = less((0..1000).collect(), |rest: &[i32]| {
            tries += 1;
            if tries > 3 { Tried::NoTime } else { tried_with(rest.contains(&17), rest) }
        });
        assert!(left.contains(&17) && left.len() < 300, "{}", left.len());
        assert_eq!(tries, 4, "nothing is tried behind that");
        let mut tries = 0;
        let left = less_coarse((0..1024).collect(), 128, |rest: &[i32]| {
            tries += 1;
            tried_with(rest.contains(&17), rest)
        });
        assert!((1..=256).contains(&left.len()) && left.contains(&17) && tries < 16, "{} after {tries}", left.len());
    }
}
