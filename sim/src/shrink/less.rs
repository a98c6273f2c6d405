//! Less of a list for as long as it still fails (delta debugging: A. Zeller, R. Hildebrandt, 2002).

/// Tries to do without each half, then each quarter, and so on down to each single thing, again and again until all that is left
/// is needed. `fails` says what of the rest is enough to fail, or that it fails no more.
pub(super) fn less<T: Clone>(all: Vec<T>, mut fails: impl FnMut(&[T]) -> Option<Vec<T>>) -> Vec<T> {
    let mut kept = all;
    let mut chunk = kept.len().div_ceil(2).max(1);
    loop {
        let mut shrunk = false;
        // From the end: what comes late seldom matters to what is before it.
        let mut until = kept.len();
        while until > 0 {
            let from = until.saturating_sub(chunk);
            let rest: Vec<T> = kept[..from].iter().chain(&kept[until..]).cloned().collect();
            if let Some(enough) = fails(&rest) {
                (kept, shrunk) = (enough, true);
            }
            until = from.min(kept.len());
        }
        match (chunk, shrunk) {
            (1, false) => return kept,
            (1, true) => {}
            _ => chunk = chunk.div_ceil(2).max(1).min(kept.len().div_ceil(2).max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_left_and_nothing_else() {
        let mut tried = 0;
        let left = less((0..1000).collect(), |rest: &[i32]| {
            tried += 1;
            [17, 400, 999].iter().all(|needed| rest.contains(needed)).then(|| rest.to_vec())
        });
        assert_eq!(left, [17, 400, 999]);
        assert!(tried < 200, "{tried}");
        assert!(less(vec![1, 2, 3], |rest| Some(rest.to_vec())).is_empty());
        assert_eq!(less(vec![1, 2, 3], |_| None), [1, 2, 3]);
    }
}
