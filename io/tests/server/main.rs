//! The server without sockets: bytes in, bytes out, simulated time, a media side that is played by the test.

#![allow(clippy::unwrap_used)]

mod chain;
mod channels;
mod desk;
mod drain;
mod forbidden;
mod hls;
mod ice;
mod journal;
mod limits;
mod listings;
mod live;
mod looking;
mod pages;
mod panels;
mod parts;
mod playlists;
mod providers;
mod status;
mod titles;
mod told;
mod tuned;
mod users;
mod whip;
