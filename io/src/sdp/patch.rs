//! What a PATCH of a WHIP session is: its precondition and its fragment, against the session as it stands.

use super::credentials::Credentials;
use super::fragment::Fragment;

/// What to do about a PATCH (RFC 9725 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    /// Add the candidates: 204, no body, no ETag.
    Trickle,
    /// Restart ICE with the fragment's credentials: 200, a fragment of ours, a new ETag.
    Restart,
    /// 428: there is no If-Match.
    PreconditionRequired,
    /// 412: If-Match names another ICE session than the one that stands.
    PreconditionFailed,
    /// 400: only one of username fragment and password is new; a restart changes both (RFC 8445 §9).
    HalfRestart,
}

/// Decides by the values of all `If-Match` headers, the session's entity-tag as it was sent (strong, with its quotes),
/// and the publisher's credentials that stand.
///
/// | If-Match | credentials | |
/// |---|---|---|
/// | absent | any | 428 |
/// | the session's tag, alone or in a list | none or the same | trickle |
/// | the session's tag, alone or in a list | new | restart |
/// | `*` or `"*"` | none or the same | trickle |
/// | `*` or `"*"` | new | restart |
/// | an older tag, a weak one, or no entity-tag at all | any | 412 |
///
/// RFC 9725 has a client restart with `*`. One that names the current tag instead and brings new credentials has said
/// the same thing more carefully, so it is not refused. The RFC's own example sends `*` in quotes, hence both forms.
pub fn decide(if_match: &[&str], current_etag: &str, fragment: &Fragment, session: &Credentials) -> Patch {
    if if_match.is_empty() {
        return Patch::PreconditionRequired;
    }
    if !matches(if_match, current_etag) {
        return Patch::PreconditionFailed;
    }
    let Some(credentials) = &fragment.credentials else {
        return Patch::Trickle;
    };
    match (credentials.ufrag == session.ufrag, credentials.pwd == session.pwd) {
        (true, true) => Patch::Trickle,
        (false, false) => Patch::Restart,
        _ => Patch::HalfRestart,
    }
}

/// Whether an `If-Match` holds for an entity-tag, by strong comparison (RFC 9110 §13.1.1, §8.8.3.2). What is not of its
/// grammar holds for nothing.
fn matches(if_match: &[&str], current: &str) -> bool {
    if let [value] = if_match
        && matches!(value.trim_matches([' ', '\t']), "*" | "\"*\"")
    {
        return true;
    }
    let mut found = false;
    for value in if_match {
        let mut rest = *value;
        loop {
            // A list may have empty elements (RFC 9110 §5.6.1.2).
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if rest.is_empty() {
                break;
            }
            let Some((tag, after)) = entity_tag(rest) else { return false };
            let after = after.trim_start_matches([' ', '\t']);
            if !after.is_empty() && !after.starts_with(',') {
                return false;
            }
            found |= tag == current;
            rest = after;
        }
    }
    found
}

/// Cuts one entity-tag off the front, with its quotes, and with `W/` if it is weak.
fn entity_tag(text: &str) -> Option<(&str, &str)> {
    let opaque = text.strip_prefix("W/").unwrap_or(text).strip_prefix('"')?;
    let length = opaque.find('"')?;
    if opaque[..length].bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return None;
    }
    Some(text.split_at(text.len() - opaque.len() + length + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURRENT: &str = "\"xyz-2\"";
    const OLD: &str = "\"xyz-1\"";

    fn credentials(suffix: &str) -> Credentials {
        Credentials::parse(&format!("ufrag{suffix}"), &format!("0123456789abcdefghijkl{suffix}")).unwrap()
    }

    fn decided(if_match: &[&str], credentials: Option<Credentials>) -> Patch {
        let fragment = Fragment { credentials, candidates: Vec::new(), end_of_candidates: true };
        decide(if_match, CURRENT, &fragment, &self::credentials("1"))
    }

    #[test]
    fn every_row_of_the_table() {
        for (if_match, same, new) in [
            (&[][..], Patch::PreconditionRequired, Patch::PreconditionRequired),
            (&[CURRENT], Patch::Trickle, Patch::Restart),
            (&[OLD], Patch::PreconditionFailed, Patch::PreconditionFailed),
            (&["*"], Patch::Trickle, Patch::Restart),
            (&["\"*\""], Patch::Trickle, Patch::Restart),
            (&["W/\"xyz-2\""], Patch::PreconditionFailed, Patch::PreconditionFailed),
            (&["\"a\", \"xyz-2\""], Patch::Trickle, Patch::Restart),
        ] {
            assert_eq!(decided(if_match, Some(credentials("1"))), same, "{if_match:?}, same credentials");
            assert_eq!(decided(if_match, None), same, "{if_match:?}, no credentials");
            assert_eq!(decided(if_match, Some(credentials("2"))), new, "{if_match:?}, new credentials");
        }
    }

    #[test]
    fn a_restart_changes_both() {
        let (old, new) = (credentials("1"), credentials("2"));
        let half = Credentials { ufrag: new.ufrag.clone(), pwd: old.pwd.clone() };
        assert_eq!(decided(&["*"], Some(half)), Patch::HalfRestart);
        let half = Credentials { ufrag: old.ufrag, pwd: new.pwd };
        assert_eq!(decided(&[CURRENT], Some(half.clone())), Patch::HalfRestart);
        assert_eq!(decided(&[OLD], Some(half)), Patch::PreconditionFailed);
    }

    #[test]
    fn lists_are_read_by_their_grammar() {
        for (if_match, holds) in [
            (&["\"a\",\"xyz-2\""][..], true),
            (&["\"xyz-2\" , W/\"xyz-2\""], true),
            (&[", ,\t\"xyz-2\" ,"], true),
            (&["\"a\"", "\"xyz-2\""], true),
            (&["  \"xyz-2\"\t"], true),
            (&["  *  "], true),
            (&["\"a,\"xyz-2\""], false),
            (&["\"a, xyz-2\""], false),
            (&["\"a,b\", \"xyz-2\""], true),
            (&["xyz-2"], false),
            (&["\"xyz-2"], false),
            (&["\"xyz-2\" \"a\""], false),
            (&["\"xyz-2\", garbage"], false),
            (&["\"xyz-2\", *"], false),
            (&["w/\"xyz-2\""], false),
            (&["W/ \"xyz-2\""], false),
            (&["\"x y\", \"xyz-2\""], false),
            (&["\"XYZ-2\""], false),
            (&[""], false),
            (&["\"a\"", ""], false),
        ] {
            assert_eq!(matches(if_match, CURRENT), holds, "{if_match:?}");
        }
    }
}
