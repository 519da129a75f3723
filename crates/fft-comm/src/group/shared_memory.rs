//! Memory that processes of a host share: files without a name, which end with their last user.
//!
//! A process opens a file of another under `/proc`. Nothing is ever in `/dev/shm`, so nothing stays
//! there however a process ends.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, OwnedFd};

use fft_core::SLOT_ALIGN;
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

/// A shared file, mapped into this process.
pub(super) struct SharedMapping {
    at: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping is the same for all threads of the process, and ends when this is dropped.
unsafe impl Send for SharedMapping {}
// SAFETY: as above; `&self` only gives out a pointer.
unsafe impl Sync for SharedMapping {}

impl SharedMapping {
    /// Memory without bytes.
    pub(super) fn none() -> Self {
        // Aligned for every use of the memory.
        Self { at: std::ptr::without_provenance_mut(SLOT_ALIGN), bytes: 0 }
    }

    /// Zeroed memory of this process alone, which needs no file.
    pub(super) fn alone(bytes: usize) -> Result<Self> {
        if bytes == 0 {
            return Ok(Self::none());
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, where the system finds room for it.
        let at = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE)?
        };
        Ok(Self { at: at.cast(), bytes })
    }

    /// Zeroed memory, and the file that others can open while it is open here.
    pub(super) fn create(bytes: usize) -> Result<(SharedFile, Self)> {
        // The system would kill the process.
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| bytes as u64 > limit) {
            return Err(Errno::FBIG);
        }
        let file = rustix::fs::memfd_create(c"thriffty", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, bytes as u64)?;
        let mapping = Self::map(&file, bytes)?;
        Ok((SharedFile(file), mapping))
    }

    /// The same memory in another process, by the number of the file there.
    pub(super) fn open(process: u32, file: i32, bytes: usize) -> Result<Self> {
        let path = format!("/proc/{process}/fd/{file}");
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        Self::map(&file, bytes)
    }

    fn map(file: &OwnedFd, bytes: usize) -> Result<Self> {
        if bytes == 0 {
            return Ok(Self::none());
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, where the system finds room for it.
        let at = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0)?
        };
        Ok(Self { at: at.cast(), bytes })
    }

    pub(super) fn at(&self) -> *mut u8 {
        self.at
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the mapping is ours, and whoever has a pointer to it borrows this object.
            let unmapped = unsafe { rustix::mm::munmap(self.at.cast(), self.bytes) };
            debug_assert!(unmapped.is_ok(), "{unmapped:?}");
        }
    }
}

/// A shared file of this process.
pub(super) struct SharedFile(OwnedFd);

impl SharedFile {
    /// The number by which another process finds it.
    pub(super) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }
}
