//! The program's parts.
//!
//! | room | question it answers |
//! |---|---|
//! | [`cli`] | what was asked for? |
//! | [`config`] | what was configured, and what is wrong with it? |
//! | [`run`] | how does the edge start and stop? |
//! | [`dump`] | how is what happened saved? |
//! | [`replay`] | what happened? |
//! | [`sim`] | how are faults tried? |
//! | [`log`] | how are people told? |
//! | [`arenas`] | what keeps memory flat? |
#![forbid(unsafe_code)]

mod arenas;
pub mod cli;
pub mod config;
pub mod dump;
pub mod log;
pub mod replay;
pub mod run;
pub mod sim;
