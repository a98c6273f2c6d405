//! OVT, the protocol between the origins and edges of OvenMediaEngine: bytes in, events out, bytes out. No sockets, no clock.
//!
//! There are two doors. [`Client`] is an edge that fetches one stream from an origin; [`Origin`] is one connection of an
//! edge that fetches from us, and [`Packetizer`] makes the media of a stream for all of its edges at once. Messages and media
//! share a connection in packets of at most [`MAX_PAYLOAD`] bytes; messages are JSON.
//!
//! The protocol announces version 18 since release 0.16, yet its numbers for codecs moved in 0.19. [`Generation`] says whose
//! numbers are spoken; a [`Client`] finds out by itself from what it gets.
//!
//! | file | question it answers |
//! |---|---|
//! | `packet` | where do messages and media units begin and end? |
//! | `unit` | what does a media unit say of its frame? |
//! | `message` | what is asked, what is answered? |
//! | `json` | how does OvenMediaEngine write JSON? |
//! | `description` | which tracks does a stream have, and what is known of them? |
//! | `generation` | which codec does a number mean? |
//! | `payload` | which codec do these bytes look like, and do they come in the shape the muxer takes? |
//! | `client` | what does an edge say next? |
//! | `origin` | what does an edge want of us? |
//! | `packetizer` | how do frames become packets? |
//! | `instance` | is this stream one of our own? |
//! | `fault` | what was wrong? |

mod client;
mod description;
mod fault;
mod generation;
mod instance;
mod json;
mod message;
mod origin;
mod packet;
mod packetizer;
mod payload;
mod unit;

#[cfg(test)]
mod tests;

pub use client::{Client, ClientEvent, Unit};
pub use description::{Description, Incomplete, Media, Picture, Sound, Timebase, Track};
pub use fault::{Fault, Ignored};
pub use generation::Generation;
pub use instance::Instance;
pub use message::Application;
pub use origin::{Notify, Origin, OriginEvent, OriginSettings, Request};
pub use packet::{MAX_MESSAGE, MAX_PAYLOAD, MAX_REQUEST, MAX_UNIT};
pub use packetizer::{Frame, Packetizer};

/// Milliseconds since 1970-01-01 00:00 UTC, as messages are stamped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnixMillis(pub u64);
