//! What the whole program costs between providers and viewers: CPU seconds for each GB that viewers of 2 Mbit/s are given, of films
//! of their own and of one live stream together, and the memory that a playback takes while nobody asks for anything of it.
//!
//! Origin and viewers run in this process; the program is another one, and its own time is what counts.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_tests::edge::Edge;
use holdfast_tests::http::Request;
use holdfast_tests::prepared;
use holdfast_tests::provider::{Clip, Clips};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// 2 Mbit/s.
const RATE: u64 = 250_000;
/// How often viewers read, and the origin writes.
const ROUND: Duration = Duration::from_millis(40);
/// What is kept of films by sockets on the way fills in the first seconds.
const WARM: Duration = Duration::from_secs(5);

fn main() -> Outcome<()> {
    // Started as a test it only shows that it runs.
    let measured = std::env::args().any(|arg| arg == "--bench");
    let (sizes, time): (&[usize], _) = if measured { (&[100, 1000], 20) } else { (&[10], 1) };
    let time = Duration::from_secs(time);
    prepared::allow_descriptors(8_192);
    let origin = Origin::start()?;
    println!("CPU seconds per GB delivered, over {} s; the program's own, all its threads", time.as_secs());
    println!("{:>8} {:>10} {:>10} {:>10} {:>12}", "viewers", "what", "MB/s", "CPU s/GB", "MB resident");
    for viewers in sizes {
        for (what, path) in [("films", "/movie/zoe/zoe-secret"), ("a stream", "/live/zoe/zoe-secret")] {
            let edge = edge(&origin)?;
            let path = format!("{path}/{}", number(&edge, what)?);
            let audience = Audience::open(edge.address(), &path, *viewers)?;
            thread::sleep(WARM.min(time * 5));
            let (cpu, bytes, begin) = (edge.cpu(), audience.taken(), Instant::now());
            thread::sleep(time);
            let (cpu, bytes) = ((edge.cpu() - cpu).as_secs_f64(), (audience.taken() - bytes) as f64);
            let rate = bytes / begin.elapsed().as_secs_f64() / 1e6;
            let resident = edge.holdings().resident / 1000;
            println!("{viewers:>8} {what:>10} {rate:>10.1} {:>10.3} {resident:>12}", cpu / (bytes / 1e9));
            if audience.ended() > 0 {
                return Err(format!("{} of {viewers} viewers were ended:\n{}", audience.ended(), edge.log()).into());
            }
            audience.close()?;
        }
    }
    let playbacks = if measured { 20_000 } else { 50 };
    let edge = edge(&origin)?;
    // What the first ones bring with them is not theirs.
    idle(&edge, 0, 200)?;
    let before = edge.holdings().resident;
    idle(&edge, 200, playbacks)?;
    let bytes = (edge.holdings().resident - before) * 1024 / playbacks;
    println!("{bytes} bytes resident for each of {playbacks} idle playbacks over HLS");
    Ok(())
}

/// The program with a list of one film, one film in segments and one live stream.
fn edge(origin: &Origin) -> Outcome<Edge> {
    let list = prepared::scratch("list.m3u");
    let base = format!("http://{}", origin.address);
    let entry = |name: &str, address: &str| format!("#EXTINF:-1 group-title=\"{name}\",{name}\n{base}{address}\n");
    let text = [
        entry("a stream", "/live/acc/key/1.ts"),
        entry("films", "/movie/acc/key/2.mp4"),
        entry("parts", "/movie/acc/key/3.m3u8"),
    ];
    std::fs::write(&list, format!("#EXTM3U\n{}", text.concat()))?;
    let configuration = format!(
        "[http]\nlisten = [\"127.0.0.1:0\"]\nlimits = {{ connections_per_address = 0 }}\n\
         [playback]\nsessions_per_user = 100000\ncleanup_capacity = 100000\nhls_session_ttl = \"1h\"\n\
         [[user]]\nname = \"zoe\"\npassword = \"zoe-secret\"\n\
         [[provider]]\nname = \"list\"\nurl = \"file://{}\"\nallow_private = true\n\
         [[account]]\nprovider = \"list\"\nusername = \"acc\"\npassword = \"key\"\nmax_connections = 0\n",
        list.display()
    );
    Ok(Edge::start(&configuration))
}

/// The last part of the path of the film or the live stream that is called so, when the list is read.
fn number(edge: &Edge, name: &str) -> Outcome<String> {
    let path = "/get.php?username=zoe&password=zoe-secret&type=m3u_plus&output=ts";
    for _ in 0..200 {
        let list = edge.get(path).text();
        let mut lines = list.lines();
        if lines.any(|line| line.ends_with(&format!(",{name}"))) {
            let url = lines.next().ok_or("an address follows")?;
            return Ok(url.rsplit('/').next().unwrap_or_default().to_owned());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(format!("no {name} in the list").into())
}

/// Playbacks that have had one segment each, and ask no more.
fn idle(edge: &Edge, from: u64, number_of: u64) -> Outcome<()> {
    let path = format!("/movie/zoe/zoe-secret/{}", number(edge, "parts")?);
    let get = |path: &str, agent: &str| Request::new("GET", path).field("User-Agent", agent).send(edge.address());
    for number in from..from + number_of {
        let agent = format!("viewer {number}");
        let list = get(&path, &agent).text();
        let line = list.lines().find(|line| !line.starts_with('#')).ok_or_else(|| format!("no segment in {list}"))?;
        let part = url::Url::parse(&edge.url(&path))?.join(line)?;
        let answer = get(part.path(), &agent);
        if answer.status != 200 {
            return Err(format!("{}: {}", answer.status, answer.text()).into());
        }
    }
    Ok(())
}

/// Viewers that read 2 Mbit/s each, all by one thread.
struct Audience {
    taken: Arc<AtomicU64>,
    ended: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Audience {
    fn open(to: SocketAddr, path: &str, viewers: usize) -> Outcome<Audience> {
        let mut sockets = Vec::new();
        for number in 0..viewers {
            let mut socket = TcpStream::connect(to)?;
            let head = format!("GET {path} HTTP/1.1\r\nHost: {to}\r\nUser-Agent: viewer {number}\r\n\r\n");
            socket.write_all(head.as_bytes())?;
            let mut status = [0; 12];
            socket.read_exact(&mut status)?;
            if !status.starts_with(b"HTTP/1.1 20") {
                return Err(format!("{}: {path}", String::from_utf8_lossy(&status)).into());
            }
            socket.set_nonblocking(true)?;
            sockets.push(socket);
        }
        let (taken, ended, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::default());
        let told = (Arc::clone(&taken), Arc::clone(&ended), Arc::clone(&over));
        let thread = thread::spawn(move || read_all(sockets, &told));
        Ok(Audience { taken, ended, over, thread })
    }

    fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    fn ended(&self) -> u64 {
        self.ended.load(Relaxed)
    }

    fn close(self) -> Outcome<()> {
        self.over.store(true, Relaxed);
        self.thread.join().map_err(|_| "the viewers panicked")?;
        Ok(())
    }
}

fn read_all(sockets: Vec<TcpStream>, (taken, ended, over): &(Arc<AtomicU64>, Arc<AtomicU64>, Arc<AtomicBool>)) {
    let begin = Instant::now();
    let mut data = vec![0; 1 << 20];
    let mut viewers: Vec<(TcpStream, u64)> = sockets.into_iter().map(|socket| (socket, 0)).collect();
    while !over.load(Relaxed) {
        // What was missed once may be made good.
        let due = (begin.elapsed().as_micros() as u64 + ROUND.as_micros() as u64) * RATE / 1_000_000;
        viewers.retain_mut(|(socket, own)| {
            let most = due.saturating_sub(*own).min(data.len() as u64) as usize;
            match socket.read(&mut data[..most]) {
                Ok(0) if most > 0 => {
                    ended.fetch_add(1, Relaxed);
                    return false;
                }
                Ok(read) => {
                    *own += read as u64;
                    taken.fetch_add(read as u64, Relaxed);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => {
                    ended.fetch_add(1, Relaxed);
                    return false;
                }
            }
            true
        });
        thread::sleep(ROUND);
    }
}

/// Where films come from as fast as they are taken, a live stream at 2 Mbit/s, and short playlists; all by one thread.
struct Origin {
    address: SocketAddr,
}

enum Sending {
    /// What has come of the request so far.
    Head(Vec<u8>),
    Film,
    /// How much of it was sent.
    Live(u64),
}

impl Origin {
    fn start() -> Outcome<Origin> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let clip = Clips::ready().file(Clip::Ts);
        thread::spawn(move || serve(&listener, &clip));
        Ok(Origin { address })
    }
}

fn serve(listener: &TcpListener, clip: &[u8]) {
    let begin = Instant::now();
    let mut connections: Vec<(TcpStream, Sending)> = Vec::new();
    loop {
        while let Ok((socket, _)) = listener.accept() {
            if socket.set_nonblocking(true).is_ok() {
                connections.push((socket, Sending::Head(Vec::new())));
            }
        }
        let due = begin.elapsed().as_micros() as u64 * RATE / 1_000_000 / 188 * 188;
        connections.retain_mut(|(socket, sending)| step(socket, sending, clip, due).is_ok());
        // Requests for playlists come one after the other.
        let films = connections.iter().any(|(_, sending)| !matches!(sending, Sending::Head(_)));
        thread::sleep(if films { Duration::from_millis(10) } else { Duration::from_micros(100) });
    }
}

/// What can be done for a connection now; an error when there is nothing more to be done.
fn step(socket: &mut TcpStream, sending: &mut Sending, clip: &[u8], due: u64) -> std::io::Result<()> {
    let wait = |error: std::io::Error| if error.kind() == ErrorKind::WouldBlock { Ok(0) } else { Err(error) };
    match sending {
        Sending::Head(head) => {
            let mut data = [0; 4096];
            let read = match socket.read(&mut data) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                other => other.or_else(wait)?,
            };
            head.extend_from_slice(&data[..read]);
            if !head.ends_with(b"\r\n\r\n") {
                return Ok(());
            }
            let text = String::from_utf8_lossy(head).into_owned();
            if text.contains(".m3u8 ") || text.contains("part.ts ") {
                let (kind, body) = if text.contains(".m3u8 ") {
                    let list = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\npart.ts\n#EXT-X-ENDLIST\n";
                    ("application/vnd.apple.mpegurl", list.as_bytes())
                } else {
                    ("video/mp2t", &clip[..188])
                };
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                socket.write_all(&[head.as_bytes(), body].concat())?;
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let live = text.contains("/live/");
            let length = if live { String::new() } else { format!("Content-Length: {}\r\n", 1_u64 << 40) };
            let kind = if live { "video/mp2t" } else { "video/mp4" };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{length}Connection: close\r\n\r\n");
            socket.write_all(head.as_bytes())?;
            *sending = if live { Sending::Live(due) } else { Sending::Film };
        }
        Sending::Film => {
            // As much as it takes.
            let _taken = socket.write(&clip[..1 << 18]).or_else(wait)?;
        }
        Sending::Live(sent) => {
            let at = (*sent % (clip.len() as u64 / 188 * 188)) as usize;
            let most = (due - *sent) as usize;
            *sent += socket.write(&clip[at..clip.len().min(at + most)]).or_else(wait)? as u64;
        }
    }
    Ok(())
}
