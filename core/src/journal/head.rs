//! Of which program and which run is it?

use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::JournalFault;
use super::read::Reader;
use crate::config::Config;

/// What a journal says of its run before the first call. All of it comes from outside: the core knows none of it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Head {
    /// The product's version; empty where nobody said.
    pub version: String,
    /// The commit it was built from; empty where nobody said.
    pub commit: String,
    /// The seed that the run was drawn from, where it is a simulated one.
    pub seed: Option<u64>,
    /// Wall-clock time of [`Time::ZERO`](crate::time::Time::ZERO) in µs since 1970; `None` in a simulated run.
    pub started: Option<u64>,
    /// What was configured, without secrets once it is written.
    pub config: Config,
}

impl Head {
    /// The head of a journal.
    pub fn read(bytes: &[u8]) -> Result<Head, JournalFault> {
        Ok(Reader::new(bytes)?.head)
    }
}

impl From<Config> for Head {
    fn from(config: Config) -> Self {
        Head { config, ..Head::default() }
    }
}
