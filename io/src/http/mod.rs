//! HTTP/1.1: bytes in, events out, bytes out. No sockets, no clock.
//!
//! [`Connection`] is the door of the server side, [`client::Exchange`] that of the client side. A driver gives it what the peer sent ([`Connection::receive`]), takes what it has for the
//! peer ([`Connection::output`]), and the server around it turns [`Event`]s into [`Response`]s. Syntax of heads is
//! httparse's; framing, limits and the rules against request smuggling (RFC 9112 §6.3, §11.2) are here.
//!
//! | file | question it answers |
//! |---|---|
//! | `connection` | what may happen next on this connection? |
//! | `head` | is this head right, and where does its message end? |
//! | `target` | what does the request line name? |
//! | `chunked` | where do the chunks of a body end? |
//! | `field` | which header fields came, which may go out? |
//! | `response` | how is it answered? |
//! | `range` | which part of something is wanted, if it is to be sent at all? |
//! | `via` | did this request come through here already? |
//! | `client` | how is an origin asked, and what does it answer? |

mod chunked;
pub mod client;
mod connection;
mod fault;
pub mod field;
mod head;
pub mod range;
mod response;
mod target;
mod via;

pub use connection::{Connection, Event, Limits, Phase};
pub use fault::Fault;
pub use field::{FieldName, FieldValue, Headers};
pub use head::{Method, Request, RequestBody, Version};
pub use response::{Body, Date, Response, Status};
pub use via::{Looped, Pseudonym, Via};
