//! Clients for the tests, in the clear and over TLS.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};

use super::fake::Fake;
use super::tls;

/// A server's configuration, and clients that trust it.
pub(super) fn tls() -> (Arc<ServerConfig>, impl Fn() -> ClientConnection) {
    let own = rcgen::generate_simple_self_signed(["localhost".into()]).unwrap();
    let server = tls::server_config(own.cert.pem().as_bytes(), own.signing_key.serialize_pem().as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = Arc::new(client);
    (server, move || ClientConnection::new(client.clone(), "localhost".try_into().unwrap()).unwrap())
}

pub(super) const OK: &str = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
pub(super) const LARGE: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
pub(super) const MISSING: &str = "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n";
pub(super) const OPTIONS: &str = "OPTIONS /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
pub(super) const LAST: &str = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// A WHIP POST that will be taken.
pub(super) fn offer() -> String {
    const OFFER: &str = include_str!("../../../tests/fuzz/seeds/sdp_offer/ffmpeg-audio.sdp");
    let head = "POST /whip/live HTTP/1.1\r\nHost: a\r\nContent-Type: application/sdp\r\n";
    format!("{head}Content-Length: {}\r\n\r\n{OFFER}", OFFER.len())
}

/// The statuses of the answers that are complete.
pub(super) fn answers(mut bytes: &[u8]) -> Vec<u16> {
    let mut statuses = Vec::new();
    while let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        assert!(head.starts_with("HTTP/1.1 "), "an answer begins in the middle: {head:?}");
        let length =
            head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).map_or(0, |n| n.parse().unwrap());
        let Some(rest) = bytes.get(end + 4 + length..) else { break };
        statuses.push(head[9..12].parse().unwrap());
        bytes = rest;
    }
    statuses
}

/// Whole answers by their requests, as a kernel that never lies brings them.
pub(super) type Answers = BTreeMap<&'static str, Vec<u8>>;

/// What may be asked, and the status of its answer.
pub(super) const REQUESTS: [(&str, u16); 5] = [(OK, 200), (LARGE, 200), (MISSING, 404), (OPTIONS, 204), (LAST, 200)];

/// Answers without what tells when they were made, also where the last of them is cut off.
pub(super) fn undated(bytes: &[u8]) -> Vec<u8> {
    const DATE: &[u8] = b"Date: ";
    let mut kept = Vec::new();
    let mut rest = bytes;
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let (line, after) = rest.split_at(end + 2);
        if !line.starts_with(DATE) {
            kept.extend_from_slice(line);
        }
        rest = after;
    }
    if !rest.starts_with(DATE) && (rest.is_empty() || !DATE.starts_with(rest)) {
        kept.extend_from_slice(rest);
    }
    kept
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Takes its answers and stays.
    Polite,
    /// Asks for the end with its last request, and sends more behind it.
    Closer,
    /// Sends all, half-closes, then reads.
    HalfCloser,
    /// Resets at any time.
    Rude,
    /// Sends nothing.
    Mute,
}

pub(super) struct Client {
    pub number: usize,
    pub kind: Kind,
    tls: Option<ClientConnection>,
    script: Vec<u8>,
    /// What is to be sent, as it is on the wire.
    wire: Vec<u8>,
    expected: Vec<u16>,
    /// What it asks for and is answered, in order.
    asks: Vec<&'static str>,
    pub got: Vec<u8>,
    finished: bool,
}

impl Client {
    pub fn any(fake: &Fake, tls: Option<ClientConnection>) -> Self {
        let kinds = [Kind::Polite, Kind::Closer, Kind::HalfCloser, Kind::Rude, Kind::Mute];
        Client::new(fake, kinds[fake.random(5) as usize], tls)
    }

    pub fn new(fake: &Fake, kind: Kind, tls: Option<ClientConnection>) -> Self {
        let (mut script, mut expected, mut asks) = (String::new(), Vec::new(), Vec::new());
        for _ in 0..if kind == Kind::Mute { 0 } else { 1 + fake.random(4) } {
            let (request, status) = REQUESTS[fake.random(4) as usize];
            script += request;
            expected.push(status);
            asks.push(request);
        }
        if kind == Kind::Closer {
            script += LAST;
            script += OK;
            expected.push(200);
            asks.push(LAST);
        }
        let number = fake.connect(500 + fake.random(3000) as usize);
        let (wire, got) = (Vec::new(), Vec::new());
        Client { number, kind, tls, script: script.into(), wire, expected, asks, got, finished: false }
    }

    pub fn act(&mut self, fake: &Fake) {
        let piece: Vec<u8> = self.script.drain(..self.script.len().min(fake.random(60) as usize)).collect();
        let taken = fake.take(self.number, fake.random(4000) as usize);
        match &mut self.tls {
            Some(tls) => {
                tls.writer().write_all(&piece).unwrap();
                let mut taken = &taken[..];
                while !taken.is_empty() {
                    tls.read_tls(&mut taken).unwrap();
                    tls.process_new_packets().unwrap();
                }
                let _ = tls.reader().read_to_end(&mut self.got);
                while tls.wants_write() {
                    tls.write_tls(&mut self.wire).unwrap();
                }
            }
            None => {
                self.wire.extend(piece);
                self.got.extend(taken);
            }
        }
        if self.finished {
            return;
        }
        let piece: Vec<u8> = self.wire.drain(..self.wire.len().min(fake.random(300) as usize)).collect();
        if !piece.is_empty() {
            fake.send(self.number, &piece);
        }
        let handshaking = self.tls.as_ref().is_some_and(|tls| tls.is_handshaking());
        let over = fake.0.borrow().conns[self.number].ended;
        if self.kind == Kind::Rude && fake.random(20) == 0 {
            self.finished = true;
            fake.reset(self.number);
        } else if over
            || (self.kind == Kind::HalfCloser && self.script.is_empty() && self.wire.is_empty() && !handshaking)
        {
            self.finished = true;
            fake.fin(self.number);
        }
    }

    /// Every request was answered whole, in order and once; whoever was cut off got what came before.
    pub fn check(&self, fake: &Fake, answers: &Answers, seed: u64) {
        // Who says nothing may be told so.
        if self.kind == Kind::Mute {
            return;
        }
        let whole: Vec<u8> = self.asks.iter().flat_map(|request| answers[request].clone()).collect();
        let got = undated(&self.got);
        let cut = fake.0.borrow().conns[self.number].lost || self.kind == Kind::Rude;
        let (number, kind, told) = (self.number, self.kind, (got.len(), whole.len()));
        let so = if cut { whole.starts_with(&got) } else { whole == got };
        let same = got.iter().zip(&whole).take_while(|(got, wanted)| got == wanted).count();
        let about = |bytes: &[u8]| {
            String::from_utf8_lossy(&bytes[same.saturating_sub(60)..bytes.len().min(same + 60)]).into_owned()
        };
        assert!(
            so,
            "seed {seed}: client {number}, {kind:?}, got {told:?} bytes, from {same} on {:?} instead of {:?}",
            about(&got),
            about(&whole)
        );
    }

    pub fn is_content(&self, fake: &Fake) -> bool {
        let conn = &fake.0.borrow().conns[self.number];
        match self.kind {
            Kind::Rude | Kind::Mute => true,
            _ => conn.lost || answers(&self.got) == self.expected,
        }
    }
}
