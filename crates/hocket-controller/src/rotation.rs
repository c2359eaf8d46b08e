//! Certificates that are replaced while the controller runs.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hocket_wire::setup::SetupError;
use hocket_wire::tls::{End, Files};
use rustls::ServerConfig;
use rustls::pki_types::UnixTime;
use rustls::time_provider::DefaultTimeProvider;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::accept::Shown;
use crate::metrics::Metrics;

/// Returns what is shown now.
///
/// # Errors
/// [`SetupError`] for files that cannot be read or do not fit each other.
pub fn show(files: &Files) -> Result<Shown, SetupError> {
    Ok(Arc::new(RwLock::new(load(files)?)))
}

fn load(files: &Files) -> Result<Arc<ServerConfig>, SetupError> {
    let identity = files.read(End::Controller, UnixTime::now())?;
    Ok(Arc::new(identity.server(Arc::new(DefaultTimeProvider))?))
}

/// Looks at the files from time to time, and shows what they hold from the next connection on. Files that cannot be
/// taken up leave everything as it was.
pub async fn watch(files: Files, every: Duration, shown: Shown, metrics: Arc<Metrics>) {
    let mut stamps = files.stamps();
    loop {
        sleep(every).await;
        let now = files.stamps();
        if now == stamps {
            continue;
        }
        match load(&files) {
            Ok(fresh) => {
                *shown.write().unwrap_or_else(PoisonError::into_inner) = fresh;
                stamps = now;
                metrics.certificates_loaded.add(1);
                info!("other certificates are shown from now on");
            }
            Err(error) => {
                // Perhaps only one of two files has been replaced so far: the next look will tell.
                metrics.certificate_errors.add(1);
                warn!(%error, "the certificates cannot be taken up; the old ones are shown on");
            }
        }
    }
}
