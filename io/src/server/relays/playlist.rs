//! Playlists of providers on their way to players: every address in them leads here, and says under which playback.

use std::collections::BTreeMap;

use holdfast_core::input::{AccountId, Failure, Note, RequestId, Token};
use holdfast_core::time::Time;
use url::Url;

use super::{From, Granted};
use crate::hls::rewrite::{self, Kind, LowLatency, Rewriter, Variables};
use crate::hls::sealed::{self, Sealed};
use crate::http::Response;
use crate::providers::Forbidden;
use crate::routes;
use crate::server::Server;

/// How long the addresses in a playlist last without their playback, in seconds, counted from when its player began: a film of four
/// hours that is paused for one is asked for again by its old addresses. While a playback goes on they last as long as it does.
const LIFETIME: u64 = 6 * 60 * 60;

/// Of so many titles it is told that something is left out of their playlists.
const LACKING: usize = 4096;

/// What the addresses in a playlist have in common.
struct Common {
    token: Token,
    account: AccountId,
    index: u32,
    until: u64,
}

impl Server {
    /// What a player is told of a playlist that came from this URL, and why something was left out of it, if something was.
    pub(super) fn rewritten(
        &self,
        seconds: u64,
        request: RequestId,
        document: &[u8],
        base: &Url,
    ) -> Result<(Response, Option<String>), (Failure, String)> {
        let unusable = |why: &str| (Failure::Unusable, why.to_owned());
        let relay = self.relays.relays.get(&request).ok_or_else(|| unusable("it is over"))?;
        let granted = relay.granted.ok_or_else(|| unusable("it is over"))?;
        let Granted { index, account, token, .. } = granted;
        let token = token.ok_or_else(|| unusable("a playlist of something that has none"))?;
        let (from, up, asked) = (&relay.errand.from, relay.errand.up, relay.errand.ask.viewing);
        let (imported, until) = match from {
            From::Title(_) => (Variables::default(), seconds + LIFETIME),
            From::Child(sealed) => (sealed.variables.clone(), sealed.until),
            From::File(_) => return Err(unusable("files of this machine are no playlists")),
        };
        let common = Common { token, account, index, until };
        let rewriter = Rewriter {
            base,
            imported: &imported,
            // One connection at a time: a list that is held until there is more would keep its segments from coming.
            low_latency: LowLatency::Stripped,
            limits: rewrite::Limits::default(),
        };
        let unfit = |fault: rewrite::Fault| (Failure::Unusable, fault.to_string());
        let defined = rewrite::defined(document, &rewriter).map_err(unfit)?;
        let provider = self.asked_of(request).ok_or_else(|| unusable("it is over"))?;
        let address = |kind: sealed::Kind, url: &Url, variables: &Variables| {
            let Common { token, account, index, until } = common;
            let (user, item) = (asked.user, asked.item);
            let sealed = Sealed {
                kind,
                token,
                user,
                item,
                index,
                account,
                until,
                url: url.clone(),
                variables: if kind == sealed::Kind::Playlist { variables.clone() } else { Variables::default() },
            };
            Some(format!("{}hls/{}", "../".repeat(up), self.seal.seal(&sealed)?))
        };
        // Of each kind the first, with its line: another one may be refused for another reason.
        let mut forbidden: BTreeMap<Kind, (usize, Forbidden)> = BTreeMap::new();
        let mut replace = |line: usize, kind: Kind, url: &Url| match self.providers.may_be(provider, url) {
            Ok(()) if kind.is_json() => None,
            Ok(()) => address(kind.served(), url, &defined),
            Err(why) => {
                forbidden.entry(kind).or_insert((line, why));
                None
            }
        };
        let rewritten = rewriter.rewrite(document, &mut replace);
        let says = |fault: rewrite::Fault| {
            let rewrite::Fault::Refused { line, kind } = fault else { return fault.to_string() };
            let why = forbidden.get(&kind).filter(|(own, _)| *own == line);
            let why = why.map(|(_, why)| format!("line {line} of the playlist names a {kind:?}: {why}"));
            why.unwrap_or_else(|| fault.to_string())
        };
        let rewritten = rewritten.map_err(|fault| (Failure::Unusable, says(fault)))?;
        let missed = rewritten.missed.map(says);
        let starts = matches!(from, From::Title(_));
        if starts && !rewritten.multivariant && !rewritten.ended {
            // It is asked for again and again, and has to be known then: at an address of its own.
            let own = address(sealed::Kind::Playlist, base, &imported);
            let own = own.ok_or_else(|| unusable("the address of the provider's playlist is too long"))?;
            return Ok((routes::hls::only(&own), missed));
        }
        Ok((routes::hls::playlist_of(rewritten.text), missed))
    }

    /// Tells people that something is left out of a title's playlists: of each title once, since they are asked for every few
    /// seconds.
    pub(super) fn tell_missed(&mut self, now: Time, request: RequestId, why: &str) {
        let title = self.relays.relays.get(&request).and_then(|relay| relay.errand.ask.viewing.item.title());
        let Some((provider, title)) = self.asked_of(request).zip(title) else { return };
        if self.relays.lacking.len() < LACKING && self.relays.lacking.insert(title) {
            self.tell(now, Note::PlaylistFault { provider, title, why: why.to_owned() });
        }
    }
}
