//! Names of origins, looked up by threads of their own: getaddrinfo(3) blocks, for as long as it likes.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, Weak};
use std::thread;

use mio::Waker;

use super::sys::{Event, Lookup};
use crate::server::LinkId;

/// How many look-ups run at a time.
const THREADS: usize = 2;
/// How many may wait for that.
const WAITING: usize = 256;

/// What a thread is asked.
struct Question {
    link: LinkId,
    host: String,
    /// Gone once nobody wants to know any more.
    wanted: Weak<()>,
}

/// The threads, and what they found.
pub(super) struct Resolver {
    questions: SyncSender<Question>,
    answers: Receiver<Event>,
}

impl Resolver {
    /// Starts the threads. They end when this is dropped, each after the look-up it is at: nobody waits for that.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn start(waker: &Arc<Waker>) -> io::Result<Self> {
        let (questions, asked) = mpsc::sync_channel(WAITING);
        let (found, answers) = mpsc::channel();
        let asked = Arc::new(Mutex::new(asked));
        for _ in 0..THREADS {
            let (asked, found, waker) = (asked.clone(), found.clone(), waker.clone());
            thread::Builder::new().name("resolver".into()).spawn(move || serve(&asked, &found, &waker))?;
        }
        Ok(Resolver { questions, answers })
    }

    /// Asks for the addresses of a name. To drop the look-up takes the question back.
    ///
    /// # Errors
    /// When too many questions wait already.
    pub fn ask(&self, link: LinkId, host: &str) -> io::Result<Lookup> {
        let wanted = Arc::new(());
        let question = Question { link, host: host.into(), wanted: Arc::downgrade(&wanted) };
        self.questions.try_send(question).map_err(|error| match error {
            TrySendError::Full(_) => io::Error::other(format!("{WAITING} other names wait to be looked up")),
            TrySendError::Disconnected(_) => io::Error::other("the threads that look names up have ended"),
        })?;
        Ok(Lookup::new(wanted))
    }

    /// What was found since.
    pub fn answers(&self) -> impl Iterator<Item = Event> {
        self.answers.try_iter()
    }
}

fn serve(asked: &Mutex<Receiver<Question>>, found: &Sender<Event>, waker: &Waker) {
    loop {
        // Held while waiting: the other thread waits for the lock instead, and one gets the next question either way.
        let Some(question) = asked.lock().ok().and_then(|asked| asked.recv().ok()) else { return };
        if question.wanted.strong_count() == 0 {
            continue;
        }
        let addresses = (question.host.as_str(), 0).to_socket_addrs();
        let addresses = addresses.map(|found| found.map(|address| address.ip()).collect::<Vec<IpAddr>>());
        let addresses = addresses.map_err(|error| error.to_string());
        // The only way for a wake-up to fail is a full pipe, which wakes all the same.
        if found.send(Event::Resolved { link: question.link, addresses }).is_err() || waker.wake().is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> LinkId {
        LinkId::from_parts(3, 4)
    }

    /// A resolver without threads, and what they would be asked.
    fn unanswered() -> (Resolver, Receiver<Question>, Sender<Event>) {
        let (questions, asked) = mpsc::sync_channel(WAITING);
        let (found, answers) = mpsc::channel();
        (Resolver { questions, answers }, asked, found)
    }

    #[test]
    fn what_nobody_wants_to_know_any_more_is_not_looked_up() {
        let poll = mio::Poll::new().unwrap();
        let waker = Waker::new(poll.registry(), mio::Token(0)).unwrap();
        let (resolver, asked, found) = unanswered();
        drop(resolver.ask(link(), "localhost").unwrap());
        // No name holds a NUL, so nobody on the network is asked.
        let _wanted = resolver.ask(link(), "a\0b").unwrap();
        let Resolver { questions, answers } = resolver;
        drop(questions);
        serve(&Mutex::new(asked), &found, &waker);
        let answers: Vec<Event> = answers.try_iter().collect();
        assert!(
            matches!(&answers[..], [Event::Resolved { link: own, addresses: Err(_) }] if *own == link()),
            "{answers:?}"
        );
    }

    #[test]
    fn questions_are_bounded() {
        let (resolver, _asked, _found) = unanswered();
        for _ in 0..WAITING {
            resolver.ask(link(), "localhost").unwrap();
        }
        assert!(resolver.ask(link(), "localhost").unwrap_err().to_string().contains("256"));
    }
}
