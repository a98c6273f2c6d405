//! One file: opened where it was found, or not at all.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::FileFault;

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The directory of its library, without links in it.
    pub root: Arc<Path>,
    /// From there on; as it was found, so without `..` and NUL.
    pub path: PathBuf,
}

/// What an open file is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// In bytes.
    pub length: u64,
    /// When it was modified last, in seconds since 1970.
    pub modified: u64,
    /// Its entity tag: another file, another length, another time has another.
    pub etag: String,
}

impl From<&Metadata> for Attributes {
    fn from(data: &Metadata) -> Self {
        let (length, modified) = (data.len(), u64::try_from(data.mtime()).unwrap_or(0));
        let etag = format!("\"{:x}-{length:x}-{modified:x}.{:x}\"", data.ino(), data.mtime_nsec());
        Attributes { length, modified, etag }
    }
}

impl Place {
    /// Where it really is.
    ///
    /// # Errors
    /// When it is not there, or outside of its library.
    pub(super) fn real(&self) -> io::Result<PathBuf> {
        let real = fs::canonicalize(self.root.join(&self.path))?;
        if real.starts_with(&self.root) { Ok(real) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

/// Opens a file of a library. Blocks for as long as the disk takes.
///
/// # Errors
/// When it is not there any more, is no file, leads out of its library, or may not be read.
pub fn open(place: &Place) -> Result<(File, Attributes), FileFault> {
    let fault = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileFault::Gone,
        // A link was put in its place just now.
        _ if error.raw_os_error() == Some(libc::ELOOP) => FileFault::Gone,
        _ => FileFault::Unreadable(error.to_string()),
    };
    // A pipe that was put in its place must not keep us waiting for a writer.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let real = place.real().map_err(fault)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(&real).map_err(fault)?;
    let data = file.metadata().map_err(fault)?;
    // A directory on the way may have become a link between the two.
    let again = place.real().and_then(fs::metadata).map_err(fault)?;
    if !data.is_file() || (data.dev(), data.ino()) != (again.dev(), again.ino()) {
        return Err(FileFault::Gone);
    }
    Ok((file, Attributes::from(&data)))
}

/// Reads so many bytes from there on, fewer only at the end. Blocks for as long as the disk takes.
///
/// # Errors
/// When the system says so.
pub fn read(file: &File, at: u64, length: usize) -> Result<Bytes, FileFault> {
    let (mut data, mut filled) = (vec![0; length], 0);
    while filled < length {
        match file.read_at(&mut data[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FileFault::Unreadable(error.to_string())),
        }
    }
    data.truncate(filled);
    Ok(data.into())
}
