//! Detects processes that have ended: agreement calls that return an error instead of hanging.
//!
//! Each call is a non-blocking reduction on a communicator of its own. A process that drops its
//! detector announces its exit: it starts one more reduction, whose value names it. The next call
//! of the others returns that value. The reduction may be active long after the drop, so a list
//! keeps it, at the latest until MPI is finalised.
//!
//! Two things depend on the library. The last reduction makes progress only while its process calls
//! MPI, at the latest in MPI_Finalize. And `MPI_Comm_free` of a detector that has ended must not
//! wait for other ranks, as in Open MPI and MPICH.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};

use std::ffi::{c_int, c_void};

use fft_core::{Error, locked};
use mpi::ffi;

use super::calls::{checked, vital, world_rank};
use super::raw_comm::RawComm;
use crate::idle::Idle;

/// The values of a call: no error, an error, or the exit of a rank. The result is the smallest.
const SUCCESS: f64 = 1.0;
const FAILURE: f64 = 0.0;

/// More than any rank.
const RANKS: usize = 1 << 40;

/// The value that announces the exit of a rank. If several ranks exit, the lowest one has the
/// smallest value.
fn exit_of(rank: usize) -> f64 {
    -((RANKS - rank) as f64)
}

/// The value and the result of a call, which MPI reads and writes while the call is active.
struct Numbers(NonNull<[f64; 2]>);

impl Numbers {
    fn new() -> Self {
        Self(NonNull::from(Box::leak(Box::new([SUCCESS; 2]))))
    }

    fn at(&self) -> [*mut f64; 2] {
        let first = self.0.as_ptr().cast::<f64>();
        [first, first.wrapping_add(1)]
    }
}

struct State {
    comm: RawComm,
    /// Leaked if the state is dropped during a call.
    numbers: Numbers,
    /// Null between calls.
    request: ffi::MPI_Request,
    /// Whether this rank or another has announced its exit, so that there are no more calls.
    has_ended: bool,
    /// The rank that this process reports when it exits.
    rank: usize,
}

// SAFETY: request handles are valid in every thread of the process; `RawComm` checks the thread.
// The numbers are not shared.
unsafe impl Send for State {}

/// All detectors of this process that have, or may yet start, an active call.
static DETECTORS: Mutex<Vec<Arc<Mutex<State>>>> = Mutex::new(Vec::new());

/// As [`locked`], or `None` while it is locked.
fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(left)) => Some(left.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl State {
    /// Starts a call with this rank's value.
    fn start(&mut self, value: f64) -> Result<(), Error> {
        let call = "MPI_Iallreduce";
        self.comm.ready(call)?;
        let [from, to] = self.numbers.at();
        // SAFETY: no call is active, so the numbers are ours. They are MPI's until the request is
        // complete, and nobody else accesses them. The other arguments are constants and our own
        // communicator.
        let code = unsafe {
            from.write(value);
            let (double, min, comm) = (ffi::RSMPI_DOUBLE, ffi::RSMPI_MIN, self.comm.handle);
            ffi::MPI_Iallreduce(from.cast(), to.cast(), 1, double, min, comm, &mut self.request)
        };
        // The other processes wait for this one.
        vital(self.comm.rank, call, code);
        Ok(())
    }

    /// Completes the last call, which other processes may not have joined yet, and returns its
    /// result.
    fn wait(&mut self) -> f64 {
        // SAFETY: the request is active or null, and is null afterwards.
        let code = unsafe { ffi::MPI_Wait(&mut self.request, ffi::RSMPI_STATUS_IGNORE) };
        vital(self.comm.rank, "MPI_Wait", code);
        // SAFETY: no call is active, so that the number is ours; it was initialised.
        unsafe { self.numbers.at()[1].read() }
    }

    /// Announces this rank's exit, once, if MPI may be called.
    fn announce_exit(&mut self) {
        self.has_ended = self.has_ended || self.start(exit_of(self.rank)).is_ok();
    }

    /// Whether all have received the announcement of this rank's exit, or this rank another's.
    fn is_done(&mut self) -> bool {
        let mut flag = 0;
        if self.has_ended && self.comm.ready("MPI_Test").is_ok() {
            // SAFETY: the request is active or null; the call writes an int, and sets the request
            // to null on completion.
            let code =
                unsafe { ffi::MPI_Test(&mut self.request, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
            vital(self.comm.rank, "MPI_Test", code);
        }
        flag != 0
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: reading a constant of the library.
        if self.request == unsafe { ffi::RSMPI_REQUEST_NULL } {
            // SAFETY: the numbers were leaked from a box, and no call is active.
            drop(unsafe { Box::from_raw(self.numbers.0.as_ptr()) });
        }
    }
}

/// Agreement calls of the ranks of a communicator.
pub(in crate::mpi) struct FailureDetector(Arc<Mutex<State>>);

impl FailureDetector {
    /// On a duplicate of a communicator. Collective over it.
    pub(in crate::mpi) fn new(comm: &RawComm) -> Result<Self, Error> {
        let own = comm.dup();
        let comm = comm.all(at_the_end().and(own))?;
        forget_done();
        // SAFETY: reading a constant of the library.
        let request = unsafe { ffi::RSMPI_REQUEST_NULL };
        let rank = comm.rank;
        let state = State { comm, numbers: Numbers::new(), request, has_ended: false, rank };
        let state = Arc::new(Mutex::new(state));
        locked(&DETECTORS).push(state.clone());
        Ok(Self(state))
    }

    /// Sets the rank that this process reports when it exits, if ranks have other numbers than
    /// processes.
    pub(in crate::mpi) fn set_rank(&self, rank: usize) {
        locked(&self.0).rank = rank;
    }
}

impl fft_core::FailureDetector for FailureDetector {
    fn sync(&self, succeeded: bool) -> Result<bool, Error> {
        let state = &mut *locked(&self.0);
        state.comm.ready("MPI_Iallreduce")?;
        if !state.has_ended {
            state.start(if succeeded { SUCCESS } else { FAILURE })?;
        }
        // Once a rank has ended no call is active, and the last result stays.
        match state.wait() {
            SUCCESS => Ok(true),
            FAILURE => Ok(false),
            exit => {
                state.has_ended = true;
                Err(Error::Left { gone: RANKS - (-exit) as usize })
            }
        }
    }
}

impl Drop for FailureDetector {
    fn drop(&mut self) {
        locked(&self.0).announce_exit();
        forget_done();
    }
}

/// Drops the detectors whose last call is complete.
fn forget_done() {
    // Collected first, so that communicators are freed without the lock.
    let done: Vec<_> = {
        let detectors = &mut *locked(&DETECTORS);
        // A locked one is in use, so it has not ended.
        let is_done = |state: &mut Arc<Mutex<State>>| {
            try_lock(state).is_some_and(|mut state| state.is_done())
        };
        detectors.extract_if(.., is_done).collect()
    };
    drop(done);
}

/// Waits until all active calls are complete, which all other processes must have joined.
pub(in crate::mpi) fn complete_calls() {
    let mut idle = Idle::default();
    loop {
        forget_done();
        let waits =
            |state: &Arc<Mutex<State>>| try_lock(state).is_some_and(|state| state.has_ended);
        if !locked(&DETECTORS).iter().any(waits) {
            return;
        }
        idle.wait();
    }
}

/// Another function that is called before MPI is finalised.
static BEFORE_FINALIZE: OnceLock<fn()> = OnceLock::new();

/// Registers it: the same function each time.
pub(in crate::mpi) fn when_finalized(leave: fn()) {
    BEFORE_FINALIZE.get_or_init(|| leave);
}

/// Registers a callback of MPI_Finalize, once in a process: an attribute of MPI_COMM_SELF, which is
/// deleted first of all.
fn at_the_end() -> Result<(), Error> {
    static SET: OnceLock<Result<(), Error>> = OnceLock::new();
    SET.get_or_init(|| {
        let mut key = 0;
        // SAFETY: both functions have the types that MPI wants; the key is written before use.
        // MPI_COMM_SELF lives as long as MPI, which deletes its attributes first in MPI_Finalize
        // (MPI 4.0, section 11.2.4).
        unsafe {
            let (copy, delete, none) =
                (Some(not_copied as _), Some(finalised as _), std::ptr::null_mut());
            let code = ffi::MPI_Comm_create_keyval(copy, delete, &mut key, none);
            checked(world_rank(), "MPI_Comm_create_keyval", code)?;
            checked(
                world_rank(),
                "MPI_Comm_set_attr",
                ffi::MPI_Comm_set_attr(ffi::RSMPI_COMM_SELF, key, none),
            )
        }
    })
    .clone()
}

/// Duplicates do not inherit the attribute.
unsafe extern "C" fn not_copied(
    _comm: ffi::MPI_Comm,
    _key: c_int,
    _extra: *mut c_void,
    _value: *mut c_void,
    _new_value: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: MPI passes the address of an int.
    unsafe { *flag = 0 };
    ffi::MPI_SUCCESS as c_int
}

/// Called before MPI is finalised: announces exits by all detectors that have not been dropped.
unsafe extern "C" fn finalised(
    _comm: ffi::MPI_Comm,
    _key: c_int,
    _value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    if let Some(leave) = BEFORE_FINALIZE.get() {
        leave();
    }
    locked(&DETECTORS).iter().for_each(|state| locked(state).announce_exit());
    complete_calls();
    ffi::MPI_SUCCESS as c_int
}
