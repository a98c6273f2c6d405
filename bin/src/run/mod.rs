//! How the edge starts and stops.
//!
//! In this order: certificates, GStreamer with a trial session, listeners; then the service manager and people are told
//! that it is ready. Whoever connects from then on is served at full speed.

mod descriptors;
mod episodes;
mod panic;
pub(crate) mod parts;
mod recorder;
mod welcome;

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use episodes::Keeper;
use holdfast_core::input::Note;
use holdfast_io::gst::{GstError, Sessions};
use holdfast_io::media::{MediaCommand, MediaEvent};
use holdfast_io::net::tls::{self, TlsError, Trust};
use holdfast_io::net::{Clock, Door, Driver, Kernel, Media, Parts, Report};
use holdfast_io::server::{Piece, Server};
use sd_notify::NotifyState;
use tracing::{Level, error, info, warn};

use crate::config::Settings;
use crate::log;
use recorder::{Recorder, Unrecordable};

/// Why the edge could not start, or go on.
#[derive(Debug)]
pub enum Stopped {
    /// Origins that speak TLS cannot be trusted as was wished.
    Authorities(TlsError),
    /// The listeners cannot speak TLS.
    Tls(TlsError),
    /// There is no WebRTC on this machine.
    Media(GstError),
    /// An address cannot be listened on.
    Listen(SocketAddr, io::Error),
    /// The file of the recorder cannot be had.
    Recorder(PathBuf, Unrecordable),
    /// The kernel refused what nothing goes without.
    Kernel(io::Error),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Authorities(error) => write!(f, "[origins] authorities: {error}"),
            Stopped::Tls(error) => write!(f, "[http.tls]: {error}"),
            Stopped::Media(error) => write!(f, "{error}"),
            Stopped::Listen(address, error) if error.kind() == io::ErrorKind::AddrInUse => write!(
                f,
                "cannot listen on {address}: another program does, maybe another Holdfast; stop it, or set another `listen` \
                 in [http] (or HOLDFAST_HTTP_LISTEN) or in [ovt]"
            ),
            Stopped::Listen(address, error) if error.kind() == io::ErrorKind::PermissionDenied => {
                write!(f, "cannot listen on {address}: {error}; ports below 1024 take CAP_NET_BIND_SERVICE or root")
            }
            Stopped::Listen(address, error) => {
                write!(f, "cannot listen on {address}: {error}; see `listen` in [http]")
            }
            Stopped::Recorder(path, Unrecordable::Taken) => write!(
                f,
                "[recorder] file: another Holdfast records into {}, or into what goes with it (`.1` behind the same name); give each a \
                 `file` of its own",
                path.display()
            ),
            Stopped::Recorder(_, Unrecordable::Foreign(path)) => write!(
                f,
                "[recorder] file: what is in {} is no journal, and would be lost: name another `file`, or move that away",
                path.display()
            ),
            Stopped::Recorder(path, Unrecordable::Failed(error)) => write!(
                f,
                "[recorder] file: {} cannot be recorded into: {error}; name a file that this user may write, or none",
                path.display()
            ),
            Stopped::Kernel(error) => write!(f, "the system refuses an event loop: {error}"),
        }
    }
}

impl std::error::Error for Stopped {}

/// Runs the edge until SIGTERM, SIGINT or SIGHUP, then drains: nobody new comes in, and everybody is ended within 5 s.
///
/// # Errors
/// [`Stopped`]
pub fn run(settings: &Settings) -> Result<(), Stopped> {
    for warning in settings.warnings() {
        warn!("{warning}");
    }
    let secured = settings.http.tls.as_ref().map(|files| tls::load(&files.cert, &files.key)).transpose();
    let secured = secured.map_err(Stopped::Tls)?;

    let files = descriptors::raise();
    let recorder = record(settings)?;
    let (clock, started) = (Clock::start(), SystemTime::now());
    let mut kernel = Kernel::new(clock).map_err(Stopped::Kernel)?;
    kernel.set_default_patience(settings.http.limits.write_timeout);
    kernel.handle_signals().map_err(Stopped::Kernel)?;
    let waker = kernel.waker();
    // The only way for a wake-up to fail is a full pipe, which wakes all the same.
    let wake = Arc::new(move || drop(waker.wake()));
    let sessions = Sessions::new(parts::media(settings, clock.epoch(), wake)).map_err(Stopped::Media)?;

    let trust = match settings.authorities.as_os_str().is_empty() {
        true => Trust::default(),
        false => Trust::with_authorities(&settings.authorities).map_err(Stopped::Authorities)?,
    };
    let mut listening = Vec::new();
    for address in &settings.http.listen {
        listening.push(kernel.listen(*address).map_err(|error| Stopped::Listen(*address, error))?);
    }
    let (mut doors, mut listeners) = (vec![Door::Http(secured); listening.len()], listening.clone());
    for address in &settings.ovt.listen {
        let bound = kernel.listen(*address).map_err(|error| Stopped::Listen(*address, error))?;
        info!("edges are served over OVT on {bound}");
        doors.push(Door::Ovt);
        listeners.push(bound);
    }
    let mut served = parts::server(settings, started, sessions.audio());
    served.listeners = listeners;
    let wanted = parts::wanted(settings, sessions.descriptors());
    let shares = descriptors::share(files, wanted);
    for (level, text) in descriptors::notices(files, wanted, shares) {
        if level == Level::WARN { warn!("{text}") } else { info!("{text}") }
    }
    (served.limits.connections, served.limits.sessions) = (shares.connections, shares.sessions);
    let file = &settings.episodes;
    let mut keeper = None;
    if !file.as_os_str().is_empty() {
        match episodes::load(file).and_then(|kept| Ok((kept, Keeper::start(file.clone())?))) {
            Ok((kept, started)) => (served.belongings, keeper) = (kept, Some(started)),
            Err(error) => warn!("{}", episodes::fault(file, &error)),
        }
    }
    let server = Server::new(parts::core(settings, started), served, Box::new(parts::entropy));
    let mut driver = Driver::new(Parts {
        sys: kernel,
        listeners: doors,
        server,
        trust,
        media: WebRtc(sessions),
        report: reporter(settings, keeper, recorder.clone()),
    });
    driver.keep_within(shares.connections);
    // Whoever looks at the file before anything has happened finds a journal.
    for piece in driver.server().unrecorded() {
        tell(&recorder, piece);
    }
    ready(settings, &listening);
    let ended = panic::dumped(&mut driver, |driver| driver.run(), |driver| driver.server().recorded().journal());
    for piece in driver.server().unrecorded() {
        tell(&recorder, piece);
    }
    ended.map(drop).map_err(Stopped::Kernel)
}

/// The recorder of this process, which the loop and its end both write to.
type Shared = Rc<RefCell<Option<Recorder>>>;

fn record(settings: &Settings) -> Result<Shared, Stopped> {
    let (size, path) = (settings.recorder.size, &settings.recorder.file);
    let recorder = match size.filter(|_| !path.as_os_str().is_empty()) {
        Some(size) => Some(Recorder::start(path, size as u64).map_err(|why| Stopped::Recorder(path.clone(), why))?),
        None => None,
    };
    Ok(Rc::new(RefCell::new(recorder)))
}

fn tell(recorder: &Shared, piece: Piece) {
    if let Some(recorder) = recorder.borrow_mut().as_mut() {
        recorder.record(piece);
    }
}

/// WebRTC sessions as the driver's media side.
struct WebRtc(Sessions);

impl Media for WebRtc {
    fn command(&mut self, command: MediaCommand) {
        self.0.command(command);
    }

    fn poll(&mut self) -> Option<MediaEvent> {
        self.0.poll()
    }
}

fn ready(settings: &Settings, listening: &[SocketAddr]) {
    let welcome = welcome::welcome(settings, listening);
    // Nobody need read it.
    let _ = io::stdout().write_all(welcome.as_bytes());
    let origins: Vec<String> = listening.iter().map(|address| welcome::origin(settings, *address)).collect();
    info!("ready: Holdfast {} listens on {}", env!("CARGO_PKG_VERSION"), origins.join(", "));
    notify(&[NotifyState::Ready, NotifyState::Status(&format!("listening on {}", origins.join(", ")))]);
}

/// Tells the service manager, where there is one.
fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(false, state) {
        warn!("the service manager cannot be told how we are: {error}");
    }
}

fn reporter(settings: &Settings, keeper: Option<Keeper>, recorder: Shared) -> Box<dyn FnMut(Report)> {
    let settings = settings.clone();
    Box::new(move |report| match report {
        Report::Note(note, about) => {
            if matches!(note, Note::Draining { .. }) {
                notify(&[NotifyState::Stopping]);
            }
            log::note(&settings, &note, &about);
        }
        Report::Keep(belongings) => {
            if let Some(keeper) = &keeper {
                keeper.keep(belongings);
            }
        }
        Report::Record(piece) => tell(&recorder, piece),
        Report::AcceptFailing(reason) => error!(
            "nobody can connect: {reason}; whoever tries waits. Raise the limit of open files (LimitNOFILE in the unit, \
             ulimit -n) or lower `connections` in [http.limits]"
        ),
        Report::AcceptRecovered => info!("connections are accepted again"),
        Report::CutShort(left) => warn!("stopped before {left} connections had ended in order"),
    })
}
