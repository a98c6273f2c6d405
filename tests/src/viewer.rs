//! Viewers: a socket that reads a live stream and checks its packets as they come, ffprobe, ffmpeg.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::{Connection, Request};
use crate::prepared;
use crate::process::Process;

const PACKET: usize = 188;

/// What a socket viewer has seen so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Bytes of the body.
    pub bytes: u64,
    /// When the last of them came.
    pub last: Option<Instant>,
    /// Whether the edge has ended the body.
    pub ended: bool,
    /// The first thing that was wrong with the transport stream.
    pub fault: Option<String>,
    /// Packets marked as random access points.
    pub random_access: u64,
    /// Packets marked as the first of another time base.
    pub discontinuities: u64,
}

/// A viewer that never lets go of its one connection and writes what it gets to a file.
pub struct Viewer {
    seen: Arc<Mutex<Seen>>,
    file: PathBuf,
}

impl Viewer {
    /// Opens `/live/{name}.ts`.
    ///
    /// # Panics
    /// When the answer is not a 200.
    pub fn open(to: SocketAddr, name: &str) -> Viewer {
        let mut connection = Connection::open(to);
        connection.send(&Request::new("GET", &format!("/live/{name}.ts")));
        let head = connection.head().unwrap_or_else(|error| panic!("/live/{name}.ts: {error}"));
        assert_eq!(head.status, 200, "{head:?}");
        assert_eq!(head.field("content-type"), Some("video/mp2t"), "{head:?}");
        let chunked = head.field("transfer-encoding").is_some();
        let (stream, ahead) = connection.into_stream();
        stream.set_read_timeout(None).unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let file = prepared::scratch("viewer.ts");
        let out = std::fs::File::create(&file).expect("the temporary folder can be written");
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut reading = Reading { out, scanner: Scanner::default(), seen: shared };
            let mut chunks = chunked.then(Dechunker::default);
            let mut stream = stream;
            let mut bytes = ahead;
            bytes.reserve(65536);
            let mut buffer = vec![0; 65536];
            loop {
                let body = match &mut chunks {
                    Some(dechunker) => dechunker.feed(&bytes),
                    None => std::mem::take(&mut bytes),
                };
                reading.take(&body);
                match stream.read(&mut buffer) {
                    Ok(read) if read > 0 => buffer[..read].clone_into(&mut bytes),
                    _ => break,
                }
            }
            reading.seen.lock().unwrap().ended = true;
        });
        Viewer { seen, file }
    }

    /// What it has seen so far.
    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until `more` bytes more have come.
    ///
    /// # Panics
    /// After `limit`, when the body ends, or when something is wrong with the stream.
    pub fn gets(&self, more: u64, limit: Duration) -> Seen {
        let before = self.seen().bytes;
        crate::eventually(&format!("{more} more bytes for the viewer"), limit, || {
            let seen = self.seen();
            assert_eq!(seen.fault, None);
            assert!(!seen.ended, "the viewer's stream ended after {} bytes", seen.bytes);
            (seen.bytes >= before + more).then_some(seen)
        })
    }

    /// Everything it got, in a file.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

struct Reading {
    out: std::fs::File,
    scanner: Scanner,
    seen: Arc<Mutex<Seen>>,
}

impl Reading {
    fn take(&mut self, body: &[u8]) {
        if body.is_empty() {
            return;
        }
        let _ = self.out.write_all(body);
        let fault = self.scanner.scan(body).err();
        let mut seen = self.seen.lock().unwrap();
        seen.bytes += body.len() as u64;
        seen.last = Some(Instant::now());
        seen.random_access = self.scanner.random_access;
        seen.discontinuities = self.scanner.discontinuities;
        if seen.fault.is_none() {
            seen.fault = fault;
        }
    }
}

/// Checks sync bytes, continuity counters (ISO 13818-1, 2.4.3.3) and that no clock goes back without saying so (2.4.3.5).
#[derive(Default)]
struct Scanner {
    partial: Vec<u8>,
    counters: HashMap<u16, u8>,
    clocks: HashMap<u16, u64>,
    packets: u64,
    random_access: u64,
    discontinuities: u64,
}

impl Scanner {
    fn scan(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.partial.extend_from_slice(bytes);
        let whole = self.partial.len() / PACKET * PACKET;
        let packets: Vec<u8> = self.partial.drain(..whole).collect();
        packets.chunks_exact(PACKET).try_for_each(|packet| self.packet(packet))
    }

    fn packet(&mut self, packet: &[u8]) -> Result<(), String> {
        let number = self.packets;
        self.packets += 1;
        if packet[0] != 0x47 {
            return Err(format!("packet {number} begins with {:#04x}, not the sync byte", packet[0]));
        }
        let pid = u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff;
        let counter = packet[3] & 0x0f;
        let payload = packet[3] & 0x10 != 0;
        let adaptation = packet[3] & 0x20 != 0 && packet[4] > 0;
        if adaptation && packet[5] & 0x40 != 0 {
            self.random_access += 1;
        }
        if pid == 0x1fff {
            return Ok(());
        }
        let discontinuity = adaptation && packet[5] & 0x80 != 0;
        self.discontinuities += u64::from(discontinuity);
        let before = self.counters.insert(pid, counter).filter(|_| !discontinuity);
        // One without payload repeats the count.
        if let Some(before) = before.filter(|before| counter != (before + u8::from(payload)) & 0x0f) {
            return Err(format!("packet {number} of pid {pid}: continuity counter {counter} after {before}"));
        }
        if adaptation && packet[5] & 0x10 != 0 {
            let clock = packet[6..11].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)) >> 7;
            let before = self.clocks.insert(pid, clock).filter(|_| !discontinuity);
            // Modulo 2^33: half of it is behind.
            if let Some(before) = before.filter(|before| clock.wrapping_sub(*before) & 1 << 32 != 0) {
                return Err(format!("packet {number} of pid {pid}: clock {clock} after {before}"));
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct Dechunker {
    unread: Vec<u8>,
    left: usize,
}

impl Dechunker {
    fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.unread.extend_from_slice(bytes);
        let mut body = Vec::new();
        loop {
            if self.left > 0 {
                let take = self.left.min(self.unread.len());
                body.extend(self.unread.drain(..take));
                self.left -= take;
                if self.left > 0 {
                    return body;
                }
            }
            let start = if self.unread.starts_with(b"\r\n") { 2 } else { 0 };
            let Some(end) = self.unread[start..].windows(2).position(|window| window == b"\r\n") else { return body };
            let line = String::from_utf8_lossy(&self.unread[start..start + end]).into_owned();
            self.unread.drain(..start + end + 2);
            self.left = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16).unwrap_or(0);
            if self.left == 0 {
                return body;
            }
        }
    }
}

/// What ffprobe says of a file or an address: its streams' codecs, by kind.
///
/// # Panics
/// When it fails, or takes more than 30 s.
pub fn codecs(of: &str) -> HashMap<String, String> {
    let mut command = prepared::tool("ffprobe");
    command.args(["-v", "error", "-show_entries", "stream=codec_type,codec_name", "-of", "json", of]);
    let mut probe = Process::start("ffprobe", command);
    let status = probe.wait(Duration::from_secs(30));
    assert!(status.success(), "ffprobe of {of}: {}", probe.log());
    // The pipe's last lines may come a moment after the process has gone.
    let streams: Value = crate::eventually("ffprobe's JSON", Duration::from_secs(2), || {
        let log = probe.log();
        let start = log.find('{')?;
        serde_json::from_str(&log[start..]).ok()
    });
    let streams = streams["streams"].as_array().cloned().unwrap_or_default();
    let text = |stream: &Value, name: &str| stream[name].as_str().unwrap_or_default().to_owned();
    streams.iter().map(|stream| (text(stream, "codec_type"), text(stream, "codec_name"))).collect()
}

/// Every frame at the time it has in the stream; ffmpeg would otherwise press them into a constant rate, and complain.
const AS_IT_COMES: [&str; 7] = ["-fps_mode", "passthrough", "-enc_time_base", "-1", "-f", "null", "-"];

/// What decoding a whole file gives.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// Video frames.
    pub frames: u64,
    /// What ffmpeg complained of.
    pub complaints: Vec<String>,
}

/// Decodes every frame of a file.
///
/// # Panics
/// When ffmpeg cannot read it at all.
pub fn decode(file: &Path) -> Decoded {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-hide_banner", "-v", "warning", "-progress", "pipe:1", "-i"])
        .arg(file)
        .args(AS_IT_COMES)
        .output()
        .expect("ffmpeg is installed; tests/run does it");
    let progress = String::from_utf8_lossy(&output.stdout).into_owned();
    let frames = progress.lines().filter_map(|line| line.strip_prefix("frame=")?.trim().parse().ok()).next_back();
    let complaints = beside_the_scaler(String::from_utf8_lossy(&output.stderr).lines().map(str::to_owned));
    assert!(output.status.success(), "ffmpeg cannot decode {}: {complaints:?}", file.display());
    Decoded { frames: frames.unwrap_or(0), complaints }
}

/// What ffmpeg said but for its scaler's lines and for those that say that one of them is repeated: a browser changes the size of its
/// picture as it likes.
pub fn beside_the_scaler(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut expected = false;
    let is_other = |text: &String| {
        expected = text.starts_with("[swscaler") || expected && text.trim_start().starts_with("Last message repeated");
        !expected
    };
    lines.filter(is_other).collect()
}

/// What ffmpeg says of lost and damaged packets in a file, whose end is amid one of each stream.
///
/// # Panics
/// When ffmpeg cannot read it at all.
pub fn complaints_of_packets(file: &Path) -> Vec<String> {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-hide_banner", "-v", "debug", "-i"])
        .arg(file)
        .args(["-c", "copy", "-f", "null", "-"])
        .output()
        .expect("ffmpeg is installed; tests/run does it");
    assert!(output.status.success(), "ffmpeg cannot read {}", file.display());
    let text = String::from_utf8_lossy(&output.stderr);
    let told = |line: &&str| line.contains("Continuity check failed") || line.contains("discontinuity");
    text.lines().filter(told).map(str::to_owned).collect()
}

/// An ffmpeg that plays a live stream and says how far it is.
pub struct Player {
    process: Process,
}

impl Player {
    /// Starts to play.
    pub fn start(url: &str) -> Player {
        let mut command = prepared::tool("ffmpeg");
        command.args(["-nostdin", "-hide_banner", "-v", "warning", "-stats_period", "0.2", "-progress", "pipe:1"]);
        command.args(["-i", url]).args(AS_IT_COMES);
        Player { process: Process::start("ffmpeg", command) }
    }

    /// Frames decoded so far.
    pub fn frames(&self) -> u64 {
        let lines = self.process.lines();
        lines.iter().rev().find_map(|line| line.text.strip_prefix("frame=")?.trim().parse().ok()).unwrap_or(0)
    }

    /// Waits until `more` frames more are decoded.
    ///
    /// # Panics
    /// After `limit`, or when it ended.
    pub fn plays(&mut self, more: u64, limit: Duration) {
        let before = self.frames();
        crate::eventually(&format!("{more} more frames than {before} in the player"), limit, || {
            assert!(self.process.ended().is_none(), "the player ended:\n{}", self.process.log());
            (self.frames() >= before + more).then_some(())
        });
    }
}
