//! The production driver of [`Server`](crate::server::Server): real sockets on one thread.
//!
//! [`Driver`] is the door. It is generic over [`Sys`], the few calls of the kernel that it needs; [`Kernel`] is the real one
//! over mio, the tests' lies.
//!
//! | file | question it answers |
//! |---|---|
//! | `driver` | which socket may do how much in this turn? |
//! | `serve` | what does the driver ask and tell the server? |
//! | `socket` | how do plaintext bytes get in and out of a socket, encrypted or not? |
//! | `sys` | what is asked of the kernel? |
//! | `kernel` | how does mio answer that? |
//! | `files` | what is in this file? |
//! | `fetch` | what does an address answer? (for command lines) |
//! | `resolver` | which addresses has a name? |
//! | `tls` | is this certificate with this key good? whom do we trust? |

mod driver;
mod fetch;
mod files;
mod kernel;
mod resolver;
mod serve;
mod socket;
mod sys;
pub mod tls;

pub use driver::{Door, Driver, Ended, Media, Parts, Report};
pub use fetch::{FetchError, Part, fetch};
pub use kernel::{Clock, Kernel};
pub use serve::{Peer, Serve};
pub use sys::{Event, Lookup, SocketId, SocketKind, Sys};

#[cfg(test)]
mod clients;
#[cfg(test)]
mod fake;
