//! What people call those that have a number: the same in every text, also where a whole input or row is printed.
//!
//! People count from 1 what stands in the configuration in order. Requests have the number that the server gave them.

use core::fmt;

use super::{AccountId, ChannelId, EndpointId, ProviderId, RequestId, TitleId, Token, UserId, Writer};
use crate::account::Holder;

macro_rules! called {
    ($($kind:ty: |$own:ident, $f:ident| $write:expr,)+) => {
        $(
            impl fmt::Display for $kind {
                fn fmt(&self, $f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    let $own = self;
                    $write
                }
            }

            impl fmt::Debug for $kind {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    write!(f, "{self}")
                }
            }
        )+
    };
}

called! {
    EndpointId: |own, f| write!(f, "endpoint {}", u64::from(own.0) + 1),
    ChannelId: |own, f| write!(f, "channel {}", u64::from(own.0) + 1),
    UserId: |own, f| write!(f, "user {}", u64::from(own.0) + 1),
    ProviderId: |own, f| write!(f, "provider {}", u64::from(own.0) + 1),
    AccountId: |own, f| write!(f, "account {}", u64::from(own.0) + 1),
    TitleId: |own, f| write!(f, "title {:x}", own.0),
    RequestId: |own, f| write!(f, "request {}", own.0),
    // Enough to tell two apart; whoever knows all of it may play.
    Token: |own, f| write!(f, "token {:02x}{:02x}…", own.0[0], own.0[1]),
    Writer: |own, f| match own {
        Writer::Session(session) => write!(f, "session {session}"),
        Writer::Source(source) => write!(f, "source {source}"),
    },
    Holder: |own, f| match own {
        Holder::Playback(playback) => write!(f, "playback {playback}"),
        Holder::Source(source) => write!(f, "source {source}"),
        Holder::Probe(request) => write!(f, "the probe of {request}"),
    },
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::id::Id;

    #[test]
    fn whoever_has_a_number_is_called_in_words_also_within_something_else() {
        let account = AccountId(0);
        assert_eq!(format!("{account} {:?}", Some(account)), "account 1 Some(account 1)");
        let writer = Writer::Source(Id::from_parts(3, 1));
        assert_eq!(format!("{writer}, {:?}", RequestId(366)), "source 3.1, request 366");
        assert_eq!(format!("{:?}", Holder::Probe(RequestId(7))), "the probe of request 7");
        assert_eq!(format!("{}, {}", UserId(u32::MAX), TitleId(0xfe)), "user 4294967296, title fe");
    }

    #[test]
    fn a_token_is_not_told() {
        let text = format!("{:?}", Token([0xcb; 16]));
        assert_eq!(text, "token cbcb…");
    }
}
