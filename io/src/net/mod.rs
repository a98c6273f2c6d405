//! The production driver of [`Server`](crate::server::Server): real sockets on one thread.
//!
//! [`Driver`] is the door. It is generic over [`Sys`], the few calls of the kernel that it needs; [`Kernel`] is the real one
//! over mio, the tests' lies.
//!
//! | file | question it answers |
//! |---|---|
//! | `driver` | which socket may do how much in this turn? |
//! | `socket` | how do plaintext bytes get in and out of a socket, encrypted or not? |
//! | `sys` | what is asked of the kernel? |
//! | `kernel` | how does mio answer that? |
//! | `tls` | is this certificate with this key good? |

mod driver;
mod kernel;
mod socket;
mod sys;
pub mod tls;

pub use driver::{Driver, Ended, Media, Parts, Report};
pub use kernel::{Clock, Kernel};
pub use sys::{Event, SocketId, SocketKind, Sys};

#[cfg(test)]
mod clients;
#[cfg(test)]
mod fake;
