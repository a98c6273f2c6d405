//! The chunked transfer coding (RFC 9112 §7.1).

use bytes::{Buf, Bytes, BytesMut};

use super::fault::Fault;

/// Finds the content in a chunked body. Extensions and trailer fields are checked, counted against a bound and dropped.
#[derive(Debug)]
pub(super) struct Chunked {
    state: State,
    /// How many more bytes of extensions and trailer fields may come.
    overhead: usize,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// At the digits of a chunk's size, of which so many came.
    Size(u64, u8),
    /// Behind whitespace that follows a size; an extension must come.
    Space(u64),
    Extension(u64),
    /// Behind the CR of a chunk's first line.
    SizeEnd(u64),
    Data(u64),
    /// Behind a chunk's data.
    DataCr,
    DataLf,
    /// At the start of a trailer line.
    Trailer,
    TrailerLine,
    /// Behind the CR of a trailer line.
    TrailerLf,
    /// Behind the CR of the last, empty line.
    EndLf,
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The next bytes of the content, at least one.
    Data(Bytes),
    /// The body is over; what follows belongs to the next message.
    End,
}

impl Chunked {
    pub(super) fn new(overhead: usize) -> Self {
        Chunked { state: State::Size(0, 0), overhead }
    }

    /// Takes what it can off the front of `input`; `None` if more is needed.
    pub(super) fn next(&mut self, input: &mut BytesMut) -> Result<Option<Piece>, Fault> {
        while !input.is_empty() {
            if let State::Data(left) = self.state {
                let data = input.split_to(usize::try_from(left).map_or(input.len(), |left| left.min(input.len())));
                let left = left - data.len() as u64;
                self.state = if left == 0 { State::DataCr } else { State::Data(left) };
                return Ok(Some(Piece::Data(data.freeze())));
            }
            let byte = input.get_u8();
            if matches!(self.state, State::EndLf) && byte == b'\n' {
                return Ok(Some(Piece::End));
            }
            self.state = self.step(byte)?;
        }
        Ok(None)
    }

    /// How many bytes of the present chunk are still to come.
    pub(super) fn announced(&self) -> u64 {
        if let State::Data(left) = self.state { left } else { 0 }
    }

    /// From here on, so many bytes of extensions and trailer fields may come.
    pub(super) fn allow(&mut self, overhead: usize) {
        self.overhead = overhead;
    }

    fn step(&mut self, byte: u8) -> Result<State, Fault> {
        Ok(match (self.state, byte) {
            (State::Size(size, digits), byte) if byte.is_ascii_hexdigit() => add_digit(size, digits, byte)?,
            (State::Size(size, 1..) | State::Extension(size), b'\r') => State::SizeEnd(size),
            (State::Size(size, 1..) | State::Space(size), b' ' | b'\t') => self.spend(State::Space(size))?,
            (State::Size(size, 1..) | State::Space(size), b';') => self.spend(State::Extension(size))?,
            (State::Extension(size), byte) if is_text(byte) => self.spend(State::Extension(size))?,
            (State::SizeEnd(0), b'\n') => State::Trailer,
            (State::SizeEnd(size), b'\n') => State::Data(size),
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size(0, 0),
            (State::Trailer, b'\r') => State::EndLf,
            (State::Trailer, b' ' | b'\t') => return Err(Fault::bad("a trailer field is one line, not folded")),
            (State::TrailerLine, b'\r') => State::TrailerLf,
            (State::Trailer | State::TrailerLine, byte) if is_text(byte) => self.spend(State::TrailerLine)?,
            (State::TrailerLf, b'\n') => State::Trailer,
            _ => return Err(Fault::bad("a chunk is its size in hexadecimal, CRLF, that many bytes, CRLF")),
        })
    }

    fn spend(&mut self, next: State) -> Result<State, Fault> {
        self.overhead = self
            .overhead
            .checked_sub(1)
            .ok_or_else(|| Fault::bad("chunk extensions and trailer fields of a body are longer than is allowed"))?;
        Ok(next)
    }
}

/// Sixteen digits are a `u64`; leading zeros count, since they too are to be bounded.
fn add_digit(size: u64, digits: u8, digit: u8) -> Result<State, Fault> {
    if digits == 16 {
        return Err(Fault::bad("a chunk size has at most 16 hexadecimal digits"));
    }
    Ok(State::Size(size << 4 | u64::from(char::from(digit).to_digit(16).unwrap_or_default()), digits + 1))
}

fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content, whether the end was found, and what is left; the input comes in pieces of `step` bytes.
    fn decode(body: &[u8], step: usize) -> Result<(Vec<u8>, bool, Vec<u8>), Fault> {
        let (mut chunked, mut input, mut content, mut end) = (Chunked::new(64), BytesMut::new(), Vec::new(), false);
        for piece in body.chunks(step) {
            input.extend_from_slice(piece);
            while !end {
                match chunked.next(&mut input)? {
                    Some(Piece::Data(data)) => content.extend_from_slice(&data),
                    Some(Piece::End) => end = true,
                    None => break,
                }
            }
        }
        Ok((content, end, input.to_vec()))
    }

    #[test]
    fn content_is_found_between_sizes_extensions_and_trailers() {
        let body = b"5\r\nhello\r\n00A ;a=\"b\"\r\n, world!!!\r\n0;x\r\nDigest: a\r\nB: c\r\n\r\nGET";
        for step in [1, 2, 3, 7, 1000] {
            assert_eq!(decode(body, step), Ok((b"hello, world!!!".to_vec(), true, b"GET".to_vec())), "{step}");
        }
    }

    #[test]
    fn what_only_looks_like_a_chunk_is_refused() {
        for bad in [
            "\r\n",
            ";a\r\n",
            " 1\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            "g\r\n",
            "1 \r\n",
            "1 2\r\n",
            "1\n",
            "1\rx",
            "1;a\n",
            "1;a\rb\r\n",
            "1;\0\r\n",
            "1\r\nab",
            "1\r\na\n",
            "1\r\na\r0",
            "0\r\n\n",
            "0\r\na\n",
            "0\r\n\rx",
            "0\r\na: b\r\n c\r\n",
        ] {
            assert!(decode(bad.as_bytes(), 1000).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_neither_overflow_nor_go_on_for_ever() {
        assert_eq!(decode(b"ffffffffffffffff\r\nab", 1000), Ok((b"ab".to_vec(), false, Vec::new())));
        assert!(decode(b"10000000000000000\r\n", 1000).is_err());
        assert!(decode(b"00000000000000001\r\n", 1000).is_err());
    }

    #[test]
    fn extensions_and_trailers_are_bounded_over_the_whole_body() {
        let extension = format!("1;{}\r\n", "x".repeat(64));
        assert!(decode(extension.as_bytes(), 1000).is_err());
        let trailer = format!("1;{}\r\na\r\n0\r\n{}\r\n\r\n", "x".repeat(32), "y".repeat(32));
        assert!(decode(trailer.as_bytes(), 1000).is_err());
        assert!(decode(format!("1{}", " ".repeat(65)).as_bytes(), 1000).is_err());
    }
}
