//! One connection, seen from the server.

use bytes::{Buf, Bytes, BytesMut};

use super::chunked::{Chunked, Piece};
use super::fault::Fault;
use super::head::{HeadScan, Request, RequestBody, Scanned, Version};
use super::response::{Body, Date, Response, Status};

/// What one peer may make this connection keep or look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's head, its empty line included; more is answered with 431. Also bounds what a chunked body may
    /// carry beside its content.
    pub head: usize,
    /// Bytes of a request line; more is answered with 414. RFC 9112 §3 asks for 8000 at least.
    pub request_line: usize,
    /// Header fields of a request; more is answered with 431.
    pub headers: usize,
    /// Bytes received and not yet used, from where on [`Connection::wants_read`] says no. At least `head`.
    pub buffered: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { head: 16 * 1024, request_line: 8 * 1024, headers: 64, buffered: 64 * 1024 }
    }
}

/// How many bytes are read and thrown away, once no further request will be served, so that a client which first sends
/// all it has and then reads gets its answer.
const DISCARDED: usize = 256 * 1024;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Up to this size content is copied behind its head: one write, one packet.
const COPIED: usize = 16 * 1024;

/// What a client did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A head. If content follows it, it waits for [`Connection::accept_body`].
    Request(Request),
    /// The next bytes of the content, at least one. Shares memory with the input buffer: copy it to keep it.
    Body(Bytes),
    /// The content is complete.
    BodyEnd,
    /// The request cannot be read. Answer it; the connection closes by itself after that.
    Fault(Fault),
}

/// What a connection waits for, so that each wait can have its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// For a request.
    Idle,
    /// For the rest of a head.
    Head,
    /// For the rest of the content.
    Body,
    /// For an answer ([`Connection::respond`]), or for the client to take it.
    Responding,
    /// For the end of a streamed answer ([`Connection::end_stream`]).
    Streaming,
    /// For the client to take the last bytes; then [`Connection::is_finished`].
    Closing,
}

/// The server side of one connection. Bytes go in by [`receive`](Self::receive), events come out of [`poll`](Self::poll)
/// (call it until it says `None` after each `receive`, `eof`, `accept_body`, `respond` and `wrote`), answers go in by
/// [`respond`](Self::respond), bytes come out of [`output`](Self::output).
///
/// Requests are served one at a time and in order: while one waits for its answer, or the answer for the client to take
/// it, further requests stay in the input buffer (RFC 9112 §9.3.2).
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    input: BytesMut,
    eof: bool,
    reading: Reading,
    answer: Answer,
    /// Whether the present answer may leave the connection open.
    keep_alive: bool,
    /// Whether the present request asks for the head of the answer alone.
    head_only: bool,
    version: Version,
    draining: bool,
    /// Whether what streams goes out in chunks.
    chunked: bool,
    head: BytesMut,
    body: Bytes,
}

/// What the next byte of the peer belongs to.
#[derive(Debug)]
enum Reading {
    Head {
        scan: HeadScan,
        skipped: EmptyLine,
    },
    /// Content that nobody asked for yet.
    Offered {
        body: RequestBody,
        expects_continue: bool,
    },
    Body {
        framing: Framing,
        allowed: u64,
    },
    /// The next request.
    Next,
    /// Nothing; so many more are read.
    Discarded(usize),
}

/// Whether an empty line was skipped in front of a head (RFC 9112 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EmptyLine {
    No,
    Yes,
}

#[derive(Debug)]
enum Framing {
    Length(u64),
    Chunked(Chunked),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// There is no request.
    None,
    Due,
    /// Whole in the output buffers; after it, the next request.
    Given,
    /// Its head is in the output buffers.
    Streaming,
    /// Its head is in the output buffers, and so many bytes are to follow; after them, the next request or the end.
    Sized {
        left: u64,
        keep: bool,
    },
    /// Whole in the output buffers; after it, the end.
    Last,
}

impl Connection {
    /// A connection that was just accepted.
    pub fn new(limits: Limits) -> Self {
        Connection {
            limits,
            input: BytesMut::new(),
            eof: false,
            reading: Reading::head(),
            answer: Answer::None,
            keep_alive: false,
            head_only: false,
            version: Version::Http11,
            draining: false,
            chunked: false,
            head: BytesMut::new(),
            body: Bytes::new(),
        }
    }

    /// Takes bytes from the peer. All of them are kept (or thrown away, if no further request will be served), so the
    /// buffer exceeds its limit by what is read at once; ask [`wants_read`](Self::wants_read) before the next read.
    pub fn receive(&mut self, data: &[u8]) {
        match &mut self.reading {
            _ if self.eof => {}
            Reading::Discarded(left) => *left = left.saturating_sub(data.len()),
            _ => self.input.extend_from_slice(data),
        }
    }

    /// The peer sends nothing more. It may still read: what it asked for is answered.
    pub fn eof(&mut self) {
        self.eof = true;
    }

    /// Whether to read from the peer. True as well while an answer is due or streams, within the limits, since otherwise
    /// nobody would notice a client that went away.
    pub fn wants_read(&self) -> bool {
        !self.eof
            && match self.reading {
                Reading::Discarded(left) => left > 0,
                _ => self.input.len() < self.limits.buffered.max(self.limits.head + 1),
            }
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<Event> {
        match self.reading {
            Reading::Head { .. } => self.poll_head(),
            Reading::Body { .. } => self.poll_body(),
            Reading::Offered { .. } | Reading::Next | Reading::Discarded(_) => None,
        }
    }

    fn poll_head(&mut self) -> Option<Event> {
        while let Reading::Head { scan, skipped } = &mut self.reading {
            match scan.advance(&self.input, &self.limits) {
                Ok(Scanned::Complete(length)) => {
                    let head = self.input.split_to(length);
                    return Some(self.begin(&head));
                }
                Ok(Scanned::EmptyLine) if *skipped == EmptyLine::No => {
                    self.input.advance(2);
                    self.reading = Reading::Head { scan: HeadScan::default(), skipped: EmptyLine::Yes };
                }
                Ok(Scanned::EmptyLine) => return Some(self.fail(Fault::bad("a head begins with a request line"))),
                Ok(Scanned::Partial) => {
                    if self.eof || (self.draining && self.input.is_empty()) {
                        self.finish();
                    }
                    return None;
                }
                Err(fault) => {
                    self.head_only = self.input.starts_with(b"HEAD ");
                    return Some(self.fail(fault));
                }
            }
        }
        None
    }

    fn begin(&mut self, head: &[u8]) -> Event {
        self.head_only = head.starts_with(b"HEAD ");
        match Request::parse(head, &self.limits) {
            Ok(request) => {
                self.version = request.version;
                self.keep_alive = request.keep_alive;
                self.answer = Answer::Due;
                self.reading = Reading::Offered { body: request.body, expects_continue: request.expects_continue };
                Event::Request(request)
            }
            Err(fault) => self.fail(fault),
        }
    }

    fn poll_body(&mut self) -> Option<Event> {
        let Reading::Body { framing, allowed } = &mut self.reading else {
            return None;
        };
        let piece = match framing {
            Framing::Length(0) => Ok(Some(Piece::End)),
            Framing::Length(left) if *left > *allowed => Err(too_large()),
            Framing::Length(_) if self.input.is_empty() => Ok(None),
            Framing::Length(left) => {
                let data = self.input.split_to(usize::try_from(*left).unwrap_or(usize::MAX).min(self.input.len()));
                *left -= data.len() as u64;
                Ok(Some(Piece::Data(data.freeze())))
            }
            Framing::Chunked(chunked) => chunked.next(&mut self.input).and_then(|piece| {
                let came = if let Some(Piece::Data(data)) = &piece { data.len() as u64 } else { 0 };
                // A chunk that is too long by its own words is not waited for.
                if chunked.announced().saturating_add(came) > *allowed { Err(too_large()) } else { Ok(piece) }
            }),
        };
        Some(match piece {
            Ok(Some(Piece::Data(data))) => {
                *allowed -= data.len() as u64;
                Event::Body(data)
            }
            Ok(Some(Piece::End)) => {
                self.reading = Reading::Next;
                Event::BodyEnd
            }
            Ok(None) if self.eof => self.fail(Fault::bad("the content ended before its length or its last chunk")),
            Ok(None) => return None,
            Err(fault) => self.fail(fault),
        })
    }

    /// The head was good: let the content come, at most `max` bytes of it, as [`Event::Body`]s and one
    /// [`Event::BodyEnd`], which also comes where there is none. More is a [`Fault`] with status 413. Sends
    /// `100 Continue` if the client waits for that (RFC 9110 §10.1.1). Does nothing unless the request's content is still
    /// to be accepted.
    pub fn accept_body(&mut self, max: u64) {
        let Reading::Offered { body, expects_continue } = self.reading else {
            return;
        };
        let framing = match body {
            RequestBody::None => Framing::Length(0),
            RequestBody::Length(length) => Framing::Length(length),
            RequestBody::Chunked => Framing::Chunked(Chunked::new(self.limits.head)),
        };
        let comes = match framing {
            Framing::Length(length) => length > 0 && length <= max,
            Framing::Chunked(_) => true,
        };
        if expects_continue && comes {
            self.head.extend_from_slice(CONTINUE);
        }
        self.reading = Reading::Body { framing, allowed: max };
    }

    /// Makes a peer that said it sends nothing more show whether it still reads: one that is gone meets the interim answer with
    /// a reset, any other skips it (RFC 9110 §15.2.1). Does nothing where no interim answer may come: before HTTP/1.1, or
    /// unless an answer is due.
    pub fn probe(&mut self) {
        if self.answer == Answer::Due && self.version == Version::Http11 && self.output().is_empty() {
            self.head.extend_from_slice(CONTINUE);
        }
    }

    /// Answers the present request, or the [`Fault`] in its place. If its content was not read to its end, the connection
    /// closes after the answer (RFC 9112 §9.3). Does nothing unless an answer is due: each request has one.
    pub fn respond(&mut self, response: Response, date: &Date) {
        if self.answer != Answer::Due {
            return;
        }
        let Response { status, fields, body, close } = response;
        let streams = matches!(body, Body::Stream | Body::Chunks);
        let keep = self.is_read() && self.keep_alive && !self.draining && !close && !streams;
        self.chunked = body == Body::Chunks && self.version == Version::Http11;
        self.write_line(&["HTTP/1.1 ", &status.code().to_string(), " ", status.reason()]);
        self.write_line(&["Date: ", date.as_str()]);
        for (name, value) in &fields {
            self.write_line(&[name.as_str(), ": ", value.as_str()]);
        }
        // RFC 9110 §8.6: no length with 204; with 304 it would be that of an answer nobody computed.
        match &body {
            _ if !status.has_content() => {}
            Body::Empty => self.write_line(&["Content-Length: 0"]),
            Body::Full(content) => self.write_line(&["Content-Length: ", &content.len().to_string()]),
            Body::Sized(length) => self.write_line(&["Content-Length: ", &length.to_string()]),
            Body::Chunks if self.chunked => self.write_line(&["Transfer-Encoding: chunked"]),
            Body::Stream | Body::Chunks => {}
        }
        match (keep, self.version) {
            (false, _) => self.write_line(&["Connection: close"]),
            (true, Version::Http10) => self.write_line(&["Connection: keep-alive"]),
            (true, Version::Http11) => {}
        }
        self.write_line(&[]);
        let has_content = status.has_content() && !self.head_only;
        self.answer = match body {
            Body::Stream | Body::Chunks if has_content => Answer::Streaming,
            Body::Sized(left) if has_content && left > 0 => Answer::Sized { left, keep },
            _ if keep => Answer::Given,
            _ => Answer::Last,
        };
        match body {
            Body::Full(content) if has_content && content.len() <= COPIED => self.head.extend_from_slice(&content),
            Body::Full(content) if has_content => self.body = content,
            _ => {}
        }
        if keep {
            self.reading = Reading::Next;
        } else {
            self.discard();
        }
    }

    /// Gives up on a request that does not arrive, so that [`respond`](Self::respond) answers in its place; the connection
    /// closes after that.
    pub fn give_up(&mut self) {
        if matches!(self.answer, Answer::None | Answer::Due) {
            self.keep_alive = false;
            self.answer = Answer::Due;
            self.discard();
        }
    }

    /// Whether nothing of the present request is to come any more.
    fn is_read(&self) -> bool {
        matches!(
            self.reading,
            Reading::Next
                | Reading::Offered { body: RequestBody::None | RequestBody::Length(0), .. }
                | Reading::Body { framing: Framing::Length(0), .. }
        )
    }

    fn write_line(&mut self, parts: &[&str]) {
        for part in parts {
            self.head.extend_from_slice(part.as_bytes());
        }
        self.head.extend_from_slice(b"\r\n");
    }

    /// A streamed answer is complete; the connection closes. Does nothing unless one streams.
    pub fn end_stream(&mut self) {
        if self.answer == Answer::Streaming {
            self.answer = Answer::Last;
        }
    }

    /// Puts the next piece of an answer of [`Body::Chunks`] behind what is to be written; an empty one is its end, and the
    /// connection closes. Does nothing unless one streams.
    pub fn chunk(&mut self, piece: &[u8]) {
        if self.answer != Answer::Streaming {
            return;
        }
        if self.chunked {
            self.write_line(&[&format!("{:x}", piece.len())]);
        }
        self.head.extend_from_slice(piece);
        if self.chunked {
            self.head.extend_from_slice(b"\r\n");
        }
        if piece.is_empty() {
            self.end_stream();
        }
    }

    /// No further request: an idle connection is finished now, any other says `Connection: close` with its next answer.
    pub fn drain(&mut self) {
        self.draining = true;
        if self.phase() == Phase::Idle {
            self.finish();
        }
    }

    /// What is waited for.
    pub fn phase(&self) -> Phase {
        match (self.answer, &self.reading) {
            (Answer::None, _) if self.input.is_empty() => Phase::Idle,
            (Answer::None, _) => Phase::Head,
            (Answer::Due, Reading::Body { .. }) => Phase::Body,
            (Answer::Due | Answer::Given | Answer::Sized { .. }, _) => Phase::Responding,
            (Answer::Streaming, _) => Phase::Streaming,
            (Answer::Last, _) => Phase::Closing,
        }
    }

    /// What is to be written next; empty if there is nothing. While [`Phase::Streaming`], or after [`Body::Sized`], the server's
    /// own bytes follow once this is empty.
    pub fn output(&self) -> &[u8] {
        if self.head.is_empty() { &self.body } else { &self.head }
    }

    /// The peer took the first `count` bytes of [`output`](Self::output).
    pub fn wrote(&mut self, count: usize) {
        let head = count.min(self.head.len());
        self.head.advance(head);
        self.body.advance((count - head).min(self.body.len()));
        if !self.output().is_empty() {
            return;
        }
        self.head = BytesMut::new();
        self.go_on();
    }

    /// The peer took `count` of the bytes that the server writes by itself behind the head of an answer of a known size
    /// ([`Body::Sized`]).
    pub fn wrote_own(&mut self, count: u64) {
        let Answer::Sized { left, keep } = &mut self.answer else { return };
        *left = left.saturating_sub(count);
        if *left == 0 {
            self.answer = if *keep { Answer::Given } else { Answer::Last };
            self.go_on();
        }
    }

    /// After an answer is written, the next request.
    fn go_on(&mut self) {
        if self.answer == Answer::Given {
            self.answer = Answer::None;
            self.reading = Reading::head();
            if self.input.is_empty() {
                self.input = BytesMut::new();
            }
        }
    }

    /// Whether all is written and the connection is to be closed.
    pub fn is_finished(&self) -> bool {
        self.answer == Answer::Last && self.output().is_empty()
    }

    fn fail(&mut self, fault: Fault) -> Event {
        self.give_up();
        Event::Fault(fault)
    }

    fn finish(&mut self) {
        self.answer = Answer::Last;
        self.discard();
    }

    fn discard(&mut self) {
        self.input = BytesMut::new();
        if !matches!(self.reading, Reading::Discarded(_)) {
            self.reading = Reading::Discarded(DISCARDED);
        }
    }
}

impl Reading {
    fn head() -> Self {
        Reading::Head { scan: HeadScan::default(), skipped: EmptyLine::No }
    }
}

fn too_large() -> Fault {
    Fault::new(Status::CONTENT_TOO_LARGE, "the content is longer than is allowed here")
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
