//! Files that a configuration is in, or names.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// What the system says; or that it is larger, or no file at all, which is looked at before it is opened: opening a pipe would
/// wait for its other end, and a device may never end.
pub(super) fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(path: &str, most: usize) -> String {
        read(Path::new(path), most).expect_err("refused").to_string()
    }

    #[test]
    fn what_does_not_end_or_is_no_file_is_not_read() {
        for path in ["/dev/zero", "/dev/null", "/"] {
            assert_eq!(wrong(path, 1), "it is not a file", "{path}");
        }
        let large = std::env::temp_dir().join(format!("holdfast-large-{}", std::process::id()));
        let file = File::create(&large).expect("the temporary folder can be written");
        // Three GiB of nothing: read whole, they would take that much memory.
        file.set_len(3 << 30).expect("a file may have holes");
        assert_eq!(wrong(&large.to_string_lossy(), 1 << 20), "it has more than 1048576 bytes");
        file.set_len(5).expect("a file can be cut");
        assert_eq!(read(&large, 5).expect("small enough"), [0; 5]);
        std::fs::remove_file(&large).expect("it is ours");
    }
}
