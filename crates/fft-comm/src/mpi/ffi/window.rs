//! Windows for one-sided communication.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use fft_core::{Epochs, Error, SLOT_ALIGN};
use mpi::ffi;

use super::callers::Callers;
use super::calls::{abort, checked};
use super::raw_comm::RawComm;

/// Memory of this rank that other ranks put into. MPI owns it, so that it outlives a forgotten
/// window. Every method takes the communicator that the window was made on.
pub(in crate::mpi) struct RawWindow {
    handle: ffi::MPI_Win,
    /// Initialised bytes, which other ranks write in epochs only.
    memory: *mut u8,
    /// Its offset in the library's allocation, and its length.
    place: [usize; 2],
    /// The same for every rank, once they have been gathered.
    places: Vec<[usize; 2]>,
    /// Whether it is locked by `MPI_Win_lock_all`, as flushing needs it.
    locked: bool,
    limit: usize,
    callers: Callers,
}

// SAFETY: the handle is valid in every thread of the process and used through a `RawComm`, which
// checks the thread, or where `callers` allow it. The memory belongs to the process.
unsafe impl Send for RawWindow {}

/// An open epoch of a window. `'env`, for which data is borrowed, cannot be shortened, as it is in
/// argument position.
pub(in crate::mpi) struct RawEpoch<'w, 'env> {
    window: &'w RawWindow,
    comm: &'w RawComm,
    env: PhantomData<fn(&'env [u8])>,
}

/// What follows an epoch.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    /// Nothing, or an epoch that is opened anew.
    Here,
    /// Another epoch of the same window.
    Goes,
}

/// Two windows that alternate: the data that an epoch of one window brought is read during the next
/// epoch, which is of the other.
///
/// No rank waits for the others to open an epoch. They lent the window until the end of the last
/// epoch, of the other window, which was collective.
pub(in crate::mpi) struct RawPair {
    windows: [RawWindow; 2],
    /// The next window, and which have been opened.
    next: usize,
    open: [bool; 2],
    how: Option<Epochs>,
}

impl RawPair {
    pub(in crate::mpi) fn new(windows: [RawWindow; 2]) -> Self {
        Self { windows, next: 0, open: [false; 2], how: None }
    }

    /// As [`RawWindow::epoch`], always of the same kind. Passes what the last epoch brought this
    /// rank.
    pub(in crate::mpi) fn epoch<'env, R>(
        &mut self,
        comm: &RawComm,
        how: Epochs,
        body: impl FnOnce(&RawEpoch<'_, 'env>, &[u8]) -> R,
    ) -> Result<R, Error> {
        let before = *self.how.get_or_insert(how);
        if before != how {
            return Err(Error::argument("epoch", format!("{how:?}"), format!("{before:?}")));
        }
        let [a, b] = &mut self.windows;
        let (into, read) = if self.next == 0 { (a, b) } else { (b, a) };
        let open = std::mem::replace(&mut self.open[self.next], true);
        self.next = 1 - self.next;
        let open = |window: &mut RawWindow| if open { Ok(()) } else { window.open(comm, how) };
        Ok(into.between(comm, open, |epoch| body(epoch, read.local()), Ends::Goes))
    }

    pub(in crate::mpi) fn local(&self) -> &[u8] {
        self.windows[1 - self.next].local()
    }

    pub(in crate::mpi) fn free(self, rank: usize) -> Result<(), Error> {
        let [a, b] = self.windows;
        a.free(rank).and(b.free(rank))
    }
}

impl RawWindow {
    /// `bytes` zeroed bytes, which nobody can put into before [`RawWindow::sync`]. Puts travel in
    /// pieces of at most `limit` bytes. Collective.
    pub(in crate::mpi) fn allocate(
        comm: &RawComm,
        bytes: usize,
        limit: usize,
    ) -> Result<Self, Error> {
        let call = "MPI_Win_allocate";
        comm.ready(call)?;
        // With room to start at a whole line, because MPI does not promise that.
        let room =
            bytes.checked_add(SLOT_ALIGN).and_then(|room| ffi::MPI_Aint::try_from(room).ok());
        let room = room.ok_or(Error::Memory { rank: comm.rank, bytes })?;
        let (mut base, mut handle) = (std::ptr::null_mut::<u8>(), MaybeUninit::uninit());
        // SAFETY: our communicator is live; the results, a pointer and a handle, are written on
        // success. The memory reaches from `base` over `room` bytes, and so over `bytes` from the
        // next whole line on.
        unsafe {
            let (info, result) = (ffi::RSMPI_INFO_NULL, (&raw mut base).cast());
            let (comm, rank, callers) = (comm.handle, comm.rank, comm.callers);
            let code = ffi::MPI_Win_allocate(room, 1, info, comm, result, handle.as_mut_ptr());
            checked(rank, call, code)?;
            let handle = handle.assume_init();
            let memory = base.add(base.align_offset(SLOT_ALIGN));
            memory.write_bytes(0, bytes);
            // Without this handler an error ends the job with a message, which is acceptable.
            ffi::MPI_Win_set_errhandler(handle, ffi::RSMPI_ERRORS_RETURN);
            let place = [memory.offset_from_unsigned(base), bytes];
            let (places, locked) = (Vec::new(), false);
            Ok(Self { handle, memory, place, places, locked, limit, callers })
        }
    }

    /// Tells all ranks the offset and length of each. Collective.
    pub(in crate::mpi) fn sync(&mut self, comm: &RawComm) -> Result<(), Error> {
        let mut all = vec![[0; 2]; comm.size];
        comm.allgather(bytemuck::bytes_of(&self.place), bytemuck::cast_slice_mut(&mut all))?;
        self.places = all;
        Ok(())
    }

    pub(in crate::mpi) fn local(&self) -> &[u8] {
        // SAFETY: the memory lives as long as the window. Others write to it only in epochs, for
        // which the window is borrowed mutably and which begin on any rank after this one has
        // opened them. If it is one of a pair, they write after this rank has come to the end of
        // the previous epoch, and the slice is lent only until then.
        unsafe { std::slice::from_raw_parts(self.memory, self.place[1]) }
    }

    pub(in crate::mpi) fn local_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `local`; the window is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.memory, self.place[1]) }
    }

    /// Opens an epoch on all ranks, calls `body`, and closes it, after which every put of any rank
    /// has arrived. Collective. A panic in `body`, or a failure to open or close, ends the job,
    /// because other ranks wait and the network may still read the data.
    pub(in crate::mpi) fn epoch<'env, R>(
        &mut self,
        comm: &RawComm,
        how: Epochs,
        body: impl FnOnce(&RawEpoch<'_, 'env>) -> R,
    ) -> Result<R, Error> {
        let done = self.between(comm, |window| window.open(comm, how), body, Ends::Here);
        Ok(done)
    }

    fn between<'env, R>(
        &mut self,
        comm: &RawComm,
        open: impl FnOnce(&mut Self) -> Result<(), Error>,
        body: impl FnOnce(&RawEpoch<'_, 'env>) -> R,
        ends: Ends,
    ) -> R {
        struct Peers;
        impl Drop for Peers {
            fn drop(&mut self) {
                abort(101);
            }
        }
        let waiting = Peers;
        open(self).unwrap_or_else(|error| panic!("an epoch cannot be opened: {error}"));
        let result = body(&RawEpoch { window: self, comm, env: PhantomData });
        let closed = self.close(comm, ends);
        closed.unwrap_or_else(|error| panic!("an epoch cannot be closed: {error}"));
        std::mem::forget(waiting);
        result
    }

    /// An epoch of constants, which outlive all operations of the library: every failure is
    /// returned.
    pub(in crate::mpi) fn trial(
        &mut self,
        comm: &RawComm,
        how: Epochs,
        body: impl FnOnce(&RawEpoch<'_, 'static>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.open(comm, how)?;
        let put = body(&RawEpoch { window: self, comm, env: PhantomData });
        // Also after an error, because the others close the epoch.
        put.and(self.close(comm, Ends::Here))
    }

    fn open(&mut self, comm: &RawComm, how: Epochs) -> Result<(), Error> {
        comm.ready("MPI_Win_fence")?;
        self.lock(comm.rank, how == Epochs::Flush)?;
        self.fence(comm, 0)
    }

    fn close(&mut self, comm: &RawComm, ends: Ends) -> Result<(), Error> {
        if self.locked {
            // SAFETY: the window is live and locked.
            let code = unsafe { ffi::MPI_Win_flush_all(self.handle) };
            checked(comm.rank, "MPI_Win_flush_all", code)?;
        }
        let last = ffi::MPI_MODE_NOSUCCEED as c_int;
        self.fence(comm, if ends == Ends::Here { last } else { 0 })
    }

    /// Returns when all ranks have called it, with this rank's memory synchronised with the other
    /// ranks' view.
    fn fence(&mut self, comm: &RawComm, assertion: c_int) -> Result<(), Error> {
        if !self.locked {
            // SAFETY: the window is live. Puts of others arrive only after this rank's own fence.
            let code = unsafe { ffi::MPI_Win_fence(assertion, self.handle) };
            return checked(comm.rank, "MPI_Win_fence", code);
        }
        // Makes the writes of this rank visible before the barrier, and the writes of others after
        // it. SAFETY: the window is live and locked.
        let sync = || checked(comm.rank, "MPI_Win_sync", unsafe { ffi::MPI_Win_sync(self.handle) });
        sync().and_then(|()| comm.barrier()).and_then(|()| sync())
    }

    /// Locks or unlocks the window for flushing. Not collective, as no lock is exclusive.
    fn lock(&mut self, rank: usize, wanted: bool) -> Result<(), Error> {
        if wanted == self.locked {
            return Ok(());
        }
        // SAFETY: the window is live and no epoch is open; locks and unlocks alternate.
        let (call, code) = unsafe {
            if wanted {
                ("MPI_Win_lock_all", ffi::MPI_Win_lock_all(0, self.handle))
            } else {
                ("MPI_Win_unlock_all", ffi::MPI_Win_unlock_all(self.handle))
            }
        };
        checked(rank, call, code).map(|()| self.locked = wanted)
    }

    pub(in crate::mpi) fn free(mut self, rank: usize) -> Result<(), Error> {
        self.release(rank)
    }

    fn release(&mut self, rank: usize) -> Result<(), Error> {
        self.callers.check(rank, "MPI_Win_free")?;
        // Also after an unlock that failed, because freeing the window is collective.
        let closed = self.lock(rank, false);
        // SAFETY: reading a constant of the library. A window that cannot be freed leaks, and is
        // not tried again.
        let mut handle = std::mem::replace(&mut self.handle, unsafe { ffi::RSMPI_WIN_NULL });
        // SAFETY: the window is ours and live, and nobody borrows its memory.
        let freed = checked(rank, "MPI_Win_free", unsafe { ffi::MPI_Win_free(&mut handle) });
        closed.and(freed)
    }
}

impl Drop for RawWindow {
    fn drop(&mut self) {
        // SAFETY: reading a constant of the library, which `release` leaves.
        let freed = self.handle == unsafe { ffi::RSMPI_WIN_NULL };
        // Freeing is collective, and the others do not take part when this rank panics.
        if !freed && !std::thread::panicking() {
            // A failure, as after MPI_Finalize, cannot be reported.
            let _ = self.release(0);
        }
    }
}

impl<'env> RawEpoch<'_, 'env> {
    /// Puts bytes into the memory of rank `to`, from its byte `at` on.
    pub(in crate::mpi) fn put(&self, to: usize, at: usize, data: &'env [u8]) -> Result<(), Error> {
        let bytes = data.len();
        let (RawWindow { places, limit, handle, .. }, rank) = (self.window, self.comm.rank);
        let [shift, room] = places.get(to).copied().unwrap_or_default();
        let end = at.saturating_add(bytes);
        // Not every library checks.
        if end > room {
            let what = format!("put of rank {rank} into the window of rank {to}");
            let expected = format!("an end within its {room} bytes");
            return Err(Error::argument(what, format!("bytes {at}..{end}"), expected));
        }
        for first in (0..bytes).step_by(*limit) {
            let n = (bytes - first).min(*limit) as c_int;
            let there = (shift + at + first) as ffi::MPI_Aint;
            // SAFETY: the epoch is open. The data is borrowed until after the epoch is closed, and
            // the end of the piece lies within the target's memory, as just checked. A piece is at
            // most `limit` bytes, an int.
            let code = unsafe {
                let from = data.as_ptr().add(first).cast::<c_void>();
                let byte = ffi::RSMPI_UINT8_T;
                ffi::MPI_Put(from, n, byte, to as c_int, there, n, byte, *handle)
            };
            checked(rank, "MPI_Put", code)?;
        }
        // Receives what others put, in libraries without a progress thread.
        self.comm.progress();
        Ok(())
    }
}
