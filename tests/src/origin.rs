//! Origins: the live stream of an encoder over HTTP, behaving as a test wants it to.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::prepared;
use crate::process::Process;

/// What an origin does with whoever is connected, and with whoever comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Sends the stream.
    Good,
    /// Answers and sends nothing; connections stand.
    Silent,
    /// Takes connections and answers nothing.
    Mute,
    /// Answers 404.
    Missing,
    /// Ends the connection as soon as it is asked.
    Rude,
}

/// One origin. Its encoder is ffmpeg's, in real time, with a key frame each second.
pub struct Origin {
    address: SocketAddr,
    shared: Arc<Shared>,
    encoder: Child,
}

struct Shared {
    mood: Mutex<Mood>,
    opens: Mutex<Vec<Instant>>,
    sockets: Mutex<Vec<TcpStream>>,
}

/// Pictures in H.264, as ffmpeg is told.
pub const H264: [&str; 10] =
    ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25", "-b:v", "500k"];
/// Pictures in H.265, with some that refer to later ones.
pub const H265: [&str; 8] =
    ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:keyint=25:bframes=2", "-b:v", "500k"];
/// Sound in AAC.
pub const AAC: [&str; 2] = ["-c:a", "aac"];
/// Sound in layer 2 of MPEG audio.
pub const MPEG_AUDIO: [&str; 2] = ["-c:a", "mp2"];

/// An ffmpeg that encodes a picture of this size and a sound in real time.
fn encoder(size: &str, video: &[&str], audio: &[&str]) -> Command {
    let mut command = prepared::tool("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i", &format!("testsrc2=size={size}:rate=25")]);
    command.args(["-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"]);
    command.args(video).args(["-pix_fmt", "yuv420p"]).args(audio).args(["-f", "mpegts"]);
    command
}

impl Origin {
    /// An origin on a free port of 127.0.0.1 whose picture has this size, such as `320x180`.
    ///
    /// # Panics
    /// Without ffmpeg.
    pub fn start(size: &str) -> Origin {
        Origin::encoding(size, &H264, &AAC)
    }

    /// The same, with pictures and sound as ffmpeg is told.
    ///
    /// # Panics
    /// Without ffmpeg.
    pub fn encoding(size: &str, video: &[&str], audio: &[&str]) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let mut command = encoder(size, video, audio);
        command.args(["-flush_packets", "1", "pipe:1"]);
        let mut encoder = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("ffmpeg starts");
        let mut stream = encoder.stdout.take().expect("it is piped");
        let shared = Arc::new(Shared {
            mood: Mutex::new(Mood::Good),
            opens: Mutex::new(Vec::new()),
            sockets: Mutex::new(Vec::new()),
        });
        let door = Arc::clone(&shared);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                door.opens.lock().unwrap().push(Instant::now());
                let door = Arc::clone(&door);
                std::thread::spawn(move || door.serve(socket));
            }
        });
        let sender = Arc::clone(&shared);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 188 * 64];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                if *sender.mood.lock().unwrap() == Mood::Good {
                    sender.sockets.lock().unwrap().retain_mut(|socket| socket.write_all(&buffer[..read]).is_ok());
                }
            }
        });
        Origin { address, shared, encoder }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}/stream.ts", self.address)
    }

    /// Changes what it does, with connections that stand as well.
    pub fn be(&self, mood: Mood) -> Instant {
        *self.shared.mood.lock().unwrap() = mood;
        Instant::now()
    }

    /// Ends every connection: in order, as servers do that stop.
    pub fn end_all(&self) -> Instant {
        for socket in self.shared.sockets.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        Instant::now()
    }

    /// When it was connected to.
    pub fn opens(&self) -> Vec<Instant> {
        self.shared.opens.lock().unwrap().clone()
    }

    /// How often it was connected to since then.
    pub fn opens_since(&self, since: Instant) -> usize {
        self.opens().iter().filter(|at| **at >= since).count()
    }
}

impl Shared {
    fn serve(&self, mut socket: TcpStream) {
        let _ = socket.set_nodelay(true);
        let _ = socket.set_read_timeout(Some(Duration::from_secs(20)));
        let _ = socket.set_write_timeout(Some(Duration::from_secs(2)));
        let mut head = Vec::new();
        let mut buffer = [0; 4096];
        while !head.windows(4).any(|window| window == b"\r\n\r\n") {
            match socket.read(&mut buffer) {
                Ok(read @ 1..) => head.extend_from_slice(&buffer[..read]),
                _ => return,
            }
        }
        let mood = *self.mood.lock().unwrap();
        let answer = match mood {
            Mood::Good | Mood::Silent => "HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\nConnection: close\r\n\r\n",
            Mood::Missing => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            Mood::Mute => "",
            Mood::Rude => return,
        };
        if socket.write_all(answer.as_bytes()).is_ok() && mood != Mood::Missing {
            self.sockets.lock().unwrap().push(socket);
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.encoder.kill();
        let _ = self.encoder.wait();
        self.end_all();
    }
}

/// An origin that waits for a caller over SRT.
pub fn ffmpeg_over_srt(port: u16, video: &[&str], audio: &[&str]) -> Command {
    let mut command = encoder("320x180", video, audio);
    command.arg(format!("srt://127.0.0.1:{port}?mode=listener"));
    command
}

/// The RTSP origin of `tests/clients`, and where it listens.
///
/// # Panics
/// When it does not listen within 20 s.
pub fn rtsp() -> (Process, SocketAddr) {
    // Debian's own Python, which knows Debian's bindings.
    let mut command = Command::new("/usr/bin/python3");
    command.arg(prepared::client("rtsp_origin.py"));
    let process = Process::start("rtsp_origin.py", command);
    let port = process
        .find("line with its ports", Duration::from_secs(20), |line| line.text.split_whitespace().next()?.parse().ok());
    (process, SocketAddr::from(([127, 0, 0, 1], port)))
}

/// An origin that plays what `ffmpeg -listen` serves, to one client at a time: nobody here wrote it.
pub fn ffmpeg_listening(port: u16) -> Command {
    let mut command = prepared::tool("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"]);
    command.args([
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-tune",
        "zerolatency",
        "-g",
        "25",
        "-pix_fmt",
        "yuv420p",
    ]);
    command.args(["-f", "mpegts", "-listen", "1", &format!("http://127.0.0.1:{port}/stream.ts")]);
    command
}
