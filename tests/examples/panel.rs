//! A provider to try the program against, as the tests have it:
//!
//! ```sh
//! cargo run -p holdfast-tests --example panel            # two accounts with a connection each
//! cargo run -p holdfast-tests --example panel 4 1 0      # so many each; 0: any number
//! ```
//!
//! It prints what belongs into the configuration, then every request that comes in, with what is open of each account.

use std::time::Duration;

use holdfast_tests::provider::{Provider, Settings};

fn main() {
    let limits: Vec<usize> = std::env::args().skip(1).filter_map(|limit| limit.parse().ok()).collect();
    let limits = if limits.is_empty() { vec![1, 1] } else { limits };
    let provider = Provider::start(Settings::accounts(&limits));
    println!("{}", provider.configuration("panel"));
    let mut seen = 0;
    loop {
        for own in provider.served("").iter().skip(seen) {
            let range = own.range.as_deref().unwrap_or("-");
            let open: Vec<String> =
                provider.counts().iter().map(|count| format!("{}/{}", count.open, count.peak)).collect();
            println!("{} {} {} {range}, open/peak {}", own.status, own.method, own.target, open.join(" "));
            seen += 1;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
