//! The program's parts.
//!
//! | room | question it answers |
//! |---|---|
//! | [`config`] | what was configured, and what is wrong with it? |
#![forbid(unsafe_code)]

pub mod config;
