//! Moves bytes. Nothing here decides who may hold what.
//!
//! | room | question it answers |
//! |---|---|
//! | [`server`] | what does a connection do next, and what becomes of a session's bytes? |
//! | [`routes`] | which request means what? |
//! | `signer` | what do addresses prove? |
//! | [`media`] | what crosses between the loop and the media threads? |
//! | [`origin`] | where does a channel come from? |
//! | [`sdp`] | is this offer, answer or fragment right, and what is in it? |
//! | [`http`] | what did the client ask, how is it answered on the wire? |
//! | `catalog` | what is there to play? |
//! | `providers` | what do providers have, and where is it fetched? |
//! | [`library`] | which films and series are files of this machine? |
//! | [`users`] | who may log in, and from where? |
//! | [`hls`] | what is in a playlist? |
//! | [`ovt`] | how is a channel fetched from an OvenMediaEngine origin, and served to its edges? |
//! | [`ts`] | how do access units become MPEG-TS, and how do other people's streams become ours? |
//! | [`codec`] | what does coded media say of itself? |
//! | [`gst`] | how does a WHIP session get its media? |
//! | [`net`] | which socket is ready? |

mod catalog;
pub mod codec;
pub mod hls;
pub mod http;
pub mod library;
pub mod media;
pub mod origin;
pub mod ovt;
pub mod providers;
pub mod routes;
pub mod sdp;
pub mod server;
mod signer;
pub mod ts;
pub mod users;

#[cfg(feature = "gst")]
pub mod gst;
#[cfg(feature = "net")]
pub mod net;
