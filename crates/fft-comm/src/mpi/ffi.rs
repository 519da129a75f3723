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

use fft_core::{DeviceBuffer, Epochs, Error, Reduce, SLOT_ALIGN, Slot, agree_by};
use mpi::ffi;
use mpi::traits::AsRaw;

use crate::idle::Idle;

use super::host;
use super::lines::{Lines, count};
use super::pieces::{Done, Entry, Pieces};

mod opaque;
mod requests;
mod roll;
mod window;

pub(super) use opaque::takes_devices;
pub(super) use requests::Requests;
pub(super) use roll::{Roll, hear_out};
pub(super) use window::{RawEpoch, RawPair, RawWindow};

/// Bytes that parts of shared memory are multiples of.
const PAGE: usize = 4096;
/// The tag of all our messages; communicators keep them apart from anybody else's.
const TAG: c_int = 1;

/// What a collective sends.
pub(super) enum Bytes<'a> {
    Host(&'a [u8]),
    DeviceBuffer(&'a DeviceBuffer),
}

/// Where it receives.
pub(super) enum BytesMut<'a> {
    Host(&'a mut [u8]),
    DeviceBuffer(&'a DeviceBuffer),
}

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
    checked(rank, call, code).unwrap_or_else(|error| awaited(error));
}

/// What others wait for cannot be done, nor can they be told: ends the job.
pub(super) fn awaited(error: Error) -> ! {
    eprintln!("{error}; other ranks wait for this one, so that the job ends");
    abort(101)
}

/// Whether MPI may be called on any thread at any time.
pub(in crate::mpi) fn any_thread() -> bool {
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
pub(super) fn is_running() -> bool {
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

/// The communicator of this Fortran number; zeros or MPI_COMM_NULL where there is none.
///
/// # Errors
/// [`Error::Transport`] when MPI is not running.
pub(super) fn of_fortran(handle: ffi::RSMPI_Fint) -> Result<ffi::MPI_Comm, Error> {
    may_call("MPI_Comm_f2c")?;
    // SAFETY: MPI is running; any number may be looked up.
    Ok(unsafe { ffi::RSMPI_Comm_f2c(handle) })
}

impl RawComm {
    /// A duplicate of a live communicator. Collective over it.
    ///
    /// # Safety
    /// `handle` must be a live intra-communicator, if MPI is running.
    unsafe fn duplicate(handle: ffi::MPI_Comm) -> Result<Self, Error> {
        may_call("MPI_Comm_dup")?;
        let mut dup = MaybeUninit::uninit();
        // SAFETY: the caller vouches for the handle; the result is written on success.
        checked(0, "MPI_Comm_dup", unsafe { ffi::MPI_Comm_dup(handle, dup.as_mut_ptr()) })?;
        // SAFETY: MPI_Comm_dup succeeded.
        unsafe { Self::own(dup.assume_init()) }
    }

    /// A duplicate of a communicator that another program made. Collective over it. What can be seen to be none, or to
    /// have another group of ranks on its far side, is refused.
    ///
    /// # Safety
    /// `handle` must be live, `MPI_COMM_NULL` or zero, if MPI is running.
    pub(super) unsafe fn duplicate_foreign(handle: ffi::MPI_Comm) -> Result<Self, Error> {
        let call = "MPI_Comm_dup";
        may_call(call)?;
        // SAFETY: a handle is a number or a pointer, of which all zeros are a value; the other is a constant.
        let none = unsafe { [std::mem::zeroed(), ffi::RSMPI_COMM_NULL] };
        let refuse = |text: &str| Err(Error::Transport { rank: 0, call, text: text.into() });
        if none.contains(&handle) {
            return refuse("the communicator is MPI_COMM_NULL");
        }
        let mut inter = 0;
        // SAFETY: the caller vouches for the handle; the call writes one int.
        let code = unsafe { ffi::MPI_Comm_test_inter(handle, &mut inter) };
        checked(0, "MPI_Comm_test_inter", code)?;
        match inter {
            // SAFETY: as above.
            0 => unsafe { Self::duplicate(handle) },
            _ => refuse("the communicator is an inter-communicator"),
        }
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
    pub(super) fn ready(&self, call: &'static str) -> Result<(), Error> {
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

    /// What this rank has, if all ranks have it; the same error on every rank otherwise. Collective.
    pub(super) fn all<T>(&self, mine: Result<T, Error>) -> Result<T, Error> {
        let least = |value: &mut [f64]| self.allreduce(Reduce::Min, &[value[0]], value);
        agree_by((self.rank, self.size), least, |mine, all| self.allgather(mine, all), mine)
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

    /// A number of each rank. Collective.
    pub(super) fn numbers(&self, mine: usize) -> Result<Vec<usize>, Error> {
        let mut all = vec![0; self.size];
        self.allgather(bytemuck::bytes_of(&mine), bytemuck::cast_slice_mut(&mut all))?;
        Ok(all)
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
        send: (Bytes<'_>, &Lines),
        recv: (BytesMut<'_>, &Lines),
    ) -> Result<(), Error> {
        let call = "MPI_Alltoallv";
        self.ready(call)?;
        let (from, out_bytes) = match send.0 {
            Bytes::Host(bytes) => (bytes.as_ptr(), bytes.len()),
            Bytes::DeviceBuffer(memory) => (memory.address().cast_const(), memory.bytes()),
        };
        let (to, in_bytes) = match recv.0 {
            BytesMut::Host(bytes) => (bytes.as_mut_ptr(), bytes.len()),
            BytesMut::DeviceBuffer(memory) => (memory.address(), memory.bytes()),
        };
        for (bytes, lines) in [(out_bytes, send.1), (in_bytes, recv.1)] {
            assert_eq!(lines.counts.len(), self.size, "a part for every rank");
            assert!(lines.end <= bytes, "parts end at {} in {bytes} bytes", lines.end);
        }
        // SAFETY: both buffers reach to the end of the last part, as just checked; `Lines` has a count and a
        // place for every rank; the call is over when it returns.
        let code = unsafe {
            let (from, to) = (from.cast(), to.cast());
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
        let own = comm.all(comm.dup())?;
        let size =
            ffi::MPI_Aint::try_from(room).map_err(|_| Error::Memory { rank: comm.rank, bytes });
        let size = comm.all(size)?;
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
        comm.all(made).map(ManuallyDrop::into_inner)
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

    /// Whether it would be freed if it were dropped now. Freeing waits for all ranks: one that panics will not be
    /// joined by the others.
    pub(super) fn can_be_freed(&self) -> bool {
        !std::thread::panicking() && self.comm.ready("MPI_Win_free").is_ok()
    }
}

impl Drop for SharedWindow {
    fn drop(&mut self) {
        if self.can_be_freed() {
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
