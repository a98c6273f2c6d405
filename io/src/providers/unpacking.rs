//! What may be gzipped, as its first bytes show: a file whose name ends in `.gz`, or an answer with `Content-Encoding: gzip`.

use std::io::Write;

use flate2::write::MultiGzDecoder;

/// What is compressed is taken apart in such pieces: none of them becomes more than about a MiB.
const PIECE: usize = 1 << 10;
/// How much is taken apart at once: a few bytes may become very many, and others are to be served meanwhile.
const TURN: usize = 256 << 10;

/// Takes it apart as its bytes come.
pub(crate) enum Unpacking {
    /// The first two bytes will show.
    Unknown(Vec<u8>),
    Plain,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
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
                    [0x1f, 0x8b] => Unpacking::Gzip(Box::new(MultiGzDecoder::new(Vec::new()))),
                    _ => Unpacking::Plain,
                };
                self.push(&first, each).map(|taken| taken - before)
            }
            Unpacking::Plain => each(data).map(|()| data.len()),
            Unpacking::Gzip(gzip) => {
                let (mut taken, mut made) = (0, 0);
                for piece in data.chunks(PIECE) {
                    gzip.write_all(piece).map_err(|_| "its compression is broken")?;
                    let plain = std::mem::take(gzip.get_mut());
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
                gzip.try_finish().map_err(|_| "it ended early")?;
                each(&std::mem::take(gzip.get_mut()))
            }
        }
    }
}
