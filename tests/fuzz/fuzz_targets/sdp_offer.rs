//! Any body of a POST: checked without a panic; what is taken is taken again unchanged, before and after a restart,
//! and survives being its own answer.
#![no_main]

use holdfast_core::config::Media;
use holdfast_io::sdp::Offer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let Ok(offer) = Offer::check(body, Media::AudioVideo) else { return };
    let again = Offer::check(offer.text.as_bytes(), Media::AudioVideo).expect("a checked offer is taken again");
    assert_eq!(again.text, offer.text);
    assert_eq!(again.sections, offer.sections);
    assert_eq!((again.transport, &again.credentials), (offer.transport, &offer.credentials));

    let restarted = offer.restarted("ysXw", "vw5LmwG4y/e6dPP/zAP9Gp5k");
    let again = Offer::check(restarted.text.as_bytes(), Media::AudioVideo).expect("a restarted offer is taken again");
    assert_eq!(again.credentials, restarted.credentials);

    let local = offer.text.replace("a=sendonly\r\n", "a=recvonly\r\n").replace("a=sendrecv\r\n", "a=recvonly\r\n");
    if let Ok(answer) = offer.answer(&local, 4_000_000) {
        let lines = |text: &[u8]| text.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"m=")).count();
        assert_eq!(lines(answer.as_bytes()), lines(body), "as many sections in the answer as in the offer");
        assert!(!answer.replace("\r\n", "").contains(['\r', '\n']), "nothing but CRLF ends a line");
    }
});
