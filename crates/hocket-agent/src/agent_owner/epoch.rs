//! The epoch that outlives a restart: a file with a number.

use std::path::Path;

use hocket_wire::setup::SetupError;
use tracing::error;

/// Returns the epoch of a file; 0 where there is none.
///
/// # Errors
/// [`SetupError`] for a file that cannot be read, or holds no epoch.
pub(super) fn read(path: &Path) -> Result<u64, SetupError> {
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => text.trim().parse().map_err(|_| {
            SetupError::new(
                name,
                "it holds no epoch",
                "remove it, if no controller is deposed",
            )
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(SetupError::new(
            name,
            error.to_string(),
            "let the agent read it",
        )),
    }
}

/// Keeps an epoch.
pub(super) fn keep(path: &Path, epoch: u64) {
    let beside = path.with_extension("new");
    let kept = std::fs::File::create(&beside).and_then(|mut file| {
        use std::io::Write;
        writeln!(file, "{epoch}")?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        // The name outlives a crash with its folder.
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    });
    if let Err(error) = kept {
        error!(%error, "the epoch cannot be kept: after a restart an older controller might be obeyed");
    }
}
