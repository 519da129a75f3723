//! The memory that ranks of a host can address, and the flags by which they synchronise there.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use fft_core::{Error, SharedMemory, Slot};

/// Memory, as a pointer that is valid in this process.
pub(super) type Bytes = (*mut u8, usize);

/// The synchronisation flags of a rank, on cache lines of their own.
#[repr(C, align(128))]
#[derive(Default)]
pub(crate) struct SyncFlags {
    /// `2v - 1` since this rank entered epoch `v`, `2v` since it exited.
    pub(super) epoch: AtomicU64,
    /// Set when the rank will enter no more epochs.
    pub(crate) gone: AtomicBool,
    pub(super) read: ExposedRange,
    pub(super) write: ExposedRange,
    purpose: AtomicUsize,
}

/// What a rank enters an epoch for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Ranks read what others expose, and write segments of the partition of this number.
    Exchange { partition: Option<usize> },
    /// Ranks only synchronize. This one may have failed.
    Synchronize { failed: bool },
    /// The rank drops its node memory; some of it may still be in use.
    Leave { in_use: bool },
}

/// Purposes as numbers; all other numbers are partitions.
const READ: usize = usize::MAX;
const SYNCHRONIZE: usize = usize::MAX - 1;
const SYNCHRONIZE_FAILED: usize = usize::MAX - 2;
const LEAVE: usize = usize::MAX - 3;
const LEAVE_IN_USE: usize = usize::MAX - 4;

impl SyncFlags {
    /// Published by the flag `epoch`.
    pub(super) fn set_purpose(&self, purpose: Purpose) {
        let number = match purpose {
            Purpose::Exchange { partition } => partition.unwrap_or(READ),
            Purpose::Synchronize { failed: false } => SYNCHRONIZE,
            Purpose::Synchronize { failed: true } => SYNCHRONIZE_FAILED,
            Purpose::Leave { in_use: false } => LEAVE,
            Purpose::Leave { in_use: true } => LEAVE_IN_USE,
        };
        self.purpose.store(number, Ordering::Relaxed);
    }

    pub(super) fn purpose(&self) -> Purpose {
        match self.purpose.load(Ordering::Relaxed) {
            READ => Purpose::Exchange { partition: None },
            SYNCHRONIZE => Purpose::Synchronize { failed: false },
            SYNCHRONIZE_FAILED => Purpose::Synchronize { failed: true },
            LEAVE => Purpose::Leave { in_use: false },
            LEAVE_IN_USE => Purpose::Leave { in_use: true },
            number => Purpose::Exchange { partition: Some(number) },
        }
    }
}

#[derive(Default)]
pub(super) struct ExposedRange {
    /// The number of the shared allocation, or one of the constants below.
    space: AtomicUsize,
    at: AtomicUsize,
    bytes: AtomicUsize,
}

/// In `space`: nothing is exposed.
const NONE: usize = usize::MAX;
/// The memory cannot be addressed by other ranks.
const HIDDEN: usize = usize::MAX - 1;

pub(super) enum Found {
    Nothing,
    Hidden,
    Empty,
    Range { space: usize, at: usize, bytes: usize },
}

impl ExposedRange {
    /// Published by the flag `epoch`.
    pub(super) fn set(&self, space: &impl AddressSpace, bytes: Option<*const [u8]>) {
        let (number, at) = match bytes {
            None => (NONE, 0),
            Some(bytes) if bytes.is_empty() => (0, 0),
            Some(bytes) => space.locate(bytes).unwrap_or((HIDDEN, 0)),
        };
        self.space.store(number, Ordering::Relaxed);
        self.at.store(at, Ordering::Relaxed);
        self.bytes.store(bytes.map_or(0, |bytes| bytes.len()), Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Found {
        let bytes = self.bytes.load(Ordering::Relaxed);
        match self.space.load(Ordering::Relaxed) {
            NONE => Found::Nothing,
            HIDDEN => Found::Hidden,
            _ if bytes == 0 => Found::Empty,
            space => Found::Range { space, at: self.at.load(Ordering::Relaxed), bytes },
        }
    }
}

/// Memory that all ranks of a host address, and their flags.
///
/// # Safety
/// Flags are the same memory for all ranks of the host, and valid as long as `self` is `ready`. For
/// memory that a rank located, `reach` gives on every rank a pointer to the same memory, valid as
/// long as that memory.
pub(crate) unsafe trait AddressSpace: Send {
    /// Whether all memory can be located.
    const EVERYWHERE: bool;

    fn flags(&self, i: usize) -> &SyncFlags;

    /// Checks that the flags exist and that this thread may wait at them.
    fn ready(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Called while waiting, so that messages between hosts proceed and ranks that end are noticed.
    fn progress(&self) {}

    /// Whether a rank accesses no memory any more: it has left, or its process has ended.
    fn has_left(&self, i: usize) -> bool {
        self.flags(i).gone.load(Ordering::Acquire)
    }

    /// Whether a rank will enter no more epochs.
    fn is_gone(&self, i: usize) -> bool {
        self.has_left(i)
    }

    /// The shared allocation that holds these bytes, and their address there.
    fn locate(&self, bytes: *const [u8]) -> Option<(usize, usize)>;

    /// A pointer to the memory that the `i`th rank located.
    fn reach(&self, i: usize, space: usize, at: usize) -> *mut u8;

    /// How allocations made here are freed now.
    fn freed(&self) -> Freed {
        Freed::Alone
    }

    /// Leaks allocations and flags.
    fn keep(&mut self) {}

    /// Allocates memory that can be located. Collective.
    fn allocate(&mut self, bytes: usize) -> Result<Box<dyn SharedMemory>, Error>;
}

/// How memory that ranks have allocated together is freed.
#[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "threads free each for itself"))]
pub(crate) enum Freed {
    Alone,
    /// By all ranks together, unless one still uses some of it.
    Together {
        in_use: bool,
    },
    /// Not by this rank now, because it unwinds, or may not call MPI on this thread.
    Not,
    /// Not any more, because MPI has been finalised and the flags are gone.
    Gone,
}

/// The memory of one process; `S` owns the flags.
pub(crate) struct OneProcess<S>(pub(crate) S);

// SAFETY: `S` owns the flags, in one place. Addresses are the same for all threads.
unsafe impl<S: AsRef<[SyncFlags]> + Send> AddressSpace for OneProcess<S> {
    const EVERYWHERE: bool = true;

    fn flags(&self, i: usize) -> &SyncFlags {
        &self.0.as_ref()[i]
    }

    fn locate(&self, bytes: *const [u8]) -> Option<(usize, usize)> {
        Some((0, bytes.cast::<u8>().expose_provenance()))
    }

    fn reach(&self, _i: usize, _space: usize, at: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(at)
    }

    fn allocate(&mut self, bytes: usize) -> Result<Box<dyn SharedMemory>, Error> {
        Ok(Box::new(Owned(Slot::new(bytes, 0)?)))
    }
}

struct Owned(Slot);

impl SharedMemory for Owned {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}
