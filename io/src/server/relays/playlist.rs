//! Playlists of providers on their way to players: every address in them leads here, and says under which playback.

use holdfast_core::input::{AccountId, Failure, RequestId, Token};
use url::Url;

use super::{From, Granted};
use crate::hls::rewrite::{self, Kind, LowLatency, Rewriter, Variables};
use crate::hls::sealed::{self, Sealed};
use crate::http::Response;
use crate::providers;
use crate::routes;
use crate::server::Server;

/// How long the addresses in a playlist last without their playback, in seconds, counted from when its player began: a film of four
/// hours that is paused for one is asked for again by its old addresses. While a playback goes on they last as long as it does.
const LIFETIME: u64 = 6 * 60 * 60;

/// What the addresses in a playlist have in common.
struct Common {
    token: Token,
    account: AccountId,
    index: u32,
    until: u64,
}

impl Server {
    /// What a player is told of a playlist that came from this URL.
    pub(super) fn rewritten(
        &self,
        seconds: u64,
        request: RequestId,
        document: &[u8],
        base: &Url,
    ) -> Result<Response, (Failure, String)> {
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
        let refused = |fault: rewrite::Fault| (Failure::Unusable, fault.to_string());
        let defined = rewrite::defined(document, &rewriter).map_err(refused)?;
        let allow_private = self.allows_private(request);
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
        let mut replace = |kind: Kind, url: &Url| {
            // What is JSON has addresses in it that nobody would replace.
            let hidden = matches!(kind, Kind::Steering | Kind::AssetList);
            let reachable = allow_private || !providers::names_private(url);
            (reachable && !hidden).then(|| address(kind.served(), url, &defined))?
        };
        let rewritten = rewriter.rewrite(document, &mut replace).map_err(refused)?;
        let starts = matches!(from, From::Title(_));
        if starts && !rewritten.multivariant && !rewritten.ended {
            // It is asked for again and again, and has to be known then: at an address of its own.
            let own = address(sealed::Kind::Playlist, base, &imported);
            let own = own.ok_or_else(|| unusable("the address of the provider's playlist is too long"))?;
            return Ok(routes::hls::only(&own));
        }
        Ok(routes::hls::playlist_of(rewritten.text))
    }
}
