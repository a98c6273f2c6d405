//! Streams that come over OVT.

use holdfast_core::input::{Input, Loss, Refusal, SourceId, Writer};
use holdfast_core::time::Time;

use super::{Means, Source};
use crate::codec::Codec;
use crate::media::Unit;
use crate::ovt::{self, ClientEvent};
use crate::server::{Action, Server};
use crate::ts::Tracks;

impl Server {
    pub(super) fn converse(&mut self, now: Time, id: SourceId) {
        while let Some(Source { means: Means::Ovt(conversation), .. }) = self.sources.sources.get_mut(&id) {
            let (link, event) = (conversation.link, conversation.client.poll());
            self.actions.push_back(Action::WriteLink(link));
            let Some(event) = event else { return };
            match event {
                ClientEvent::Described(description) if self.instance().named(&description.uuid) => {
                    let why = String::from("the origin gets this stream from here");
                    return self.source_lost(now, id, Loss::Loop, why);
                }
                ClientEvent::Described(description) => {
                    self.described(id, &description.tracks);
                    let channel = self.sources.sources.get(&id).map(|source| source.channel);
                    if let Some(own) = channel.and_then(|channel| self.channel_mut(channel)) {
                        own.uuid = Some(description.uuid).filter(|uuid| !uuid.is_empty());
                    }
                }
                ClientEvent::TracksChanged(tracks) => self.described(id, &tracks),
                ClientEvent::Playing => self.decide(now, Input::Opened { source: id }),
                ClientEvent::Unit(unit) => self.ovt_unit(now, id, unit),
                ClientEvent::NotFound { message } => {
                    return self.source_lost(now, id, Loss::NotFound, self.quoted(id, &message));
                }
                ClientEvent::NotStarted => {
                    let why = String::from("the stream has not started");
                    return self.source_lost(now, id, Loss::Refused, why);
                }
                ClientEvent::Refused { code, message } => {
                    let why = format!("the origin answers {code}: {}", self.quoted(id, &message));
                    return self.source_lost(now, id, Refusal::of(code).into(), why);
                }
                ClientEvent::Ignored(_) => {}
                ClientEvent::Fault(fault) => return self.source_lost(now, id, Loss::Unusable, fault.to_string()),
            }
        }
    }

    fn instance(&self) -> ovt::Instance {
        ovt::Instance(self.settings.instance)
    }

    /// Takes the first picture, and the first sound that most players know: set-top boxes and browsers have no Opus in MPEG-TS.
    fn described(&mut self, id: SourceId, tracks: &[ovt::Track]) {
        let Some(Source { means: Means::Ovt(conversation), muxer: Some(muxer), .. }) =
            self.sources.sources.get_mut(&id)
        else {
            return;
        };
        let video = tracks.iter().find(|track| track.codec.is_video());
        let sounds = || tracks.iter().filter(|track| !track.codec.is_video());
        let audio = sounds().find(|track| track.codec != Codec::Opus).or_else(|| sounds().next());
        conversation.taken = [video, audio].map(|track| track.map(|track| track.id));
        let [video, audio] = [video, audio].map(|track| track.map(|track| track.codec));
        muxer.session(Writer::Source(id), Tracks { audio, video });
    }

    fn ovt_unit(&mut self, now: Time, id: SourceId, unit: ovt::Unit) {
        let Some(Source { means: Means::Ovt(conversation), .. }) = self.sources.sources.get_mut(&id) else { return };
        let ovt::Unit { track, codec, pts, dts, key, data } = unit;
        if !conversation.taken.contains(&Some(track)) {
            return;
        }
        let first = *conversation.first.get_or_insert(dts);
        let unit = Unit { from: Writer::Source(id), codec, pts: pts - first, dts: dts - first, key, data };
        self.source_unit(now, id, &unit);
    }
}
