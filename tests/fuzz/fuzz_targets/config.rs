//! Any text as a configuration: read without a panic, and every fault says where it is; what is read can be shown and read
//! again.
#![no_main]

use holdfast::config::{effective, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse(text, "fuzz.toml") {
        Ok(settings) => {
            let shown = effective(&settings);
            // Secrets are shown as stars, so only those without any read the same again.
            if let Ok(again) = parse(&shown, "again.toml")
                && !shown.contains("***")
            {
                assert_eq!(again, settings, "{shown}");
            }
        }
        Err(faults) => assert!(faults.to_string().contains("fuzz.toml")),
    }
});
