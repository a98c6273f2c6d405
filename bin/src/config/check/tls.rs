//! Whether certificates can be used.

use std::path::Path;

use holdfast_io::net::tls::{self, TlsError, Trust};

use crate::config::reader::Reader;
use crate::config::{Tls, file};

const CERT: &str = "http.tls.cert";
const KEY: &str = "http.tls.key";
const AUTHORITIES: &str = "origins.authorities";

/// A chain of some certificates has some kilobytes.
const LARGEST: usize = 1 << 20;

/// Checks what needs nothing but the settings.
pub(super) fn settings(reader: &mut Reader<'_>) {
    let Some(tls) = &reader.settings.http.tls else { return };
    let (here, missing) = match (tls.cert.as_os_str().is_empty(), tls.key.as_os_str().is_empty()) {
        (false, true) => (CERT, KEY),
        (true, false) => (KEY, CERT),
        _ => return,
    };
    let right = format!("write `{missing}` too, or neither for plain HTTP");
    reader.conflict(&[here, missing], format!("stands without `{missing}`"), right);
}

/// Looks into the files.
pub(super) fn files(reader: &mut Reader<'_>) {
    authorities(reader);
    let Some(Tls { cert, key }) = reader.settings.http.tls.clone() else { return };
    let (chain, secret) = (contents(reader, CERT, &cert), contents(reader, KEY, &key));
    let (Some(chain), Some(secret)) = (chain, secret) else { return };
    let Err(error) = tls::server_config(&chain, &secret) else { return };
    let swapped = tls::server_config(&secret, &chain).is_ok();
    let (keys, path) = match &error {
        TlsError::Key(_) => ([KEY, CERT], &key),
        _ => ([CERT, KEY], &cert),
    };
    let right = match &error {
        _ if swapped => format!("`{CERT}` and `{KEY}` are swapped: name each other's file"),
        TlsError::Chain(_) => String::from("name a PEM file with CERTIFICATE sections, the server's own first"),
        TlsError::Key(_) => String::from("name a PEM file with an unencrypted PRIVATE KEY section"),
        TlsError::Unreadable(..) | TlsError::Refused(_) => {
            format!("name in `{KEY}` the private key of the first certificate in `{CERT}`")
        }
    };
    reader.conflict(&keys, format!("\"{}\" cannot be used: {error}", path.display()), right);
}

fn authorities(reader: &mut Reader<'_>) {
    let path = reader.settings.authorities.clone();
    if contents(reader, AUTHORITIES, &path).is_none() {
        return;
    }
    if let Err(error) = Trust::with_authorities(&path) {
        let right = String::from("name a PEM file with the CERTIFICATE sections of authorities");
        reader.conflict(&[AUTHORITIES], format!("\"{}\" cannot be used: {error}", path.display()), right);
    }
}

fn contents(reader: &mut Reader<'_>, key: &str, path: &Path) -> Option<Vec<u8>> {
    if path.as_os_str().is_empty() {
        return None;
    }
    match file::read(path, LARGEST) {
        Ok(contents) => Some(contents),
        Err(error) => {
            let wrong = format!("\"{}\" cannot be read: {error}", path.display());
            reader.conflict(&[key], wrong, String::from("name a PEM file that this user may read"));
            None
        }
    }
}
