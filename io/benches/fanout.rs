//! What a delivered gigabyte costs: feeds, gathered over 20 ms and written to sockets on loopback, beside a bare loop that
//! writes the same chunks in the same gathers and decides nothing. Only the writing thread's CPU time counts.
//!
//! Time is pressed: the next 20 ms begin when the last have been written.

use std::collections::VecDeque;
use std::error::Error;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::config::Live;
use holdfast_core::feed::{Chunk, Feeds};
use holdfast_core::id::Id;
use holdfast_core::input::{Output, RequestId, Writer};
use holdfast_core::time::Time;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A feed of 2 Mbit/s comes in chunks of nine packets, three of them in 20 ms.
const CHUNK: usize = 9 * 188;
const CHUNKS: usize = 3;
const GATHER: Duration = Duration::from_millis(20);
/// Gathers from one key frame to the next: 2 s.
const KEY_FRAME: usize = 100;
const SLICES: usize = 16;
const WRITER: Writer = Writer::Session(Id::from_parts(0, 0));

fn main() -> Outcome<()> {
    // Started as a test it only shows that it runs.
    let measured = std::env::args().any(|arg| arg == "--bench");
    let (bytes, rounds) = if measured { (512 << 20, 5) } else { (8 << 20, 1) };
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;

    println!("CPU seconds per GB delivered, the best of {rounds} rounds");
    println!("{:>8} {:>8} {:>8} {:>8}", "viewers", "bare", "feeds", "ratio");
    for viewers in [1, 100, 1000] {
        let audience = Audience::new(viewers)?;
        let gathers = bytes / (CHUNK * CHUNKS) / viewers;
        let (mut bare, mut feeds) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..rounds {
            bare = bare.min(measure(|| audience.bare(gathers))?);
            feeds = feeds.min(measure(|| audience.feeds(gathers))?);
        }
        println!("{viewers:>8} {bare:>8.3} {feeds:>8.3} {:>8.3}", feeds / bare);
        audience.close()?;
    }
    Ok(())
}

/// CPU seconds of this thread per GB that `deliver` says it delivered.
fn measure(deliver: impl FnOnce() -> Outcome<u64>) -> Outcome<f64> {
    let cpu = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let before = cpu();
    let delivered = deliver()?;
    Ok((cpu() - before) / (delivered as f64 / 1e9))
}

/// Sockets, and a thread that reads whatever comes out of them.
struct Audience {
    sockets: Vec<TcpStream>,
    chunks: Vec<Bytes>,
    over: Arc<AtomicBool>,
    reader: thread::JoinHandle<()>,
}

impl Audience {
    fn new(viewers: usize) -> Outcome<Audience> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (mut sockets, mut readers) = (Vec::new(), Vec::new());
        for _ in 0..viewers {
            let reader = TcpStream::connect(listener.local_addr()?)?;
            reader.set_nonblocking(true)?;
            readers.push(reader);
            let (socket, _) = listener.accept()?;
            socket.set_nodelay(true)?;
            sockets.push(socket);
        }
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let reader = thread::spawn(move || read_all(readers, &told));
        let chunks = (0..CHUNKS).map(|chunk| Bytes::from(vec![chunk as u8; CHUNK])).collect();
        Ok(Audience { sockets, chunks, over, reader })
    }

    fn bare(&self, gathers: usize) -> Outcome<u64> {
        let mut delivered = 0;
        for _ in 0..gathers {
            for mut socket in &self.sockets {
                let mut slices = [IoSlice::new(&[]); SLICES];
                for (slice, chunk) in slices.iter_mut().zip(&self.chunks) {
                    *slice = IoSlice::new(chunk);
                }
                delivered += socket.write_vectored(&slices[..CHUNKS])? as u64;
            }
        }
        Ok(delivered)
    }

    fn feeds(&self, gathers: usize) -> Outcome<u64> {
        let mut feeds = Feeds::new(Live { flush_interval: GATHER, ..Live::default() });
        let feed = feeds.open();
        feeds.assign(feed, Some(WRITER));
        let (mut out, mut now, mut ready, mut delivered) = (VecDeque::new(), Time::ZERO, Vec::new(), 0);
        feeds.push(now, feed, chunk(&self.chunks[0], Some(0)), &mut out);
        for request in 0..self.sockets.len() {
            feeds.join(now, RequestId(request as u64), feed, &mut out);
        }
        for gather in 0..gathers {
            for (index, chunk) in self.chunks.iter().enumerate() {
                let key = gather % KEY_FRAME == 0 && index == 0;
                feeds.push(now, feed, self::chunk(chunk, key.then_some(0)), &mut out);
            }
            now = now + GATHER;
            feeds.tick(now, &mut out);
            while let Some(output) = out.pop_front() {
                if !matches!(output, Output::Ready { .. }) {
                    continue;
                }
                ready.clear();
                ready.extend(feeds.viewers(feed));
                for viewer in &ready {
                    let mut slices = [IoSlice::new(&[]); SLICES];
                    let mut used = 0;
                    for (slice, data) in slices.iter_mut().zip(feeds.unsent(*viewer)) {
                        *slice = IoSlice::new(data);
                        used += 1;
                    }
                    let bytes = (&self.sockets[viewer.index()]).write_vectored(&slices[..used])? as u64;
                    feeds.sent(*viewer, bytes);
                    delivered += bytes;
                }
            }
        }
        Ok(delivered)
    }

    fn close(self) -> Outcome<()> {
        self.over.store(true, Relaxed);
        self.reader.join().map_err(|_| "the reader panicked")?;
        Ok(())
    }
}

fn read_all(mut readers: Vec<TcpStream>, over: &AtomicBool) {
    let mut data = vec![0; 1 << 18];
    while !over.load(Relaxed) {
        let mut idle = true;
        for reader in &mut readers {
            match reader.read(&mut data) {
                Ok(length) => idle &= length == 0,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
        }
        if idle {
            thread::sleep(Duration::from_micros(200));
        }
    }
}

fn chunk(data: &Bytes, random_access: Option<u64>) -> Chunk {
    Chunk { from: WRITER, data: data.clone(), random_access }
}
