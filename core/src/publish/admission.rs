//! What a POST has to show before anybody's slot is looked at, in this order (spec: publish §3.1).

use alloc::string::String;
use core::fmt;

use crate::config::Endpoint;
use crate::input::EndpointId;

/// The longest offer, in bytes.
pub const OFFER_LIMIT: u64 = 256 * 1024;

/// The head of a WHIP request, as far as admission reads it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head<'a> {
    /// The endpoint's name in the path.
    pub endpoint: &'a str,
    /// The value of `Authorization`.
    pub authorization: Option<&'a str>,
    /// The value of `Content-Type`.
    pub content_type: Option<&'a str>,
    /// The length of the body in bytes, where it is declared.
    pub length: Option<u64>,
}

/// Why a head is refused; the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// No endpoint of this name (404).
    NotFound,
    /// The token is missing or not of this endpoint (401).
    Unauthorized,
    /// The body is not SDP (415).
    UnsupportedType,
    /// The body is longer than [`OFFER_LIMIT`] (413).
    TooLarge,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Denied::NotFound => "there is no such endpoint",
            Denied::Unauthorized => "its token is missing or wrong",
            Denied::UnsupportedType => "its Content-Type is not application/sdp",
            Denied::TooLarge => "its body is longer than an offer may be",
        })
    }
}

/// Checks the head of a POST to `endpoint`, which is the one that it names.
pub fn admit(endpoint: Option<(EndpointId, &Endpoint)>, head: &Head<'_>) -> Result<EndpointId, Denied> {
    let (id, endpoint) = endpoint.ok_or(Denied::NotFound)?;
    if !authorized(endpoint, head.authorization) {
        return Err(Denied::Unauthorized);
    }
    if !head.content_type.is_some_and(|value| is_media_type(value, "application/sdp")) {
        return Err(Denied::UnsupportedType);
    }
    if head.length.is_some_and(|length| length > OFFER_LIMIT) {
        return Err(Denied::TooLarge);
    }
    Ok(id)
}

/// Whether a request may use the endpoint: it has no tokens, or the request carries one of them.
pub fn authorized(endpoint: &Endpoint, authorization: Option<&str>) -> bool {
    endpoint.tokens.is_empty() || bearer_is_one_of(&endpoint.tokens, authorization)
}

/// Whether `Authorization: Bearer TOKEN` (RFC 6750 §2.1) holds one of `tokens`.
pub fn bearer_is_one_of(tokens: &[String], authorization: Option<&str>) -> bool {
    let Some((scheme, token)) = authorization.and_then(|value| value.trim().split_once(' ')) else {
        return false;
    };
    // Every token is compared whole, so that the time taken tells nothing about which one came close.
    let token = token.trim_start().as_bytes();
    let known = tokens.iter().fold(false, |known, own| known | same(own.as_bytes(), token));
    scheme.eq_ignore_ascii_case("bearer") && known
}

fn same(own: &[u8], given: &[u8]) -> bool {
    let mut differs = u8::from(own.len() != given.len());
    for (index, byte) in own.iter().enumerate() {
        differs |= byte ^ given.get(index).unwrap_or(&0);
    }
    core::hint::black_box(differs) == 0
}

/// Whether a `Content-Type` names `essence`; case and parameters don't matter (RFC 9110 §8.3.1).
pub fn is_media_type(value: &str, essence: &str) -> bool {
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(essence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn stage(tokens: &[&str]) -> Endpoint {
        let tokens = tokens.iter().map(ToString::to_string).collect();
        Endpoint { name: "stage".into(), tokens, ..Endpoint::default() }
    }

    const GOOD: Head<'_> = Head {
        endpoint: "stage",
        authorization: Some("Bearer secret"),
        content_type: Some("Application/SDP; charset=utf-8"),
        length: Some(OFFER_LIMIT),
    };

    #[test]
    fn checks_come_in_order_and_the_first_fault_is_named() {
        let stage = stage(&["other", "secret"]);
        let find = |name: &str| (name == stage.name).then_some((EndpointId(0), &stage));
        let admit = |head: &Head<'_>| super::admit(find(head.endpoint), head);
        assert_eq!(admit(&GOOD), Ok(EndpointId(0)));
        let mut head = GOOD;
        head.length = Some(OFFER_LIMIT + 1);
        assert_eq!(admit(&head), Err(Denied::TooLarge));
        head.content_type = Some("application/sdpx");
        assert_eq!(admit(&head), Err(Denied::UnsupportedType));
        head.authorization = Some("Bearer secre");
        assert_eq!(admit(&head), Err(Denied::Unauthorized));
        head.endpoint = "stag";
        assert_eq!(admit(&head), Err(Denied::NotFound));
    }

    #[test]
    fn only_a_whole_bearer_token_opens() {
        let stage = stage(&["secret"]);
        for (value, opens) in [
            (Some("Bearer secret"), true),
            (Some("bearer  secret"), true),
            (Some("Bearer secrets"), false),
            (Some("Bearer "), false),
            (Some("Bearer"), false),
            (Some("Basic secret"), false),
            (Some("secret"), false),
            (None, false),
        ] {
            assert_eq!(authorized(&stage, value), opens, "{value:?}");
        }
        assert!(authorized(&Endpoint::default(), None));
        assert!(authorized(&self::stage(&["secret", "secret"]), Some("Bearer secret")), "one that is named twice");
    }

    #[test]
    fn an_empty_token_is_no_token() {
        let stage = stage(&["secret"]);
        assert!(!authorized(&stage, Some("Bearer \0\0\0\0\0\0")));
    }
}
