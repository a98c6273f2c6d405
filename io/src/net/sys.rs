//! What the driver asks of the kernel.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::id::Id;
use holdfast_core::input::RequestId;
use holdfast_core::time::Time;

use crate::library::{FileCommand, FileEvent, Library, Scan};
use crate::server::LinkId;

/// Marks ids of sockets.
pub enum SocketKind {}
/// One registered socket. An event that comes after its socket was closed names nobody.
pub type SocketId = Id<SocketKind>;

/// What [`Sys::poll`] found. Edge-triggered: said once, when it becomes so; may be said when it is not so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The listener of this place has connections to accept.
    Accept(usize),
    /// A socket became ready.
    Socket {
        /// Which.
        id: SocketId,
        /// Reading gives bytes, the end, or an error.
        readable: bool,
        /// Writing takes bytes, or gives an error.
        writable: bool,
        /// Both directions are over. There may still be bytes to read.
        hung_up: bool,
    },
    /// A name was looked up.
    Resolved {
        /// For which link; it may be gone.
        link: LinkId,
        /// The addresses in the order in which to try them, or why there are none.
        addresses: Result<Vec<IpAddr>, String>,
    },
    /// Something was done with a file.
    File {
        /// For which request; it may be over.
        request: RequestId,
        /// What came of it.
        event: FileEvent,
    },
    /// Libraries were looked through.
    Scanned(Scan),
    /// The process was asked to end.
    Terminate,
}

/// A look-up under way. Dropped, it need not be done any more; its answer may still come.
#[derive(Debug)]
pub struct Lookup {
    _wanted: Arc<()>,
}

impl Lookup {
    /// As long as this is not dropped, weak references to `wanted` can be upgraded.
    pub fn new(wanted: Arc<()>) -> Self {
        Lookup { _wanted: wanted }
    }
}

/// The kernel. Nothing blocks but [`Sys::poll`]; `WouldBlock` means that an event will come.
pub trait Sys {
    /// A socket.
    type Stream;

    /// Takes one connection from a listener.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; what accept(2) says else, of which `ConnectionAborted` and `Interrupted` are about
    /// this one connection alone.
    fn accept(&mut self, listener: usize) -> io::Result<(Self::Stream, SocketAddr)>;

    /// Looks a name up; [`Event::Resolved`] comes of it.
    ///
    /// # Errors
    /// When it cannot even be tried.
    fn resolve(&mut self, link: LinkId, host: &str) -> io::Result<Lookup>;

    /// Does something with the file of a request; [`Event::File`] comes of it, but of closing.
    ///
    /// # Errors
    /// When it cannot even be tried.
    fn file(&mut self, request: RequestId, command: FileCommand) -> io::Result<()>;

    /// Looks through libraries; [`Event::Scanned`] comes of it.
    ///
    /// # Errors
    /// When it cannot even be tried.
    fn scan(&mut self, libraries: Arc<[Library]>) -> io::Result<()>;

    /// Begins to connect. Once it is [registered](Self::register), it becomes writable when that has come to an end.
    ///
    /// # Errors
    /// As connect(2).
    fn connect(&mut self, to: SocketAddr) -> io::Result<Self::Stream>;

    /// How connecting ended; whom it led to.
    ///
    /// # Errors
    /// `WouldBlock` if it has not; what `SO_ERROR` says else.
    fn connected(&mut self, stream: &mut Self::Stream) -> io::Result<SocketAddr>;

    /// Which address of this machine a connection is from, if that can be told.
    fn own_address(&self, stream: &Self::Stream) -> Option<IpAddr>;

    /// From now on events of this socket come, beginning with what it is ready for now.
    ///
    /// # Errors
    /// When the kernel can watch no more.
    fn register(&mut self, stream: &mut Self::Stream, id: SocketId) -> io::Result<()>;

    /// Reads; `Ok(0)` is the end.
    ///
    /// # Errors
    /// As read(2).
    fn read(&mut self, stream: &mut Self::Stream, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes. Fewer bytes than there are mean that the socket is full, as if `WouldBlock` had followed (epoll(7)).
    ///
    /// # Errors
    /// As writev(2).
    fn writev(&mut self, stream: &mut Self::Stream, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// For how long the peer may leave unacknowledged what was sent to it, or take none of it, before the socket is gone.
    fn set_patience(&mut self, stream: &mut Self::Stream, patience: Duration);

    /// Tells the peer that nothing more comes.
    ///
    /// # Errors
    /// As shutdown(2).
    fn shutdown(&mut self, stream: &mut Self::Stream) -> io::Result<()>;

    /// Closes a socket; its events end.
    fn close(&mut self, stream: Self::Stream);

    /// Closes a listener; who is in its queue is reset.
    fn close_listener(&mut self, listener: usize);

    /// Waits for events, at most `timeout` (`None` = for ever), and adds them to `events`.
    ///
    /// # Errors
    /// `Interrupted`; others mean that there is no way on.
    fn poll(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()>;

    /// What time it is.
    fn now(&mut self) -> Time;

    /// The time since 1970-01-01T00:00:00Z, as the wall clock has it; that may be set at any time.
    fn wall(&mut self) -> Duration;
}
