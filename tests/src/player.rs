//! Players that people have: ffmpeg, mpv, VLC, GStreamer's playbin, curl. None of them is told to behave.

use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::getuid;

use crate::prepared;
use crate::process::Process;

/// A program that plays addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// It decodes as fast as pictures come.
    Ffmpeg,
    /// It opens HLS twice.
    Mpv,
    /// It asks four times for what it does not get.
    Vlc,
    /// `gst-launch-1.0 playbin`
    GStreamer,
    /// It plays nothing, and takes all.
    Curl,
}

/// The user that VLC runs as, since it refuses to be root's: `nobody`.
const NOBODY: u32 = 65534;

impl Program {
    /// All of them.
    pub const ALL: [Program; 5] = [Program::Ffmpeg, Program::Mpv, Program::Vlc, Program::GStreamer, Program::Curl];
    /// Those that know what a playlist is.
    pub const OF_HLS: [Program; 4] = [Program::Ffmpeg, Program::Mpv, Program::Vlc, Program::GStreamer];

    /// What plays an address.
    ///
    /// # Panics
    /// When it is not installed.
    pub fn command(self, url: &str) -> Command {
        self.command_from(url, 0)
    }

    /// What plays an address from this second on, where it can be told so: curl and `gst-launch-1.0` cannot.
    fn command_from(self, url: &str, second: u32) -> Command {
        let mut command;
        match self {
            Program::Ffmpeg => {
                command = prepared::tool("ffmpeg");
                command.args(["-nostdin", "-hide_banner", "-v", "warning", "-stats_period", "0.2"]);
                if second > 0 {
                    command.args(["-ss", &second.to_string()]);
                }
                command.args(["-progress", "pipe:1", "-i", url, "-f", "null", "-"]);
            }
            Program::Mpv => {
                command = prepared::tool("mpv");
                command.args(["--no-config", "--vo=null", "--ao=null", "--msg-level=all=warn,cplayer=v"]);
                command.args(["--no-input-terminal", &format!("--start={second}"), url]);
            }
            Program::Vlc => {
                command = vlc();
                command.args(["--no-color", "-vv", "--vout", "vdummy", "--aout", "adummy", "--play-and-exit"]);
                command.args([&format!("--start-time={second}"), url]);
            }
            Program::GStreamer => {
                command = prepared::tool("gst-launch-1.0");
                command.args(["-v", "playbin", &format!("uri={url}"), "audio-sink=fakesink"]);
                command.arg("video-sink=fakesink silent=false sync=true");
            }
            Program::Curl => {
                command = prepared::tool("curl");
                command.args(["-sS", "--no-buffer", "--dump-header", "/dev/stderr", "--output", "/dev/null", url]);
            }
        }
        command
    }

    /// Starts to play an address.
    pub fn play(self, url: &str) -> Process {
        Process::start(&format!("{self:?}"), self.command(url))
    }

    /// Starts to play an address in the middle, at this second.
    pub fn play_from(self, url: &str, second: u32) -> Process {
        Process::start(&format!("{self:?}"), self.command_from(url, second))
    }

    /// Whether it shows something, by its own word.
    pub fn shows(self, player: &Process) -> bool {
        let shows = |text: &str| match self {
            Program::Ffmpeg => {
                text.strip_prefix("frame=").and_then(|frames| frames.trim().parse::<u32>().ok()) > Some(10)
            }
            Program::Mpv => text.contains("playback restart complete"),
            Program::Vlc => text.ends_with("Received first picture"),
            Program::GStreamer => text.contains("last-message = chain"),
            Program::Curl => text.contains("HTTP/1.1 200 "),
        };
        player.lines().iter().any(|line| shows(&line.text))
    }

    /// Waits until it shows something.
    ///
    /// # Panics
    /// After `limit`, or when it ended.
    pub fn is_seen(self, player: &mut Process, limit: Duration) {
        crate::eventually(&format!("{self:?} shows something"), limit, || {
            assert!(player.ended().is_none(), "{self:?} ended:\n{}", player.log());
            self.shows(player).then_some(())
        });
    }
}

/// An mpv that seeks to each of these seconds, one after the other, plays two seconds more and ends.
pub fn mpv_that_seeks(url: &str, seconds: &[u32]) -> Process {
    let mut command = prepared::tool("mpv");
    let all: Vec<String> = seconds.iter().map(u32::to_string).collect();
    command.args(["--no-config", "--vo=null", "--ao=null", "--msg-level=all=warn,seek=info", "--no-input-terminal"]);
    // What it has read ahead would otherwise do for most of them.
    command.arg("--demuxer-max-back-bytes=0").arg(format!("--script={}", prepared::client("seek.lua").display()));
    command.args([format!("--script-opts=seek-to={}", all.join(":")), url.to_owned()]);
    Process::start("mpv", command)
}

/// aria2, which fetches over as many connections at once as it is told, into a file.
pub fn aria2(url: &str, connections: u32, file: &Path) -> Process {
    let mut command = prepared::tool("aria2c");
    let (folder, name) = (file.parent().expect("a folder"), file.file_name().expect("a name"));
    command.args(["--no-conf", "--min-split-size=1M", "--console-log-level=notice", "--summary-interval=1"]);
    command.args(["--allow-overwrite=true", "--file-allocation=none", "--max-tries=0", "--retry-wait=1"]);
    command.args([format!("--max-connection-per-server={connections}"), format!("--split={connections}")]);
    command.arg("--dir").arg(folder).arg("--out").arg(name).arg(url);
    Process::start("aria2c", command)
}

fn vlc() -> Command {
    let vlc = prepared::tool("cvlc");
    let home = prepared::scratch("vlc");
    std::fs::create_dir_all(&home).expect("the temporary folder can be written");
    let mut command = if getuid().is_root() {
        chown(&home, Some(NOBODY), Some(NOBODY)).expect("root may give folders away");
        let mut command = prepared::tool("setpriv");
        let user = NOBODY.to_string();
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(vlc.get_program());
        command
    } else {
        vlc
    };
    command.env("HOME", home);
    command
}
