//! How media is coded, what it says of itself, and how other formats want to be told.
//!
//! | room | question it answers |
//! |---|---|
//! | [`annexb`] | where are the NAL units of an access unit? |
//! | [`h264`], [`h265`] | how large are the pictures, and what is the decoder's configuration? |
//! | [`aac`] | how long is a frame, and what is the decoder's configuration? |
//! | [`mpeg_audio`], [`opus`] | how long is a frame? |
//!
//! What a format calls a codec stands with the format: stream types in `ts::psi`, numbers in `ovt::generation`, RTP and caps
//! in `gst::branch`.

pub mod aac;
pub mod annexb;
mod bits;
pub mod h264;
pub mod h265;
pub mod mpeg_audio;
pub mod opus;

/// How the units of a track are coded and framed, wherever they come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// H.264 in Annex B: one access unit, parameter sets before every picture at which decoding can start.
    H264,
    /// H.265 in Annex B: one access unit, parameter sets before every picture at which decoding can start.
    H265,
    /// One frame of AAC with its ADTS header.
    Aac,
    /// One frame of MPEG audio, layer 1 or 2, with its header.
    Mp2,
    /// One frame of MPEG audio, layer 3, with its header.
    Mp3,
    /// One frame of AC-3 with its header.
    Ac3,
    /// One Opus packet.
    Opus,
}

impl Codec {
    /// Whether this is picture.
    pub fn is_video(self) -> bool {
        matches!(self, Codec::H264 | Codec::H265)
    }
}

/// What a sequence parameter set says of its pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Of what is shown, in samples of luma.
    pub width: u32,
    /// Of what is shown, in samples of luma.
    pub height: u32,
    /// Pictures in so many seconds, if it is said: (30000, 1001) for instance.
    pub rate: Option<(u32, u32)>,
    /// How many of them at most come before one that is shown earlier, if it is said.
    pub reorder: Option<u8>,
}

/// A frame of audio as its header describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// How it is coded.
    pub codec: Codec,
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
