//! What the store needs of a folder.

use hocket_base::explain::Explain;

/// Why a folder did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
pub enum DiskError {
    /// There is no such file.
    #[explain(why("it is not there"))]
    NotFound,
    /// There is no room.
    #[explain(why("the disk is full"))]
    Full,
    /// Anything else, as the system says it.
    #[explain(why("{_0}"))]
    Other(String),
}

/// A folder of files.
///
/// What was not synced may be gone after a crash, or partly there; that holds for names as well. A call that
/// fails may have done a part.
pub trait Disk {
    /// Returns the names of all files, in any order.
    ///
    /// # Errors
    /// [`DiskError`] where they cannot be read.
    fn list(&mut self) -> Result<Vec<String>, DiskError>;

    /// Returns all bytes of a file.
    ///
    /// # Errors
    /// [`DiskError`] where they cannot be read.
    fn read(&mut self, name: &str) -> Result<Vec<u8>, DiskError>;

    /// Writes at the end of a file, which is made where it is not there.
    ///
    /// # Errors
    /// [`DiskError`], after which any number of the bytes may be there.
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), DiskError>;

    /// Returns when the bytes of a file outlive a crash.
    ///
    /// # Errors
    /// [`DiskError`], after which nothing is known of what was not synced before.
    fn sync(&mut self, name: &str) -> Result<(), DiskError>;

    /// Renames a file, in place of the file that has the name.
    ///
    /// # Errors
    /// [`DiskError`] where it keeps its name.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Removes a file.
    ///
    /// # Errors
    /// [`DiskError`] where it is still there, or was not.
    fn remove(&mut self, name: &str) -> Result<(), DiskError>;

    /// Returns when the names of all files outlive a crash.
    ///
    /// # Errors
    /// [`DiskError`], after which nothing is known of names that changed.
    fn sync_names(&mut self) -> Result<(), DiskError>;
}
