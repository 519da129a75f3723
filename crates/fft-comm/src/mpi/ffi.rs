//! Every call into MPI, behind safe types.
//!
//! Communicators are always duplicates of ours, with errors returned instead of aborting; every return code that can still
//! be acted on is read. Buffers of non-blocking operations are [`Slot`]s that move into [`Requests`] and come out when the
//! operation is complete; if that never happens they leak.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::thread::ThreadId;

use fft_core::{Epochs, Error, Reduce, SLOT_ALIGN, Slot};
use mpi::ffi;
use mpi::traits::AsRaw;

use crate::idle::Idle;

use super::host;
use super::lines::{Lines, count};
use super::pieces::{Done, Entry, Pieces};

/// Bytes that parts of shared memory are multiples of.
const PAGE: usize = 4096;
/// The tag of all our messages; communicators keep them apart from anybody else's.
const TAG: c_int = 1;

/// A duplicated communicator that we own.
pub(super) struct RawComm {
    handle: ffi::MPI_Comm,
    pub(super) rank: usize,
    pub(super) size: usize,
    /// Who may call MPI on it when the library was not initialised for several threads.
    owner: Option<ThreadId>,
}

// SAFETY: an MPI communicator handle is a number or a pointer to an object of the library, valid in every thread of the
// process. `ready` refuses calls from other threads than the owner unless the library gives MPI_THREAD_MULTIPLE, in which
// case it synchronises them itself.
unsafe impl Send for RawComm {}
// SAFETY: as above.
unsafe impl Sync for RawComm {}

/// The text of an MPI error code.
fn describe(code: c_int) -> String {
    let mut text = [0 as c_char; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut len = 0;
    // SAFETY: the buffer has the room that MPI_Error_string may use, and one zero more.
    let known = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr(), &mut len) };
    if known != ffi::MPI_SUCCESS as c_int {
        return format!("MPI error {code}");
    }
    // SAFETY: the buffer ends with a zero.
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned()
}

fn checked(rank: usize, call: &'static str, code: c_int) -> Result<(), Error> {
    match code == ffi::MPI_SUCCESS as c_int {
        true => Ok(()),
        false => Err(Error::Transport { rank, call, text: describe(code) }),
    }
}

/// For calls whose failure on one rank the others could never hear of, as they wait for what it does not do: ends the job.
fn vital(rank: usize, call: &'static str, code: c_int) {
    if let Err(error) = checked(rank, call, code) {
        eprintln!("{error}; other ranks wait for this one, so that the job ends");
        abort(101);
    }
}

/// Whether MPI may be called on any thread at any time.
fn any_thread() -> bool {
    mpi::environment::threading_support() == mpi::Threading::Multiple
}

/// Whether MPI is running and this thread may call it.
fn may_call(call: &'static str) -> Result<(), Error> {
    let refuse = |text: &str| Err(Error::Transport { rank: 0, call, text: text.into() });
    if !is_running() {
        return refuse("MPI is not running");
    }
    let mut main = 0;
    // SAFETY: MPI is running; the call writes one int.
    unsafe { ffi::MPI_Is_thread_main(&mut main) };
    match main != 0 || any_thread() {
        true => Ok(()),
        false => {
            refuse("called on another thread than initialised MPI, without MPI_THREAD_MULTIPLE")
        }
    }
}

/// Whether MPI has been initialised and not yet finalised.
fn is_running() -> bool {
    let mut initialized = 0;
    // SAFETY: MPI_Initialized may be called at any time and writes one int.
    unsafe { ffi::MPI_Initialized(&mut initialized) };
    initialized != 0 && !is_finalized()
}

fn is_finalized() -> bool {
    let mut flag = 0;
    // SAFETY: MPI_Finalized may be called at any time and writes one int.
    let code = unsafe { ffi::MPI_Finalized(&mut flag) };
    code != ffi::MPI_SUCCESS as c_int || flag != 0
}

impl RawComm {
    /// A duplicate of a live communicator. Collective over it.
    ///
    /// # Safety
    /// `handle` must be a live intra-communicator, if MPI is running.
    pub(super) unsafe fn duplicate(handle: ffi::MPI_Comm) -> Result<Self, Error> {
        may_call("MPI_Comm_dup")?;
        let mut dup = MaybeUninit::uninit();
        // SAFETY: the caller vouches for the handle; the result is written on success.
        checked(0, "MPI_Comm_dup", unsafe { ffi::MPI_Comm_dup(handle, dup.as_mut_ptr()) })?;
        // SAFETY: MPI_Comm_dup succeeded.
        unsafe { Self::own(dup.assume_init()) }
    }

    /// Takes a communicator that we made.
    ///
    /// # Safety
    /// `handle` must be live and nobody else's.
    unsafe fn own(handle: ffi::MPI_Comm) -> Result<Self, Error> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the caller vouches for the handle; results are ints.
        unsafe {
            let code = ffi::MPI_Comm_set_errhandler(handle, ffi::RSMPI_ERRORS_RETURN);
            checked(0, "MPI_Comm_set_errhandler", code)?;
            checked(0, "MPI_Comm_rank", ffi::MPI_Comm_rank(handle, &mut rank))?;
            checked(0, "MPI_Comm_size", ffi::MPI_Comm_size(handle, &mut size))?;
        }
        let owner = (!any_thread()).then(|| std::thread::current().id());
        Ok(Self { handle, rank: rank as usize, size: size as usize, owner })
    }

    /// Whether this thread may call MPI now.
    fn ready(&self, call: &'static str) -> Result<(), Error> {
        let rank = self.rank;
        if self.owner.is_some_and(|owner| owner != std::thread::current().id()) {
            let text = "called from another thread than the communicator was made on; \
                        initialise MPI with MPI_THREAD_MULTIPLE for that";
            return Err(Error::Transport { rank, call, text: text.into() });
        }
        if is_finalized() {
            return Err(Error::Transport { rank, call, text: "MPI has been finalised".into() });
        }
        Ok(())
    }

    pub(super) fn dup(&self) -> Result<Self, Error> {
        self.ready("MPI_Comm_dup")?;
        // SAFETY: our handle is live until dropped.
        unsafe { Self::duplicate(self.handle) }
    }

    /// What this rank has, if all ranks have it; an error on every rank otherwise. Collective.
    pub(super) fn all<T>(&self, call: &'static str, mine: Result<T, Error>) -> Result<T, Error> {
        let mut least = [0.0];
        self.allreduce(Reduce::Min, &[f64::from(mine.is_ok())], &mut least)?;
        let (rank, text) = (self.rank, "failed on another rank".into());
        match mine {
            Ok(_) if least == [0.0] => Err(Error::Transport { rank, call, text }),
            mine => mine,
        }
    }

    pub(super) fn split(&self, color: usize, key: usize) -> Result<Self, Error> {
        self.ready("MPI_Comm_split")?;
        let call = "MPI_Comm_split";
        let (color, key) = (count(self.rank, call, color)?, count(self.rank, call, key)?);
        let mut part = MaybeUninit::uninit();
        // SAFETY: our handle is live; the result is written on success and then ours.
        unsafe {
            let code = ffi::MPI_Comm_split(self.handle, color, key, part.as_mut_ptr());
            checked(self.rank, call, code)?;
            Self::own(part.assume_init())
        }
    }

    /// The ranks on this host, in the order of ranks here. Collective.
    pub(super) fn host(&self) -> Result<Self, Error> {
        let call = "MPI_Comm_split_type";
        self.ready(call)?;
        let key = count(self.rank, call, self.rank)?;
        let mut part = MaybeUninit::uninit();
        // SAFETY: our handle is live; the result is written on success and then ours.
        unsafe {
            let (shared, info) = (ffi::RSMPI_COMM_TYPE_SHARED, ffi::RSMPI_INFO_NULL);
            let code = ffi::MPI_Comm_split_type(self.handle, shared, key, info, part.as_mut_ptr());
            checked(self.rank, call, code)?;
            Self::own(part.assume_init())
        }
    }

    pub(super) fn barrier(&self) -> Result<(), Error> {
        self.ready("MPI_Barrier")?;
        // SAFETY: our handle is live.
        checked(self.rank, "MPI_Barrier", unsafe { ffi::MPI_Barrier(self.handle) })
    }

    /// Gives the library time to go on with what is under way. For who waits for something else.
    pub(super) fn progress(&self) {
        if self.ready("MPI_Iprobe").is_ok() {
            let mut flag = 0;
            // SAFETY: our handle is live; the call writes one int. What is under way reports its own failures.
            unsafe {
                let (any, ignored) = (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_STATUS_IGNORE);
                ffi::MPI_Iprobe(any, TAG, self.handle, &mut flag, ignored);
            }
        }
    }

    pub(super) fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error> {
        assert_eq!(all.len(), mine.len() * self.size, "room for every rank's bytes");
        let call = "MPI_Allgather";
        self.ready(call)?;
        let n = count(self.rank, call, mine.len())?;
        // SAFETY: `mine` has n bytes and `all` n per rank.
        let code = unsafe {
            let (from, to) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
            let byte = ffi::RSMPI_UINT8_T;
            ffi::MPI_Allgather(from, n, byte, to, n, byte, self.handle)
        };
        checked(self.rank, call, code)
    }

    /// Combines `mine` of all ranks into `result`.
    pub(super) fn allreduce(
        &self,
        how: Reduce,
        mine: &[f64],
        result: &mut [f64],
    ) -> Result<(), Error> {
        assert_eq!(mine.len(), result.len(), "as many results as operands");
        let call = "MPI_Allreduce";
        self.ready(call)?;
        let n = count(self.rank, call, mine.len())?;
        // SAFETY: reading a constant of the library; both slices have n numbers.
        let code = unsafe {
            let op = match how {
                Reduce::Min => ffi::RSMPI_MIN,
                Reduce::Max => ffi::RSMPI_MAX,
                Reduce::Sum => ffi::RSMPI_SUM,
            };
            let (from, to) = (mine.as_ptr().cast(), result.as_mut_ptr().cast());
            ffi::MPI_Allreduce(from, to, n, ffi::RSMPI_DOUBLE, op, self.handle)
        };
        checked(self.rank, call, code)
    }

    /// Exchanges lines: `SLOT_ALIGN` bytes are one `unit`, so that counts of 31 bits reach 128 GiB. If MPI fails to, the
    /// job ends: a rank that gives up in the midst of the collective leaves others in it.
    pub(super) fn alltoallv(
        &self,
        unit: &LineType,
        send: (&[u8], &Lines),
        recv: (&mut [u8], &Lines),
    ) -> Result<(), Error> {
        let call = "MPI_Alltoallv";
        self.ready(call)?;
        for (bytes, lines) in [(send.0.len(), send.1), (recv.0.len(), recv.1)] {
            assert_eq!(lines.counts.len(), self.size, "a part for every rank");
            assert!(lines.end <= bytes, "parts end at {} in {bytes} bytes", lines.end);
        }
        // SAFETY: both buffers reach to the end of the last part, as just checked; `Lines` has a count and a
        // place for every rank; the call is over when it returns.
        let code = unsafe {
            let (from, to) = (send.0.as_ptr().cast(), recv.0.as_mut_ptr().cast());
            let (out, their) = (send.1.counts.as_ptr(), send.1.places.as_ptr());
            let (back, here) = (recv.1.counts.as_ptr(), recv.1.places.as_ptr());
            ffi::MPI_Alltoallv(from, out, their, unit.0, to, back, here, unit.0, self.handle)
        };
        vital(self.rank, call, code);
        Ok(())
    }
}

impl Drop for RawComm {
    fn drop(&mut self) {
        // A communicator that cannot be freed now (after MPI_Finalize, on a foreign thread) is left alone.
        if self.ready("MPI_Comm_free").is_ok() {
            // SAFETY: the handle is live and nobody else's. A failure to free leaves nothing to be done.
            unsafe { ffi::MPI_Comm_free(&mut self.handle) };
        }
    }
}

/// Memory of the ranks of one host that all of them can address. Made and dropped by all of them together.
pub(super) struct SharedWindow {
    handle: ffi::MPI_Win,
    pub(super) comm: RawComm,
    /// Each rank's part, at the place where it is in this process.
    parts: Vec<(*mut u8, usize)>,
}

// SAFETY: the handle is valid in every thread of the process, and freed only on the thread that may (`drop`); the parts
// stay where they are until then.
unsafe impl Send for SharedWindow {}
// SAFETY: as above; `&self` only gives pointers away.
unsafe impl Sync for SharedWindow {}

impl SharedWindow {
    /// `bytes` zeroed bytes for this rank. Collective over `comm`, whose ranks must be on one host.
    pub(super) fn allocate(comm: &RawComm, bytes: usize) -> Result<Self, Error> {
        let call = "MPI_Win_allocate_shared";
        comm.ready(call)?;
        // Whole pages, and one more: the library may begin parts anywhere.
        let room = bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes).saturating_add(PAGE);
        host::has_room(comm, room)?;
        let own = comm.all(call, comm.dup())?;
        let size =
            ffi::MPI_Aint::try_from(room).map_err(|_| Error::Memory { rank: comm.rank, bytes });
        let size = comm.all(call, size)?;
        let (mut base, mut handle) = (std::ptr::null_mut::<u8>(), MaybeUninit::uninit());
        // SAFETY: the communicator is live; the call writes the address and the handle.
        let code = unsafe {
            let (info, base, window) =
                (ffi::RSMPI_INFO_NULL, (&raw mut base).cast(), handle.as_mut_ptr());
            ffi::MPI_Win_allocate_shared(size, 1, info, own.handle, base, window)
        };
        // Freeing is collective, so that either all ranks go on with the window or all forget it.
        let made = checked(comm.rank, call, code).and_then(|()| {
            // SAFETY: the call succeeded.
            let handle = unsafe { handle.assume_init() };
            let mut window = ManuallyDrop::new(Self { handle, comm: own, parts: Vec::new() });
            window.find_parts().map(|()| window)
        });
        comm.all(call, made).map(ManuallyDrop::into_inner)
    }

    /// Finds every rank's part and clears this one's.
    fn find_parts(&mut self) -> Result<(), Error> {
        for rank in 0..self.comm.size {
            let (mut size, mut unit, mut at) = (0, 0, std::ptr::null_mut::<u8>());
            // SAFETY: the window is live; the call writes a length, a unit and an address.
            let code = unsafe {
                let at = (&raw mut at).cast();
                ffi::MPI_Win_shared_query(self.handle, rank as c_int, &mut size, &mut unit, at)
            };
            checked(self.comm.rank, "MPI_Win_shared_query", code)?;
            // Mappings begin at pages in every process, so that all of them skip as much.
            let skip = at.align_offset(PAGE);
            self.parts.push((at.wrapping_add(skip), (size as usize).saturating_sub(skip)));
        }
        let (own, len) = self.parts[self.comm.rank];
        // SAFETY: this rank's part, which nobody else touches before the window is handed out.
        unsafe { own.write_bytes(0, len) };
        Ok(())
    }

    /// Where a rank's part is, and its bytes. Valid as long as this window.
    pub(super) fn part(&self, rank: usize) -> (*mut u8, usize) {
        self.parts[rank]
    }
}

impl Drop for SharedWindow {
    fn drop(&mut self) {
        // Freeing waits for all ranks. One that panics will not be joined by the others.
        if !std::thread::panicking() && self.comm.ready("MPI_Win_free").is_ok() {
            // SAFETY: the window is ours and live, and no pointer to it is followed any more.
            unsafe { ffi::MPI_Win_free(&mut self.handle) };
        }
    }
}

/// The MPI type of one line of a slot.
pub(super) struct LineType(ffi::MPI_Datatype);

// SAFETY: a handle valid in every thread of the process. It is used through a `RawComm`, which checks the thread, and
// freed only where MPI may be called.
unsafe impl Send for LineType {}

impl LineType {
    pub(super) fn new(rank: usize) -> Result<Self, Error> {
        let mut line = MaybeUninit::uninit();
        // SAFETY: results are written on success; the type is committed before use.
        unsafe {
            let n = SLOT_ALIGN as c_int;
            let code = ffi::MPI_Type_contiguous(n, ffi::RSMPI_UINT8_T, line.as_mut_ptr());
            checked(rank, "MPI_Type_contiguous", code)?;
            let mut line = line.assume_init();
            checked(rank, "MPI_Type_commit", ffi::MPI_Type_commit(&mut line))?;
            Ok(Self(line))
        }
    }
}

impl Drop for LineType {
    fn drop(&mut self) {
        if may_call("MPI_Type_free").is_ok() {
            // SAFETY: the type is ours, committed, and not in use by any pending operation.
            unsafe { ffi::MPI_Type_free(&mut self.0) };
        }
    }
}

/// Non-blocking operations under way, with the slots they use. Messages longer than `limit` bytes travel in
/// pieces.
pub(super) struct Requests {
    raw: Vec<ffi::MPI_Request>,
    /// To which entry a request belongs.
    entry_of: Vec<usize>,
    entries: Vec<Entry>,
    pieces: Pieces,
}

// SAFETY: request handles are valid in every thread of the process; whoever uses them goes through a
// `RawComm`, which checks the thread.
unsafe impl Send for Requests {}

impl Requests {
    pub(super) fn new(limit: usize) -> Self {
        let pieces = Pieces { limit };
        Self { raw: Vec::new(), entry_of: Vec::new(), entries: Vec::new(), pieces }
    }

    /// Makes room for so many messages of at most these sizes.
    pub(super) fn reserve(&mut self, sizes: impl Iterator<Item = usize> + Clone) {
        let pieces: usize = sizes.clone().map(|bytes| self.pieces.of(bytes)).sum();
        self.raw.reserve(pieces);
        self.entry_of.reserve(pieces);
        self.entries.reserve(sizes.count());
    }

    /// Starts to send a slot to a rank that announced `bound` bytes. If MPI fails to, the job ends.
    pub(super) fn send(
        &mut self,
        comm: &RawComm,
        to: usize,
        bound: usize,
        slot: Slot,
    ) -> Result<(), Error> {
        comm.ready("MPI_Isend")?;
        assert!(to < comm.size && slot.len() <= bound, "a rank and no more than it expects");
        let (pieces, len) = (self.pieces.of(bound), slot.len());
        let bytes: *const u8 = slot.bytes().as_ptr();
        let entry = self.entries.len();
        self.entries.push(Entry { slot: Some(slot), number: None, pieces: 0, bytes: 0 });
        for k in 0..pieces {
            let (first, n) = self.pieces.piece(len, k);
            let mut request = MaybeUninit::uninit();
            // SAFETY: the piece lies inside the slot's heap memory, which stays where it is while the slot
            // is in `entries`; it leaves them, or is freed, only after completion (`next`, `drop`).
            let code = unsafe {
                let (at, byte) = (bytes.add(first).cast(), ffi::RSMPI_UINT8_T);
                let request = request.as_mut_ptr();
                ffi::MPI_Isend(at, n, byte, to as c_int, TAG, comm.handle, request)
            };
            vital(comm.rank, "MPI_Isend", code);
            // SAFETY: MPI_Isend succeeded.
            self.started(entry, unsafe { request.assume_init() });
        }
        Ok(())
    }

    /// Starts to receive a message of at most the slot's length. If MPI fails to, the job ends.
    pub(super) fn receive(
        &mut self,
        comm: &RawComm,
        from: usize,
        number: usize,
        mut slot: Slot,
    ) -> Result<(), Error> {
        comm.ready("MPI_Irecv")?;
        assert!(from < comm.size, "rank {from} of {}", comm.size);
        let (pieces, len) = (self.pieces.of(slot.len()), slot.len());
        let bytes: *mut u8 = slot.bytes_mut().as_mut_ptr();
        let entry = self.entries.len();
        self.entries.push(Entry { slot: Some(slot), number: Some(number), pieces: 0, bytes: 0 });
        for k in 0..pieces {
            let (first, n) = self.pieces.piece(len, k);
            let mut request = MaybeUninit::uninit();
            // SAFETY: as in `send`; nobody reads or writes the slot before completion, because only `next`
            // hands it out.
            let code = unsafe {
                let (at, byte) = (bytes.add(first).cast(), ffi::RSMPI_UINT8_T);
                let request = request.as_mut_ptr();
                ffi::MPI_Irecv(at, n, byte, from as c_int, TAG, comm.handle, request)
            };
            vital(comm.rank, "MPI_Irecv", code);
            // SAFETY: MPI_Irecv succeeded.
            self.started(entry, unsafe { request.assume_init() });
        }
        Ok(())
    }

    fn started(&mut self, entry: usize, request: ffi::MPI_Request) {
        self.raw.push(request);
        self.entry_of.push(entry);
        self.entries[entry].pieces += 1;
    }

    /// Waits for the next operation to complete, being `idle` meanwhile or not waiting at all; `None` when none is under
    /// way. One that completes with an error hands out its slot all the same, the error being put into `failure` if that
    /// has none yet.
    pub(super) fn next(
        &mut self,
        comm: &RawComm,
        failure: &mut Result<(), Error>,
        mut idle: Option<Idle>,
    ) -> Result<Option<Done>, Error> {
        let call = "MPI_Testany";
        comm.ready(call)?;
        let n = count(comm.rank, call, self.raw.len())?;
        loop {
            // Not a number of a request, in case the call fails without saying which.
            let (mut index, mut flag) = (-1, 0);
            let mut status = MaybeUninit::uninit();
            // SAFETY: `raw` holds n requests that are active or null; the results are two ints and a status.
            let code = unsafe {
                let raw = self.raw.as_mut_ptr();
                ffi::MPI_Testany(n, raw, &mut index, &mut flag, status.as_mut_ptr())
            };
            // SAFETY: reading a constant of the library.
            let none = index == unsafe { ffi::RSMPI_UNDEFINED };
            let failed = checked(comm.rank, call, code);
            if failed.is_err() && (none || index < 0 || index >= n) {
                return Err(failed.expect_err("just seen"));
            }
            if failed.is_ok() && flag == 0 {
                match &mut idle {
                    Some(idle) => idle.wait(),
                    None => return Ok(Some(Done::Not)),
                }
                continue;
            }
            if none {
                self.raw.clear();
                self.entry_of.clear();
                self.entries.clear();
                return Ok(None);
            }
            let entry = &mut self.entries[self.entry_of[index as usize]];
            match failed {
                Ok(()) if entry.number.is_some() => {
                    let mut bytes = 0;
                    // SAFETY: MPI_Testany completed a receive and so wrote the status.
                    let code = unsafe {
                        ffi::MPI_Get_count(status.as_ptr(), ffi::RSMPI_UINT8_T, &mut bytes)
                    };
                    checked(comm.rank, "MPI_Get_count", code)?;
                    entry.bytes += bytes as usize;
                }
                Ok(()) => {}
                Err(error) => {
                    if failure.is_ok() {
                        *failure = Err(error);
                    }
                    // The library may leave a failed request in place; it must not be seen again.
                    // SAFETY: reading a constant of the library.
                    self.raw[index as usize] = unsafe { ffi::RSMPI_REQUEST_NULL };
                }
            }
            entry.pieces -= 1;
            if entry.pieces == 0 {
                let mut slot = entry.slot.take().expect("an open entry has its slot");
                return Ok(Some(match entry.number {
                    None => Done::Sent(slot),
                    Some(number) => {
                        slot.set_len(entry.bytes);
                        Done::Received { number, slot }
                    }
                }));
            }
        }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        // What the network may still write to or read from must not be freed.
        for entry in self.entries.drain(..) {
            std::mem::forget(entry.slot);
        }
    }
}

/// Memory of this rank that the ranks of a communicator put bytes into. MPI owns it, so that it goes on to exist when a
/// window is forgotten. Every method takes the communicator that the window was made on.
pub(super) struct RawWindow {
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
}

// SAFETY: the handle is valid in every thread of the process and used through a `RawComm`, which checks the thread; the
// memory belongs to the process.
unsafe impl Send for RawWindow {}

/// An open epoch of a window. `'env`, for which everything put is borrowed, cannot be shortened: it is an argument's.
pub(super) struct RawEpoch<'w, 'env> {
    window: &'w RawWindow,
    comm: &'w RawComm,
    env: PhantomData<fn(&'env [u8])>,
}

impl RawWindow {
    /// Zeroed memory of so many bytes, which nobody can put into before [`RawWindow::meet`]. Collective. Puts travel
    /// in pieces of at most `limit` bytes.
    pub(super) fn allocate(comm: &RawComm, bytes: usize, limit: usize) -> Result<Self, Error> {
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
            Ok(Self { handle, memory, place, places: Vec::new(), locked: false, limit })
        }
    }

    /// Tells all ranks where each has how much. Collective.
    pub(super) fn meet(&mut self, comm: &RawComm) -> Result<(), Error> {
        let mut all = vec![[0; 2]; comm.size];
        comm.allgather(bytemuck::bytes_of(&self.place), bytemuck::cast_slice_mut(&mut all))?;
        self.places = all;
        Ok(())
    }

    /// This rank's memory.
    pub(super) fn local(&self) -> &[u8] {
        // SAFETY: the memory lives as long as the window. Others write to it in epochs only, for which the window is
        // borrowed mutably, and which begin on any rank after this one has opened them, too.
        unsafe { std::slice::from_raw_parts(self.memory, self.place[1]) }
    }

    /// This rank's memory.
    pub(super) fn local_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `local`; the window is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.memory, self.place[1]) }
    }

    /// Opens an epoch on all ranks, calls `body`, and closes it: then everything put by any rank has arrived.
    /// Collective. Without coming back from here nobody can reach what the network still reads: a panic in `body`, or
    /// an epoch that cannot be opened or closed, where the others wait for it, end the job.
    pub(super) fn epoch<'env, R>(
        &mut self,
        comm: &RawComm,
        how: Epochs,
        body: impl FnOnce(&RawEpoch<'_, 'env>) -> R,
    ) -> Result<R, Error> {
        struct Peers;
        impl Drop for Peers {
            fn drop(&mut self) {
                abort(101);
            }
        }
        let waiting = Peers;
        self.open(comm, how).unwrap_or_else(|error| panic!("an epoch cannot be opened: {error}"));
        let result = body(&RawEpoch { window: self, comm, env: PhantomData });
        self.close(comm).unwrap_or_else(|error| panic!("an epoch cannot be closed: {error}"));
        std::mem::forget(waiting);
        Ok(result)
    }

    /// An epoch of constants. They outlive whatever the library may still do, so that every failure is a value.
    pub(super) fn trial(
        &mut self,
        comm: &RawComm,
        how: Epochs,
        body: impl FnOnce(&RawEpoch<'_, 'static>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.open(comm, how)?;
        let put = body(&RawEpoch { window: self, comm, env: PhantomData });
        // Even after a failure, since the others close it.
        put.and(self.close(comm))
    }

    fn open(&mut self, comm: &RawComm, how: Epochs) -> Result<(), Error> {
        comm.ready("MPI_Win_fence")?;
        self.lock(comm.rank, how == Epochs::Flush)?;
        self.meeting(comm, 0)
    }

    fn close(&mut self, comm: &RawComm) -> Result<(), Error> {
        if self.locked {
            // SAFETY: the window is live and locked.
            let code = unsafe { ffi::MPI_Win_flush_all(self.handle) };
            checked(comm.rank, "MPI_Win_flush_all", code)?;
        }
        self.meeting(comm, ffi::MPI_MODE_NOSUCCEED as c_int)
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
    pub(super) fn free(mut self, rank: usize) -> Result<(), Error> {
        self.release(rank)
    }

    fn release(&mut self, rank: usize) -> Result<(), Error> {
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
        }
    }
}

impl<'env> RawEpoch<'_, 'env> {
    /// Puts bytes into the memory of rank `to`, from its byte `at` on.
    pub(super) fn put(&self, to: usize, at: usize, bytes: &'env [u8]) -> Result<(), Error> {
        let (RawWindow { places, limit, handle, .. }, rank) = (self.window, self.comm.rank);
        let [shift, room] = places.get(to).copied().unwrap_or_default();
        let end = at.saturating_add(bytes.len());
        // Not every library looks.
        if end > room {
            let what = format!("put of rank {rank} into the window of rank {to}");
            let expected = format!("an end within its {room} bytes");
            return Err(Error::argument(what, format!("bytes {at}..{end}"), expected));
        }
        for (k, piece) in bytes.chunks(*limit).enumerate() {
            let (n, first) = (piece.len() as c_int, (shift + at + k * limit) as ffi::MPI_Aint);
            // SAFETY: the epoch is open. The piece lies in memory that is borrowed until after it has been closed, and
            // its end within the target's memory, as just checked. A piece is at most `limit` bytes, an int.
            let code = unsafe {
                let (from, byte) = (piece.as_ptr().cast::<c_void>(), ffi::RSMPI_UINT8_T);
                ffi::MPI_Put(from, n, byte, to as c_int, first, n, byte, *handle)
            };
            checked(rank, "MPI_Put", code)?;
        }
        Ok(())
    }
}

/// Ends all processes of the job.
pub(super) fn abort(code: i32) -> ! {
    if is_running() {
        // SAFETY: MPI is running; the call ends the process.
        unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code) };
    }
    std::process::exit(code)
}

/// A duplicate of a communicator that rsmpi keeps alive.
pub(super) fn duplicate_of(comm: &mpi::topology::SimpleCommunicator) -> Result<RawComm, Error> {
    // SAFETY: rsmpi's communicators are live while MPI is running, which `duplicate` makes sure of.
    unsafe { RawComm::duplicate(comm.as_raw()) }
}
