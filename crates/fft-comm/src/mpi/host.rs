//! Processes of one host in each other's memory.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};

use fft_core::{Error, Reduce, SharedMemory};

use crate::node_memory::node_memory::{AddressSpace, Freed, SyncFlags};

use super::ffi::{RawComm, SharedWindow, is_running};

/// Said once in a process.
static NOT_SHARED: Once = Once::new();

/// For every rank of a communicator the lowest rank of its host; only itself where memory cannot be shared.
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

/// Where the libraries that we know of keep shared memory.
const SHARED: &str = "/dev/shm";

/// Whether memory can be shared by the ranks of a host, so many bytes for this one. Collective, with the same answer on
/// all of them: what there is no room for, the libraries promise, and the process that touches it is killed, or they
/// give up on one rank and leave the others waiting.
///
/// # Errors
/// [`Error::SharedMemory`] when there is no room.
pub(super) fn has_room(comm: &RawComm, bytes: usize) -> Result<(), Error> {
    let free = rustix::fs::statvfs(SHARED)
        .map_or(f64::INFINITY, |system| system.f_bavail as f64 * system.f_frsize as f64);
    let (mut wanted, mut least) = ([0.0], [0.0]);
    comm.allreduce(Reduce::Sum, &[bytes as f64], &mut wanted)?;
    comm.allreduce(Reduce::Min, &[free], &mut least)?;
    if wanted <= least {
        return Ok(());
    }
    let ([wanted], [free]) = (wanted.map(|x| x as u64), least.map(|x| x as u64));
    Err(Error::SharedMemory { rank: comm.rank, wanted, place: SHARED, free })
}

/// Stations of this process, at which others may wait.
static WINDOWS: Mutex<Vec<Weak<SharedWindow>>> = Mutex::new(Vec::new());

/// Goes from all flags: MPI is about to be finalised, and what has not been dropped yet will not come again.
pub(super) fn leave_all() {
    let windows = WINDOWS.lock().unwrap_or_else(PoisonError::into_inner);
    for window in windows.iter().filter_map(Weak::upgrade) {
        // SAFETY: MPI is still there.
        let own = unsafe { flags(&window, window.comm.rank) };
        own.gone.store(true, Ordering::Release);
    }
}

/// The `i`th rank's.
///
/// # Safety
/// MPI has not been finalised, and is not while it is borrowed.
unsafe fn flags(window: &SharedWindow, i: usize) -> &SyncFlags {
    let (at, bytes) = window.part(i);
    assert!(bytes >= size_of::<SyncFlags>(), "every rank made room for flags");
    // SAFETY: parts begin at whole pages and were zeroed, which is flags that nobody has come to; all its fields are atomic, and
    // the window lives as long as it is borrowed, and MPI, as the caller vouches.
    unsafe { &*at.cast::<SyncFlags>() }
}

/// Windows of shared memory, one for the flags and one for each allocation.
pub(super) struct Host {
    flags: Arc<SharedWindow>,
    windows: Vec<Arc<SharedWindow>>,
    comm: RawComm,
}

impl Host {
    /// For the ranks of a communicator, all on one host. Collective.
    pub(super) fn new(comm: RawComm) -> Result<Self, Error> {
        let flags = Arc::new(SharedWindow::allocate(&comm, size_of::<SyncFlags>())?);
        let mut all = WINDOWS.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|window| window.strong_count() > 0);
        all.push(Arc::downgrade(&flags));
        Ok(Self { flags, windows: Vec::new(), comm })
    }
}

// SAFETY: every rank's flags is at the beginning of its part of one window, which is kept. Windows are numbered alike
// on all ranks, being made collectively, and kept; a rank locates bytes of its own part.
unsafe impl AddressSpace for Host {
    const EVERYWHERE: bool = false;

    fn flags(&self, i: usize) -> &SyncFlags {
        // SAFETY: callers have asked whether this is `ready`.
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

/// This process' part of a window: the only way to it, but for visits, which borrow it.
struct Part {
    window: Arc<SharedWindow>,
    bytes: usize,
}

impl Part {
    /// Where it is, as long as MPI is: what that does to windows in the end is its own affair.
    fn at(&self) -> *mut u8 {
        assert!(is_running(), "memory that ranks share is used after MPI has been finalised");
        self.window.part(self.window.comm.rank).0
    }
}

impl SharedMemory for Part {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the part has so many bytes, was zeroed, and lives as long as the window, which MPI has not taken back. This is the only `Part` of
        // this process; other processes touch it only while it is borrowed by a visit.
        unsafe { std::slice::from_raw_parts(self.at(), self.bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.at(), self.bytes) }
    }
}
