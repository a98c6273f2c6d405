//! Any address: none opens that was not sealed here. Any URL: sealed, it opens as it was, or is too long.
#![no_main]

use std::sync::LazyLock;

use holdfast_core::input::{AccountId, TitleId, Token, UserId};
use holdfast_core::playback::Item;
use holdfast_io::hls::rewrite::Variables;
use holdfast_io::hls::sealed::{Kind, Seal, Sealed};
use libfuzzer_sys::fuzz_target;
use url::Url;

static SEAL: LazyLock<Seal> = LazyLock::new(|| Seal::new(b"secret", b"house"));
const NOW: u64 = 1_800_000_000;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    assert!(SEAL.open(&text).is_err(), "it was made up");
    let Ok(url) = Url::parse(&text) else { return };
    let sealed = Sealed {
        kind: [Kind::Playlist, Kind::Media, Kind::Map, Kind::Key, Kind::Data][input.len() % 5],
        token: Token([input.len() as u8; 16]),
        user: UserId(input.len() as u32),
        item: Item::Hls(TitleId(u64::MAX / (input.len() as u64 + 1))),
        index: 0,
        account: AccountId(1),
        until: NOW + 1,
        url,
        variables: Variables::default(),
    };
    let Some(address) = SEAL.seal(&sealed) else { return };
    assert!(address.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)));
    assert_eq!(SEAL.open(&address).as_ref(), Ok(&sealed));
    // One that was changed at a place that the input chooses.
    let letters = address.split('.').next().unwrap_or_default();
    let place = input.iter().map(|byte| usize::from(*byte)).sum::<usize>() % letters.len();
    let other = if letters.as_bytes()[place] == b'A' { "B" } else { "A" };
    let changed = format!("{}{other}{}", &letters[..place], &letters[place + 1..]);
    assert!(SEAL.open(&changed).is_err(), "letter {place} was changed");
});
