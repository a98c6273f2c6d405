//! The cases people reported of playing, on the bare core.
use crate::Scenario;
/// Every scenario of users.
pub(crate) const SCENARIOS: &[Scenario] = &[];
