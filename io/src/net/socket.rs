//! One socket, encrypted or not: plaintext in, plaintext out, readiness remembered.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::time::Duration;

use rustls::Connection;

use super::sys::Sys;

/// A socket and what is known of its readiness. Edge-triggered events say what became so; only `WouldBlock` and short
/// writes say that it is over.
#[derive(Debug)]
pub(super) struct Socket<Stream> {
    pub stream: Stream,
    tls: Option<Box<Connection>>,
    pub readable: bool,
    pub writable: bool,
}

impl<Stream> Socket<Stream> {
    /// A socket that was just accepted: its buffer for sending is empty.
    pub fn accepted(stream: Stream, tls: Option<Connection>) -> Self {
        Socket { stream, tls: tls.map(Box::new), readable: false, writable: true }
    }

    /// A socket that was just told to connect: it is not writable before that came to an end.
    pub fn connecting(stream: Stream) -> Self {
        Socket { stream, tls: None, readable: false, writable: false }
    }

    /// From here on TLS is spoken, beginning with its [`handshake`](Self::handshake).
    pub fn encrypt(&mut self, tls: Connection) {
        self.tls = Some(Box::new(tls));
    }

    /// Goes on with the handshake, by one flight at most.
    ///
    /// # Errors
    /// `WouldBlock` until the socket is ready for more; others mean that it is of no more use.
    pub fn handshake<S: Sys<Stream = Stream>>(&mut self, sys: &mut S) -> io::Result<Handshake> {
        self.flush(sys)?;
        match &self.tls {
            Some(tls) if tls.is_handshaking() => {}
            _ => return Ok(Handshake::Done),
        }
        if self.fill(sys)? == 0 { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(Handshake::Going) }
    }

    /// Reads plaintext; `Ok(0)` is the end.
    ///
    /// # Errors
    /// `WouldBlock` until more comes; others mean that the socket is of no more use.
    pub fn read<S: Sys<Stream = Stream>>(&mut self, sys: &mut S, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(tls) = &mut self.tls {
                match tls.reader().read(buffer) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    // TCP's end without close_notify: what is cut short is noticed by its framing (RFC 9112 §9.8).
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                    other => return other,
                }
            }
            if self.tls.is_some() {
                self.fill(sys)?;
                continue;
            }
            if !self.readable {
                return Err(ErrorKind::WouldBlock.into());
            }
            match sys.read(&mut self.stream, buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Gives TLS what the socket has; how many bytes, 0 for the end.
    fn fill<S: Sys<Stream = Stream>>(&mut self, sys: &mut S) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return Ok(0) };
        while self.readable {
            let length = match tls.read_tls(&mut Wire { sys, stream: &mut self.stream }) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readable = false;
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let processed = tls.process_new_packets();
            // Answers of a handshake, and the alert that says why it failed.
            self.flush(sys)?;
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            return Ok(length);
        }
        Err(ErrorKind::WouldBlock.into())
    }

    /// Writes plaintext: straight to the socket, or as far as the bounded buffer of TLS goes.
    ///
    /// # Errors
    /// `WouldBlock` until the socket takes more; others mean that it is of no more use.
    pub fn write<S: Sys<Stream = Stream>>(&mut self, sys: &mut S, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.flush(sys)?;
        if !self.writable {
            return Err(ErrorKind::WouldBlock.into());
        }
        if let Some(tls) = &mut self.tls {
            let taken = tls.writer().write_vectored(pieces)?;
            self.flush(sys)?;
            return if taken == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) };
        }
        let wanted: usize = pieces.iter().map(|piece| piece.len()).sum();
        let written = sys.writev(&mut self.stream, pieces);
        self.writable = match &written {
            Ok(written) => *written == wanted,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        written
    }

    /// For how long the peer may take nothing of what is written.
    pub fn set_patience<S: Sys<Stream = Stream>>(&mut self, sys: &mut S, patience: Duration) {
        sys.set_patience(&mut self.stream, patience);
    }

    /// Writes what TLS has ready. Returning does not mean that all is written: see [`is_flushed`](Self::is_flushed).
    ///
    /// # Errors
    /// When the socket is of no more use.
    pub fn flush<S: Sys<Stream = Stream>>(&mut self, sys: &mut S) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while self.writable && tls.wants_write() {
            match tls.write_tls(&mut Wire { sys, stream: &mut self.stream }) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether the kernel has all that was written.
    pub fn is_flushed(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| !tls.wants_write())
    }

    /// Whether [`read`](Self::read) may have something.
    pub fn may_read(&self) -> bool {
        self.readable || self.tls.is_some()
    }

    /// Nothing more will be written: says so within TLS, if it is used. To be flushed, then [`shutdown`](Self::shutdown).
    pub fn end(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
    }

    /// Says on the wire that nothing more comes. What is read from now on is whatever the peer sends, not decrypted: TLS
    /// would want to answer it.
    ///
    /// # Errors
    /// When the socket is of no more use.
    pub fn shutdown<S: Sys<Stream = Stream>>(&mut self, sys: &mut S) -> io::Result<()> {
        self.tls = None;
        sys.shutdown(&mut self.stream)
    }
}

/// How far a [`Socket::handshake`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    /// There may be more to read.
    Going,
    /// Plaintext can be read and written.
    Done,
}

/// The socket as rustls sees it.
struct Wire<'a, S: Sys> {
    sys: &'a mut S,
    stream: &'a mut S::Stream,
}

impl<S: Sys> Read for Wire<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.sys.read(self.stream, buffer)
    }
}

impl<S: Sys> Write for Wire<'_, S> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.sys.writev(self.stream, &[IoSlice::new(data)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.sys.writev(self.stream, pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
