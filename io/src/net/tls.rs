//! Certificates and keys for listeners, and whom we trust to be an origin.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

/// Why TLS cannot be spoken as it is set up.
#[derive(Debug)]
pub enum TlsError {
    /// A file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// The chain holds no `CERTIFICATE` section, or a broken one.
    Chain(pem::Error),
    /// There is no `PRIVATE KEY`, `RSA PRIVATE KEY` or `EC PRIVATE KEY` section, or a broken one.
    Key(pem::Error),
    /// Chain and key do not belong together, or are of a kind that is not supported.
    Refused(rustls::Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Unreadable(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            TlsError::Chain(error) => {
                write!(
                    f,
                    "the certificate chain is no PEM file with CERTIFICATE sections, the server's own first: {error}"
                )
            }
            TlsError::Key(error) => {
                write!(f, "the key is no PEM file with an unencrypted PRIVATE KEY section: {error}")
            }
            TlsError::Refused(error) => write!(f, "certificate and key cannot be used together: {error}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// Reads a PEM certificate chain, the server's own certificate first, and its unencrypted PEM key from files.
///
/// # Errors
/// See [`TlsError`].
pub fn load(chain: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let read = |path: &Path| fs::read(path).map_err(|error| TlsError::Unreadable(path.into(), error));
    server_config(&read(chain)?, &read(key)?)
}

/// A configuration for TLS 1.2 and 1.3 that speaks HTTP/1.1, from the contents of PEM files.
///
/// # Errors
/// See [`TlsError`].
pub fn server_config(chain: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(chain)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(TlsError::Refused)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(file: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(file).collect::<Result<_, _>>().map_err(TlsError::Chain)?;
    if all.is_empty() { Err(TlsError::Chain(pem::Error::NoItemsFound)) } else { Ok(all) }
}

/// Whom we believe that an origin is who it says: the authorities of this machine (`SSL_CERT_FILE` and `SSL_CERT_DIR` name
/// others), and our own.
#[derive(Debug, Default)]
pub struct Trust {
    own: Vec<CertificateDer<'static>>,
    /// Made for the first origin that speaks TLS: there are hundreds of authorities, and most edges need none.
    config: Option<Arc<ClientConfig>>,
}

impl Trust {
    /// Trusts as well the authorities in a PEM file, for origins within a house.
    ///
    /// # Errors
    /// [`TlsError::Unreadable`] and [`TlsError::Chain`]; [`TlsError::Refused`] for a certificate that can be none of an
    /// authority.
    pub fn with_authorities(file: &Path) -> Result<Self, TlsError> {
        let pem = fs::read(file).map_err(|error| TlsError::Unreadable(file.into(), error))?;
        let own = certificates(&pem)?;
        let mut store = RootCertStore::empty();
        own.iter().try_for_each(|authority| store.add(authority.clone())).map_err(TlsError::Refused)?;
        Ok(Trust { own, config: None })
    }

    /// A connection to the origin of this name or address, which speaks HTTP/1.1.
    ///
    /// # Errors
    /// In words: what is no name, and a machine without authorities.
    pub(super) fn client(&mut self, host: &str) -> Result<ClientConnection, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let config = match &self.config {
            Some(config) => config,
            None => self.config.insert(self.client_config()?),
        };
        ClientConnection::new(config.clone(), name).map_err(|error| error.to_string())
    }

    fn client_config(&self) -> Result<Arc<ClientConfig>, String> {
        let mut roots = RootCertStore::empty();
        let system = rustls_native_certs::load_native_certs();
        // Some are too old to be read. They are not missed, unless nothing is left.
        roots.add_parsable_certificates(system.certs.into_iter().chain(self.own.iter().cloned()));
        if roots.is_empty() {
            return Err(
                "this machine has no certificates of authorities (the package is called ca-certificates)".into()
            );
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let own = rcgen::generate_simple_self_signed(["localhost".into()]).unwrap();
        let other = rcgen::generate_simple_self_signed(["localhost".into()]).unwrap();
        let (chain, key) = (own.cert.pem(), own.signing_key.serialize_pem());
        assert!(server_config(chain.as_bytes(), key.as_bytes()).is_ok());
        let fault = |chain: &str, key: &str| server_config(chain.as_bytes(), key.as_bytes()).err().unwrap();
        assert!(matches!(fault("", &key), TlsError::Chain(pem::Error::NoItemsFound)));
        assert!(matches!(fault(&key, &key), TlsError::Chain(_)));
        assert!(matches!(fault(&chain[..chain.len() / 2], &key), TlsError::Chain(_)));
        assert!(matches!(fault(&chain, &chain), TlsError::Key(_)));
        assert!(matches!(fault(&chain, &other.signing_key.serialize_pem()), TlsError::Refused(_)));
        let missing = load(Path::new("/nonexistent/chain.pem"), Path::new("/nonexistent/key.pem")).err().unwrap();
        assert!(missing.to_string().contains("/nonexistent/chain.pem"));
    }
}
