//! An origin that speaks MPEG-TS over HTTP, or falls silent, drips, or breaks off.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::input::{SessionId, Writer};
use holdfast_io::codec::Codec;
use holdfast_io::media::Unit;
use holdfast_io::ts::{Muxer, Tracks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::spawn_local;
use tokio::time::sleep;
use turmoil::net::{TcpListener, TcpStream};

use super::edge::{HTTP, mark};
use super::{Shared, now, now_ms};

/// How an origin behaves towards whoever asks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Sends a picture each 40 ms, one in 25 a key frame.
    Good,
    /// Answers and sends nothing.
    Silent,
    /// Answers a byte each second.
    Dripping,
    /// Answers, then closes at once.
    ClosesAtPlay,
    /// Takes the request and resets the connection.
    ResetsAtPlay,
}

/// What is known of an origin.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    pub mood: Mood,
    /// How often it was asked.
    pub opens: u64,
    /// What tells its media from others'.
    pub id: SessionId,
}

pub const EVERY: Duration = Duration::from_millis(40);
const KEY_FRAME_EACH: u64 = 25;
pub const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n\r\n";

/// Serves until the simulation ends.
pub async fn serve(shared: Rc<Shared>, name: &'static str) -> io::Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", HTTP)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let shared = shared.clone();
        // A peer that is gone ends its own connection, and no other.
        spawn_local(async move { answer(&shared, name, stream).await });
    }
}

/// Reads the head of a request.
pub async fn head_of(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// What makes pictures, one in 25 a key frame, each of them telling whose it is.
pub struct Camera {
    muxer: Muxer,
    id: SessionId,
    pictures: u64,
}

impl Camera {
    pub fn new(id: SessionId) -> Self {
        let mut muxer = Muxer::new();
        muxer.session(Writer::Session(id), Tracks { audio: None, video: Some(Codec::H264) });
        // Whoever comes comes in the middle of a group of pictures.
        Camera { muxer, id, pictures: now_ms() % KEY_FRAME_EACH }
    }

    /// What begins again begins with a picture that decoding can start at.
    pub fn pause(&mut self) {
        self.pictures = KEY_FRAME_EACH - 1;
    }

    /// The next picture.
    pub fn picture(&mut self) -> Option<Bytes> {
        self.pictures += 1;
        let key = self.pictures.is_multiple_of(KEY_FRAME_EACH);
        let head = [0, 0, 0, 1, if key { 0x65 } else { 0x41 }];
        let data: Bytes = head.into_iter().chain(mark(self.id).into_iter().cycle().take(160)).collect();
        let time = now().as_micros() as i64;
        let unit = Unit { from: Writer::Session(self.id), codec: Codec::H264, pts: time, dts: time, key, data };
        self.muxer.push(&unit).map(|chunk| chunk.data)
    }
}

async fn answer(shared: &Shared, name: &'static str, mut stream: TcpStream) -> io::Result<()> {
    let mood_before = shared.origins.borrow().get(name).map(|origin| origin.mood);
    if mood_before == Some(Mood::ResetsAtPlay) {
        // What is closed with bytes unread is reset.
        stream.read_exact(&mut [0; 8]).await?;
        if let Some(origin) = shared.origins.borrow_mut().get_mut(name) {
            origin.opens += 1;
        }
        shared.say(name, format_args!("is asked, and resets"));
        return Ok(());
    }
    head_of(&mut stream).await?;
    let mood = || shared.origins.borrow().get(name).map_or(Mood::Silent, |origin| origin.mood);
    let id = shared.origins.borrow_mut().get_mut(name).map(|origin| {
        origin.opens += 1;
        origin.id
    });
    let Some(id) = id else { return Ok(()) };
    shared.say(name, format_args!("is asked, and is {:?}", mood()));
    if mood() == Mood::Dripping {
        for byte in HEAD.bytes() {
            stream.write_all(&[byte]).await?;
            sleep(Duration::from_secs(1)).await;
        }
    } else {
        stream.write_all(HEAD.as_bytes()).await?;
    }
    let mut camera = Camera::new(id);
    while !matches!(mood(), Mood::ClosesAtPlay | Mood::ResetsAtPlay) {
        sleep(EVERY).await;
        if mood() != Mood::Good {
            camera.pause();
        } else if let Some(data) = camera.picture() {
            stream.write_all(&data).await?;
        }
    }
    Ok(())
}
