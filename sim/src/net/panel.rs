//! A provider that lists live streams and serves them, and counts for each of its accounts what is open.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use holdfast_core::input::SessionId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::spawn_local;
use tokio::time::sleep;
use turmoil::net::{TcpListener, TcpStream};

use super::Shared;
use super::edge::HTTP;
use super::origin::{Camera, EVERY, HEAD, head_of};

/// How many streams it has.
pub const STREAMS: u32 = 6;
/// What tells its media from others'.
const GENERATION: u32 = 65;

/// What a provider knows of those who come.
#[derive(Debug, Default)]
pub struct Panel {
    /// Connections that stand, by account.
    pub open: BTreeMap<String, u32>,
    /// How many an account may have at once.
    pub limit: u32,
    pub opens: u64,
    /// Requests that were one too many for their account.
    pub refused: u64,
    /// It serves nothing more on what stands.
    pub silent: bool,
}

/// The session that media of a stream seems to be of.
pub fn session(stream: u32) -> SessionId {
    SessionId::from_parts(stream, GENERATION)
}

/// As a user's list has it.
pub fn name(stream: u32) -> String {
    format!("S{stream}")
}

/// One connection of an account, as long as it stands.
struct Counted<'a> {
    panel: &'a RefCell<Panel>,
    account: String,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if let Some(open) = self.panel.borrow_mut().open.get_mut(&self.account) {
            *open -= 1;
        }
    }
}

/// Serves until the simulation ends.
pub async fn serve(shared: Rc<Shared>) -> io::Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", HTTP)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let shared = shared.clone();
        spawn_local(async move { answer(&shared, stream).await });
    }
}

async fn answer(shared: &Shared, mut stream: TcpStream) -> io::Result<()> {
    let head = head_of(&mut stream).await?;
    let path = head.split(' ').nth(1).unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    let [_, "live", account, _, file] = parts[..] else {
        let mut list = String::from("#EXTM3U\n");
        for number in 0..STREAMS {
            list += &format!("#EXTINF:-1 group-title=\"News\",{}\nhttp://panel/live/c0/p/{number}.ts\n", name(number));
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", list.len());
        return stream.write_all((head + &list).as_bytes()).await;
    };
    let number = file.split('.').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let open = {
        let mut panel = shared.panel.borrow_mut();
        panel.opens += 1;
        let open = panel.open.entry(account.to_owned()).or_default();
        *open += 1;
        *open
    };
    let _counted = Counted { panel: &shared.panel, account: account.to_owned() };
    shared.say("panel", format_args!("serves {number} to {account}, which has {open}"));
    if open > shared.panel.borrow().limit {
        shared.panel.borrow_mut().refused += 1;
        return stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await;
    }
    stream.write_all(HEAD.as_bytes()).await?;
    let mut camera = Camera::new(session(number));
    let mut unread = [0; 64];
    loop {
        tokio::select! {
            biased;
            read = stream.read(&mut unread) => if read? == 0 {
                shared.say("panel", format_args!("{account} is done with {number}"));
                return Ok(());
            },
            () = sleep(EVERY) => {}
        }
        if shared.panel.borrow().silent {
            camera.pause();
        } else if let Some(data) = camera.picture() {
            stream.write_all(&data).await?;
        }
    }
}
