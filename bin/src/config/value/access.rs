//! How users, their passwords, their time and the networks of proxies are written.

use std::net::IpAddr;

use holdfast_io::users::Password as UserPassword;
use ipnet::IpNet;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::{Kind, Value, Wrong, printable, quoted};

/// A user's name: a part of a URL's path, and of what HTTP Basic sends.
pub(in crate::config) struct UserName;

/// What the path of a stream begins with that is not a user's.
const TAKEN: [&str; 9] = ["live", "movie", "series", "timeshift", "hls", "whip", "api", "publish", "metrics"];

impl Kind<String> for UserName {
    fn read(&self, value: Value<'_>) -> Result<String, Wrong> {
        let right = "write 1 to 64 of A–Z a–z 0–9 - _ . @ + , not starting with a dot";
        let text = value.text(right)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+');
        if text.is_empty() || text.len() > 64 || text.starts_with('.') || !text.chars().all(fits) {
            return Err(Wrong::new(format!("\"{}\" cannot be a user's name", printable(text)), right));
        }
        if TAKEN.contains(&text) {
            let wrong = format!("\"{text}\" is what other addresses begin with");
            return Err(Wrong::new(wrong, "choose another name"));
        }
        Ok(text.to_owned())
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }
}

/// A user's password, as it is typed or hashed. Neither shown nor repeated in messages.
pub(in crate::config) struct Passphrase;

impl Kind<Option<UserPassword>> for Passphrase {
    fn read(&self, value: Value<'_>) -> Result<Option<UserPassword>, Wrong> {
        let right = "write a password, or what `holdfast password` makes of one";
        let text = value.text(right)?;
        if text.len() > 256 || text.chars().any(char::is_control) {
            return Err(Wrong::new("is longer than 256 bytes or holds control characters", right));
        }
        UserPassword::parse(text).map(Some).map_err(|wrong| Wrong::new(wrong, right))
    }

    fn show(&self, value: &Option<UserPassword>) -> String {
        quoted(if value.is_some() { "***" } else { "" })
    }
}

/// A day, or a moment, in UTC; "" for never. In seconds since 1970.
pub(in crate::config) struct Moment;

impl Kind<Option<u64>> for Moment {
    fn read(&self, value: Value<'_>) -> Result<Option<u64>, Wrong> {
        let right = r#"write a day such as "2027-01-31", a moment such as "2027-01-31T18:00:00Z", or "" for never"#;
        let text = value.text(right)?;
        if text.is_empty() {
            return Ok(None);
        }
        let of_day = |day: Date| day.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
        let moment = text.parse::<Timestamp>().ok().or_else(|| text.parse::<Date>().ok().and_then(of_day));
        let seconds = moment.and_then(|moment| u64::try_from(moment.as_second()).ok());
        seconds.map(Some).ok_or_else(|| Wrong::new(format!("\"{}\" is no day and no moment", printable(text)), right))
    }

    fn show(&self, value: &Option<u64>) -> String {
        let moment = value.and_then(|seconds| Timestamp::from_second(i64::try_from(seconds).ok()?).ok());
        quoted(&moment.map_or_else(String::new, |moment| moment.to_string()))
    }
}

/// An IP network, or one address.
pub(in crate::config) struct Network;

impl Kind<IpNet> for Network {
    fn read(&self, value: Value<'_>) -> Result<IpNet, Wrong> {
        let right = r#"write a network such as "10.0.0.0/8", or an address such as "192.0.2.7""#;
        let text = value.text(right)?;
        let network = text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        network.ok_or_else(|| Wrong::new(format!("\"{}\" is no network", printable(text)), right))
    }

    fn show(&self, value: &IpNet) -> String {
        quoted(&value.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<V, K: Kind<V>>(kind: &K, text: &str) -> Option<V> {
        kind.read(Value::Variable(text)).ok()
    }

    #[test]
    fn names_of_users_are_none_of_ours() {
        for good in ["anna", "a.b@example.org", "A+1", &"x".repeat(64)] {
            assert!(read(&UserName, good).is_some(), "{good}");
        }
        for bad in ["", "a b", "a/b", "a:b", ".a", "live", "api", "ü", &"x".repeat(65)] {
            assert!(read(&UserName, bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn days_and_moments_are_utc_and_read_as_they_are_shown() {
        for (text, seconds) in [
            ("2027-01-31", 1_801_353_600),
            ("2027-01-31T18:00:00Z", 1_801_418_400),
            ("2027-01-31T19:00:00+01:00", 1_801_418_400),
        ] {
            let read_back = read(&Moment, text);
            assert_eq!(read_back, Some(Some(seconds)), "{text}");
            assert_eq!(read(&Moment, Moment.show(&Some(seconds)).trim_matches('"')), read_back);
        }
        assert_eq!((read(&Moment, ""), Moment.show(&None)), (Some(None), "\"\"".to_owned()));
        for bad in ["tomorrow", "2027-02-30", "1960-01-01", "2027-01-31 25:00"] {
            assert_eq!(read(&Moment, bad), None, "{bad}");
        }
    }

    #[test]
    fn networks_may_be_one_address() {
        assert_eq!(read(&Network, "192.0.2.7").map(|network| network.to_string()).as_deref(), Some("192.0.2.7/32"));
        assert_eq!(
            read(&Network, "2001:db8::/32").map(|network| network.to_string()).as_deref(),
            Some("2001:db8::/32")
        );
        assert!(read(&Network, "10.0.0.0/33").is_none() && read(&Network, "proxy.example").is_none());
    }

    #[test]
    fn passwords_are_not_shown() {
        let password = read(&Passphrase, "geheim").unwrap();
        assert_eq!(Passphrase.show(&password), "\"***\"");
        assert!(read(&Passphrase, "").is_none() && read(&Passphrase, "pbkdf2-sha256$x").is_none());
    }
}
