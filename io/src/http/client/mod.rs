//! HTTP/1.1 as a client speaks it: one GET and its answer on one connection. No sockets, no clock.
//!
//! [`Exchange`] is the door. Where the server side is strict, since a proxy in front of it may read a request in another
//! way than it does, this side takes what origins in the field send: bare LF, folded fields, `ICY 200 OK`. What could
//! make it mistake the end of an answer is refused here too.
//!
//! | file | question it answers |
//! |---|---|
//! | `exchange` | what may come next from this origin? |
//! | `get` | how is it asked? |
//! | `head` | what does this answer's head say, and where does its content end? |
//! | `redirect` | where else is the content? |

mod exchange;
mod fault;
mod get;
mod head;
mod redirect;

pub use exchange::{Event, Exchange};
pub use fault::Fault;
pub use get::{Get, Persistence};
pub use head::ResponseHead;
pub use redirect::{REDIRECTS, redirect};
