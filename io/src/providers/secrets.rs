//! What a provider is asked with, and whether an address would tell it: panels serve pictures under addresses that hold the
//! credentials of whoever asked for the list. Everybody who may see a list or a guide would know them.

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::ProviderSettings;

/// User names and passwords of a provider's accounts.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub fn of(settings: &ProviderSettings) -> Self {
        let own = settings.accounts.iter().flatten().cloned().chain(settings.location.credentials());
        Secrets(own.flat_map(|own| [own.username, own.password]).filter(|own| !own.is_empty()).collect())
    }

    /// Whether an address tells one of them.
    pub fn are_told_by(&self, address: &str) -> bool {
        self.0.iter().any(|secret| tells(address, secret))
    }

    /// Empties the addresses in what a panel says that tell one of them. Its words are nobody's address and stay.
    pub fn cut_out_of(&self, said: &mut Value) {
        match said {
            Value::String(text) if is_address(text) && self.are_told_by(text) => text.clear(),
            Value::Array(all) => all.iter_mut().for_each(|own| self.cut_out_of(own)),
            Value::Object(all) => all.values_mut().for_each(|own| self.cut_out_of(own)),
            _ => {}
        }
    }
}

fn is_address(text: &str) -> bool {
    text.contains("://") || text.starts_with('/')
}

/// Whether a secret is a part of an address: anywhere, if it is too long to be there by chance; else as what stands between two
/// separators.
fn tells(address: &str, secret: &str) -> bool {
    const CHANCE: usize = 6;
    if secret.is_empty() || address.is_empty() {
        return false;
    }
    let decoded = percent_decode_str(address).decode_utf8_lossy();
    let whole = |address: &str| {
        address.contains(secret) && secret.len() >= CHANCE
            || address.split(['/', '?', '&', '=', ':', '@', '#', ';']).any(|part| part == secret)
    };
    whole(address) || whole(&decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_panel_says_keeps_its_words_and_loses_addresses_that_tell() {
        let secrets = Secrets(vec!["joe".into(), "s3cret".into()]);
        let mut said = serde_json::json!({
            "plot": "joe's s3cret", "rating": 7, "cover": "http://p.example/joe/s3cret/1.jpg",
            "backdrop_path": ["http://p.example/joe%2Fs3cret.jpg", "https://image.example/b.jpg"],
            "more": { "movie_image": "/images/s3cret.jpg", "trailer": null },
        });
        secrets.cut_out_of(&mut said);
        let left = serde_json::json!({
            "plot": "joe's s3cret", "rating": 7, "cover": "", "backdrop_path": ["", "https://image.example/b.jpg"],
            "more": { "movie_image": "", "trailer": null },
        });
        assert_eq!(said, left);
    }

    #[test]
    fn a_picture_does_not_tell_what_its_provider_is_asked_with() {
        for (address, secret, is) in [
            ("http://p.example/logo/ab/x.png", "ab", true),
            ("http://p.example/logo/abc/x.png", "ab", false),
            ("http://p.example/x.png?u=joe&p=s3cret", "s3cret", true),
            ("http://p.example/x.png?token=joe-s3cret-1", "s3cret", true),
            ("http://p.example/x.png?u=a%20b", "a b", true),
            ("http://ab:x@p.example/x.png", "ab", true),
            ("http://p.example/x.png", "", false),
            ("", "ab", false),
        ] {
            assert_eq!(tells(address, secret), is, "{address} {secret}");
        }
    }
}
