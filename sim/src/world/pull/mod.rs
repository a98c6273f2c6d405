//! Channels in the world: origins that fail in every way, the truth of what they sent, and its judges.

mod oracle;
pub(super) mod origin;
mod population;
pub(super) mod truth;
mod witness;

pub(super) use population::channels;
