//! Channels in the world: origins that fail in every way, the truth of what they sent, and its judges.

mod edges;
mod named;
mod oracle;
pub(super) mod origin;
mod population;
pub(super) mod truth;
mod witness;

pub(crate) use edges::SCENARIOS as EDGES_SCENARIOS;
pub(crate) use named::SCENARIOS;
pub(super) use population::channels;
