//! Decides. No sockets, threads, files, clocks or randomness of its own.
//!
//! | room | question it answers |
//! |---|---|
//! | [`edge`] | what happens when this comes in now, and when must I be called again? |
//! | [`input`] | what can come in, what can come out? |
//! | [`time`] | what is a time, and who waits for which? |
//! | [`id`] | is this late? |
//! | [`slots`] | who holds a scarce place? |
//! | [`publish`] | which publisher is let in, displaced, ended? |
//! | [`pull`] | from which origin does a channel come, and what when it does not? |
//! | [`playback`] | which viewer may play, and what becomes of the others? |
//! | [`account`] | who may use which account of a provider? |
//! | [`memory`] | what is remembered for a while? |
//! | `cleanup` | will what runs be cleaned up after? |
//! | [`feed`] | what does a viewer get next, and when does it end? |
//! | [`journal`] | what was the run, and does it repeat? |
//! | [`config`] | what was configured? |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod account;
mod cleanup;
pub mod config;
pub mod edge;
#[cfg(test)]
mod edge_tests;
pub mod feed;
pub mod id;
pub mod input;
pub mod journal;
pub mod memory;
mod names;
pub mod playback;
pub mod publish;
pub mod pull;
pub mod slots;
pub mod time;
#[cfg(test)]
mod twins;
