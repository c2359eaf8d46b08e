//! Memory that processes of one host map, and waiting on words of it.
//!
//! Its files have no name, and so nothing is left behind by whoever dies.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use hocket_base::id::fit;
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use rustix::thread::futex;

/// How long a wait sleeps before it looks for trouble.
pub(crate) const SLEEP: Duration = Duration::from_millis(10);
/// How often a wait looks before it sleeps, where each rank has a core of its own.
const SPINS: u32 = 2000;

/// Returns a new file that is nowhere but in memory.
pub(crate) fn file() -> Option<OwnedFd> {
    memfd_create("hocket", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).ok()
}

/// Returns the file that a process of this host has under a number; its own is taken as it is.
pub(crate) fn reach(own: OwnedFd, (process, number): (u32, u32)) -> Option<OwnedFd> {
    if process == std::process::id() && number as i32 == own.as_raw_fd() {
        return Some(own);
    }
    let path = format!("/proc/{process}/fd/{number}");
    let file = File::options().read(true).write(true).open(path).ok()?;
    Some(file.into())
}

/// Returns how often a wait of one of so many ranks looks before it sleeps.
pub(crate) fn spins(ranks: usize) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if ranks <= cores { SPINS } else { 0 }
}

/// Sleeps until a word changes from what was seen, or a time is over.
pub(crate) fn sleep(word: &AtomicU32, seen: u32, most: Duration) {
    let most = futex::Timespec {
        tv_sec: most.as_secs() as _,
        tv_nsec: fit(most.subsec_nanos()),
    };
    let _ = futex::wait(word, futex::Flags::empty(), seen, Some(&most));
}

/// Wakes all who sleep on a word.
pub(crate) fn wake(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

/// What keeps a file as long as it is.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// Makes a file as long as that, for ever; all who map it do so, since nobody knows who is first.
pub(crate) fn lengthen(file: &OwnedFd, len: usize) -> Option<()> {
    let is_sealed = || fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SEALS));
    if !is_sealed() {
        let _ = ftruncate(file, len as u64).and_then(|()| fcntl_add_seals(file, SEALS));
    }
    // Whoever was first may have been told another length.
    let has = fstat(file).ok()?.st_size;
    (is_sealed() && u64::try_from(has) == Ok(len as u64)).then_some(())
}

/// A part of a file that this process has mapped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to the mapping; who uses it orders that with other processes.
unsafe impl Send for Mapping {}
// SAFETY: likewise.
unsafe impl Sync for Mapping {}

const SHARED: (ProtFlags, MapFlags) = (ProtFlags::READ.union(ProtFlags::WRITE), MapFlags::SHARED);

impl Mapping {
    /// Maps the first bytes of a file that is as long, by large pages where there are.
    pub(crate) fn large(file: &OwnedFd, len: usize) -> Option<Self> {
        let mapping = Self::part(file, 0, len)?;
        // SAFETY: the mapping that was just made. Without large pages it is slower, not wrong.
        let _ = unsafe { madvise(mapping.base().cast(), len, Advice::LinuxHugepage) };
        Some(mapping)
    }

    /// Maps a part of a file that is as long.
    pub(crate) fn part(file: impl AsFd, start: usize, len: usize) -> Option<Self> {
        let (access, flags) = SHARED;
        // SAFETY: a new mapping of a file that its seals keep from becoming shorter.
        let base = unsafe { mmap(std::ptr::null_mut(), len, access, flags, file, start as u64) };
        let base = NonNull::new(base.ok()?.cast::<u8>())?;
        Some(Self { base, len })
    }

    /// Maps a head and what follows it twice, so that what goes past its end is at its beginning.
    pub(crate) fn round(file: impl AsFd, start: usize, head: usize, len: usize) -> Option<Self> {
        let whole = head + 2 * len;
        let (none, private) = (ProtFlags::empty(), MapFlags::PRIVATE);
        // SAFETY: a new mapping, to keep the place.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), whole, none, private) };
        let base = NonNull::new(base.ok()?.cast::<u8>())?;
        let mapping = Self { base, len: whole };
        let (access, flags) = SHARED;
        for (at, from, len) in [(0, start, head + len), (head + len, start + head, len)] {
            let flags = flags | MapFlags::FIXED;
            // SAFETY: within the place that was kept, of a file that is as long and that its seals keep so.
            unsafe {
                let place = base.as_ptr().add(at).cast();
                mmap(place, len, access, flags, &file, from as u64).ok()?;
            }
        }
        Some(mapping)
    }

    /// Where it begins.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Returns a word of it.
    pub(crate) fn word(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at + 4 <= self.len && at.is_multiple_of(4));
        // SAFETY: within the mapping, at a place that all use as such.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping that was made; nobody has a reference into it.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_length() {
        let file = file().expect("there are such files");
        lengthen(&file, 8192).expect("it is new");
        lengthen(&file, 8192).expect("it has that length");
        for len in [0, 4096, 8191, 8193, 1 << 20] {
            assert!(ftruncate(&file, len).is_err(), "{len}");
            assert_eq!(lengthen(&file, fit(len)), None, "{len}");
        }
        assert!(fcntl_add_seals(&file, SealFlags::FUTURE_WRITE).is_err());
        assert_eq!(fstat(&file).expect("it is open").st_size, 8192);
        let mapping = Mapping::part(&file, 0, 8192).expect("it can be mapped");
        mapping
            .word(8188)
            .store(7, std::sync::atomic::Ordering::Relaxed);
    }
}
