//! Memory that processes of one host share.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Once, Weak};

use fft_core::{Error, Reduce, SharedMemory, locked};

use super::ffi::{RawComm, SharedWindow, is_running, when_finalized};
use crate::node_memory::{AddressSpace, Freed, SyncFlags};

static NOT_SHARED: Once = Once::new();

/// For every rank the lowest rank of its host, or the rank itself if memory cannot be shared.
/// Collective.
pub(super) fn hosts(comm: &RawComm) -> Result<Vec<usize>, Error> {
    let host = comm.all(comm.host())?;
    let shares = host.size == 1 || SharedWindow::allocate(&host, 0).is_ok();
    let mut lowest = [0.0];
    host.allreduce(Reduce::Min, &[if shares { comm.rank as f64 } else { -1.0 }], &mut lowest)?;
    let alone = lowest[0] < 0.0;
    if alone && host.rank == 0 {
        NOT_SHARED.call_once(|| {
            log::warn!(
                "this MPI does not give the {} ranks of a host memory to share; they exchange messages",
                host.size
            );
        });
    }
    let mine = if alone { comm.rank } else { lowest[0] as usize };
    comm.numbers(mine)
}

/// Flags of this process, at which others may wait.
static WINDOWS: Mutex<Vec<Weak<SharedWindow>>> = Mutex::new(Vec::new());

/// Marks this rank as gone in all flags: MPI is about to be finalised, and no epoch will be entered
/// any more.
fn leave_all() {
    let windows = locked(&WINDOWS);
    for window in windows.iter().filter_map(Weak::upgrade) {
        // SAFETY: MPI is still there.
        let own = unsafe { flags(&window, window.comm.rank) };
        own.gone.store(true, Ordering::Release);
    }
}

/// The flags of the `i`th rank.
///
/// # Safety
/// MPI has not been finalised, and is not while they are borrowed.
unsafe fn flags(window: &SharedWindow, i: usize) -> &SyncFlags {
    let (at, bytes) = window.part(i);
    assert!(bytes >= size_of::<SyncFlags>(), "every rank made room for flags");
    // SAFETY: parts begin at whole pages and were zeroed, which is the initial state of the flags.
    // All fields are atomic. The window lives as long as it is borrowed, and MPI, by the caller's
    // promise.
    unsafe { &*at.cast::<SyncFlags>() }
}

pub(super) struct Host {
    flags: Arc<SharedWindow>,
    windows: Vec<Arc<SharedWindow>>,
    comm: RawComm,
}

impl Host {
    /// For the ranks of a communicator, all on one host. Collective.
    pub(super) fn new(comm: RawComm) -> Result<Self, Error> {
        let flags = Arc::new(SharedWindow::allocate(&comm, size_of::<SyncFlags>())?);
        when_finalized(leave_all);
        let mut all = locked(&WINDOWS);
        all.retain(|window| window.strong_count() > 0);
        all.push(Arc::downgrade(&flags));
        Ok(Self { flags, windows: Vec::new(), comm })
    }
}

// SAFETY: every rank's flags are at the beginning of its part of one window, which is kept. Windows
// have the same numbers on all ranks, as they are made collectively, and are kept. A rank locates
// bytes of its own part.
unsafe impl AddressSpace for Host {
    const EVERYWHERE: bool = false;

    fn flags(&self, i: usize) -> &SyncFlags {
        // SAFETY: callers have checked `ready`.
        unsafe { flags(&self.flags, i) }
    }

    fn ready(&self) -> Result<(), Error> {
        self.comm.ready("MPI_Win_shared_query")
    }

    fn progress(&self) {
        self.comm.progress();
    }

    fn locate(&self, bytes: *const [u8]) -> Option<(usize, usize)> {
        let at = bytes.cast::<u8>().addr();
        self.windows.iter().enumerate().find_map(|(number, window)| {
            let (part, size) = window.part(window.comm.rank);
            let first = at.checked_sub(part.addr())?;
            (first + bytes.len() <= size).then_some((number, first))
        })
    }

    fn reach(&self, i: usize, ground: usize, at: usize) -> *mut u8 {
        self.windows[ground].part(i).0.wrapping_add(at)
    }

    fn freed(&self) -> Freed {
        let used = |window: &Arc<SharedWindow>| Arc::strong_count(window) > 1;
        match self.flags.can_be_freed() {
            true => Freed::Together { in_use: self.windows.iter().any(used) },
            false if is_running() => Freed::Not,
            false => Freed::Gone,
        }
    }

    fn keep(&mut self) {
        let windows = self.windows.drain(..).chain([self.flags.clone()]);
        windows.for_each(std::mem::forget);
    }

    fn allocate(&mut self, bytes: usize) -> Result<Box<dyn SharedMemory>, Error> {
        let window = Arc::new(SharedWindow::allocate(&self.comm, bytes)?);
        self.windows.push(window.clone());
        Ok(Box::new(Part { window, bytes }))
    }
}

/// This process's part of a window: the only access to it, apart from exposure epochs, which borrow
/// it.
struct Part {
    window: Arc<SharedWindow>,
    bytes: usize,
}

impl Part {
    /// Its address while MPI runs; MPI may free windows when it is finalised.
    fn at(&self) -> *mut u8 {
        assert!(is_running(), "memory that ranks share is used after MPI has been finalised");
        self.window.part(self.window.comm.rank).0
    }
}

impl SharedMemory for Part {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the part has this number of bytes, was zeroed, and lives as long as the window,
        // because MPI still runs. This is the only `Part` of this process. Other processes access
        // it only while an exposure epoch borrows it.
        unsafe { std::slice::from_raw_parts(self.at(), self.bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.at(), self.bytes) }
    }
}
