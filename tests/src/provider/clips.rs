//! Films, an episode's worth of everything a provider has: made by ffmpeg once, kept in the cache.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use crate::prepared;

/// How long a film is, in seconds.
pub const LENGTH: u64 = 120;
/// How long a segment of HLS is, in seconds.
pub const SEGMENT: u64 = 2;

/// Changed with what is made below, so that nothing old is taken for it.
const VERSION: u32 = 1;

/// The forms that the film comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clip {
    /// MP4 whose index is at its end, as cameras and muxers leave it.
    Tail,
    /// MP4 whose index is at its beginning.
    Fast,
    /// Matroska.
    Matroska,
    /// MPEG-TS.
    Ts,
    /// MPEG-TS of a smaller picture.
    Small,
}

/// The forms that HLS comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hls {
    /// A file for each segment.
    Plain,
    /// Each of them encrypted with AES-128.
    Keys,
    /// One file, of which segments are ranges.
    Ranges,
    /// Fragments of MP4, with one that begins them.
    Fragments,
}

/// Everything, in memory.
pub struct Clips {
    folder: PathBuf,
    files: [Arc<Vec<u8>>; 5],
}

const FILES: [&str; 5] = ["tail.mp4", "fast.mp4", "film.mkv", "film.ts", "small.ts"];
const FOLDERS: [&str; 4] = ["plain", "keys", "ranges", "fragments"];

impl Clips {
    /// Makes what is not there yet.
    ///
    /// # Panics
    /// When ffmpeg does not.
    pub fn ready() -> &'static Clips {
        static READY: OnceLock<Clips> = OnceLock::new();
        READY.get_or_init(|| {
            let folder = prepared::cache().join(format!("clips-{VERSION}"));
            if !folder.exists() {
                let made = folder.with_extension(std::process::id().to_string());
                make(&made);
                // Another process may have been faster.
                if std::fs::rename(&made, &folder).is_err() {
                    let _ = std::fs::remove_dir_all(&made);
                }
            }
            let files = FILES.map(|name| Arc::new(std::fs::read(folder.join(name)).expect("it was made")));
            Clips { folder, files }
        })
    }

    /// Where a file is.
    pub fn path(&self, clip: Clip) -> PathBuf {
        self.folder.join(FILES[clip as usize])
    }

    /// A whole file.
    pub fn file(&self, clip: Clip) -> Arc<Vec<u8>> {
        Arc::clone(&self.files[clip as usize])
    }

    /// What lies in the folder of a form of HLS, if it does.
    pub fn part(&self, hls: Hls, name: &str) -> Option<Vec<u8>> {
        let is_plain = name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'.') && !name.starts_with('.');
        is_plain.then(|| std::fs::read(self.folder.join(FOLDERS[hls as usize]).join(name)).ok())?
    }

    /// Its playlist, as ffmpeg wrote it.
    pub fn playlist(&self, hls: Hls) -> String {
        String::from_utf8(self.part(hls, "index.m3u8").expect("it was made")).expect("ffmpeg writes UTF-8")
    }
}

fn ffmpeg(folder: &Path, arguments: &[&str]) {
    let mut command: Command = prepared::tool("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-y"]).args(arguments).current_dir(folder);
    let output = command.output().expect("ffmpeg starts");
    assert!(output.status.success(), "ffmpeg {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn make(folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
    for name in FOLDERS {
        std::fs::create_dir_all(folder.join(name)).expect("the cache can be written");
    }
    let length = LENGTH.to_string();
    // Noise, so that it has the size of a film.
    let sources = ["testsrc2=size=640x360:rate=25,noise=alls=12:allf=t", "testsrc2=size=320x180:rate=25"];
    for (source, rate, out) in [(sources[0], "1600k", FILES[0]), (sources[1], "400k", FILES[4])] {
        let mut all = vec!["-f", "lavfi", "-i", source, "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"];
        all.extend(["-t", &length, "-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-b:v", rate, "-maxrate"]);
        all.extend([rate, "-bufsize", rate, "-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "96k", out]);
        ffmpeg(folder, &all);
    }
    ffmpeg(folder, &["-i", FILES[0], "-c", "copy", "-movflags", "+faststart", FILES[1]]);
    ffmpeg(folder, &["-i", FILES[0], "-c", "copy", FILES[2]]);
    ffmpeg(folder, &["-i", FILES[0], "-c", "copy", FILES[3]]);
    // Each key has a vector of its own in the playlist; else it would be the segment's number, which players count differently.
    std::fs::write(folder.join("keys/key.bin"), b"holdfast-sixteen").expect("the cache can be written");
    let key = "key.bin\nkey.bin\n00112233445566778899aabbccddeeff\n";
    std::fs::write(folder.join("keys/info"), key).expect("the cache can be written");
    let segment = SEGMENT.to_string();
    for (name, file, own) in [
        (FOLDERS[0], FILES[4], &["-hls_segment_filename", "part%d.ts"][..]),
        (FOLDERS[1], FILES[4], &["-hls_segment_filename", "part%d.ts", "-hls_key_info_file", "info"]),
        (FOLDERS[2], FILES[4], &["-hls_segment_filename", "all.ts", "-hls_flags", "single_file"]),
        (
            FOLDERS[3],
            FILES[0],
            &[
                "-hls_segment_filename",
                "part%d.m4s",
                "-hls_segment_type",
                "fmp4",
                "-hls_fmp4_init_filename",
                "init.mp4",
            ],
        ),
    ] {
        let input = format!("../{file}");
        let mut all = vec!["-i", &input, "-c", "copy", "-f", "hls", "-hls_time", &segment, "-hls_list_size", "0"];
        all.extend(["-hls_playlist_type", "vod"]);
        all.extend(own);
        all.push("index.m3u8");
        ffmpeg(&folder.join(name), &all);
    }
}
