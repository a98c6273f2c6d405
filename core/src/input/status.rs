//! What it means when an origin or a provider answers with a status of 400 or more, for live streams and titles alike.

use super::Loss;

/// What a status says of whoever asked and of what was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Not with these credentials: 401, 403. Many panels also say so at an account's limit.
    Credentials,
    /// There is no such stream or title: 404, 410.
    Missing,
    /// There are as many connections as there may be: 429 (RFC 6585), 503, 509, and 456 and 458 of panels.
    Limit,
    /// What is asked for comes from whoever asks: 508 (RFC 5842).
    Loop,
    /// Anything else.
    Other,
}

impl Refusal {
    /// What this status means.
    pub fn of(status: u32) -> Refusal {
        match status {
            401 | 403 => Refusal::Credentials,
            404 | 410 => Refusal::Missing,
            429 | 456 | 458 | 503 | 509 => Refusal::Limit,
            508 => Refusal::Loop,
            _ => Refusal::Other,
        }
    }

    /// Whether a provider may answer so for the sake of connections that it still counts.
    pub fn may_be_a_limit(self) -> bool {
        matches!(self, Refusal::Credentials | Refusal::Limit)
    }
}

impl From<Refusal> for Loss {
    fn from(refusal: Refusal) -> Loss {
        match refusal {
            Refusal::Credentials => Loss::Forbidden,
            Refusal::Missing => Loss::NotFound,
            Refusal::Limit => Loss::Limit,
            Refusal::Loop => Loss::Loop,
            Refusal::Other => Loss::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn what_providers_answer_at_their_limit() {
        let limits: Vec<u32> = (400..600).filter(|status| Refusal::of(*status).may_be_a_limit()).collect();
        assert_eq!(limits, [401, 403, 429, 456, 458, 503, 509]);
        assert_eq!(
            [429, 403, 410, 500].map(|status| Loss::from(Refusal::of(status))),
            [Loss::Limit, Loss::Forbidden, Loss::NotFound, Loss::Refused]
        );
    }

    #[test]
    fn an_origin_that_fetches_from_itself_says_so() {
        assert_eq!(Loss::from(Refusal::of(508)), Loss::Loop);
    }
}
