//! Players of the edge that ask more than once: lists, playlists and segments, over one socket or over many.

use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::sleep;
use turmoil::net::TcpStream;

use super::edge::HTTP;
use super::now_ms;
use super::peer::{Peer, Present};

/// How often a player asks for its playlist.
const EVERY: Duration = Duration::from_secs(1);

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection that stays open from one request to the next.
pub struct Kept {
    stream: TcpStream,
    data: Vec<u8>,
}

/// Over how many sockets a player asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sockets {
    One,
    /// A new one for each request.
    Many,
}

impl Kept {
    pub async fn open() -> io::Result<Kept> {
        Ok(Kept { stream: TcpStream::connect(("edge", HTTP)).await?, data: Vec::new() })
    }

    pub async fn get(&mut self, peer: &Peer, path: &str) -> io::Result<Answer> {
        peer.send(&mut self.stream, &format!("GET {path} HTTP/1.1\r\nHost: edge\r\n\r\n")).await?;
        loop {
            if let Some((answer, length)) = whole(&self.data) {
                self.data.drain(..length);
                peer.say(format_args!("GET {path} → {}, {} bytes", answer.status, answer.body.len()));
                return Ok(answer);
            }
            if self.stream.read_buf(&mut self.data).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// The first answer, if all of it is there, and how many bytes it has.
fn whole(data: &[u8]) -> Option<(Answer, usize)> {
    let end = data.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&data[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let field = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned()).next()
    };
    if field("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        let (mut body, mut at) = (Vec::new(), end);
        loop {
            let line = data[at..].windows(2).position(|bytes| bytes == b"\r\n")?;
            let size = usize::from_str_radix(std::str::from_utf8(&data[at..at + line]).ok()?, 16).ok()?;
            at += line + 2;
            body.extend_from_slice(data.get(at..at + size)?);
            at += size + 2;
            data.get(..at)?;
            if size == 0 {
                return Some((Answer { status, body }, at));
            }
        }
    }
    let length: usize = field("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let body = data.get(end..end + length)?.to_vec();
    Some((Answer { status, body }, end + length))
}

/// What a playlist at `path` means by `name`.
fn beside(path: &str, name: &str) -> String {
    if name.starts_with('/') {
        return name.to_owned();
    }
    let mut parts: Vec<&str> = path.split('?').next().unwrap_or_default().split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

impl Peer {
    /// The path of a stream in the list of a user.
    pub async fn address(&self, user: &str, stream: &str, ending: &str) -> io::Result<String> {
        let path = format!("/get.php?username={user}&password=x&type=m3u_plus&output={ending}");
        let list = Kept::open().await?.get(self, &path).await?.text();
        let name = format!(",{stream}");
        let mut lines = list.lines();
        let _ = lines.find(|line| line.ends_with(&name));
        let path = lines.next().and_then(|url| url.strip_prefix("http://edge"));
        path.map(str::to_owned)
            .ok_or_else(|| io::Error::other(format!("{stream} is not in the list of {user}: {list}")))
    }
}

/// A player of HLS.
pub struct Player {
    peer: Rc<Peer>,
    /// Whom it counts as one who watches, once it has a playlist.
    user: &'static str,
    sockets: Sockets,
    kept: Option<Kept>,
    media: Option<String>,
    taken: BTreeSet<String>,
    present: Option<Present>,
}

impl Player {
    pub fn new(peer: &Rc<Peer>, user: &'static str, sockets: Sockets) -> Self {
        peer.begin();
        Player { peer: peer.clone(), user, sockets, kept: None, media: None, taken: BTreeSet::new(), present: None }
    }

    /// The same player, on a socket that others use, too.
    pub fn on(mut self, kept: Kept) -> Self {
        self.kept = Some(kept);
        self
    }

    /// It lets the socket go to somebody else.
    pub fn lend(&mut self) -> Option<Kept> {
        self.kept.take()
    }

    async fn get(&mut self, path: &str) -> io::Result<Answer> {
        let mut kept = match self.kept.take() {
            Some(kept) => kept,
            None => Kept::open().await?,
        };
        let answer = kept.get(&self.peer, path).await?;
        if self.sockets == Sockets::One {
            self.kept = Some(kept);
        }
        Ok(answer)
    }

    /// Takes the index, if it has none, then the playlist and every segment that is new. The status of what is not there.
    pub async fn step(&mut self, index: &str) -> io::Result<u16> {
        let media = match self.media.clone() {
            Some(media) => media,
            None => {
                let list = self.get(index).await?;
                let text = list.text();
                let Some(name) = text.lines().find(|line| line.contains("media.m3u8")) else { return Ok(list.status) };
                beside(index, name)
            }
        };
        self.media = Some(media.clone());
        let list = self.get(&media).await?;
        if list.status != 200 {
            (self.media, self.present) = (None, None);
            return Ok(list.status);
        }
        if self.present.is_none() {
            self.present = Some(self.peer.present(self.user));
        }
        let text = list.text();
        for name in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            if !self.taken.insert(name.to_owned()) {
                continue;
            }
            let segment = self.get(&beside(&media, name)).await?;
            if segment.status != 200 {
                return Ok(segment.status);
            }
            self.peer.take(&segment.body);
        }
        Ok(200)
    }

    /// Plays until so many ms after the start, or until it is refused.
    pub async fn play(&mut self, index: &str, until: u64) -> io::Result<u16> {
        while now_ms() < until {
            let status = self.step(index).await?;
            if status != 200 {
                return Ok(status);
            }
            sleep(EVERY).await;
        }
        Ok(200)
    }
}
