//! Refusals on their way to people: the first of an endpoint at once, then at most one line a second with a count; logins that fail
//! and addresses that are locked out for it likewise. A client
//! that asks again and again, or a thousand of them, must not fill the log; every refusal is in the metrics all the same.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_core::input::{EndpointId, Note};
use holdfast_core::time::Time;

use crate::routes;

/// From one line of an endpoint to the next.
const PAUSE: Duration = Duration::from_secs(1);

/// What waits to be told, one entry for each that refused somebody lately.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    pauses: BTreeMap<By, Pause>,
}

/// Who refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Endpoint(EndpointId),
    Login,
    Lock,
}

/// Since the last line of one of them.
#[derive(Debug)]
struct Pause {
    until: Time,
    /// Refusals that were not told yet, and the last of them.
    held: u64,
    last: Option<(Note, Option<String>)>,
}

impl Refusals {
    /// Takes a note, with the address of whoever was refused; gives back what is to be told of a refusal now, or one that is none.
    pub fn sift(&mut self, now: Time, note: Note, from: Option<String>) -> Option<Note> {
        let by = match note {
            Note::OfferRefused { endpoint, .. } | Note::RequestRefused { endpoint, .. } => By::Endpoint(endpoint),
            Note::LoginFailed { .. } => By::Login,
            Note::LoginsLocked { .. } => By::Lock,
            _ => return Some(note),
        };
        match self.pauses.get_mut(&by) {
            Some(pause) if pause.held > 0 || pause.until > now => {
                pause.held += 1;
                pause.last = Some((note, from));
                None
            }
            _ => {
                self.pauses.insert(by, Pause { until: now + PAUSE, held: 0, last: None });
                Some(note)
            }
        }
    }

    /// The next line that is due.
    pub fn due(&mut self, now: Time) -> Option<Note> {
        self.pauses.retain(|_, pause| pause.held > 0 || pause.until > now);
        let pause = self.pauses.values_mut().find(|pause| pause.held > 0 && pause.until <= now)?;
        let last = pause.last.take();
        let held = std::mem::take(&mut pause.held);
        pause.until = now + PAUSE;
        last.map(|(last, from)| counted(last, from, held))
    }

    /// When [`Refusals::due`] has something.
    pub fn deadline(&self) -> Option<Time> {
        self.pauses.values().filter(|pause| pause.held > 0).map(|pause| pause.until).min()
    }
}

/// The last of `held` refusals, which stands for all of them.
fn counted(last: Note, address: Option<String>, held: u64) -> Note {
    match last {
        last if held == 1 => last,
        Note::RequestRefused { endpoint, status, from, why } => {
            Note::RequestRefused { endpoint, status, from, why: format!("{why} (the last of {held} refusals)") }
        }
        Note::OfferRefused { endpoint, reason, .. } => {
            let status = routes::refused(reason, None).status().code();
            let why = format!("{} (the last of {held} refusals)", reason.says());
            Note::RequestRefused { endpoint, status, from: address, why }
        }
        Note::LoginFailed { peer, user, .. } => Note::LoginFailed { peer, user, failures: held },
        Note::LoginsLocked { peer, wait, .. } => Note::LoginsLocked { peer, wait, addresses: held },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use holdfast_core::input::{RefuseReason, RequestId};

    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1000)
    }

    fn denied(endpoint: u32, why: &str) -> Note {
        Note::RequestRefused { endpoint: EndpointId(endpoint), status: 401, from: None, why: why.to_owned() }
    }

    #[test]
    fn the_first_is_told_at_once_and_the_others_once_a_second_with_their_count() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.sift(at(0), denied(0, "a"), None), Some(denied(0, "a")));
        assert_eq!(refusals.deadline(), None, "nothing waits");
        for n in 0..5 {
            assert_eq!(refusals.sift(at(100 + n), denied(0, "b"), None), None);
        }
        assert_eq!(refusals.sift(at(200), denied(1, "of another"), None), Some(denied(1, "of another")));
        assert_eq!(refusals.deadline(), Some(at(1000)));
        assert_eq!(refusals.due(at(999)), None);
        assert_eq!(refusals.due(at(1000)), Some(denied(0, "b (the last of 5 refusals)")));
        assert_eq!((refusals.due(at(1000)), refusals.deadline()), (None, None));
        assert_eq!(refusals.sift(at(1500), denied(0, "c"), None), None, "a second after every line");
        assert_eq!(refusals.due(at(2000)), Some(denied(0, "c")));
        assert_eq!(refusals.sift(at(3000), denied(0, "d"), None), Some(denied(0, "d")));
    }

    #[test]
    fn logins_that_fail_are_told_once_a_second_whoever_tries() {
        let mut refusals = Refusals::default();
        let failed = |peer: &str, failures| Note::LoginFailed { peer: peer.into(), user: None, failures };
        assert_eq!(refusals.sift(at(0), failed("a", 1), None), Some(failed("a", 1)));
        assert_eq!(refusals.sift(at(10), denied(0, "of an endpoint"), None), Some(denied(0, "of an endpoint")));
        assert_eq!([20, 30, 40].map(|ms| refusals.sift(at(ms), failed("b", 1), None)), [const { None }; 3]);
        assert_eq!(refusals.due(at(1000)), Some(failed("b", 3)));
        assert_eq!(refusals.due(at(2000)), None);
        let locked = |peer: &str, addresses| Note::LoginsLocked { peer: peer.into(), wait: 6, addresses };
        assert_eq!(refusals.sift(at(3000), locked("a", 1), None), Some(locked("a", 1)));
        assert_eq!(["b", "c"].map(|peer| refusals.sift(at(3010), locked(peer, 1), None)), [const { None }; 2]);
        assert_eq!(refusals.due(at(4000)), Some(locked("c", 2)));
    }

    #[test]
    fn refusals_of_the_core_are_counted_with_them_and_other_notes_pass() {
        let mut refusals = Refusals::default();
        let (request, reason) = (RequestId(3), RefuseReason::HolderLive);
        let refused = Note::OfferRefused { request, endpoint: EndpointId(0), reason, waited: 0 };
        let from = || Some(String::from("192.0.2.1"));
        assert_eq!(refusals.sift(at(0), refused.clone(), from()), Some(refused.clone()));
        assert_eq!(refusals.sift(at(10), denied(0, "a"), None), None);
        assert_eq!(refusals.sift(at(20), refused.clone(), from()), None);
        let draining = Note::Draining { sessions: 0, viewers: 0 };
        assert_eq!(refusals.sift(at(30), draining.clone(), None), Some(draining));
        let told = Note::RequestRefused {
            endpoint: EndpointId(0),
            status: 503,
            from: from(),
            why: format!("{} (the last of 2 refusals)", reason.says()),
        };
        assert_eq!(refusals.due(at(1000)), Some(told));
        assert_eq!(refusals.due(at(5000)), None);
        assert!(refusals.pauses.is_empty(), "what is quiet is forgotten");
    }
}
