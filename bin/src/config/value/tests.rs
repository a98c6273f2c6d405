use std::time::Duration;

use proptest::prelude::*;

use super::super::Ports;
use super::quantity::{RATE_UNITS, SIZE_UNITS, parse_scaled, parse_span, show_scaled};
use super::*;

fn read<V, K: Kind<V>>(kind: &K, text: &str) -> Option<V> {
    kind.read(Value::Variable(text)).ok()
}

const ANY: Span = Span(Duration::ZERO, Duration::MAX);

#[test]
fn lengths_of_time() {
    let micros = |text| read(&ANY, text).map(|span| span.as_micros());
    assert_eq!(micros("2s"), Some(2_000_000));
    assert_eq!(micros("100ms"), Some(100_000));
    assert_eq!(micros("1m30s"), Some(90_000_000));
    assert_eq!(micros("1h 5 ms"), Some(3_600_005_000));
    assert_eq!(micros("0s"), Some(0));
    for bad in ["", " ", "2", "s", "2 parsecs", "-2s", "1.5s", "2S", "99999999999999999999s", "18446744073709551615h"] {
        assert_eq!(micros(bad), None, "{bad}");
    }
    assert!(read(&Span(Duration::from_millis(10), Duration::from_secs(1)), "9ms").is_none());
    assert!(read(&Span(Duration::from_millis(10), Duration::from_secs(1)), "1001ms").is_none());
    assert!(read(&Span(Duration::from_millis(10), Duration::from_secs(1)), "10ms").is_some());
}

#[test]
fn sizes_and_rates() {
    let size = |text| read::<u64, _>(&Size(0, u64::MAX), text);
    assert_eq!(size("16MiB"), Some(16 << 20));
    assert_eq!(size("256 KiB"), Some(256 << 10));
    assert_eq!(size("5 MB"), Some(5_000_000));
    assert_eq!(size("17"), Some(17));
    assert_eq!(size("16 mib"), None);
    assert_eq!(size("99999999999 GiB"), None);
    let rate = |text| read::<u64, _>(&Rate(0, u64::MAX), text);
    assert_eq!(rate("4M"), Some(4_000_000));
    assert_eq!(rate("4 Mbit/s"), Some(4_000_000));
    assert_eq!(rate("800k"), Some(800_000));
    assert_eq!(rate("1.5M"), None);
    assert_eq!(read::<u64, _>(&Size(1024, 2048), "2049"), None);
    assert_eq!(read::<u64, _>(&Rate(1024, 2048), "1023"), None);
}

proptest! {
    #[test]
    fn what_is_shown_reads_the_same(micros in any::<u64>(), bytes in any::<u64>()) {
        let span = Duration::from_micros(micros);
        prop_assert_eq!(parse_span(&show_span(span)), Some(span));
        prop_assert_eq!(parse_scaled(&show_scaled(bytes, &SIZE_UNITS), &SIZE_UNITS), Some(bytes));
        prop_assert_eq!(parse_scaled(&show_scaled(bytes, &RATE_UNITS), &RATE_UNITS), Some(bytes));
    }
}

#[test]
fn names_are_parts_of_a_path() {
    for good in ["live", "a", "A-b_c.9", &"x".repeat(64)] {
        assert!(read(&Name, good).is_some(), "{good}");
    }
    for bad in ["", ".", "..", ".hidden", "a/b", "a b", "ü", "a%20", &"x".repeat(65)] {
        assert!(read(&Name, bad).is_none(), "{bad}");
    }
}

#[test]
fn secrets_are_bearer_tokens_and_never_repeated() {
    assert!(read(&Secret, "abc.DEF-123_~+/==").is_some());
    for bad in ["", "=", "hunter 2", "hunter=2", "hunter\n2", "hünter2", &"hunter2".repeat(40)] {
        let wrong = Secret.read(Value::Variable(bad)).expect_err("refused");
        assert!(!format!("{}{}", wrong.wrong, wrong.right).contains("nter"), "{bad}");
    }
    assert_eq!(Secret.show(&String::from("hunter2")), "\"***\"");
    assert_eq!(Password.show(&String::from("hunter2")), "\"***\"");
}

#[test]
fn addresses_of_ice_servers() {
    for good in
        ["stun:192.0.2.7", "stun:[2001:db8::1]:3478", "turn:t.example.org:3478?transport=udp", "turns:t.example.org"]
    {
        assert!(read(&IceUrl, good).is_some(), "{good}");
    }
    let bad = [
        "",
        "stun:",
        "stun",
        "http://x",
        "stun:x?transport=udp",
        "turn:x?transport=sctp",
        "stun:a/b",
        "stun:a:99999",
        "turn:u@h",
    ];
    for bad in bad {
        assert!(read(&IceUrl, bad).is_none(), "{bad}");
    }
}

#[test]
fn ranges_of_ports() {
    assert_eq!(read(&PortRange, "20000-20100"), Some(Some(Ports { first: 20000, last: 20100 })));
    assert_eq!(read(&PortRange, ""), Some(None));
    for bad in ["20000", "20100-20000", "80-90", "1-70000", "a-b", "-"] {
        assert_eq!(read(&PortRange, bad), None, "{bad}");
    }
}
