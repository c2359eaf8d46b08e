//! Certificates: who is at the other end.
//!
//! Both ends show a certificate of one authority. A host's bears its name as `hocket://host/NAME`, the
//! controller's is made out to [`CONTROLLER`] wherever it runs. Sessions are never resumed: a resumed one would
//! keep the name of a certificate that has been replaced since.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use webpki::{EndEntityCert, KeyUsage};

use crate::settings::Section;
use crate::setup::SetupError;

/// The name that the controller's certificate is made out to.
pub const CONTROLLER: &str = "hocket-controller";

/// What the name of a host is preceded by in its certificate.
pub const HOST: &str = "hocket://host/";

/// The files of one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Certificates of the authority.
    pub ca: PathBuf,
    /// The end's own certificate, and those between it and the authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is connected to.
    Controller,
    /// It connects.
    Host,
}

/// What the files hold.
#[derive(Debug)]
pub struct Identity {
    files: Files,
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Files {
    /// Returns the keys `ca`, `certificate` and `key` of a table.
    ///
    /// # Errors
    /// [`SetupError`] if one is missing.
    pub fn settings(section: Section) -> Result<Self, SetupError> {
        let files = Self {
            ca: section.needed_path("ca")?,
            certificate: section.needed_path("certificate")?,
            key: section.needed_path("key")?,
        };
        section.finish()?;
        Ok(files)
    }

    /// When each file was last written, and how long it is; another value means other files.
    pub fn stamps(&self) -> [Option<(SystemTime, u64)>; 3] {
        [&self.ca, &self.certificate, &self.key].map(|path| {
            let data = std::fs::metadata(path).ok()?;
            Some((data.modified().ok()?, data.len()))
        })
    }

    /// Reads the files, and checks that they fit each other at a time.
    ///
    /// # Errors
    /// [`SetupError`] for files that cannot be read, a certificate that has expired or that the authority has not
    /// signed, and a key that is not its key.
    pub fn read(&self, end: End, now: UnixTime) -> Result<Identity, SetupError> {
        let mut roots = RootCertStore::empty();
        for root in certificates(&self.ca)? {
            roots
                .add(root)
                .map_err(|error| wrong(&self.ca, error, "give certificates of an authority"))?;
        }
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| wrong(&self.key, error, "give a private key in PEM"))?;
        let identity = Identity {
            files: self.clone(),
            roots: Arc::new(roots),
            chain: certificates(&self.certificate)?,
            key,
        };
        identity.check(end, now)?;
        Ok(identity)
    }
}

impl Identity {
    fn check(&self, end: End, now: UnixTime) -> Result<(), SetupError> {
        let path = &self.files.certificate;
        let own = EndEntityCert::try_from(&self.chain[0])
            .map_err(|error| wrong(path, error, "give an X.509 certificate, version 3"))?;
        let usage = match end {
            End::Controller => KeyUsage::server_auth(),
            End::Host => KeyUsage::client_auth(),
        };
        let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        let roots = &self.roots.roots;
        let valid = own.verify_for_usage(
            algorithms.all,
            roots,
            &self.chain[1..],
            now,
            usage,
            None,
            None,
        );
        match valid {
            Ok(_) => self.check_name(end, &own),
            Err(webpki::Error::CertExpired { not_after, .. }) => {
                let since = now.as_secs().saturating_sub(not_after.as_secs());
                Err(wrong(
                    path,
                    format!("it expired {} ago", span(since)),
                    "make a new one",
                ))
            }
            Err(webpki::Error::CertNotValidYet { not_before, .. }) => {
                let until = not_before.as_secs().saturating_sub(now.as_secs());
                let why = format!("it is valid only in {}", span(until));
                Err(wrong(path, why, "set the clock, or wait"))
            }
            Err(webpki::Error::UnknownIssuer | webpki::Error::InvalidSignatureForPublicKey) => {
                let why = format!("it was not issued by {}", self.files.ca.display());
                Err(wrong(path, why, "give the authority that issued it"))
            }
            Err(webpki::Error::RequiredEkuNotFoundContext(_)) => {
                let wanted = match end {
                    End::Controller => "a server",
                    End::Host => "a client",
                };
                let why = format!("it is no certificate of {wanted}");
                Err(wrong(path, why, "make one that is"))
            }
            Err(error) => Err(wrong(path, error, "make a new one")),
        }
    }

    fn check_name(&self, end: End, own: &EndEntityCert<'_>) -> Result<(), SetupError> {
        let (is_named, wanted) = match end {
            End::Controller => {
                let name = ServerName::try_from(CONTROLLER).expect("it is a DNS name");
                let is_named = own.verify_is_valid_for_subject_name(&name).is_ok();
                (is_named, format!("the DNS name {CONTROLLER}"))
            }
            End::Host => (self.host().is_some(), format!("one URI {HOST}NAME")),
        };
        match is_named {
            true => Ok(()),
            false => {
                let why = format!("it does not bear {wanted}");
                Err(wrong(&self.files.certificate, why, "make one that does"))
            }
        }
    }

    /// Returns the host that the own certificate names.
    pub fn host(&self) -> Option<String> {
        host_of(&self.chain[0])
    }

    /// Returns how the controller speaks with those that connect: TLS 1.3, both ends with certificates.
    ///
    /// # Errors
    /// [`SetupError`] for a key that is not the certificate's.
    pub fn server(&self, time: Arc<dyn TimeProvider>) -> Result<ServerConfig, SetupError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(self.roots.clone(), provider.clone())
                .build()
                .map_err(|error| wrong(&self.files.ca, error, "name an authority's certificate"))?;
        let builder = ServerConfig::builder_with_details(provider, time)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("ring has TLS 1.3");
        let mut config = builder
            .with_client_cert_verifier(verifier)
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(|error| self.bad_key(error))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(config)
    }

    /// Returns how a host speaks with the controller.
    ///
    /// # Errors
    /// [`SetupError`] for a key that is not the certificate's.
    pub fn client(&self, time: Arc<dyn TimeProvider>) -> Result<ClientConfig, SetupError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_details(provider, time)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("ring has TLS 1.3");
        let mut config = builder
            .with_root_certificates(self.roots.clone())
            .with_client_auth_cert(self.chain.clone(), self.key.clone_key())
            .map_err(|error| self.bad_key(error))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.resumption = Resumption::disabled();
        Ok(config)
    }

    fn bad_key(&self, error: rustls::Error) -> SetupError {
        let certificate = self.files.certificate.display();
        let why = match error {
            rustls::Error::InconsistentKeys(_) => format!("it is not the key of {certificate}"),
            error => error.to_string(),
        };
        wrong(
            &self.files.key,
            why,
            &format!("give the key of {certificate}"),
        )
    }
}

/// Returns the host that a certificate is made out to.
pub fn host_of(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let mut hosts = certificate
        .valid_uri_names()
        .filter_map(|uri| uri.strip_prefix(HOST));
    let host = hosts.next()?;
    // Two names would let one host speak for another.
    (is_host(host) && hosts.next().is_none()).then(|| host.to_owned())
}

/// Returns whether a text may be a host's name: letters, digits, dots, dashes and underscores, 253 at most, a letter or
/// digit first. Files are called after it.
pub fn is_host(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let first = name.bytes().next();
    first.is_some_and(|byte| byte.is_ascii_alphanumeric())
        && name.len() <= 253
        && name.bytes().all(fits)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SetupError> {
    let remedy = "give certificates in PEM";
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(|error| wrong(path, error, remedy))?
        .collect();
    let found = found.map_err(|error| wrong(path, error, remedy))?;
    match found.is_empty() {
        true => Err(wrong(path, "it holds no certificate", remedy)),
        false => Ok(found),
    }
}

fn wrong(path: &Path, why: impl Display, remedy: &str) -> SetupError {
    SetupError::new(path.display().to_string(), why.to_string(), remedy)
}

fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
