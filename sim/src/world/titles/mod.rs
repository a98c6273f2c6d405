//! Titles in the world: providers that count, players of every kind, the truth of accounts, and its judges.

mod device;
mod named;
mod oracle;
mod population;
pub(super) mod provider;
pub(super) mod relay;
pub(super) mod truth;
mod vain;
mod witness;

pub(super) use device::{Device, Step as DeviceStep};
pub(crate) use named::SCENARIOS;
pub(super) use population::configure;
