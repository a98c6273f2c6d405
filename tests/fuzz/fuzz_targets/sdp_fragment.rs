//! Any body of a PATCH: read without a panic; what is read is bounded and usable. Input before a NUL, if there is one,
//! stands for the values of If-Match, one a line.
#![no_main]

use holdfast_io::sdp::{Candidate, Credentials, Fragment, MAX_CANDIDATES, patch, restart_fragment, with_credentials};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let nul = input.iter().position(|byte| *byte == 0);
    let (if_match, body) = nul.map_or((&b"*"[..], input), |nul| (&input[..nul], &input[nul + 1..]));
    let Ok(if_match) = std::str::from_utf8(if_match) else { return };
    let Ok(fragment) = Fragment::parse(body) else { return };
    assert!(fragment.candidates.len() <= MAX_CANDIDATES);
    for candidate in &fragment.candidates {
        assert_eq!(
            Candidate::parse(candidate.as_str()).as_ref(),
            Ok(candidate),
            "a usable candidate is read unchanged"
        );
    }

    let session = Credentials { ufrag: "EsAw".into(), pwd: "P2uYro0UCOQ4zxjKXaWCBui1".into() };
    let values: Vec<&str> = if_match.split('\n').collect();
    patch::decide(&values, "\"xyz\"", &fragment, &session);

    let text = std::str::from_utf8(body).expect("a fragment is UTF-8");
    let ours = with_credentials(text, &session.ufrag, &session.pwd);
    assert_eq!(with_credentials(&ours, &session.ufrag, &session.pwd), ours);
    let restart = restart_fragment(text, &session.ufrag, &session.pwd);
    let restart = Fragment::parse(restart.as_bytes()).expect("our own fragment is well formed");
    assert_eq!(restart.credentials, Some(session));
    assert!(restart.candidates.len() <= 1);
});
