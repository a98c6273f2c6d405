//! Files of this machine that are read as if an origin sent them, piece by piece between everything else.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::{Driver, Media, Peer, Serve, Sys};
use crate::server::{ConnectError, LinkId};

impl<S: Sys, M: Media, P: Serve> Driver<S, M, P> {
    pub(super) fn open_file(&mut self, link: LinkId, path: &Path) {
        match open(path) {
            Ok(file) => self.files.push_back((link, file)),
            Err(error) => {
                self.server.failed(self.now, link, ConnectError::Other(format!("the file cannot be read: {error}")));
            }
        }
    }

    /// Reads a piece of each.
    pub(super) fn read_files(&mut self) {
        for _ in 0..self.files.len() {
            let Some((link, mut file)) = self.files.pop_front() else { return };
            let peer = Peer::Origin(link);
            match file.read(&mut self.buffer) {
                Ok(0) => self.server.eof(self.now, peer),
                Ok(length) => {
                    self.files.push_back((link, file));
                    self.server.received(self.now, peer, &self.buffer[..length]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => self.files.push_back((link, file)),
                Err(_) => self.server.closed(self.now, peer),
            }
            self.act();
        }
    }
}

/// Looked at before it is opened: opening a pipe would wait for its other end.
fn open(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    File::open(path)
}
