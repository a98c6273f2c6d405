//! Addresses of what other servers' playlists name, as our players are given them: `/hls/{sealed}.ts`.
//!
//! All that is needed to serve such a request is in its address, encrypted and authenticated: nobody can make one up, change
//! one, or read in it where its content comes from. What is in it says the same as long as it is the same: a playlist that is
//! read again names its segments as before (RFC 8216 §6.2.1), whatever time it is. So its nonce comes from its content
//! (as in RFC 5297), and what is named in a playlist lives as long as the playlist.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use holdfast_core::input::{AccountId, Token, UserId};
use holdfast_core::playback::Item;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::{hkdf, hmac};
use serde::{Deserialize, Serialize};
use url::Url;

use super::rewrite::Variables;

/// Bytes of the longest content. With it a request line keeps within [`Limits::request_line`](crate::http::Limits).
const MOST: usize = 5000;
/// Authenticated with each: what was sealed in another way does not open.
const FORM: &[u8] = b"holdfast hls 1";

/// What an address stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sealed {
    /// What is there, so far as it matters how it is served.
    pub kind: Kind,
    /// The playback that it belongs to.
    pub token: Token,
    /// Whose playback.
    pub user: UserId,
    /// Of what.
    pub item: Item,
    /// Which of the title's sources, by its place ([`Output::Fetch`](holdfast_core::input::Output::Fetch)).
    pub index: u32,
    /// With whose credentials; what it names is had with no others.
    pub account: AccountId,
    /// From when on it is no more unless its playback goes on, in seconds since 1970. Whatever is named in a playlist has the playlist's.
    pub until: u64,
    /// Where it is fetched.
    pub url: Url,
    /// What its playlist may import of the one that names it.
    pub variables: Variables,
}

/// How the content of an address is served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// Rewritten.
    Playlist,
    /// As it is: media, which is counted.
    Media,
    /// What a decoder is initialised with.
    Map,
    /// A key: kept out of every log and cache.
    Key,
    /// Something else, as it is.
    Data,
}

/// An address that is none of ours, was changed, or is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotOurs;

impl std::fmt::Display for NotOurs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("this address was not given out here, or has been over for too long; open the playlist again")
    }
}

impl std::error::Error for NotOurs {}

/// As it is encrypted. Numbers have variable lengths: a short address leaves room in every playlist.
#[derive(Serialize, Deserialize)]
struct Content<'a> {
    kind: Kind,
    token: Token,
    user: UserId,
    item: Item,
    index: u32,
    account: AccountId,
    until: u64,
    url: &'a str,
    variables: Variables,
}

/// Seals and opens.
pub struct Seal {
    key: LessSafeKey,
    /// For nonces.
    derive: hmac::Key,
}

impl Seal {
    /// Addresses of another secret, or of another `house`, do not open. Users, items and accounts are places in a configuration:
    /// `house` has to tell apart configurations in which they stand for others.
    ///
    /// With a random secret addresses end with the process. With one that is kept, players outlive a restart.
    pub fn new(secret: &[u8], house: &[u8]) -> Self {
        let derived = hkdf::Salt::new(hkdf::HKDF_SHA256, FORM).extract(secret);
        let key = |label: &[u8], key: &mut [u8; 32]| {
            let info = [label, house];
            let filled = derived.expand(&info, hkdf::HKDF_SHA256).and_then(|okm| okm.fill(key));
            filled.expect("HKDF gives 32 bytes");
        };
        let (mut seal, mut derive) = ([0; 32], [0; 32]);
        key(b"seal\0", &mut seal);
        key(b"nonce\0", &mut derive);
        let unbound = UnboundKey::new(&CHACHA20_POLY1305, &seal).expect("the key has 32 bytes");
        Seal { key: LessSafeKey::new(unbound), derive: hmac::Key::new(hmac::HMAC_SHA256, &derive) }
    }

    /// The last segment of an address, with an ending that players accept for its kind; `None` for one that would be too long.
    pub fn seal(&self, sealed: &Sealed) -> Option<String> {
        let Sealed { kind, token, user, item, index, account, until, ref url, ref variables } = *sealed;
        let variables = variables.clone();
        let content = Content { kind, token, user, item, index, account, until, url: url.as_str(), variables };
        let mut bytes = postcard::to_extend(&content, Vec::with_capacity(128 + url.as_str().len())).ok()?;
        if bytes.len() > MOST {
            return None;
        }
        let digest = hmac::sign(&self.derive, &bytes);
        let nonce: [u8; NONCE_LEN] = digest.as_ref()[..NONCE_LEN].try_into().ok()?;
        let aad = Aad::from(FORM);
        self.key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut bytes).ok()?;
        let mut text = String::with_capacity((bytes.len() + NONCE_LEN) * 4 / 3 + 8);
        // Twelve bytes are sixteen letters: both parts can be encoded one behind the other.
        BASE64.encode_string(nonce, &mut text);
        BASE64.encode_string(&bytes, &mut text);
        text.push('.');
        text.push_str(ending(kind, url));
        Some(text)
    }

    /// What an address stands for, or stood for until [`Sealed::until`]. Its ending says nothing.
    ///
    /// # Errors
    /// One for all that can be wrong with it. What that costs depends on its length alone.
    pub fn open(&self, text: &str) -> Result<Sealed, NotOurs> {
        let (text, _) = text.split_once('.').unwrap_or((text, ""));
        if text.len() > (NONCE_LEN + MOST + CHACHA20_POLY1305.tag_len()).div_ceil(3) * 4 {
            return Err(NotOurs);
        }
        let mut bytes = BASE64.decode(text).map_err(|_| NotOurs)?;
        let (nonce, bytes) = bytes.split_first_chunk_mut::<NONCE_LEN>().ok_or(NotOurs)?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let bytes = self.key.open_in_place(nonce, Aad::from(FORM), bytes).map_err(|_| NotOurs)?;
        let (content, rest) = postcard::take_from_bytes::<Content<'_>>(bytes).map_err(|_| NotOurs)?;
        let Content { kind, token, user, item, index, account, until, url, variables } = content;
        let url = Url::parse(url).map_err(|_| NotOurs)?;
        if !rest.is_empty() {
            return Err(NotOurs);
        }
        Ok(Sealed { kind, token, user, item, index, account, until, url, variables })
    }
}

/// Keys are not for logs.
impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

/// FFmpeg from 7.1 on takes segments only whose addresses end as it expects of them.
fn ending(kind: Kind, url: &Url) -> &'static str {
    const MEDIA: [&str; 17] = [
        "ts", "m4s", "mp4", "m4a", "m4v", "m2ts", "mpg", "aac", "ac3", "ec3", "eac3", "mp3", "vtt", "webvtt", "cmfv",
        "cmfa", "jpg",
    ];
    let own = url.path().rsplit_once('.').map_or("", |(_, ending)| ending);
    let known = MEDIA.into_iter().find(|known| known.eq_ignore_ascii_case(own));
    match kind {
        Kind::Playlist => "m3u8",
        Kind::Media => known.unwrap_or("ts"),
        Kind::Map => known.unwrap_or("mp4"),
        Kind::Key => "key",
        Kind::Data => known.unwrap_or("json"),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_core::input::TitleId;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn segment() -> Sealed {
        Sealed {
            kind: Kind::Media,
            token: Token([7; 16]),
            user: UserId(3),
            item: Item::Hls(TitleId(u64::MAX)),
            index: 1,
            account: AccountId(2),
            until: NOW + 10,
            url: Url::parse("http://provider.example:8080/live/name/secret/12_345.ts?token=a%20b").unwrap(),
            variables: Variables::default(),
        }
    }

    fn seal() -> Seal {
        Seal::new(b"secret", b"house")
    }

    #[test]
    fn what_is_sealed_opens_as_it_was() {
        let mut one = segment();
        let text = seal().seal(&one).unwrap();
        assert!(text.ends_with(".ts"), "{text}");
        assert!(text.len() < 220, "{} letters", text.len());
        assert_eq!(seal().open(&text).as_ref(), Ok(&one));
        // Whatever a player makes of its ending.
        for other in [&text[..text.len() - 3], &text.replace(".ts", ".m3u8"), &format!("{text}.ts")] {
            assert_eq!(seal().open(other).as_ref(), Ok(&one));
        }
        one.variables.set("a", "b").unwrap();
        one.kind = Kind::Playlist;
        assert_eq!(seal().open(&seal().seal(&one).unwrap()), Ok(one));
    }

    #[test]
    fn the_same_is_named_the_same_and_nothing_else_is() {
        let one = segment();
        let name = |sealed: &Sealed| seal().seal(sealed).unwrap();
        assert_eq!(name(&one), name(&one.clone()));
        for other in [
            Sealed { kind: Kind::Map, ..one.clone() },
            Sealed { token: Token([8; 16]), ..one.clone() },
            Sealed { user: UserId(4), ..one.clone() },
            Sealed { item: Item::Catchup(TitleId(u64::MAX)), ..one.clone() },
            Sealed { index: 2, ..one.clone() },
            Sealed { account: AccountId(1), ..one.clone() },
            Sealed { until: NOW + 11, ..one.clone() },
            Sealed { url: Url::parse("http://provider.example/").unwrap(), ..one.clone() },
        ] {
            assert_ne!(name(&other)[..16], name(&one)[..16], "a nonce is used twice");
            assert_eq!(seal().open(&name(&other)), Ok(other));
        }
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_noticed() {
        let text = seal().seal(&segment()).unwrap();
        let (letters, _) = text.split_once('.').unwrap();
        for place in 0..letters.len() {
            for bit in 0..8 {
                let mut bytes = letters.as_bytes().to_vec();
                bytes[place] ^= 1 << bit;
                // What becomes a dot cuts.
                if let Ok(changed) = std::str::from_utf8(&bytes) {
                    assert_eq!(seal().open(changed), Err(NotOurs), "bit {bit} of letter {place}");
                }
            }
            assert_eq!(seal().open(&letters[..place]), Err(NotOurs), "cut at {place}");
            assert_eq!(seal().open(&letters[place + 1..]), Err(NotOurs), "begun at {place}");
        }
        for longer in [format!("{letters}A"), format!("{letters}="), format!(" {letters}"), format!("{letters}AAAA")] {
            assert_eq!(seal().open(&longer), Err(NotOurs), "{longer}");
        }
    }

    #[test]
    fn another_secret_and_another_house_open_nothing() {
        let text = seal().seal(&segment()).unwrap();
        for other in [Seal::new(b"Secret", b"house"), Seal::new(b"secret", b"House"), Seal::new(b"", b"")] {
            assert_eq!(other.open(&text), Err(NotOurs));
        }
    }

    #[test]
    fn a_forged_one_is_none() {
        for forged in ["", ".", ".ts", "a", "AAAA", "....", "é", "\0", "%00"] {
            assert_eq!(seal().open(forged), Err(NotOurs), "{forged}");
        }
        for length in [27, 28, 29, 37, 38, 100, 1000, 6720, 6800, 100_000] {
            assert_eq!(seal().open(&"A".repeat(length)), Err(NotOurs), "{length}");
        }
    }

    #[test]
    fn an_address_has_a_bound() {
        let url = |length: usize| Url::parse(&format!("http://a/{}", "b".repeat(length))).unwrap();
        let fits = Sealed { url: url(4900), ..segment() };
        let text = seal().seal(&fits).unwrap();
        assert!(text.len() + 100 < crate::http::Limits::default().request_line, "{}", text.len());
        assert_eq!(seal().open(&text), Ok(fits));
        assert_eq!(seal().seal(&Sealed { url: url(5000), ..segment() }), None);
    }

    #[test]
    fn endings_are_those_that_players_expect() {
        let ending = |kind, path: &str| {
            let url = Url::parse("http://a.example/").unwrap().join(path).unwrap();
            let text = seal().seal(&Sealed { kind, url, ..segment() }).unwrap();
            text.split_once('.').unwrap().1.to_owned()
        };
        for (kind, path, expected) in [
            (Kind::Playlist, "a.php", "m3u8"),
            (Kind::Media, "a.ts?b.mp4", "ts"),
            (Kind::Media, "a.M4S", "m4s"),
            (Kind::Media, "a.php", "ts"),
            (Kind::Media, "", "ts"),
            (Kind::Map, "init", "mp4"),
            (Kind::Key, "a.ts", "key"),
            (Kind::Data, "a", "json"),
        ] {
            assert_eq!(ending(kind, path), expected, "{path}");
        }
    }
}
