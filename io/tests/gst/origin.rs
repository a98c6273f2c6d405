//! Origins in processes of their own, as real ones are.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

const RTSP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/clients/rtsp_origin.py");
/// Debian's own, which knows Debian's bindings.
const PYTHON: &str = "/usr/bin/python3";

/// A process that ends with its owner.
pub struct Origin {
    child: Child,
    port: u16,
    /// Where credentials are wanted.
    locked: u16,
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Origin {
    /// The RTSP server of `rtsp_origin.py`, when it listens.
    pub fn rtsp() -> Origin {
        let child = Command::new(PYTHON).arg(RTSP).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{PYTHON}: {error}; bin/install installs it"));
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ports = line.split_whitespace().map_while(|port| port.parse().ok()).collect::<Vec<u16>>();
        let [port, locked] = ports[..] else {
            panic!(
                "{RTSP} does not start: it needs the packages gir1.2-gst-rtsp-server-1.0, python3-gi, gstreamer1.0-plugins-ugly"
            )
        };
        Origin { child, port, locked }
    }

    /// A sender of MPEG-TS over SRT that waits for callers, with more of libsrt's options.
    pub fn srt(options: &str) -> Origin {
        let port = free_port();
        Origin::srt_at(port, &format!("srt://127.0.0.1:{port}?mode=listener{options}"))
    }

    /// A sender that calls us.
    pub fn srt_caller(port: u16) -> Origin {
        Origin::srt_at(port, &format!("srt://127.0.0.1:{port}?mode=caller"))
    }

    fn srt_at(port: u16, url: &str) -> Origin {
        let child = Command::new("ffmpeg")
            .args(["-hide_banner", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=15"])
            .args(["-c:v", "mpeg2video", "-b:v", "300k", "-f", "mpegts", url])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Origin {
            child: child.unwrap_or_else(|error| panic!("ffmpeg: {error}; tests/run installs it")),
            port,
            locked: 0,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self, path: &str) -> String {
        format!("rtsp://127.0.0.1:{}{path}", self.port)
    }

    /// Where it wants the user and password of `rtsp_origin.py`.
    pub fn locked(&self) -> u16 {
        self.locked
    }

    /// It neither reads nor writes from here on, but its connections stay.
    pub fn hang(&self) {
        self.signal(Signal::STOP);
    }

    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends in order.
    pub fn end(&self) {
        self.signal(Signal::TERM);
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }
}

/// A UDP port that nobody has.
pub fn free_port() -> u16 {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}
