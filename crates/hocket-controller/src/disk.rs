//! The folder of what outlives a restart.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use hocket_control::store::{Disk, DiskError};
use hocket_wire::setup::SetupError;
use rustix::fs::{Access, FlockOperation, access, flock};

/// A folder of the file system; whoever has it has its lock.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

const LOCK: &str = "lock";

impl Folder {
    /// Checks that the folder can be made, or is there and can be written; nothing is written.
    ///
    /// # Errors
    /// [`SetupError`] where it is something else, or may not be written.
    pub fn check(path: &Path) -> Result<(), SetupError> {
        let remedy = "name a folder that can be written";
        let wrong = |why: String| SetupError::new(path.display().to_string(), why, remedy);
        let nearest = path.ancestors().find(|part| part.exists());
        let nearest = nearest.unwrap_or(Path::new("."));
        match () {
            () if !nearest.is_dir() => Err(wrong(format!("{} is no folder", nearest.display()))),
            () => access(nearest, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
                wrong(format!("{}: {}", nearest.display(), io::Error::from(error)))
            }),
        }
    }

    /// Makes the folder where it is not there; what is made outlives a crash.
    ///
    /// # Errors
    /// [`SetupError`] where it cannot be made.
    pub fn prepare(path: &Path) -> Result<(), SetupError> {
        let is_new = |part: &&Path| !part.as_os_str().is_empty() && !part.exists();
        let new: Vec<&Path> = path.ancestors().take_while(is_new).collect();
        let made = fs::create_dir_all(path).and_then(|()| new.into_iter().try_for_each(sync_name));
        made.map_err(|error| {
            let remedy = "name a folder that can be written";
            SetupError::new(path.display().to_string(), error.to_string(), remedy)
        })
    }

    /// Takes the lock of a folder; `None` where another controller has it.
    ///
    /// # Errors
    /// [`SetupError`] where its files cannot be written.
    pub fn lock(path: &Path) -> Result<Option<Self>, SetupError> {
        let wrong = |error: io::Error| {
            let remedy = "name a folder that can be written";
            SetupError::new(path.display().to_string(), error.to_string(), remedy)
        };
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join(LOCK))
            .map_err(wrong)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self {
                path: path.to_owned(),
                _lock: lock,
            })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(wrong(error.into())),
        }
    }

    fn open(&self, name: &str) -> Result<File, DiskError> {
        File::open(self.path.join(name)).map_err(fault)
    }
}

/// Returns when the name of a file outlives a crash.
pub(crate) fn sync_name(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn fault(error: io::Error) -> DiskError {
    match error.kind() {
        ErrorKind::NotFound => DiskError::NotFound,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => DiskError::Full,
        _ => DiskError::Other(error.to_string()),
    }
}

impl Disk for Folder {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(fault)? {
            let name = entry.map_err(fault)?.file_name();
            names.extend(name.into_string().ok().filter(|name| name != LOCK));
        }
        Ok(names)
    }

    fn read(&mut self, name: &str) -> Result<Vec<u8>, DiskError> {
        fs::read(self.path.join(name)).map_err(fault)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), DiskError> {
        let path = self.path.join(name);
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(bytes))
            .map_err(fault)
    }

    fn sync(&mut self, name: &str) -> Result<(), DiskError> {
        self.open(name)?.sync_data().map_err(fault)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        fs::rename(self.path.join(from), self.path.join(to)).map_err(fault)
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        fs::remove_file(self.path.join(name)).map_err(fault)
    }

    fn sync_names(&mut self) -> Result<(), DiskError> {
        File::open(&self.path)
            .and_then(|folder| folder.sync_all())
            .map_err(fault)
    }
}
