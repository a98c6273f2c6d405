//! The kernel, by mio.

use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use holdfast_core::input::RequestId;
use holdfast_core::time::Time;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Token, Waker};
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};
use signal_hook_mio::v1_0::Signals;
use socket2::{Domain, SockRef, Socket, Type};

use super::files::Files;
use super::resolver::Resolver;
use super::sys::{Event, Lookup, SocketId, Sys};
use crate::library::{FileCommand, Library};
use crate::server::{Limits, LinkId};

// A token carries the generation of a socket above the 32 bits of its place.
const _: () = assert!(usize::BITS >= 64, "socket ids need 64-bit tokens");

/// Places from here on are no sockets but listeners, the waker and the signals.
const SPECIAL: usize = 0xFFFF_0000;
const SIGNALS: Token = Token(0xFFFF_FFFE);
const WAKER: Token = Token(0xFFFF_FFFF);
/// How many listeners there can be.
const LISTENERS: usize = 0xFFF0;

/// How many clients may wait to be accepted, if the system allows as many (`net.core.somaxconn`, 4096 on Linux): hundreds of
/// viewers come at once when a stream begins, and one that finds the queue full waits for a second.
const BACKLOG: i32 = 4096;

/// How many events one call to the kernel brings.
const EVENTS: usize = 1024;

/// The time since this was made; the loop and the media threads share one.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Begins at [`Time::ZERO`].
    pub fn start() -> Self {
        Clock { start: Instant::now() }
    }

    /// When it was [`Time::ZERO`].
    pub fn epoch(self) -> Instant {
        self.start
    }

    /// What time it is.
    pub fn now(self) -> Time {
        Time::ZERO + self.start.elapsed()
    }
}

/// Sockets of this machine.
pub struct Kernel {
    poll: mio::Poll,
    ready: mio::Events,
    waker: Arc<Waker>,
    listeners: Vec<Option<TcpListener>>,
    signals: Option<Signals>,
    /// Started with the first name.
    resolver: Option<Resolver>,
    /// Started with the first file or library.
    files: Option<Files>,
    clock: Clock,
    patience: Duration,
}

impl Kernel {
    /// How long clients that connect from here on may leave unacknowledged what was sent to them, or take none of it, as long as
    /// nobody says otherwise of one.
    pub fn set_default_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// A kernel without listeners.
    ///
    /// # Errors
    /// When the process may not have the descriptors for it.
    pub fn new(clock: Clock) -> io::Result<Self> {
        let poll = mio::Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let ready = mio::Events::with_capacity(EVENTS);
        Ok(Kernel {
            poll,
            ready,
            waker,
            listeners: Vec::new(),
            signals: None,
            resolver: None,
            files: None,
            clock,
            patience: Limits::default().write_timeout,
        })
    }

    /// Ends [`Sys::poll`] from another thread. May be called at any time, as often as there is something.
    pub fn waker(&self) -> Arc<Waker> {
        self.waker.clone()
    }

    /// Listens on an address; returns the address with the port that was given. Listeners are counted from 0.
    ///
    /// # Errors
    /// When the address is taken, not ours, or not allowed.
    pub fn listen(&mut self, address: SocketAddr) -> io::Result<SocketAddr> {
        if self.listeners.len() >= LISTENERS {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("at most {LISTENERS} addresses to listen on"),
            ));
        }
        let listener = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        listener.set_reuse_address(true)?;
        listener.set_nonblocking(true)?;
        listener.bind(&address.into())?;
        listener.listen(BACKLOG)?;
        let listener = std::net::TcpListener::from(listener);
        let local = listener.local_addr()?;
        let mut listener = TcpListener::from_std(listener);
        let token = Token(SPECIAL + self.listeners.len());
        self.poll.registry().register(&mut listener, token, Interest::READABLE)?;
        self.listeners.push(Some(listener));
        Ok(local)
    }

    /// SIGTERM, SIGINT and SIGHUP become [`Event::Terminate`] instead of the end of the process; but a SIGHUP that whoever started
    /// it has it ignore (`nohup`) is ignored.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn handle_signals(&mut self) -> io::Result<()> {
        let ignored = std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, SIGHUP));
        let mut signals = Signals::new([SIGTERM, SIGINT].into_iter().chain((!ignored).then_some(SIGHUP)))?;
        self.poll.registry().register(&mut signals, SIGNALS, Interest::READABLE)?;
        self.signals = Some(signals);
        Ok(())
    }

    fn files(&mut self) -> io::Result<&mut Files> {
        if self.files.is_none() {
            self.files = Some(Files::start(&self.waker)?);
        }
        self.files.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Whether a process ignores a signal, by what `/proc` says of it (proc_pid_status(5)).
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

impl Sys for Kernel {
    type Stream = TcpStream;

    fn accept(&mut self, listener: usize) -> io::Result<(TcpStream, SocketAddr)> {
        let Some(Some(listener)) = self.listeners.get(listener) else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let (mut stream, peer) = listener.accept()?;
        // Answers are written whole, and small writes of a stream are gathered above: waiting for more helps nobody.
        // It fails only for a connection that is gone already, which the first read will say.
        let _ = stream.set_nodelay(true);
        // What lies in the kernel's buffer is written as far as anybody above can tell: a player whose network is gone takes that
        // much, which at a low rate is minutes of its stream (tcp(7), `TCP_USER_TIMEOUT`).
        self.set_patience(&mut stream, self.patience);
        Ok((stream, peer))
    }

    fn resolve(&mut self, link: LinkId, host: &str) -> io::Result<Lookup> {
        if self.resolver.is_none() {
            self.resolver = Some(Resolver::start(&self.waker)?);
        }
        let resolver = self.resolver.as_ref().ok_or(io::ErrorKind::NotFound)?;
        resolver.ask(link, host)
    }

    fn file(&mut self, request: RequestId, command: FileCommand) -> io::Result<()> {
        self.files()?.command(request, command)
    }

    fn scan(&mut self, libraries: Arc<[Library]>) -> io::Result<()> {
        self.files()?.scan(libraries)
    }

    fn connect(&mut self, to: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(to)
    }

    fn connected(&mut self, stream: &mut TcpStream) -> io::Result<SocketAddr> {
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        match stream.peer_addr() {
            Ok(peer) => {
                // As for those that are accepted: requests are written whole.
                let _ = stream.set_nodelay(true);
                Ok(peer)
            }
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error),
        }
    }

    fn own_address(&self, stream: &TcpStream) -> Option<IpAddr> {
        stream.local_addr().ok().map(|own| own.ip())
    }

    fn register(&mut self, stream: &mut TcpStream, id: SocketId) -> io::Result<()> {
        if id.index() >= SPECIAL {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let token = Token((id.generation() as usize) << 32 | id.index());
        self.poll.registry().register(stream, token, Interest::READABLE | Interest::WRITABLE)
    }

    fn read(&mut self, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        stream.read(buffer)
    }

    fn writev(&mut self, stream: &mut TcpStream, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        stream.write_vectored(pieces)
    }

    fn set_patience(&mut self, stream: &mut TcpStream, patience: Duration) {
        let _ = SockRef::from(&*stream).set_tcp_user_timeout(Some(patience));
    }

    fn shutdown(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        stream.shutdown(Shutdown::Write)
    }

    fn close(&mut self, stream: TcpStream) {
        // Closing takes it out of the poller, since no descriptor of it was duplicated.
        drop(stream);
    }

    fn close_listener(&mut self, listener: usize) {
        if let Some(listener) = self.listeners.get_mut(listener) {
            *listener = None;
        }
    }

    fn poll(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()> {
        self.poll.poll(&mut self.ready, timeout)?;
        for event in &self.ready {
            match (event.token(), event.token().0 & 0xFFFF_FFFF) {
                (WAKER, _) => {
                    events.extend(self.resolver.iter().flat_map(Resolver::answers));
                    events.extend(self.files.iter().flat_map(Files::found));
                }
                (SIGNALS, _) => {
                    let pending = self.signals.iter_mut().flat_map(Signals::pending);
                    events.extend(pending.map(|_| Event::Terminate));
                }
                (Token(token), place) if token >> 32 == 0 && place >= SPECIAL => {
                    events.push(Event::Accept(place - SPECIAL));
                }
                (Token(token), place) => events.push(Event::Socket {
                    id: SocketId::from_parts(place as u32, (token >> 32) as u32),
                    readable: event.is_readable() || event.is_read_closed() || event.is_error(),
                    writable: event.is_writable() || event.is_write_closed() || event.is_error(),
                    hung_up: event.is_error() || (event.is_read_closed() && event.is_write_closed()),
                }),
            }
        }
        Ok(())
    }

    fn now(&mut self) -> Time {
        self.clock.now()
    }

    fn wall(&mut self) -> Duration {
        SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_client_may_take_nothing_is_the_sockets_own() {
        let mut kernel = Kernel::new(Clock::start()).unwrap();
        kernel.set_default_patience(Duration::from_secs(7));
        let address = kernel.listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let _client = std::net::TcpStream::connect(address).unwrap();
        // It is in the queue once it is connected.
        let (mut stream, _) = kernel.accept(0).unwrap();
        let patience = |stream: &TcpStream| SockRef::from(stream).tcp_user_timeout().unwrap();
        assert_eq!(patience(&stream), Some(Duration::from_secs(7)));
        kernel.set_patience(&mut stream, Duration::from_secs(90));
        assert_eq!(patience(&stream), Some(Duration::from_secs(90)));
    }

    #[test]
    fn ignored_signals_are_read_from_their_mask() {
        let status = |mask: &str| format!("Name:\tx\nSigBlk:\tffff\nSigIgn:\t{mask}\nSigCgt:\tffff\n");
        assert!(ignores(&status("0000000000000001"), SIGHUP));
        assert!(ignores(&status("0000000000001005"), SIGHUP));
        assert!(!ignores(&status("0000000000001000"), SIGHUP));
        assert!(!ignores("", SIGHUP));
    }
}
