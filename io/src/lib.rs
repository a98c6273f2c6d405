//! Moves bytes. Nothing here decides who may hold what.
//!
//! | room | question it answers |
//! |---|---|
//! | [`media`] | what crosses between the loop and the media threads? |
//! | [`sdp`] | is this offer, answer or fragment right, and what is in it? |
//! | [`http`] | what did the client ask, how is it answered on the wire? |
//! | [`ts`] | how do access units become MPEG-TS? |
//! | [`gst`] | how does a WHIP session get its media? |
//! | [`net`] | which socket is ready? |

pub mod http;
pub mod media;
pub mod sdp;
pub mod ts;

#[cfg(feature = "gst")]
pub mod gst;
#[cfg(feature = "net")]
pub mod net;
