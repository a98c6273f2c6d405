//! What coded media says of itself, and how other formats want to be told.
//!
//! | room | question it answers |
//! |---|---|
//! | [`annexb`] | where are the NAL units of an access unit? |
//! | [`h264`], [`h265`] | how large are the pictures, and what is the decoder's configuration? |
//! | [`aac`] | how long is a frame, and what is the decoder's configuration? |
//! | [`mpeg_audio`], [`opus`] | how long is a frame? |

pub mod aac;
pub mod annexb;
mod bits;
pub mod h264;
pub mod h265;
pub mod mpeg_audio;
pub mod opus;

/// What a sequence parameter set says of its pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Of what is shown, in samples of luma.
    pub width: u32,
    /// Of what is shown, in samples of luma.
    pub height: u32,
    /// Pictures in so many seconds, if it is said: (30000, 1001) for instance.
    pub rate: Option<(u32, u32)>,
}

/// A frame of audio as its header describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// In bytes, with its header.
    pub length: usize,
    /// Samples per channel.
    pub samples: u32,
    /// Samples a second.
    pub rate: u32,
}

/// What is found where a frame of audio should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Its header; the rest of it may not be there yet.
    Frame(Frame),
    /// It takes more bytes to tell.
    More,
    /// No frame begins here.
    None,
}
