//! What was wrong with a request, and with which status it is answered.

use std::borrow::Cow;

use super::response::Status;

/// A request that cannot be read. After it the connection answers once and closes, since where the next request would
/// begin is no longer known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// How to answer it.
    pub status: Status,
    /// What was wrong and what would be right, for the problem body. Holds nothing that the peer sent.
    pub detail: Cow<'static, str>,
}

impl Fault {
    pub(super) fn new(status: Status, detail: impl Into<Cow<'static, str>>) -> Self {
        Fault { status, detail: detail.into() }
    }

    pub(super) fn bad(detail: impl Into<Cow<'static, str>>) -> Self {
        Fault::new(Status::BAD_REQUEST, detail)
    }
}
