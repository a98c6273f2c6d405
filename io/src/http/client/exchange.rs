use bytes::{Buf, Bytes, BytesMut};

use super::fault::Fault;
use super::get::{Get, Persistence};
use super::head::{Answer, Framing, HEAD, Parsed, ResponseHead, Scan};
use crate::http::chunked::{Chunked, Piece};

/// How many interim answers may precede the answer proper.
const INTERIM: u8 = 16;

/// What an origin did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The head of the answer. Whether its content is what was wanted is for the caller to judge, by status and
    /// `Content-Type`.
    Head(ResponseHead),
    /// The next bytes of the content, at least one. Shares memory with the input buffer: copy it to keep it.
    Body(Bytes),
    /// The content is complete: its length is reached, its last chunk came, or the connection ended where that is what
    /// ends it. Nothing follows.
    End,
    /// The exchange cannot go on. Nothing follows; close the connection.
    Fault(Fault),
}

/// One request and its answer. What is to be sent comes out of [`output`](Self::output), what the origin sends goes in by
/// [`receive`](Self::receive), events come out of [`poll`](Self::poll): call it until it says `None` after each `receive`
/// and after [`eof`](Self::eof). Then no more than an unfinished head is kept.
///
/// It has no clock: how long an origin may take is for the caller to say. So is what a reset means; `eof` is the orderly
/// end of the connection alone.
#[derive(Debug)]
pub struct Exchange {
    output: Bytes,
    input: BytesMut,
    eof: bool,
    reading: Reading,
    interim: u8,
    /// Whether both sides mean to go on, and nothing speaks against it.
    persists: bool,
}

#[derive(Debug)]
enum Reading {
    Head(Scan),
    Length(u64),
    Chunked(Chunked),
    UntilEnd,
    Over,
}

impl Exchange {
    /// An exchange on a connection that was just made, or that the one before left reusable.
    pub fn new(get: &Get) -> Self {
        Exchange {
            output: get.to_bytes(),
            input: BytesMut::new(),
            eof: false,
            reading: Reading::Head(Scan::default()),
            interim: 0,
            persists: get.persistence == Persistence::KeepAlive,
        }
    }

    /// What is to be written next; empty if there is nothing.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// The origin took the first `count` bytes of [`output`](Self::output).
    pub fn wrote(&mut self, count: usize) {
        self.output.advance(count.min(self.output.len()));
    }

    /// Takes bytes from the origin. What follows the end of the answer is ignored, and spoils the connection.
    pub fn receive(&mut self, data: &[u8]) {
        if matches!(self.reading, Reading::Over) {
            self.persists &= data.is_empty();
        } else if !self.eof {
            self.input.extend_from_slice(data);
        }
    }

    /// The origin sends nothing more.
    pub fn eof(&mut self) {
        self.eof = true;
    }

    /// Whether another exchange may follow on this connection: the answer is complete, both sides agreed to it, the request
    /// is written, and nothing came behind the answer.
    pub fn is_reusable(&self) -> bool {
        matches!(self.reading, Reading::Over) && self.persists && !self.eof && self.output.is_empty()
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<Event> {
        match self.step() {
            Ok(Some(Event::End)) => {
                self.persists &= self.input.is_empty();
                self.finish();
                Some(Event::End)
            }
            Ok(event) => event,
            Err(fault) => {
                self.persists = false;
                self.finish();
                Some(Event::Fault(fault))
            }
        }
    }

    fn finish(&mut self) {
        self.reading = Reading::Over;
        self.input = BytesMut::new();
    }

    fn step(&mut self) -> Result<Option<Event>, Fault> {
        let event = match &mut self.reading {
            Reading::Head(_) => return self.step_head(),
            Reading::Over => return Ok(None),
            Reading::Length(0) => Some(Event::End),
            Reading::Length(left) if !self.input.is_empty() => {
                let data = self.input.split_to(usize::try_from(*left).unwrap_or(usize::MAX).min(self.input.len()));
                *left -= data.len() as u64;
                Some(Event::Body(data.freeze()))
            }
            Reading::Length(_) => None,
            Reading::Chunked(chunked) => match chunked.next(&mut self.input).map_err(|f| Fault::Framing(f.detail))? {
                Some(Piece::Data(data)) => {
                    // A live stream has chunks without end: what each carries beside its content has its own bound.
                    chunked.allow(HEAD);
                    Some(Event::Body(data))
                }
                Some(Piece::End) => Some(Event::End),
                None => None,
            },
            Reading::UntilEnd if !self.input.is_empty() => Some(Event::Body(self.input.split().freeze())),
            Reading::UntilEnd if self.eof => Some(Event::End),
            Reading::UntilEnd => return Ok(None),
        };
        if event.is_none() && self.eof { Err(Fault::EndedEarly) } else { Ok(event) }
    }

    fn step_head(&mut self) -> Result<Option<Event>, Fault> {
        while let Reading::Head(scan) = &mut self.reading {
            let Some(length) = scan.advance(&self.input)? else {
                return match self.eof {
                    true if self.input.is_empty() && self.interim == 0 => Err(Fault::Unanswered),
                    true => Err(Fault::EndedEarly),
                    false => Ok(None),
                };
            };
            match Answer::parse(&self.input.split_to(length))? {
                Parsed::Interim if self.interim == INTERIM => return Err(Fault::EndlessInterim),
                Parsed::Interim => {
                    self.interim += 1;
                    self.reading = Reading::Head(Scan::default());
                }
                Parsed::Final(Answer { head, framing, keep_alive }) => {
                    self.persists &= keep_alive;
                    self.reading = match framing {
                        Framing::Length(length) => Reading::Length(length),
                        Framing::Chunked => Reading::Chunked(Chunked::new(HEAD)),
                        Framing::UntilEnd => Reading::UntilEnd,
                    };
                    return Ok(Some(Event::Head(head)));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
