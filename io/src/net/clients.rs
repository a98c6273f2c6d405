//! Clients for the tests, in the clear and over TLS.

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
    pub got: Vec<u8>,
    finished: bool,
}

impl Client {
    pub fn any(fake: &Fake, tls: Option<ClientConnection>) -> Self {
        let kinds = [Kind::Polite, Kind::Closer, Kind::HalfCloser, Kind::Rude, Kind::Mute];
        Client::new(fake, kinds[fake.random(5) as usize], tls)
    }

    pub fn new(fake: &Fake, kind: Kind, tls: Option<ClientConnection>) -> Self {
        let (mut script, mut expected) = (String::new(), Vec::new());
        for _ in 0..if kind == Kind::Mute { 0 } else { 1 + fake.random(4) } {
            let (request, status) = [(OK, 200), (LARGE, 200), (MISSING, 404)][fake.random(3) as usize];
            script += request;
            expected.push(status);
        }
        if kind == Kind::Closer {
            script += LAST;
            script += OK;
            expected.push(200);
        }
        let number = fake.connect(500 + fake.random(3000) as usize);
        let (wire, got) = (Vec::new(), Vec::new());
        Client { number, kind, tls, script: script.into(), wire, expected, got, finished: false }
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

    pub fn is_content(&self, fake: &Fake) -> bool {
        let conn = &fake.0.borrow().conns[self.number];
        match self.kind {
            Kind::Rude | Kind::Mute => true,
            _ => conn.lost || answers(&self.got) == self.expected,
        }
    }
}
