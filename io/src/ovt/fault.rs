//! What was wrong with what a peer sent, and what was merely passed over.

use std::fmt;
use std::mem::{Discriminant, discriminant};

use super::packet::MAX_PAYLOAD;

/// A conversation that cannot go on: the connection is to be closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A packet of another version than 1; most likely the peer does not speak OVT.
    Version(u8),
    /// A packet says it is longer than a packet can be. Waiting for it would be waiting for ever.
    Length(u16),
    /// A message is longer than is allowed here, in bytes.
    MessageTooLong(usize),
    /// A message without content.
    EmptyMessage,
    /// A media unit is longer than is allowed here, in bytes.
    UnitTooLong(usize),
    /// A media unit is shorter than its own header.
    UnitTooShort(usize),
    /// A media unit says it has another size than it has.
    UnitSize {
        /// What its header says.
        said: u32,
        /// What followed the header.
        came: usize,
    },
    /// A message is not a JSON object.
    Json,
    /// An answer lacks something that every answer has, or answers another request.
    Answer(&'static str),
    /// A description cannot be used.
    Description(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Version(version) => write!(f, "a packet has version {version}, OVT has version 1"),
            Fault::Length(length) => {
                write!(f, "a packet says it has {length} bytes, at most {MAX_PAYLOAD} are allowed")
            }
            Fault::MessageTooLong(most) => write!(f, "a message is longer than {most} bytes"),
            Fault::EmptyMessage => write!(f, "a message is empty"),
            Fault::UnitTooLong(most) => write!(f, "a media unit is longer than {most} bytes"),
            Fault::UnitTooShort(length) => write!(f, "a media unit has {length} bytes, its header alone has 36"),
            Fault::UnitSize { said, came } => write!(f, "a media unit says it has {said} bytes, {came} came"),
            Fault::Json => write!(f, "a message is not a JSON object"),
            Fault::Answer(what) => write!(f, "an answer {what}"),
            Fault::Description(what) => write!(f, "the description {what}"),
        }
    }
}

impl std::error::Error for Fault {}

/// Something that was passed over; the conversation goes on. Each kind is reported once per connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// A packet of this type, which has no meaning in this direction.
    Packet(u8),
    /// A message that nobody waits for.
    Message,
    /// A track in a description that lacks something.
    Track,
    /// A unit of a track, by id, that was not described.
    UnknownTrack(u32),
    /// A unit of a track, by id, whose payload or times cannot be used.
    Payload(u32),
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ignored::Packet(kind) => write!(f, "a packet of type {kind}"),
            Ignored::Message => write!(f, "a message that was not asked for"),
            Ignored::Track => write!(f, "a track that is not fully described"),
            Ignored::UnknownTrack(id) => write!(f, "media of track {id}, which was not described"),
            Ignored::Payload(id) => write!(f, "media of track {id} that its codec does not allow"),
        }
    }
}

/// Which kinds were reported. At most one entry for each.
#[derive(Debug, Default)]
pub(super) struct Reported(Vec<Discriminant<Ignored>>);

impl Reported {
    /// Lets the first of each kind pass.
    pub(super) fn first(&mut self, ignored: Ignored) -> Option<Ignored> {
        let kind = discriminant(&ignored);
        if self.0.contains(&kind) {
            return None;
        }
        self.0.push(kind);
        Some(ignored)
    }
}
