//! What may be gzipped, as its first bytes show: a file whose name ends in `.gz`, or an answer with `Content-Encoding: gzip`.

use std::io::Write;

use flate2::write::MultiGzDecoder;

/// What is compressed is taken apart in such pieces: none of them becomes more than about 1032 times as much (RFC 1951).
const PIECE: usize = 256;
/// How much is taken apart at once: a few bytes may become very many, and others are to be served meanwhile.
const TURN: usize = 256 << 10;

/// From so many bytes on, what becomes of it may be so many times what came and no more. Lists and guides are packed 10 to 50 : 1;
/// what is packed more tightly than any of them is there to keep a machine busy.
const TIGHT: (u64, u64) = (64 << 20, 250);

/// Takes it apart as its bytes come.
pub(crate) enum Unpacking {
    /// The first two bytes will show.
    Unknown(Vec<u8>),
    Plain,
    Gzip(Box<Gzip>),
}

pub(crate) struct Gzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    /// How many bytes came, and what they became.
    packed: u64,
    plain: u64,
}

impl Gzip {
    fn new() -> Self {
        Gzip { decoder: MultiGzDecoder::new(Vec::new()), packed: 0, plain: 0 }
    }

    fn push(&mut self, piece: &[u8]) -> Result<Vec<u8>, &'static str> {
        self.decoder.write_all(piece).map_err(|_| "its compression is broken")?;
        let plain = std::mem::take(self.decoder.get_mut());
        self.packed += piece.len() as u64;
        self.plain += plain.len() as u64;
        let (from, times) = TIGHT;
        if self.plain > from && self.plain > self.packed.saturating_mul(times) {
            return Err(
                "it is packed more tightly than any list or guide: it would keep this server busy with nothing",
            );
        }
        Ok(plain)
    }
}

impl Default for Unpacking {
    fn default() -> Self {
        Unpacking::Unknown(Vec::new())
    }
}

impl Unpacking {
    /// The next bytes; says what they are, piece by piece, which may end it. How many of them were taken: the others are to come
    /// once more, after others had their turn.
    ///
    /// # Errors
    /// What is wrong with them, or what `each` said.
    pub fn push<E: From<&'static str>>(
        &mut self,
        data: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        match self {
            Unpacking::Unknown(first) => {
                let before = first.len();
                first.extend_from_slice(data);
                if first.len() < 2 {
                    return Ok(data.len());
                }
                let first = std::mem::take(first);
                *self = match first[..2] {
                    [0x1f, 0x8b] => Unpacking::Gzip(Box::new(Gzip::new())),
                    _ => Unpacking::Plain,
                };
                self.push(&first, each).map(|taken| taken - before)
            }
            Unpacking::Plain => each(data).map(|()| data.len()),
            Unpacking::Gzip(gzip) => {
                let (mut taken, mut made) = (0, 0);
                for piece in data.chunks(PIECE) {
                    let plain = gzip.push(piece)?;
                    each(&plain)?;
                    (taken, made) = (taken + piece.len(), made + plain.len());
                    if made >= TURN {
                        break;
                    }
                }
                Ok(taken)
            }
        }
    }

    /// There is no more.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish<E: From<&'static str>>(self, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match self {
            Unpacking::Unknown(first) if first.is_empty() => Ok(()),
            Unpacking::Unknown(first) => each(&first),
            Unpacking::Plain => Ok(()),
            Unpacking::Gzip(mut gzip) => {
                gzip.decoder.try_finish().map_err(|_| "it ended early")?;
                each(&std::mem::take(gzip.decoder.get_mut()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(byte: u8, count: usize) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let piece = vec![byte; 1 << 16];
        for _ in 0..count >> 16 {
            gzip.write_all(&piece).unwrap();
        }
        gzip.finish().unwrap()
    }

    /// Takes it apart as a server does; the most that one turn made, and all of it.
    fn unpacked(data: &[u8]) -> Result<(usize, usize), &'static str> {
        let (mut unpacking, mut left) = (Unpacking::default(), data);
        let (mut most, mut all) = (0, 0);
        while !left.is_empty() {
            let mut made = 0;
            let taken = unpacking.push(left, |plain| {
                made += plain.len();
                Ok::<(), &'static str>(())
            })?;
            (left, most, all) = (&left[taken..], most.max(made), all + made);
        }
        unpacking.finish(|plain| {
            all += plain.len();
            Ok::<(), &'static str>(())
        })?;
        Ok((most, all))
    }

    #[test]
    fn no_turn_becomes_much_and_what_is_packed_too_tightly_is_refused() {
        let (most, all) = unpacked(&packed(b'\n', 32 << 20)).unwrap();
        assert_eq!(all, 32 << 20);
        assert!(most <= 2 * TURN + (64 << 10), "{most} bytes in one turn");
        let refused = unpacked(&packed(b'\n', 128 << 20));
        assert!(refused.is_err_and(|why| why.contains("more tightly")), "{refused:?}");
    }
}
