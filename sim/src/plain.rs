//! What was found, for people: sentences of judges are put together from what rows and options hold, as they are printed for programmers.
//! Here everything is taken out of them that says nothing to anybody else.

/// The same without names of types around a single value: `Some(9.8s)` is 9.8s, `Refused(Busy)` is refused Busy, `HolderLive` is holder
/// live. Fields that hold nothing are left out of whole rows. What stands in quotation marks is a name of somebody's, and stays.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // What each parenthesis that is open was opened by: whether it goes.
    let mut open = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if letter == '"' {
            let name = quoted(rest);
            out.push_str(name);
            rest = &rest[name.len()..];
        } else if letter.is_alphanumeric() || letter == '_' {
            let word =
                &rest[..rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len())];
            rest = &rest[word.len()..];
            let wraps = rest.starts_with('(') && word.starts_with(|first: char| first.is_ascii_uppercase());
            match word {
                "Some" | "Ok" if wraps => {}
                "None" => out.push_str("none"),
                _ if wraps => {
                    out.push_str(&lower(word));
                    out.push(' ');
                }
                _ if humps(word) > 1 => out.push_str(&lower(word)),
                _ => out.push_str(word),
            }
            if wraps {
                rest = &rest[1..];
                open.push(true);
            }
        } else {
            match letter {
                '(' => open.push(false),
                ')' if open.pop() == Some(true) => {
                    rest = &rest[1..];
                    continue;
                }
                _ => {}
            }
            out.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    without_none(out)
}

/// A string as programmers have it, from its first quotation mark to its last; all there is where it has no end.
fn quoted(text: &str) -> &str {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, letter)| {
        let ends = *letter == '"' && !escaped;
        escaped = *letter == '\\' && !escaped;
        ends
    });
    end.map_or(text, |(at, _)| &text[..=at])
}

/// How many words a name of a type consists of; 0 where it is none, as a name in capitals.
fn humps(word: &str) -> usize {
    let capitals = word.chars().filter(char::is_ascii_uppercase).count();
    let mut before = 'A';
    let apart = word.chars().all(|letter| {
        let fits = letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter.is_ascii_uppercase();
        let double = letter.is_ascii_uppercase() && before.is_ascii_uppercase() && before != 'A';
        before = letter;
        fits && !double
    });
    let begins = word.starts_with(|first: char| first.is_ascii_uppercase());
    if begins && apart && word.ends_with(|last: char| last.is_ascii_lowercase() || last.is_ascii_digit()) {
        capitals
    } else {
        0
    }
}

/// `HolderLive` as `holder live`.
fn lower(word: &str) -> String {
    let mut out = String::with_capacity(word.len() + 2);
    for letter in word.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push(' ');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// Leaves out the fields of rows that hold nothing.
fn without_none(text: String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(": none") {
        let behind = &rest[at + ": none".len()..];
        let field = rest[..at]
            .rfind(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .map_or(0, |last| last + 1);
        let (before, within) = (&rest[..field], rest[..field].ends_with("{ ") || rest[..field].ends_with(", "));
        match behind.strip_prefix(", ") {
            Some(more) if within && field < at => {
                out.push_str(before);
                rest = more;
            }
            _ if within && field < at && behind.starts_with(" }") => {
                out.push_str(before.trim_end_matches([' ', ',']));
                rest = behind;
            }
            _ => {
                out.push_str(&rest[..at + ": none".len()]);
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_programmers_read_is_taken_out() {
        for (found, told) in [
            (
                "0.0 is displaced and sent a packet at Some(9.800000s)",
                "0.0 is displaced and sent a packet at 9.800000s",
            ),
            ("it is the turn of None", "it is the turn of none"),
            (
                "is refused for HolderLive, but it is Refused(Busy)",
                "is refused for holder live, but it is refused Busy",
            ),
            ("left: (0, 1), one of (Some(1), None)", "left: (0, 1), one of (1, none)"),
            ("Ended(Some(Displaced))", "ended Displaced"),
            ("a POST (WHIP) waits, TS of WebRTC", "a POST (WHIP) waits, TS of WebRTC"),
            ("places of \"Some(AnnaBell) \\\" None\": 3", "places of \"Some(AnnaBell) \\\" None\": 3"),
            ("Row { at: 1s, token: None, by: Some(2s), end: None }", "Row { at: 1s, by: 2s }"),
            ("Row { end: None, at: 1s }", "Row { at: 1s }"),
            ("not at its end (", "not at its end ("),
            ("\"without an end: Some(1)", "\"without an end: Some(1)"),
            ("for 5 µs → Some(µ)", "for 5 µs → µ"),
        ] {
            assert_eq!(plain(found), told);
        }
    }
}
