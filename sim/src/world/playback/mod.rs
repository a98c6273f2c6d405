//! Users in the world: players that come, zap, are refused, evicted and kicked; the truth of their places, and its judges.

mod named;
pub(super) mod oracle;
mod population;
pub(super) mod truth;
mod witness;

pub(crate) use named::SCENARIOS;
pub(super) use population::{Player, settings, users};
