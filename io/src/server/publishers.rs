//! Publishers, as far as moving their bytes goes: offers that wait, session URLs, evidence, one muxer a slot.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::input::{
    EndReason, EndpointId, Env, Evidence, FeedId, Input, Note, Output, RequestId, SessionId, Writer,
};
use holdfast_core::slots::Hold;
use holdfast_core::time::Time;

use super::{Action, ConnId, Server};
use crate::codec::Codec;
use crate::http::Status;
use crate::media::{Activity, MediaCommand, MediaEvent, SessionSettings, Unit};
use crate::routes;
use crate::sdp::{self, Credentials, Offer};
use crate::ts::{Muxer, Tracks};

/// One publisher's session, from its start until nothing of it is left.
#[derive(Debug)]
pub struct Publisher {
    /// Where it publishes.
    pub endpoint: EndpointId,
    /// Its slot and tenancy.
    pub hold: Hold,
    /// Its feed.
    pub feed: FeedId,
    /// The unguessable last part of its URL, 32 hexadecimal digits.
    pub secret: String,
    /// What it offered.
    pub tracks: Tracks,
    /// What its media threads write.
    pub activity: Arc<Activity>,
    /// What the client got; empty until it was answered.
    pub answer: String,
    /// Counts ICE sessions, from 1: the entity tag.
    pub ice: u64,
    /// The client's present ICE credentials.
    pub credentials: Credentials,
    /// The connection that waits for a restart, and the credentials that it brought.
    pub(crate) restart: Option<(ConnId, Credentials)>,
    /// The POST that has no answer yet.
    request: Option<RequestId>,
    /// Whether it is over, and only its teardown goes on.
    pub finished: bool,
}

impl Publisher {
    /// The strong entity tag of its present ICE session, in quotes.
    pub fn etag(&self) -> String {
        format!("\"{}\"", self.ice)
    }
}

/// All publishers.
#[derive(Default)]
pub struct Publishers {
    sessions: BTreeMap<SessionId, Publisher>,
    secrets: BTreeMap<String, SessionId>,
    offers: BTreeMap<RequestId, Box<Offer>>,
    /// Why the offer that is being refused could not be negotiated.
    fault: Option<(RequestId, String)>,
    muxers: BTreeMap<FeedId, Muxer>,
    /// URLs of sessions that ended lately, oldest first, so that a publisher can be told why.
    ended: VecDeque<(String, EndReason)>,
    /// Sessions that are being taken down, and until when that may take, in this order.
    ending: VecDeque<(Time, SessionId)>,
}

/// How many ended sessions are remembered.
const ENDED: usize = 256;

/// How long the media side may take to take a session down. It needs some 25 ms; one that hangs in its libraries may never be
/// done, and must hold up neither the memory of its session nor the end of the program.
const TEARDOWN: Duration = Duration::from_secs(3);

impl Publishers {
    /// Whether nothing of any session is left.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Sessions, those that are being taken down among them, and offers that may become one.
    pub(crate) fn claims(&self) -> usize {
        self.sessions.len() + self.offers.len()
    }

    /// The session of an id.
    pub fn get(&self, id: SessionId) -> Option<&Publisher> {
        self.sessions.get(&id)
    }

    /// The session behind the last part of a session URL; one that is over has none.
    pub fn by_secret(&self, secret: &str) -> Option<SessionId> {
        self.secrets.get(secret).copied()
    }

    /// Why the session behind the last part of a session URL ended, if that was not long ago.
    pub fn end_of(&self, secret: &str) -> Option<EndReason> {
        self.ended.iter().rev().find(|(own, _)| own == secret).map(|(_, reason)| *reason)
    }

    /// The muxer of a slot, once it had a session.
    pub fn muxer(&self, feed: FeedId) -> Option<&Muxer> {
        self.muxers.get(&feed)
    }

    pub(crate) fn get_mut(&mut self, id: SessionId) -> Option<&mut Publisher> {
        self.sessions.get_mut(&id)
    }

    pub(crate) fn keep_offer(&mut self, request: RequestId, offer: Offer) {
        self.offers.insert(request, Box::new(offer));
    }

    pub(super) fn forget_offer(&mut self, request: RequestId) {
        self.offers.remove(&request);
    }

    pub(super) fn take_fault(&mut self, request: RequestId) -> Option<String> {
        self.fault.take_if(|(refused, _)| *refused == request).map(|(_, why)| why)
    }

    /// When [`Publishers::stuck`] has something.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.ending.front().map(|(until, _)| *until)
    }

    /// The next session whose teardown takes too long.
    pub(super) fn stuck(&self, now: Time) -> Option<SessionId> {
        self.ending.front().filter(|(until, _)| *until <= now).map(|(_, session)| *session)
    }

    pub(super) fn restart_abandoned(&mut self, session: SessionId, by: ConnId) {
        if let Some(publisher) = self.sessions.get_mut(&session) {
            publisher.restart.take_if(|(id, _)| *id == by);
        }
    }
}

/// What the core may ask of outside.
pub(super) struct Outside<'a> {
    pub publishers: &'a Publishers,
    pub entropy: &'a mut (dyn FnMut() -> [u8; 16] + Send),
}

impl Env for Outside<'_> {
    fn activity(&mut self, session: SessionId) -> Evidence {
        self.publishers.sessions.get(&session).map(|publisher| publisher.activity.evidence()).unwrap_or_default()
    }

    fn entropy(&mut self) -> [u8; 16] {
        (self.entropy)()
    }
}

impl Server {
    /// Does what the core says about a session.
    pub(super) fn execute_media(&mut self, now: Time, output: Output) {
        match output {
            Output::Start { session, request, endpoint, hold, feed, secret } => {
                let Some(offer) = self.publishers.offers.remove(&request) else {
                    return self.inbox.push_back(Input::End { session, reason: EndReason::ClientGone });
                };
                let secret = self.signer.resource(secret);
                let activity = Arc::new(Activity::default());
                let offers = |kind| offer.sections.iter().any(|section| section.kind == kind);
                let tracks = Tracks {
                    audio: offers(sdp::Kind::Audio).then_some(self.settings.audio),
                    video: offers(sdp::Kind::Video).then_some(Codec::H264),
                };
                let publisher = Publisher {
                    endpoint,
                    hold,
                    feed,
                    secret: secret.clone(),
                    tracks,
                    activity: activity.clone(),
                    answer: String::new(),
                    ice: 1,
                    credentials: offer.credentials.clone(),
                    restart: None,
                    request: Some(request),
                    finished: false,
                };
                self.publishers.secrets.insert(secret, session);
                self.publishers.sessions.insert(session, publisher);
                self.publishers.muxers.entry(feed).or_default().session(Writer::Session(session), tracks);
                let settings = self.session_settings(endpoint);
                let start = MediaCommand::Start { session, offer, activity, settings };
                self.actions.push_back(Action::Media(start));
            }
            Output::Finish { session, reason } => {
                self.inbox.push_back(Input::Released { session });
                if let Some(publisher) = self.publishers.sessions.get_mut(&session) {
                    publisher.finished = true;
                    publisher.activity.finish();
                    self.publishers.secrets.remove(&publisher.secret);
                    if self.publishers.ended.len() == ENDED {
                        self.publishers.ended.pop_front();
                    }
                    self.publishers.ended.push_back((publisher.secret.clone(), reason));
                    self.publishers.ending.push_back((now + TEARDOWN, session));
                    self.actions.push_back(Action::Media(MediaCommand::Finish { session }));
                }
            }
            Output::KeyFrame { session } => self.actions.push_back(Action::Media(MediaCommand::KeyFrame { session })),
            Output::Rebuild { session } => {
                if let Some(publisher) = self.publishers.sessions.get(&session)
                    && let Some(muxer) = self.publishers.muxers.get_mut(&publisher.feed)
                {
                    muxer.session(Writer::Session(session), publisher.tracks);
                }
                self.actions.push_back(Action::Media(MediaCommand::Rebuild { session }));
            }
            _ => {}
        }
    }

    fn session_settings(&self, endpoint: EndpointId) -> SessionSettings {
        let endpoint = self.edge().config().endpoints.get(endpoint.0 as usize);
        let endpoint = endpoint.cloned().unwrap_or_default();
        SessionSettings { jitter: endpoint.jitter, max_video_bitrate: endpoint.max_video_bitrate }
    }

    pub(super) fn on_media(&mut self, now: Time, event: MediaEvent) {
        match event {
            MediaEvent::Unit(unit) => match unit.from {
                Writer::Session(session) => self.on_unit(now, session, &unit),
                Writer::Source(source) => self.source_unit(now, source, &unit),
            },
            MediaEvent::SourceOpened { source } => self.decide(now, Input::Opened { source }),
            MediaEvent::SourceData { source, data } => self.stream(now, source, &data),
            MediaEvent::SourceLost { source, loss, why } => self.source_lost(now, source, loss, why),
            MediaEvent::Answered { session, answer } => {
                if let Some(publisher) = self.publishers.sessions.get_mut(&session) {
                    (publisher.answer, publisher.request) = (answer, None);
                }
                self.decide(now, Input::Answered { session });
            }
            MediaEvent::Failed { session, why } => {
                let waiting = self.publishers.sessions.get(&session).and_then(|own| Some((own.request?, own.endpoint)));
                if let Some((request, endpoint)) = waiting {
                    let status = Status::UNPROCESSABLE_CONTENT.code();
                    let from = self.address_of(request);
                    self.tell(now, Note::RequestRefused { endpoint, status, from, why: why.clone() });
                    self.publishers.fault = Some((request, why));
                }
                self.decide(now, Input::End { session, reason: EndReason::NegotiationFailed });
            }
            MediaEvent::Ended { session, reason } => self.decide(now, Input::End { session, reason }),
            MediaEvent::Restarted { session, ufrag, pwd } => {
                let Some(publisher) = self.publishers.sessions.get_mut(&session) else { return };
                let Some((id, credentials)) = publisher.restart.take() else { return };
                publisher.credentials = credentials;
                publisher.ice += 1;
                let fragment = sdp::restart_fragment(&publisher.answer, &ufrag, &pwd);
                let answer = routes::whip::restarted(&publisher.etag(), fragment);
                self.answer_restart(now, id, answer);
            }
            MediaEvent::RestartFailed { session, why } => {
                let Some(publisher) = self.publishers.sessions.get_mut(&session) else { return };
                let Some((id, _)) = publisher.restart.take() else { return };
                self.answer_restart(now, id, routes::whip::restart_failed(&why));
            }
            MediaEvent::Gone { session } => {
                self.publishers.ending.retain(|(_, own)| *own != session);
                if let Some(publisher) = self.publishers.sessions.remove(&session) {
                    self.publishers.secrets.remove(&publisher.secret);
                    if let Some((id, _)) = publisher.restart {
                        self.answer_restart(now, id, routes::whip::no_session(None));
                    }
                    if !publisher.finished {
                        self.decide(now, Input::End { session, reason: EndReason::IceFailed });
                    }
                }
            }
        }
    }

    /// An access unit goes into the slot's feed, if its session still holds the slot.
    fn on_unit(&mut self, now: Time, session: SessionId, unit: &Unit) {
        let Some(publisher) = self.publishers.sessions.get(&session).filter(|publisher| !publisher.finished) else {
            return;
        };
        let feed = publisher.feed;
        let Some(muxer) = self.publishers.muxers.get_mut(&feed) else { return };
        let chunk = muxer.push(unit);
        if muxer.awaits_key_frame() {
            self.decide(now, Input::KeyFrameWanted { feed });
        }
        if let Some(chunk) = chunk {
            let from = unit.from;
            let random_access = chunk.random_access.then_some(chunk.pts);
            self.decide(now, Input::Media { feed, from, data: chunk.data.clone(), random_access });
            self.follow(now, feed, &chunk.data);
        }
    }
}
