//! A certificate authority for tests: its certificate, the controller's and those of hosts.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hocket_wire::setup::SetupError;
use hocket_wire::tls::{CONTROLLER, HOST, is_host};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SerialNumber,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::disk::sync_name;

/// What is to be made.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The folder; the authority that it has is used again.
    pub folder: &'a Path,
    /// Hosts by name.
    pub hosts: &'a [String],
    /// How long certificates are valid from now on; those of the past are for tests of just that.
    pub valid: Duration,
    /// Whether certificates that are there are made anew.
    pub renew: bool,
}

/// Makes what is missing, and says which files it wrote.
///
/// # Errors
/// [`SetupError`] for names that hosts cannot have and files that cannot be written or read.
pub fn make(request: &Request<'_>) -> Result<Vec<PathBuf>, SetupError> {
    for name in request.hosts {
        let reserved = ["ca", "controller"].contains(&name.as_str());
        if reserved || !is_host(name) {
            let why = format!("{name:?} is no name of a host");
            let remedy = "take letters and digits, then also dots, dashes and underscores, not ca or controller";
            return Err(SetupError::new("--host", why, remedy));
        }
    }
    fs::create_dir_all(request.folder).map_err(|error| unwritten(request.folder, &error))?;
    let mut written = Vec::new();
    let (issuer, is_new) = authority(request, &mut written)?;
    // What another authority has signed is worth nothing.
    let renew = request.renew || is_new;
    let request = &Request { renew, ..*request };
    let controller = SanType::DnsName(text(CONTROLLER));
    let usage = ExtendedKeyUsagePurpose::ServerAuth;
    issue(
        request,
        &issuer,
        ("controller", controller, usage),
        &mut written,
    )?;
    for name in request.hosts {
        let uri = SanType::URI(text(&format!("{HOST}{name}")));
        let usage = ExtendedKeyUsagePurpose::ClientAuth;
        issue(request, &issuer, (name, uri, usage), &mut written)?;
    }
    Ok(written)
}

type Authority = Issuer<'static, KeyPair>;

/// Returns the authority, and whether it was made anew. Its key makes its certificate again where that is missing.
fn authority(
    request: &Request<'_>,
    written: &mut Vec<PathBuf>,
) -> Result<(Authority, bool), SetupError> {
    let [certificate, key] = files(request.folder, "ca");
    let mut params = params(
        "hocket test authority",
        request.valid.max(Duration::from_secs(864_000)),
    );
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    match fs::read_to_string(&key) {
        Ok(pem) => {
            let pair = KeyPair::from_pem(&pem).map_err(|error| {
                let remedy = "remove it, to make another authority";
                SetupError::new(key.display().to_string(), error.to_string(), remedy)
            })?;
            if !is_of(&certificate, &pair)? {
                let made = params.self_signed(&pair).map_err(unmade)?;
                write(&certificate, &made.pem(), 0o644)?;
                written.push(certificate);
            }
            Ok((Issuer::new(params, pair), false))
        }
        Err(error) if error.kind() == ErrorKind::NotFound && certificate.exists() => {
            let certificate = certificate.display();
            let why = format!("it is missing, and {certificate} is there");
            let remedy = format!("put it back, or remove {certificate} to make another authority");
            Err(SetupError::new(key.display().to_string(), why, remedy))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let pair = generate()?;
            let made = params.self_signed(&pair).map_err(unmade)?;
            write(&key, &pair.serialize_pem(), 0o600)?;
            write(&certificate, &made.pem(), 0o644)?;
            written.extend([certificate, key]);
            Ok((Issuer::new(params, pair), true))
        }
        Err(error) => {
            let remedy = "give the rights to read it";
            Err(SetupError::new(
                key.display().to_string(),
                error.to_string(),
                remedy,
            ))
        }
    }
}

/// Returns whether a file is there and holds the certificate of an authority's key.
///
/// # Errors
/// A file that is there and does not.
fn is_of(certificate: &Path, pair: &KeyPair) -> Result<bool, SetupError> {
    let wrong = |why: String| {
        let remedy = "remove it, to have it made again by ca.key";
        SetupError::new(certificate.display().to_string(), why, remedy)
    };
    let pem = match fs::read(certificate) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        pem => pem.map_err(|error| wrong(error.to_string()))?,
    };
    let key = pair.public_key_raw();
    let has_key = |der: &CertificateDer<'_>| der.windows(key.len()).any(|part| part == key);
    let mut found = CertificateDer::pem_slice_iter(&pem).flatten();
    match found.any(|certificate| has_key(&certificate)) {
        true => Ok(true),
        false => Err(wrong("it is not the certificate of ca.key".to_owned())),
    }
}

fn issue(
    request: &Request<'_>,
    issuer: &Authority,
    (name, subject, usage): (&str, SanType, ExtendedKeyUsagePurpose),
    written: &mut Vec<PathBuf>,
) -> Result<(), SetupError> {
    let [certificate, key] = files(request.folder, name);
    if certificate.exists() && key.exists() && !request.renew {
        return Ok(());
    }
    let mut params = params(name, request.valid);
    params.subject_alt_names = vec![subject];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    let pair = generate()?;
    let made = params.signed_by(&pair, issuer).map_err(unmade)?;
    write(&key, &pair.serialize_pem(), 0o600)?;
    write(&certificate, &made.pem(), 0o644)?;
    written.extend([certificate, key]);
    Ok(())
}

fn params(name: &str, valid: Duration) -> CertificateParams {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    // Clocks of hosts may be behind.
    params.not_before = epoch + now.saturating_sub(Duration::from_secs(3_600));
    params.not_after = epoch + (now + valid);
    let mut serial = now.as_nanos().to_be_bytes();
    serial[0] = 0x40;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params
}

fn files(folder: &Path, name: &str) -> [PathBuf; 2] {
    ["pem", "key"].map(|kind| folder.join(format!("{name}.{kind}")))
}

/// A private key must never be readable by others, not even before its rights are set. A file is there whole or not at
/// all, after a crash as well.
pub(crate) fn write(path: &Path, text: &str, mode: u32) -> Result<(), SetupError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.new"));
    let done = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(&beside)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&beside, path))
        .and_then(|()| sync_name(path));
    done.map_err(|error| unwritten(path, &error))
}

fn text(name: &str) -> rcgen::string::Ia5String {
    name.try_into().expect("names of hosts are ASCII")
}

fn generate() -> Result<KeyPair, SetupError> {
    KeyPair::generate().map_err(unmade)
}

fn unmade(error: rcgen::Error) -> SetupError {
    SetupError::new("certs", error.to_string(), "give other names or times")
}

fn unwritten(path: &Path, error: &std::io::Error) -> SetupError {
    let remedy = "name a folder that can be written";
    SetupError::new(path.display().to_string(), error.to_string(), remedy)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hocket_wire::tls::{End, Files};
    use rustls::pki_types::UnixTime;

    use super::*;

    #[test]
    fn certificates_bear_the_names_that_are_looked_for() {
        let folder = std::env::temp_dir().join(format!("hocket-certs-{}", std::process::id()));
        let request = Request {
            folder: &folder,
            hosts: &["a".to_owned()],
            valid: Duration::from_secs(3_600),
            renew: true,
        };
        make(&request).unwrap();
        let mut written = Vec::new();
        let (issuer, _) = authority(&request, &mut written).unwrap();
        for (name, usage) in [
            ("server", ExtendedKeyUsagePurpose::ServerAuth),
            ("client", ExtendedKeyUsagePurpose::ClientAuth),
        ] {
            let subject = SanType::DnsName(text("elsewhere"));
            issue(&request, &issuer, (name, subject, usage), &mut written).unwrap();
        }
        let read = |name: &str, end| {
            let files = Files {
                ca: folder.join("ca.pem"),
                certificate: folder.join(format!("{name}.pem")),
                key: folder.join(format!("{name}.key")),
            };
            let read = files.read(end, UnixTime::now());
            read.map_err(|error| format!("{}; {}", error.why, error.remedy))
        };
        let why = |name, end| read(name, end).err();
        assert_eq!(why("controller", End::Controller), None);
        assert_eq!(read("a", End::Host).unwrap().host().as_deref(), Some("a"));
        assert_eq!(
            why("server", End::Controller).as_deref(),
            Some("it does not bear the DNS name hocket-controller; make one that does")
        );
        assert_eq!(
            why("client", End::Host).as_deref(),
            Some("it does not bear one URI hocket://host/NAME; make one that does")
        );
        assert_eq!(
            why("a", End::Controller).as_deref(),
            Some("it is no certificate of a server; make one that is")
        );
        assert_eq!(
            why("controller", End::Host).as_deref(),
            Some("it is no certificate of a client; make one that is")
        );
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn names_that_are_paths_or_empty_are_refused() {
        let folder = std::env::temp_dir().join(format!("hocket-names-{}", std::process::id()));
        for name in ["..", ".", "", "a/b", "/a", "-a", "ca", "a b"] {
            let hosts = [name.to_owned()];
            let request = Request {
                folder: &folder,
                hosts: &hosts,
                valid: Duration::from_secs(3_600),
                renew: false,
            };
            let error = make(&request).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("--host: {name:?} is no name of a host; ")),
                "{error}"
            );
        }
        assert!(!folder.exists(), "nothing is written");
    }
}
