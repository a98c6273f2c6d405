//! What was wrong with bytes that were no stream.

use std::error::Error;
use std::fmt;

/// Why a connection's bytes give no media. Its words are for the log and for the answer to a viewer who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A page.
    Html,
    /// An HLS playlist, which says where the media is.
    Playlist,
    /// Compressed, though nobody asked for that.
    Gzip,
    /// An MP4 file.
    Mp4,
    /// Nothing came at all.
    Nothing,
    /// No sync bytes at a packet's distance from one another.
    NoSync,
    /// Packets, but no program association table among them.
    NoPat,
    /// The program that was asked for is not in the table.
    NoProgram {
        /// Its number.
        number: u16,
    },
    /// The table names a program whose map does not come.
    NoPmt {
        /// The program's number.
        program: u16,
    },
    /// The map declares neither video nor audio.
    NoMedia {
        /// The program's number.
        program: u16,
    },
    /// Only scrambled packets of the declared streams.
    Scrambled {
        /// The program's number.
        program: u16,
    },
    /// No packet of the declared streams.
    Empty {
        /// The program's number.
        program: u16,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Html => f.write_str("an HTML page instead of MPEG-TS"),
            Fault::Playlist => f.write_str("an HLS playlist instead of MPEG-TS"),
            Fault::Gzip => f.write_str("gzip instead of MPEG-TS"),
            Fault::Mp4 => f.write_str("MP4 instead of MPEG-TS"),
            Fault::Nothing => f.write_str("not a byte"),
            Fault::NoSync => f.write_str("not MPEG-TS: no sync bytes 188, 192 or 204 bytes apart"),
            Fault::NoPat => f.write_str("MPEG-TS without a program association table (PID 0)"),
            Fault::NoProgram { number } => write!(f, "MPEG-TS without program {number}"),
            Fault::NoPmt { program } => write!(f, "MPEG-TS without the map of program {program} that its table names"),
            Fault::NoMedia { program } => write!(f, "program {program} declares neither video nor audio"),
            Fault::Scrambled { program } => write!(f, "program {program} is scrambled"),
            Fault::Empty { program } => write!(f, "program {program} declares video or audio and sends none"),
        }
    }
}

impl Error for Fault {}

impl Fault {
    /// What begins with `head`, if that is known to be no stream.
    pub(super) fn of(head: &[u8]) -> Option<Fault> {
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        match head {
            _ if text.starts_with(b"<") => Some(Fault::Html),
            _ if text.starts_with(b"#EXTM3U") => Some(Fault::Playlist),
            [0x1f, 0x8b, ..] => Some(Fault::Gzip),
            [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some(Fault::Mp4),
            _ => None,
        }
    }
}
