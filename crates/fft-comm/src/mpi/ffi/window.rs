//! Memory that others put into.

use std::ops::Range;

use super::*;

/// Memory of this rank that the ranks of a communicator put bytes into. MPI owns it, so that it goes on to exist when a
/// window is forgotten. Every method takes the communicator that the window was made on.
pub(in crate::mpi) struct RawWindow {
    handle: ffi::MPI_Win,
    /// Initialised bytes which other ranks write to in epochs only.
    memory: *mut u8,
    /// Where in the library's memory that begins, and how many bytes it has.
    place: [usize; 2],
    /// The same for every rank, once known.
    places: Vec<[usize; 2]>,
    /// Whether it is open between epochs, as flushing needs it.
    locked: bool,
    limit: usize,
    /// Instead of the library's memory, what this rank puts from and what the others put into.
    opaque: Option<[DeviceBuffer; 2]>,
}

// SAFETY: the handle is valid in every thread of the process and used through a `RawComm`, which checks the thread; the
// memory belongs to the process.
unsafe impl Send for RawWindow {}

/// An open epoch of a window. `'env`, for which everything put is borrowed, cannot be shortened: it is an argument's.
pub(in crate::mpi) struct RawEpoch<'w, 'env> {
    window: &'w RawWindow,
    comm: &'w RawComm,
    env: PhantomData<fn(&'env [u8])>,
}

/// What comes after an epoch.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    /// Nothing, or one that is opened anew.
    Here,
    /// Another of the same window.
    Goes,
}

/// Two windows by turns, so that what an epoch of one brought is read in the next, of the other.
///
/// No rank waits for the others to open an epoch: what they had lent of the window they lent until the end of the epoch
/// before, of the other window, and that took all of them.
pub(in crate::mpi) struct RawPair {
    windows: [RawWindow; 2],
    /// Which is next, and which have been opened.
    next: usize,
    open: [bool; 2],
    how: Option<Epochs>,
}

impl RawPair {
    pub(in crate::mpi) fn new(windows: [RawWindow; 2]) -> Self {
        Self { windows, next: 0, open: [false; 2], how: None }
    }

    /// As [`RawWindow::epoch`], always of the same kind. Shows what the last epoch brought this rank.
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

    /// What the last epoch brought this rank.
    pub(in crate::mpi) fn local(&self) -> &[u8] {
        self.windows[1 - self.next].local()
    }

    /// Gives the memory back. Collective.
    pub(in crate::mpi) fn free(self, rank: usize) -> Result<(), Error> {
        let [a, b] = self.windows;
        a.free(rank).and(b.free(rank))
    }
}

impl RawWindow {
    /// Zeroed memory of so many bytes, which nobody can put into before [`RawWindow::meet`]. Collective. RmaWindow travel
    /// in pieces of at most `limit` bytes.
    pub(in crate::mpi) fn allocate(
        comm: &RawComm,
        bytes: usize,
        limit: usize,
    ) -> Result<Self, Error> {
        let call = "MPI_Win_allocate";
        comm.ready(call)?;
        // Room to start at a whole line, which MPI does not promise to do.
        let room =
            bytes.checked_add(SLOT_ALIGN).and_then(|room| ffi::MPI_Aint::try_from(room).ok());
        let room = room.ok_or(Error::Memory { rank: comm.rank, bytes })?;
        let (mut base, mut handle) = (std::ptr::null_mut::<u8>(), MaybeUninit::uninit());
        // SAFETY: our communicator is live; the results, a pointer and a handle, are written on success. The memory
        // reaches from `base` over `room` bytes, and so over `bytes` from the next whole line on.
        unsafe {
            let (info, result) = (ffi::RSMPI_INFO_NULL, (&raw mut base).cast());
            let (comm, rank) = (comm.handle, comm.rank);
            let code = ffi::MPI_Win_allocate(room, 1, info, comm, result, handle.as_mut_ptr());
            checked(rank, call, code)?;
            let handle = handle.assume_init();
            let memory = base.add(base.align_offset(SLOT_ALIGN));
            memory.write_bytes(0, bytes);
            // A window that does not return its errors ends the job with a message, which is no worse than a failure
            // of one rank alone would be here.
            ffi::MPI_Win_set_errhandler(handle, ffi::RSMPI_ERRORS_RETURN);
            let place = [memory.offset_from_unsigned(base), bytes];
            let (places, opaque) = (Vec::new(), None);
            Ok(Self { handle, memory, place, places, locked: false, limit, opaque })
        }
    }

    /// As [`RawWindow::allocate`], of the second piece of memory, which the window keeps.
    pub(in crate::mpi) fn create(
        comm: &RawComm,
        opaque: [DeviceBuffer; 2],
        limit: usize,
    ) -> Result<Self, Error> {
        let call = "MPI_Win_create";
        comm.ready(call)?;
        let (memory, bytes) = (opaque[1].address(), opaque[1].bytes());
        let room =
            ffi::MPI_Aint::try_from(bytes).map_err(|_| Error::Memory { rank: comm.rank, bytes })?;
        let mut handle = MaybeUninit::uninit();
        // SAFETY: our communicator is live, and the memory there as long as its keeper, which lives longer than the window
        // (`release`). The handle is written on success.
        unsafe {
            let (info, handle_at) = (ffi::RSMPI_INFO_NULL, handle.as_mut_ptr());
            let code = ffi::MPI_Win_create(memory.cast(), room, 1, info, comm.handle, handle_at);
            checked(comm.rank, call, code)?;
            let handle = handle.assume_init();
            ffi::MPI_Win_set_errhandler(handle, ffi::RSMPI_ERRORS_RETURN);
            let (place, places, opaque) = ([0, bytes], Vec::new(), Some(opaque));
            Ok(Self { handle, memory, place, places, locked: false, limit, opaque })
        }
    }

    /// Tells all ranks where each has how much. Collective.
    pub(in crate::mpi) fn sync(&mut self, comm: &RawComm) -> Result<(), Error> {
        let mut all = vec![[0; 2]; comm.size];
        comm.allgather(bytemuck::bytes_of(&self.place), bytemuck::cast_slice_mut(&mut all))?;
        self.places = all;
        Ok(())
    }

    /// This rank's memory.
    pub(in crate::mpi) fn local(&self) -> &[u8] {
        if self.opaque.is_some() {
            return &[];
        }
        // SAFETY: the memory lives as long as the window. Others write to it in epochs only, for which the window is
        // borrowed mutably, and which begin on any rank after this one has opened them, too; or, of a pair, after this one
        // has come to the end of the epoch before, until which alone this may be lent.
        unsafe { std::slice::from_raw_parts(self.memory, self.place[1]) }
    }

    /// This rank's memory.
    pub(in crate::mpi) fn local_mut(&mut self) -> &mut [u8] {
        if self.opaque.is_some() {
            return &mut [];
        }
        // SAFETY: as in `local`; the window is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.memory, self.place[1]) }
    }

    /// Opens an epoch on all ranks, calls `body`, and closes it: then everything put by any rank has arrived.
    /// Collective. Without coming back from here nobody can reach what the network still reads: a panic in `body`, or
    /// an epoch that cannot be opened or closed, where the others wait for it, end the job.
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

    /// An epoch of constants. They outlive whatever the library may still do, so that every failure is a value.
    pub(in crate::mpi) fn trial(
        &mut self,
        comm: &RawComm,
        how: Epochs,
        body: impl FnOnce(&RawEpoch<'_, 'static>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.open(comm, how)?;
        let put = body(&RawEpoch { window: self, comm, env: PhantomData });
        // Even after a failure, since the others close it.
        put.and(self.close(comm, Ends::Here))
    }

    fn open(&mut self, comm: &RawComm, how: Epochs) -> Result<(), Error> {
        comm.ready("MPI_Win_fence")?;
        self.lock(comm.rank, how == Epochs::Flush)?;
        self.meeting(comm, 0)
    }

    fn close(&mut self, comm: &RawComm, ends: Ends) -> Result<(), Error> {
        if self.locked {
            // SAFETY: the window is live and locked.
            let code = unsafe { ffi::MPI_Win_flush_all(self.handle) };
            checked(comm.rank, "MPI_Win_flush_all", code)?;
        }
        let last = ffi::MPI_MODE_NOSUCCEED as c_int;
        self.meeting(comm, if ends == Ends::Here { last } else { 0 })
    }

    /// Returns when all ranks have come, with this rank's memory the same as what others see of it.
    fn meeting(&mut self, comm: &RawComm, assertion: c_int) -> Result<(), Error> {
        if !self.locked {
            // SAFETY: the window is live. What others put lands here only after this rank's own fence.
            let code = unsafe { ffi::MPI_Win_fence(assertion, self.handle) };
            return checked(comm.rank, "MPI_Win_fence", code);
        }
        // Before the barrier what was written here, after it what others wrote.
        // SAFETY: the window is live and locked.
        let sync = || checked(comm.rank, "MPI_Win_sync", unsafe { ffi::MPI_Win_sync(self.handle) });
        sync().and_then(|()| comm.barrier()).and_then(|()| sync())
    }

    /// Opens or closes the window for flushing. Not collective: nobody locks exclusively.
    fn lock(&mut self, rank: usize, wanted: bool) -> Result<(), Error> {
        if wanted == self.locked {
            return Ok(());
        }
        // SAFETY: the window is live and no epoch is open; it is locked and unlocked in turn.
        let (call, code) = unsafe {
            match wanted {
                true => ("MPI_Win_lock_all", ffi::MPI_Win_lock_all(0, self.handle)),
                false => ("MPI_Win_unlock_all", ffi::MPI_Win_unlock_all(self.handle)),
            }
        };
        checked(rank, call, code).map(|()| self.locked = wanted)
    }

    /// Gives the memory back. Collective.
    pub(in crate::mpi) fn free(mut self, rank: usize) -> Result<(), Error> {
        self.release(rank)
    }

    fn release(&mut self, rank: usize) -> Result<(), Error> {
        let released = self.close_and_free(rank);
        if released.is_err() {
            // Who knows what is still put there.
            std::mem::forget(self.opaque.take());
        }
        released
    }

    fn close_and_free(&mut self, rank: usize) -> Result<(), Error> {
        may_call("MPI_Win_free")?;
        // Even if it cannot be closed: the others come to free it.
        let closed = self.lock(rank, false);
        // SAFETY: reading a constant of the library. One that cannot be freed leaks: once is enough to try.
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
        // The others do not come to free it with a rank that panics.
        if !freed && !std::thread::panicking() {
            // A failure to free, as after MPI_Finalize, leaves nothing to be done.
            let _ = self.release(0);
        } else if !freed {
            std::mem::forget(self.opaque.take());
        }
    }
}

impl<'env> RawEpoch<'_, 'env> {
    /// RmaWindow bytes into the memory of rank `to`, from its byte `at` on.
    pub(in crate::mpi) fn put(&self, to: usize, at: usize, bytes: &'env [u8]) -> Result<(), Error> {
        // SAFETY: the bytes are borrowed until after the epoch has been closed.
        unsafe { self.put_from(to, at, bytes.as_ptr(), bytes.len()) }
    }

    /// As [`RawEpoch::put`], of bytes of the memory that the window was told this rank puts from.
    pub(in crate::mpi) fn put_opaque(
        &self,
        to: usize,
        at: usize,
        from: Range<usize>,
    ) -> Result<(), Error> {
        let Some([out, _]) = &self.window.opaque else {
            let expected = "a window on memory that the host does not look into";
            return Err(Error::argument("window", "memory of the library", expected));
        };
        let part = out.part(from);
        // SAFETY: the window keeps the memory.
        unsafe { self.put_from(to, at, part.address(), part.bytes()) }
    }

    /// # Safety
    /// The bytes must be there, and nobody's to write, until the epoch has been closed.
    unsafe fn put_from(
        &self,
        to: usize,
        at: usize,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), Error> {
        let (RawWindow { places, limit, handle, .. }, rank) = (self.window, self.comm.rank);
        let [shift, room] = places.get(to).copied().unwrap_or_default();
        let end = at.saturating_add(bytes);
        // Not every library looks.
        if end > room {
            let what = format!("put of rank {rank} into the window of rank {to}");
            let expected = format!("an end within its {room} bytes");
            return Err(Error::argument(what, format!("bytes {at}..{end}"), expected));
        }
        for first in (0..bytes).step_by(*limit) {
            let n = (bytes - first).min(*limit) as c_int;
            let there = (shift + at + first) as ffi::MPI_Aint;
            // SAFETY: the epoch is open. The piece lies in memory that stays until after it has been closed, as the caller
            // promises, and its end within the target's memory, as just checked. A piece is at most `limit` bytes, an int.
            let code = unsafe {
                let (from, byte) = (from.add(first).cast::<c_void>(), ffi::RSMPI_UINT8_T);
                ffi::MPI_Put(from, n, byte, to as c_int, there, n, byte, *handle)
            };
            checked(rank, "MPI_Put", code)?;
        }
        // What others put is taken in meanwhile, by libraries that have no thread for it.
        self.comm.progress();
        Ok(())
    }
}
