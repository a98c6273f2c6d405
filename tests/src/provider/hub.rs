//! The live signal: one clip over and over, in real time, for everybody who looks.

use std::io::Read as _;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};

use super::clips::{Clip, Clips};
use crate::prepared;

type Takers = Arc<Mutex<Vec<SyncSender<Arc<[u8]>>>>>;

/// Where it is given out. It runs from the first one who joins.
#[derive(Default)]
pub(super) struct Hub {
    takers: Takers,
    encoder: Mutex<Option<Child>>,
}

impl Hub {
    /// The signal from now on. Whoever does not take it in time misses something.
    pub fn join(&self) -> Receiver<Arc<[u8]>> {
        let (sender, receiver) = sync_channel(256);
        self.takers.lock().unwrap().push(sender);
        let mut encoder = self.encoder.lock().unwrap();
        if encoder.is_none() {
            *encoder = Some(start(Arc::clone(&self.takers)));
        }
        receiver
    }

    /// Ends it.
    pub fn end(&self) {
        if let Some(mut encoder) = self.encoder.lock().unwrap().take() {
            let _ = encoder.kill();
            let _ = encoder.wait();
        }
    }
}

fn start(takers: Takers) -> Child {
    let mut command = prepared::tool("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-re", "-stream_loop", "-1", "-i"]).arg(Clips::ready().path(Clip::Small));
    command.args(["-c", "copy", "-f", "mpegts", "-flush_packets", "1", "pipe:1"]);
    let mut encoder = command.stdout(Stdio::piped()).spawn().expect("ffmpeg starts");
    let mut stream = encoder.stdout.take().expect("it is piped");
    std::thread::spawn(move || {
        let mut buffer = vec![0; 188 * 64];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            let bytes: Arc<[u8]> = buffer[..read].into();
            let gave = |taker: &SyncSender<Arc<[u8]>>| {
                !matches!(taker.try_send(Arc::clone(&bytes)), Err(TrySendError::Disconnected(_)))
            };
            takers.lock().unwrap().retain(gave);
        }
        takers.lock().unwrap().clear();
    });
    encoder
}
