//! The transport of the bundle: ICE credentials, DTLS fingerprints and role, and that RTCP shares it.

use super::OfferFault;
use crate::sdp::credentials::{Credentials, Found};
use crate::sdp::text::{AttributeFault, Block, clipped, is_token, push_line};

/// What the section that carries the bundle says about its transport, or the session part for it.
pub(super) struct Transport<'a> {
    pub credentials: Credentials,
    /// Values of `fingerprint`, at least one, of SHA-256 or better.
    fingerprints: Vec<&'a str>,
    setup: &'a str,
}

impl<'a> Transport<'a> {
    /// Whether an attribute of this name is written by [`write`](Transport::write), or is a candidate.
    pub fn owns(name: &str) -> bool {
        matches!(
            name,
            "ice-ufrag"
                | "ice-pwd"
                | "fingerprint"
                | "setup"
                | "rtcp-mux"
                | "candidate"
                | "remote-candidates"
                | "end-of-candidates"
        )
    }

    /// Whether a section has credentials, of its own or of the session.
    pub fn is_in(block: &Block<'_>, session: &Block<'_>) -> bool {
        block.has("ice-ufrag") || session.has("ice-ufrag")
    }

    /// Reads and checks it; what the section does not say, the session part may.
    pub fn read(block: &Block<'a>, session: &Block<'a>) -> Result<Self, OfferFault> {
        let credentials = match Credentials::read(block)? {
            Found::Both(credentials) => credentials,
            Found::Half => return Err(OfferFault::NoCredentials),
            Found::Neither => match Credentials::read(session)? {
                Found::Both(credentials) => credentials,
                _ => return Err(OfferFault::NoCredentials),
            },
        };
        let holder = if block.has("fingerprint") { block } else { session };
        let mut fingerprints: Vec<&str> = Vec::new();
        for fingerprint in holder.attributes("fingerprint") {
            if is_strong(fingerprint)? && !fingerprints.contains(&fingerprint) && fingerprints.len() < 8 {
                fingerprints.push(fingerprint);
            }
        }
        if fingerprints.is_empty() {
            return Err(match holder.has("fingerprint") {
                true => OfferFault::WeakFingerprint,
                false => OfferFault::NoFingerprint,
            });
        }
        let setup = match block.single("setup")? {
            Some(setup) => setup,
            None => session.single("setup")?.ok_or(OfferFault::NoSetup)?,
        };
        match setup {
            "actpass" | "active" | "passive" => {}
            "holdconn" => return Err(OfferFault::NoSetup),
            _ => {
                let form = "actpass, active or passive";
                return Err(AttributeFault::Grammar { attribute: "setup", value: clipped(setup), form }.into());
            }
        }
        // RFC 8858 has rtcp-mux-only stand beside rtcp-mux; alone it says no less.
        if !["rtcp-mux", "rtcp-mux-only"].into_iter().any(|name| block.has(name) || session.has(name)) {
            return Err(OfferFault::NoRtcpMux);
        }
        Ok(Transport { credentials, fingerprints, setup })
    }

    /// Appends it to a section.
    pub fn write(&self, out: &mut String) {
        push_line(out, format_args!("a=ice-ufrag:{}", self.credentials.ufrag));
        push_line(out, format_args!("a=ice-pwd:{}", self.credentials.pwd));
        for fingerprint in &self.fingerprints {
            push_line(out, format_args!("a=fingerprint:{fingerprint}"));
        }
        push_line(out, format_args!("a=setup:{}", self.setup));
        push_line(out, "a=rtcp-mux");
    }
}

/// Whether a fingerprint can be trusted: SHA-256, SHA-384 or SHA-512 (RFC 8122 §5). Weaker and unknown ones count for
/// nothing, but have to be well formed.
fn is_strong(fingerprint: &str) -> Result<bool, AttributeFault> {
    let fault = || AttributeFault::Grammar {
        attribute: "fingerprint",
        value: clipped(fingerprint),
        form: "<hash> and pairs of hexadecimal digits with colons between, 32 of them for sha-256",
    };
    let (hash, digest) = fingerprint.split_once(' ').filter(|(hash, _)| is_token(hash)).ok_or_else(fault)?;
    let pair = |pair: &str| pair.len() == 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !digest.split(':').all(pair) {
        return Err(fault());
    }
    let expected = match hash.to_ascii_lowercase().as_str() {
        "sha-256" => 32,
        "sha-384" => 48,
        "sha-512" => 64,
        _ => return Ok(false),
    };
    match digest.split(':').count() == expected {
        true => Ok(true),
        false => Err(fault()),
    }
}
