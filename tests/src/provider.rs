//! A provider: a panel with accounts that it counts and limits, and with everything that panels have. It is apart from the
//! program under test in every way: what it counts are its own sockets.

mod accounts;
mod catalogue;
mod clips;
mod hub;
mod media;
mod wire;

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub use accounts::Count;
pub use catalogue::{DASH, EPISODES, FILMS, Film, Form, LIVES, Live, SERIES};
pub use clips::{Clip, Clips, Hls, LENGTH};

use accounts::Counter;
use hub::Hub;
use media::{Media, Place, Who};
use wire::{Gone, Head, Request, Wire};

/// How a provider behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whoever may use it.
    pub accounts: Vec<Account>,
    /// What is answered where an account has no room: 403, 456 and 503 are usual.
    pub over_limit: u16,
    /// Whether players are sent to another address with a token, which is good once where it names a file.
    pub redirect: bool,
    /// How long it still counts what is closed.
    pub late: Duration,
    /// How many bytes a second it sends of what is no live stream.
    pub rate: u64,
    /// How playlists name what belongs to them.
    pub uris: Uris,
    /// Whether connections stay open for further requests.
    pub keep_alive: bool,
    /// Films more, of which there is nothing but a name.
    pub bulk: u32,
    /// Whether the list has a byte order mark, lines as on DOS, and broken ones.
    pub messy: bool,
    /// The status of a wrong login to the API.
    pub wrong_login: u16,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            accounts: vec![Account::of(1)],
            over_limit: 403,
            redirect: false,
            late: Duration::ZERO,
            rate: 4 << 20,
            uris: Uris::Relative,
            keep_alive: false,
            bulk: 0,
            messy: false,
            wrong_login: 200,
        }
    }
}

impl Settings {
    /// Accounts with so many connections each; 0 = any number.
    pub fn accounts(limits: &[usize]) -> Settings {
        Settings { accounts: limits.iter().map(|limit| Account::of(*limit)).collect(), ..Settings::default() }
    }
}

/// How playlists name what belongs to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uris {
    /// `../hls/…`
    Relative,
    /// `/hls/…`
    Rooted,
    /// `http://…`
    Absolute,
}

/// An account of a provider's.
#[derive(Clone, Debug)]
pub struct Account {
    /// Empty: a number is made into one.
    pub username: String,
    /// The same.
    pub password: String,
    /// How many sockets at once; 0 = any number.
    pub max: usize,
    /// How many the API says that are, if it says something else.
    pub says: Option<usize>,
    /// "Active", or something else.
    pub status: &'static str,
    /// In seconds since 1970; `None`: never.
    pub expires: Option<i64>,
}

impl Account {
    /// One with so many connections.
    pub fn of(max: usize) -> Account {
        Account { username: String::new(), password: String::new(), max, says: None, status: "Active", expires: None }
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It takes the request and says nothing.
    Silent,
    /// A head comes, of a file its beginning, and nothing more.
    Stalls,
    /// So many bytes a second.
    Slow(u64),
    /// The connection breaks after so many bytes of the body.
    Abort(u64),
    /// This status, at once.
    Status(u16),
    /// A range begins elsewhere, by its own word.
    WrongRange,
    /// Ranges are ignored.
    NoRange,
}

/// A request that came in.
#[derive(Clone, Debug)]
pub struct Served {
    /// Its connection.
    pub number: u64,
    /// When it came.
    pub at: Instant,
    /// When its connection was over.
    pub ended: Option<Instant>,
    /// By which account, in the order of the settings; `None`: by nobody's.
    pub account: Option<usize>,
    /// `GET`, `HEAD`.
    pub method: String,
    /// As it came.
    pub target: String,
    /// `Range`, as it came.
    pub range: Option<String>,
    /// All its fields, names in lower case.
    pub fields: Vec<(String, String)>,
    /// The answer's; 0: there was none.
    pub status: u16,
}

struct Failing {
    part: String,
    fault: Fault,
    /// How often still.
    left: u32,
}

struct Token {
    account: usize,
    /// How often it is good still.
    uses: u32,
}

struct Shared {
    settings: Settings,
    began: Instant,
    /// Of the panel, and of what it sends players to.
    addresses: [SocketAddr; 2],
    counter: Counter,
    hub: Hub,
    failing: Mutex<Vec<Failing>>,
    tokens: Mutex<HashMap<String, Token>>,
    served: Mutex<Vec<Served>>,
    connections: AtomicU64,
    over: Arc<AtomicBool>,
}

/// A running provider.
pub struct Provider {
    shared: Arc<Shared>,
}

impl Provider {
    /// Starts one on free ports of 127.0.0.1.
    ///
    /// # Panics
    /// Without ffmpeg.
    pub fn start(mut settings: Settings) -> Provider {
        Clips::ready();
        for (number, account) in settings.accounts.iter_mut().enumerate() {
            if account.username.is_empty() {
                (account.username, account.password) = (format!("acc{number}"), format!("key-{number}"));
            }
        }
        let listeners = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let addresses = listeners.each_ref().map(|listener| listener.local_addr().expect("it is bound"));
        let limits = settings.accounts.iter().map(|account| account.max).collect();
        let shared = Arc::new(Shared {
            counter: Counter::new(limits, settings.late),
            settings,
            began: Instant::now(),
            addresses,
            hub: Hub::default(),
            failing: Mutex::default(),
            tokens: Mutex::default(),
            served: Mutex::default(),
            connections: AtomicU64::new(0),
            over: Arc::default(),
        });
        for (door, listener) in listeners.into_iter().enumerate() {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                for socket in listener.incoming().flatten() {
                    if shared.over.load(Relaxed) {
                        return;
                    }
                    let shared = Arc::clone(&shared);
                    std::thread::spawn(move || shared.serve(socket, door));
                }
            });
        }
        Provider { shared }
    }

    /// `http://host:port`
    pub fn url(&self) -> String {
        format!("http://{}", self.shared.addresses[0])
    }

    /// What the program's configuration says of it, as a panel of this name with all its accounts.
    pub fn configuration(&self, name: &str) -> String {
        let mut text = format!("[[provider]]\nname = \"{name}\"\nurl = \"{}\"\n", self.url());
        for own in &self.shared.settings.accounts {
            text += &format!(
                "[[account]]\nprovider = \"{name}\"\nusername = \"{}\"\npassword = \"{}\"\nmax_connections = {}\n",
                own.username, own.password, own.max
            );
        }
        text
    }

    /// An account, with the name and the password that it got.
    pub fn account(&self, index: usize) -> &Account {
        &self.shared.settings.accounts[index]
    }

    /// The address of a medium for an account: `movie` `101.mp4`.
    pub fn address(&self, index: usize, kind: &str, file: &str) -> String {
        let own = self.account(index);
        format!("{}/{kind}/{}/{}/{file}", self.url(), escaped(&own.username), escaped(&own.password))
    }

    /// The address of the list for an account.
    pub fn list(&self, index: usize) -> String {
        let own = self.account(index);
        let (name, password) = (escaped(&own.username), escaped(&own.password));
        format!("{}/get.php?username={name}&password={password}&type=m3u_plus&output=ts", self.url())
    }

    /// What it has counted for an account.
    pub fn count(&self, index: usize) -> Count {
        self.shared.counter.count(index)
    }

    /// What it has counted for each account.
    pub fn counts(&self) -> Vec<Count> {
        (0..self.shared.settings.accounts.len()).map(|index| self.count(index)).collect()
    }

    /// Sockets open now, of all accounts.
    pub fn open(&self) -> usize {
        self.counts().iter().map(|count| count.open).sum()
    }

    /// No account was ever used by more than it may be, and none is any more.
    ///
    /// # Panics
    /// When one was, or one still is after `limit`.
    pub fn was_kept_within_limits(&self, limit: Duration) {
        crate::eventually("no socket to the provider", limit, || (self.open() == 0).then_some(()));
        for (index, count) in self.counts().into_iter().enumerate() {
            let max = self.account(index).max;
            assert!(
                count.refused == 0 && (max == 0 || count.peak <= max),
                "account {index} of {max}: {count:?}\n{}",
                self.told(index)
            );
        }
    }

    /// What an account refused, with what was open beside it: each request, from when until when.
    fn told(&self, index: usize) -> String {
        let served = self.shared.served.lock().unwrap();
        let mut text = String::new();
        for refusal in self.shared.counter.refusals(index) {
            let since = |at: Instant| match at.checked_duration_since(refusal.at) {
                Some(after) => format!("+{} us", after.as_micros()),
                None => format!("-{} us", (refusal.at - at).as_micros()),
            };
            for own in served.iter().filter(|own| own.number == refusal.number || refusal.beside.contains(&own.number))
            {
                let ended = own.ended.map_or("still open".to_owned(), since);
                text += &format!("{} {} {}: {} to {ended}\n", own.number, own.method, own.target, since(own.at));
            }
        }
        text
    }

    /// The most is from now on what there is now, and nothing was asked.
    pub fn forget(&self) {
        self.shared.counter.forget();
        self.shared.served.lock().unwrap().clear();
    }

    /// Every request so far whose address has `part` in it.
    pub fn served(&self, part: &str) -> Vec<Served> {
        let served = self.shared.served.lock().unwrap();
        served.iter().filter(|own| own.target.contains(part)).cloned().collect()
    }

    /// Requests for addresses with `part` in them fail, so many times from now on.
    pub fn fail_times(&self, part: &str, fault: Fault, times: u32) {
        self.shared.failing.lock().unwrap().push(Failing { part: part.to_owned(), fault, left: times });
    }

    /// Requests for addresses with `part` in them fail from now on.
    pub fn fail(&self, part: &str, fault: Fault) {
        self.fail_times(part, fault, u32::MAX);
    }

    /// Nothing fails any more but what has failed already.
    pub fn mend(&self) {
        self.shared.failing.lock().unwrap().clear();
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.shared.over.store(true, Relaxed);
        self.shared.hub.end();
        for address in self.shared.addresses {
            let _ = TcpStream::connect(address);
        }
    }
}

/// A name or a password as a part of an address.
fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

impl Shared {
    fn serve(&self, socket: TcpStream, door: usize) {
        let number = self.connections.fetch_add(1, Relaxed);
        let mut wire = Wire::new(socket, number, Arc::clone(&self.over));
        while let Some(request) = wire.request() {
            let answered = self.answer(&mut wire, &request, door);
            if answered.is_err() || !self.settings.keep_alive {
                if answered.is_ok() {
                    wire.end();
                }
                break;
            }
        }
        self.counter.closed(number);
        let mut served = self.served.lock().unwrap();
        for own in served.iter_mut().filter(|own| own.number == number && own.ended.is_none()) {
            own.ended = Some(Instant::now());
        }
    }

    fn answer(&self, wire: &mut Wire, request: &Request, door: usize) -> Result<(), Gone> {
        let addressed = media::address(request);
        let who = match &addressed {
            Some((who, _)) => self.who(who),
            None => request.value("username").zip(request.value("password")).and_then(|(n, p)| self.login(n, p)),
        };
        self.served.lock().unwrap().push(Served {
            number: wire.number,
            at: Instant::now(),
            ended: None,
            account: who,
            method: request.method.clone(),
            target: request.target.clone(),
            range: request.field("range").map(str::to_owned),
            fields: request.fields.clone(),
            status: 0,
        });
        let fault = self.fault(&request.target);
        match addressed {
            Some((who_said, medium)) => self.medium(wire, request, door, (who, who_said, medium), fault),
            None => self.about(wire, request, who, fault),
        }
    }

    fn login(&self, name: &str, password: &str) -> Option<usize> {
        self.settings.accounts.iter().position(|own| own.username == name && own.password == password)
    }

    fn who(&self, who: &Who) -> Option<usize> {
        match who {
            Who::Account(name, password) => self.login(name, password),
            Who::Token(token) => {
                let mut tokens = self.tokens.lock().unwrap();
                let token = tokens.get_mut(token).filter(|token| token.uses > 0)?;
                token.uses -= 1;
                Some(token.account)
            }
        }
    }

    fn fault(&self, target: &str) -> Option<Fault> {
        let mut failing = self.failing.lock().unwrap();
        let found = failing.iter_mut().find(|own| own.left > 0 && target.contains(&own.part))?;
        found.left -= u32::from(found.left < u32::MAX);
        Some(found.fault)
    }

    fn medium(
        &self,
        wire: &mut Wire,
        request: &Request,
        door: usize,
        (who, said, medium): (Option<usize>, Who, Media),
        fault: Option<Fault>,
    ) -> Result<(), Gone> {
        let Some(account) = who.filter(|who| self.settings.accounts[*who].status == "Active") else {
            return media::refuse(self, wire, 403);
        };
        let is_part = matches!(medium, Media::Part { .. });
        if door == 0 && self.settings.redirect && !is_part && !matches!(fault, Some(Fault::Status(_) | Fault::Silent)) {
            return self.redirect(wire, request, account, &medium);
        }
        let socket = Arc::clone(&wire.socket);
        if !self.counter.admit(account, wire.number, &socket) {
            return media::refuse(self, wire, self.settings.over_limit);
        }
        match fault {
            Some(Fault::Silent) => return wire.wait(Duration::from_secs(3600)),
            Some(Fault::Status(status)) => return media::refuse(self, wire, status),
            _ => {}
        }
        let own = &self.settings.accounts[account];
        let prefix = match said {
            Who::Account(..) => format!("hls/{}/{}", escaped(&own.username), escaped(&own.password)),
            Who::Token(token) => format!("lb/{token}/hls"),
        };
        let base = format!("http://{}", self.addresses[door]);
        let place = Place { base, prefix, uris: self.settings.uris, request };
        media::answer(self, wire, &medium, &place, fault)
    }

    /// To the other address, with a token.
    fn redirect(&self, wire: &mut Wire, request: &Request, account: usize, medium: &Media) -> Result<(), Gone> {
        let mut tokens = self.tokens.lock().unwrap();
        let token = format!("t{}x{account}", tokens.len());
        let name = request.path.last().map(String::as_str).unwrap_or_default();
        let (kind, name, uses) = match medium {
            Media::Live { playlist: true, .. } => ("live", name.to_owned(), u32::MAX),
            Media::Live { .. } => ("live", name.to_owned(), 1),
            Media::Archive { id, playlist } => {
                let extension = if *playlist { "m3u8" } else { "ts" };
                ("timeshift", format!("{id}.{extension}"), if *playlist { u32::MAX } else { 1 })
            }
            _ => ("movie", name.to_owned(), if name.ends_with(".m3u8") { u32::MAX } else { 1 }),
        };
        tokens.insert(token.clone(), Token { account, uses });
        drop(tokens);
        let location = format!("http://{}/lb/{token}/{kind}/{name}", self.addresses[1]);
        self.head(wire, Head::new(302).with("Location", location).with("Content-Length", 0))
    }

    /// Lists, the API, the guide: nothing that is counted.
    fn about(&self, wire: &mut Wire, request: &Request, who: Option<usize>, fault: Option<Fault>) -> Result<(), Gone> {
        match fault {
            Some(Fault::Silent) => return wire.wait(Duration::from_secs(3600)),
            Some(Fault::Status(status)) => return media::refuse(self, wire, status),
            _ => {}
        }
        let name = request.path.join("/");
        let form;
        let mut values = &request.query;
        let mut who = who;
        if request.method == "POST" {
            let length = request.field("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            let body = String::from_utf8(wire.body(length).ok_or(Gone)?).map_err(|_| Gone)?;
            form = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
            values = &form;
        }
        let value = |name: &str| values.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        if let (None, Some(name), Some(password)) = (who, value("username"), value("password")) {
            who = self.login(&name, &password);
        }
        let Some(account) = who else {
            if name != "player_api.php" {
                return media::refuse(self, wire, 403);
            }
            return self.send(
                wire,
                self.settings.wrong_login,
                "application/json",
                &catalogue::wrong_login().to_string(),
            );
        };
        let base = format!("http://{}", self.addresses[0]);
        let open = self.counter.count(account).open;
        let own = &self.settings.accounts[account];
        let catalogue = catalogue::Catalogue { settings: &self.settings, account: own, base: &base, open };
        let (kind, text) = match name.as_str() {
            "player_api.php" => ("application/json", catalogue.api(value("action").as_deref(), value).to_string()),
            "get.php" => ("audio/x-mpegurl", catalogue.list(&value("output").unwrap_or_default())),
            "xmltv.php" => ("application/xml", catalogue.guide()),
            _ => return media::refuse(self, wire, 404),
        };
        match fault {
            Some(Fault::Abort(most)) => {
                self.head(wire, Head::new(200).with("Content-Type", kind).with("Content-Length", text.len()))?;
                wire.send(&text.as_bytes()[..text.len().min(most as usize)])?;
                Err(Gone)
            }
            _ => self.send(wire, 200, kind, &text),
        }
    }

    fn send(&self, wire: &mut Wire, status: u16, kind: &str, text: &str) -> Result<(), Gone> {
        self.head(wire, Head::new(status).with("Content-Type", kind).with("Content-Length", text.len()))?;
        wire.send(text.as_bytes())
    }
}
