//! The takeover table: what becomes of a POST that finds every slot held (spec: publish §4).

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::Takeover;
use crate::input::{Evidence, RefuseReason, SessionId};
use crate::time::Time;

/// One holder of a slot, as one look finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub session: SessionId,
    /// It is over; its slot is about to be released.
    pub finished: bool,
    /// It was let in after the POST that looks.
    pub newer: bool,
    pub evidence: Evidence,
}

/// What one look decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Look again at the latest at this time.
    Wait(Time),
    /// Finish this holder; the POST takes the slot when it is released.
    Displace(SessionId),
    Refuse(RefuseReason),
}

/// The evidence that one POST saw at its last look.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Seen(Vec<(SessionId, Evidence)>);

impl Seen {
    pub fn remember(&mut self, holders: &[Holder]) {
        self.0.clear();
        self.0.extend(holders.iter().map(|holder| (holder.session, holder.evidence)));
    }

    /// Whether any of the holder's counts moved since the last look. A single idle reading cannot tell a healthy session
    /// from one that died a moment ago, and the reconnect that matters comes a few hundred milliseconds after the drop.
    fn moved(&self, holder: &Holder) -> bool {
        let counts = |evidence: &Evidence| (evidence.audio.count, evidence.video.count, evidence.control.count);
        self.0
            .iter()
            .find(|(session, _)| *session == holder.session)
            .is_some_and(|(_, before)| counts(before) != counts(&holder.evidence))
    }
}

/// The settings one look needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Rule {
    pub takeover: Takeover,
    pub dead_after: Duration,
    pub poll: Duration,
}

impl Rule {
    /// One look at the holders of an endpoint without a free slot.
    pub fn look(self, now: Time, holders: &[Holder], seen: &Seen) -> Look {
        let finished = holders.iter().any(|holder| holder.finished);
        // The newest POST wins against whoever was there before it, not against one that came after it.
        let displaceable = |holder: &&Holder| self.takeover != Takeover::NewestWins || !holder.newer;
        match candidate(now, holders.iter().filter(displaceable)) {
            _ if finished => Look::Wait(now + self.poll),
            None => Look::Refuse(RefuseReason::HolderNegotiating),
            Some(candidate) => match self.takeover {
                Takeover::DisplaceDead => self.displace_dead(now, candidate, seen),
                Takeover::NewestWins => Look::Displace(candidate.session),
                Takeover::Refuse if candidate.evidence.last_media().is_none() => {
                    Look::Refuse(RefuseReason::HolderNegotiating)
                }
                Takeover::Refuse => Look::Refuse(RefuseReason::HolderLive),
            },
        }
    }

    fn displace_dead(self, now: Time, candidate: &Holder, seen: &Seen) -> Look {
        let evidence = &candidate.evidence;
        let Some(last) = evidence.last_any().filter(|_| evidence.last_media().is_some()) else {
            return Look::Refuse(RefuseReason::HolderNegotiating);
        };
        // Audio comes every 20 ms, which is what makes two seconds of nothing mean something; a video-only publisher of
        // a static picture may pause for seconds on a healthy transport.
        if evidence.audio.last.is_none() {
            return Look::Refuse(RefuseReason::HolderWithoutAudio);
        }
        if seen.moved(candidate) {
            return Look::Refuse(RefuseReason::HolderLive);
        }
        // No packet of any kind: a publisher with a failed microphone whose sparse video or RTCP still arrives is alive.
        let dead_at = last + self.dead_after;
        if now >= dead_at { Look::Displace(candidate.session) } else { Look::Wait(dead_at.min(now + self.poll)) }
    }
}

/// The holder that is most likely dead: with audio before without (a quieter video-only holder must not hide a dead
/// one), then without a packet of any kind for longest (a paused one whose RTCP still comes must not hide a dead one
/// either). Holders without any media come last.
fn candidate<'a>(now: Time, holders: impl Iterator<Item = &'a Holder>) -> Option<&'a Holder> {
    holders.max_by_key(|holder| {
        let last = holder.evidence.last_media().and(holder.evidence.last_any());
        let idle = last.map(|last| now.since(last));
        let has_audio = holder.evidence.audio.last.is_some();
        // Of equals always the same one, so that runs repeat.
        (idle.is_some(), has_audio, idle, Reverse(holder.session))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Id;
    use crate::input::Arrivals;

    const NOW: Time = Time::from_micros(100_000_000);
    const RULE: Rule =
        Rule { takeover: Takeover::DisplaceDead, dead_after: Duration::from_secs(2), poll: Duration::from_millis(100) };

    fn ago(ms: u64) -> Arrivals {
        Arrivals { count: 7, last: Some(NOW - Duration::from_millis(ms)) }
    }

    fn holder(index: u32, audio: Arrivals, video: Arrivals, control: Arrivals) -> Holder {
        Holder {
            session: Id::from_parts(index, 0),
            finished: false,
            newer: false,
            evidence: Evidence { audio, video, control },
        }
    }

    const NONE: Arrivals = Arrivals { count: 0, last: None };

    fn look(holders: &[Holder]) -> Look {
        RULE.look(NOW, holders, &Seen::default())
    }

    #[test]
    fn a_finished_candidate_is_waited_for() {
        let mut gone = holder(1, NONE, NONE, NONE);
        gone.finished = true;
        assert_eq!(look(&[holder(0, ago(5), ago(5), NONE), gone]), Look::Wait(NOW + RULE.poll));
    }

    #[test]
    fn a_holder_without_media_is_negotiating_even_if_rtcp_came() {
        assert_eq!(look(&[holder(0, NONE, NONE, NONE)]), Look::Refuse(RefuseReason::HolderNegotiating));
        assert_eq!(look(&[holder(0, NONE, NONE, ago(9000))]), Look::Refuse(RefuseReason::HolderNegotiating));
    }

    #[test]
    fn a_holder_without_audio_is_never_displaced() {
        assert_eq!(look(&[holder(0, NONE, ago(9000), NONE)]), Look::Refuse(RefuseReason::HolderWithoutAudio));
    }

    #[test]
    fn any_count_that_moved_since_the_last_look_is_life() {
        for moved in 0..3 {
            let before = holder(0, ago(5000), ago(5000), ago(5000));
            let mut seen = Seen::default();
            seen.remember(&[before]);
            assert_eq!(RULE.look(NOW, &[before], &seen), Look::Displace(before.session));
            let mut after = before;
            let arrivals = match moved {
                0 => &mut after.evidence.audio,
                1 => &mut after.evidence.video,
                _ => &mut after.evidence.control,
            };
            arrivals.count += 1;
            assert_eq!(RULE.look(NOW, &[after], &seen), Look::Refuse(RefuseReason::HolderLive));
        }
    }

    #[test]
    fn audio_frozen_is_not_enough_while_any_packet_comes() {
        let dead = holder(0, ago(2000), ago(2000), ago(2000));
        assert_eq!(look(&[dead]), Look::Displace(dead.session));
        let muted = holder(0, ago(9000), ago(1950), NONE);
        assert_eq!(look(&[muted]), Look::Wait(NOW + Duration::from_millis(50)));
        let reporting = holder(0, ago(9000), NONE, ago(1000));
        assert_eq!(look(&[reporting]), Look::Wait(NOW + RULE.poll));
    }

    #[test]
    fn the_look_falls_on_the_moment_of_death() {
        assert_eq!(look(&[holder(0, ago(1970), NONE, NONE)]), Look::Wait(NOW + Duration::from_millis(30)));
        assert_eq!(look(&[holder(0, ago(1999), NONE, NONE)]), Look::Wait(NOW + Duration::from_millis(1)));
    }

    #[test]
    fn a_quieter_video_only_holder_does_not_hide_a_dead_one() {
        let dead = holder(1, ago(2500), ago(2500), NONE);
        let quiet = holder(0, NONE, ago(9000), NONE);
        assert_eq!(look(&[quiet, dead]), Look::Displace(dead.session));
    }

    #[test]
    fn a_paused_holder_whose_rtcp_still_comes_does_not_hide_a_dead_one() {
        let dead = holder(1, ago(2500), ago(2500), NONE);
        let paused = holder(0, ago(9000), ago(9000), ago(300));
        assert_eq!(look(&[paused, dead]), Look::Displace(dead.session));
    }

    #[test]
    fn newest_wins_never_against_a_newer_one() {
        let rule = Rule { takeover: Takeover::NewestWins, ..RULE };
        let mut live = holder(0, ago(5), ago(5), NONE);
        assert_eq!(rule.look(NOW, &[live], &Seen::default()), Look::Displace(live.session));
        live.newer = true;
        assert_eq!(rule.look(NOW, &[live], &Seen::default()), Look::Refuse(RefuseReason::HolderNegotiating));
    }

    #[test]
    fn refuse_keeps_even_a_dead_holder() {
        let rule = Rule { takeover: Takeover::Refuse, ..RULE };
        let dead = holder(0, ago(9000), NONE, NONE);
        assert_eq!(rule.look(NOW, &[dead], &Seen::default()), Look::Refuse(RefuseReason::HolderLive));
        let silent = holder(0, NONE, NONE, NONE);
        assert_eq!(rule.look(NOW, &[silent], &Seen::default()), Look::Refuse(RefuseReason::HolderNegotiating));
    }
}
