//! Packets: an 18-byte header and a piece of a message or of a media unit, all integers big-endian.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::fault::Fault;

/// The length of a packet's header.
pub(super) const HEADER: usize = 18;
/// The longest payload of a packet: with its header it makes 32 KiB.
pub const MAX_PAYLOAD: usize = 32 * 1024 - HEADER;
/// The longest message a client takes. A description of a hundred tracks with their decoder configurations has 64 KiB.
pub const MAX_MESSAGE: usize = 256 * 1024;
/// The longest message an origin takes. Its bulk is a URL.
pub const MAX_REQUEST: usize = 64 * 1024;
/// The longest media unit, its header of 36 bytes included. A key frame of 100 Mbit/s video has about 2 MiB.
pub const MAX_UNIT: usize = 8 * 1024 * 1024;

const VERSION: u8 = 1;
const MARKER: u8 = 0x20;

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Response,
    Media,
}

impl Kind {
    fn number(self) -> u8 {
        match self {
            Kind::Request => 10,
            Kind::Response => 20,
            Kind::Media => 30,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        [Kind::Request, Kind::Response, Kind::Media].into_iter().find(|kind| kind.number() == number)
    }
}

/// The parts of a header that its reader acts on. Sequence numbers start anywhere and session ids mean nothing to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    kind: u8,
    last: bool,
    length: usize,
}

impl Header {
    fn read(bytes: &[u8; HEADER]) -> Result<Self, Fault> {
        let version = bytes[0] >> 6;
        if version != VERSION {
            return Err(Fault::Version(version));
        }
        let said = u16::from_be_bytes([bytes[16], bytes[17]]);
        let length = usize::from(said);
        if length > MAX_PAYLOAD {
            return Err(Fault::Length(said));
        }
        Ok(Header { kind: bytes[1], last: bytes[0] & MARKER != 0, length })
    }
}

/// The fields of the packets of one message or unit, all but the payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub(super) kind: Kind,
    /// Unix milliseconds for a message, the presentation time for media.
    pub(super) timestamp: u64,
    /// Of the first packet; each further one counts up, and wraps.
    pub(super) sequence: u16,
}

/// Cuts `payload` into packets behind one another in `out`. Gives the sequence number that follows.
pub(super) fn write(out: &mut BytesMut, stamp: Stamp, mut payload: impl Buf) -> u16 {
    let mut sequence = stamp.sequence;
    out.reserve(payload.remaining() + HEADER * (payload.remaining() / MAX_PAYLOAD + 1));
    loop {
        let length = payload.remaining().min(MAX_PAYLOAD);
        let marker = if length == payload.remaining() { MARKER } else { 0 };
        out.put_u8(VERSION << 6 | marker);
        out.put_u8(stamp.kind.number());
        out.put_u16(sequence);
        out.put_u64(stamp.timestamp);
        out.put_u32(0);
        out.put_uint(length as u64, 2);
        out.put((&mut payload).take(length));
        sequence = sequence.wrapping_add(1);
        if marker != 0 {
            return sequence;
        }
    }
}

/// What an [`Assembler`] does with media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Keep,
    /// Reads past it, so that a peer that sends some costs no memory.
    Skip,
}

/// What was put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Assembled {
    /// A whole message, at least one byte, and the kind of its last packet.
    Message(Kind, Bytes),
    /// A whole media unit.
    Unit(Bytes),
    /// A packet of this type is being read past.
    Skipped(u8),
}

/// Puts messages and media units together. They are kept apart, so that a message may come between the packets of a unit.
#[derive(Debug)]
pub(super) struct Assembler {
    media: Media,
    max_message: usize,
    input: BytesMut,
    state: State,
    message: BytesMut,
    unit: BytesMut,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Header,
    Payload {
        /// `None` for what is read past.
        kind: Option<Kind>,
        last: bool,
        left: usize,
    },
}

impl Assembler {
    pub(super) fn new(media: Media, max_message: usize) -> Self {
        let (input, message, unit) = Default::default();
        Assembler { media, max_message, input, state: State::Header, message, unit }
    }

    pub(super) fn receive(&mut self, data: &[u8]) {
        self.input.extend_from_slice(data);
    }

    /// Bytes that were received and not yet looked at.
    pub(super) fn waiting(&self) -> usize {
        self.input.len()
    }

    /// The next thing that is complete; `None` if more is needed. After a fault there is nothing more.
    pub(super) fn next(&mut self) -> Result<Option<Assembled>, Fault> {
        loop {
            match self.state {
                State::Header => {
                    let Some(bytes) = self.input.first_chunk::<HEADER>() else {
                        return Ok(None);
                    };
                    let header = Header::read(bytes)?;
                    self.input.advance(HEADER);
                    let kind =
                        Kind::from_number(header.kind).filter(|kind| *kind != Kind::Media || self.media == Media::Keep);
                    self.admit(kind, header.length)?;
                    self.state = State::Payload { kind, last: header.last, left: header.length };
                    if kind.is_none() {
                        return Ok(Some(Assembled::Skipped(header.kind)));
                    }
                }
                State::Payload { kind, last, left } => {
                    let took = left.min(self.input.len());
                    match kind {
                        Some(Kind::Media) => self.unit.extend_from_slice(&self.input[..took]),
                        Some(Kind::Request | Kind::Response) => self.message.extend_from_slice(&self.input[..took]),
                        None => {}
                    }
                    self.input.advance(took);
                    let left = left - took;
                    if left > 0 {
                        self.state = State::Payload { kind, last, left };
                        return Ok(None);
                    }
                    self.state = State::Header;
                    match kind {
                        Some(Kind::Media) if last => {
                            return Ok(Some(Assembled::Unit(std::mem::take(&mut self.unit).freeze())));
                        }
                        Some(_) if last && self.message.is_empty() => return Err(Fault::EmptyMessage),
                        Some(kind) if last => {
                            return Ok(Some(Assembled::Message(kind, std::mem::take(&mut self.message).freeze())));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Whether so many more bytes may be kept.
    fn admit(&self, kind: Option<Kind>, length: usize) -> Result<(), Fault> {
        match kind {
            Some(Kind::Media) if self.unit.len() + length > MAX_UNIT => Err(Fault::UnitTooLong(MAX_UNIT)),
            Some(Kind::Request | Kind::Response) if self.message.len() + length > self.max_message => {
                Err(Fault::MessageTooLong(self.max_message))
            }
            _ => Ok(()),
        }
    }
}
