//! Users that log in: who is behind a request, and from where it comes.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use holdfast_core::input::{Note, RefuseReason, RequestId, TitleId, UserId};

use super::{Call, Server};
use crate::hls::sealed::{NotOurs, Sealed};
use crate::http::{Request, Response, Via};
use crate::providers::{Kind, Title};
use crate::{routes, users};

/// What a login came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// It is this user.
    Is(UserId),
    /// It is nobody.
    Wrong,
    /// Nobody looked: too many from its address failed. How long it should wait.
    TooMany(Duration),
}

impl Server {
    /// What is told to whoever asked for a live title as MPEG-TS, which came to nothing, where it is to be had as HLS since.
    pub(super) fn beside(&self, request: RequestId, reason: RefuseReason) -> Option<Response> {
        let (title, id) = self.connections.get(*self.requests.get(&request)?)?.title?;
        let known = self.providers.find(Kind::Live, id).filter(|known| known.title == title)?;
        (reason == RefuseReason::NoSource && known.extension == "m3u8").then(|| routes::title::playlist_of(id))
    }
}

impl Call<'_> {
    /// It asks for a live title as MPEG-TS.
    pub fn asks_for_title(&mut self, title: TitleId, id: u32) {
        if let Some(connection) = self.server.connections.get_mut(self.id) {
            connection.title = Some((title, id));
        }
    }

    /// Who that is. Failures count against the address that they come from.
    pub fn log_in(&mut self, request: &Request, name: &str, password: &str) -> Attempt {
        let client = self.client(request);
        let known = self.server.guesses.is_known(self.now, client, name, password);
        let mut locked = None;
        if !known {
            if let Some(wait) = self.server.guesses.exhausted(self.now, client, name, password) {
                return Attempt::TooMany(wait);
            }
            if let Some(user) = self.server.users.find(name, password) {
                self.server.guesses.succeeded(self.now, client, name, password);
                return Attempt::Is(user);
            }
            locked = self.server.guesses.failed(self.now, client, name, password);
        }
        self.server.failed_logins += 1;
        let (peer, user) = (client.to_string(), self.server.users.named(name));
        self.server.tell(self.now, Note::LoginFailed { peer: peer.clone(), user, failures: 1 });
        if let Some(wait) = locked {
            let wait = wait.as_micros() as u64;
            self.server.tell(self.now, Note::LoginsLocked { peer, wait, addresses: 1 });
        }
        Attempt::Wrong
    }

    /// The title that addresses name so, if the user may have it.
    pub fn title(&self, user: UserId, kind: Kind, id: u32) -> Option<Title> {
        self.server.providers.find(kind, id).filter(|title| self.may_play(user, title.title))
    }

    /// Whether it is in a group that the user may see.
    pub fn may_play(&self, user: UserId, title: TitleId) -> bool {
        let groups = self.server.users.get(user).map_or(&[][..], |own| &own.groups);
        self.server.providers.permits(title, groups)
    }

    /// Through which servers a request came; `None` if it is one of our own that came back. Providers that are not told of
    /// those give that away by their addresses: nobody else asks here for what one of them is just asked for, with its account.
    pub fn came_through(&self, request: &Request) -> Option<Via> {
        let own = self.server.relays.ask(request) || self.server.sources.ask(request);
        Via::of(&request.headers, &self.server.settings.pseudonym()).ok().filter(|_| !own)
    }

    /// What an address that was sealed here stands for. As long as its playback goes on it is not over, however old it is.
    ///
    /// # Errors
    /// If it was not, or is over.
    pub fn opened(&self, text: &str) -> Result<Sealed, NotOurs> {
        let sealed = self.server.seal.open(text)?;
        let now = self.wall();
        let lives = now < sealed.until || self.server.edge().playback().is_known(sealed.token);
        lives.then_some(sealed).ok_or(NotOurs)
    }

    /// The address of the player, behind the proxies that are trusted.
    pub fn client(&self, request: &Request) -> IpAddr {
        let Some(peer) = self.peer() else { return IpAddr::from(Ipv4Addr::UNSPECIFIED) };
        let forwarded: Vec<&str> = request.headers.get_all("X-Forwarded-For").collect();
        let real = request.headers.get("X-Real-IP");
        users::client(peer, &self.server.settings.trusted_proxies, forwarded.into_iter(), real)
    }

    /// Scheme, and host with port, by which the client reached this server.
    pub fn origin(&self, request: &Request) -> (&'static str, String) {
        let proxied = || {
            let trusted = &self.server.settings.trusted_proxies;
            let peer = self.peer()?.ip().to_canonical();
            trusted.iter().any(|network| network.contains(&peer)).then(|| request.headers.get("X-Forwarded-Proto"))?
        };
        let secure = proxied().map_or(self.server.settings.secure, |scheme| scheme.eq_ignore_ascii_case("https"));
        (if secure { "https" } else { "http" }, request.authority.clone())
    }

    /// What addresses on this server begin with for this client, without the `/` behind it.
    pub fn base(&self, request: &Request) -> String {
        let (scheme, authority) = self.origin(request);
        format!("{scheme}://{authority}")
    }
}
