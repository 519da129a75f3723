//! Agreement calls that detect departures: a process may have dropped its roll.
//!
//! Each call is a non-blocking reduction on a communicator of its own. A process that drops its
//! roll starts one more reduction, whose value says so. The next call of the others returns that
//! value instead of hanging. The reduction may be active long after the drop: a list keeps it, at
//! the latest until MPI is finalised.
//!
//! Two things depend on the library. The last reduction makes progress only while its process calls
//! MPI, at the latest in MPI_Finalize. And `MPI_Comm_free` of a roll that is over must not wait for
//! other ranks, as in Open MPI and MPICH.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use std::ffi::{c_int, c_void};

use fft_core::Error;
use mpi::ffi;

use super::calls::{checked, vital, world_rank};
use super::raw_comm::RawComm;
use crate::idle::Idle;

/// The values of a call: no error, an error, or a farewell. The result is the smallest.
const WELL: f64 = 1.0;
const UNWELL: f64 = 0.0;

/// More than any rank.
const RANKS: usize = 1 << 40;

/// The farewell of a rank; of several the lowest rank's is the smallest.
fn farewell(rank: usize) -> f64 {
    -((RANKS - rank) as f64)
}

/// The value and the result of a call, which MPI reads and writes while the call is active.
struct Numbers(NonNull<[f64; 2]>);

impl Numbers {
    fn new() -> Self {
        Self(NonNull::from(Box::leak(Box::new([WELL; 2]))))
    }

    fn at(&self) -> [*mut f64; 2] {
        let first = self.0.as_ptr().cast::<f64>();
        [first, first.wrapping_add(1)]
    }
}

struct Part {
    comm: RawComm,
    /// Leaked if the part is dropped during a call.
    numbers: Numbers,
    /// Null between calls.
    request: ffi::MPI_Request,
    /// Whether a farewell was sent or received: there are no more calls.
    over: bool,
    /// The rank that the farewell names.
    name: usize,
}

// SAFETY: request handles are valid in every thread of the process; `RawComm` checks the thread.
// The numbers are not shared.
unsafe impl Send for Part {}

/// All rolls of this process that have, or may yet start, an active call.
static ROLLS: Mutex<Vec<Arc<Mutex<Part>>>> = Mutex::new(Vec::new());

/// Poisoning is ignored: no state is changed in several steps.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same, or `None` while it is locked.
fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(left)) => Some(left.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Part {
    fn say(&mut self, said: f64) -> Result<(), Error> {
        let call = "MPI_Iallreduce";
        self.comm.ready(call)?;
        let [from, to] = self.numbers.at();
        // SAFETY: no call is active, so that the numbers are ours. They are MPI's until the request
        // is complete, and nobody else accesses them. The rest are constants and our own
        // communicator.
        let code = unsafe {
            from.write(said);
            let (double, min, comm) = (ffi::RSMPI_DOUBLE, ffi::RSMPI_MIN, self.comm.handle);
            ffi::MPI_Iallreduce(from.cast(), to.cast(), 1, double, min, comm, &mut self.request)
        };
        // The other processes wait for this one.
        vital(self.comm.rank, call, code);
        Ok(())
    }

    /// Completes the last call, which other processes may not have joined yet, and returns its
    /// result.
    fn hear(&mut self) -> f64 {
        // SAFETY: the request is active or null, and is null afterwards.
        let code = unsafe { ffi::MPI_Wait(&mut self.request, ffi::RSMPI_STATUS_IGNORE) };
        vital(self.comm.rank, "MPI_Wait", code);
        // SAFETY: no call is active, so that the number is ours; it was initialised.
        unsafe { self.numbers.at()[1].read() }
    }

    /// Sends the farewell, once, if MPI may be called.
    fn leave(&mut self) {
        self.over = self.over || self.say(farewell(self.name)).is_ok();
    }

    /// Whether all have received its farewell, or it theirs.
    fn is_done(&mut self) -> bool {
        let mut flag = 0;
        if self.over && self.comm.ready("MPI_Test").is_ok() {
            // SAFETY: the request is active or null; the call writes an int, and sets the request
            // to null on completion.
            let code =
                unsafe { ffi::MPI_Test(&mut self.request, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
            vital(self.comm.rank, "MPI_Test", code);
        }
        flag != 0
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // SAFETY: reading a constant of the library.
        if self.request == unsafe { ffi::RSMPI_REQUEST_NULL } {
            // SAFETY: the numbers were leaked from a box, and no call is active.
            drop(unsafe { Box::from_raw(self.numbers.0.as_ptr()) });
        }
    }
}

pub(in crate::mpi) struct Roll(Arc<Mutex<Part>>);

impl Roll {
    /// On a duplicate of a communicator. Collective over it.
    pub(in crate::mpi) fn new(comm: &RawComm) -> Result<Self, Error> {
        let own = comm.dup();
        let comm = comm.all(at_the_end().and(own))?;
        forget_done();
        // SAFETY: reading a constant of the library.
        let request = unsafe { ffi::RSMPI_REQUEST_NULL };
        let name = comm.rank;
        let part = Part { comm, numbers: Numbers::new(), request, over: false, name };
        let part = Arc::new(Mutex::new(part));
        lock(&ROLLS).push(part.clone());
        Ok(Self(part))
    }

    /// Sets the rank that the farewell names, where ranks have other numbers than processes.
    pub(in crate::mpi) fn set_name(&self, rank: usize) {
        lock(&self.0).name = rank;
    }

    /// Tells all ranks whether this one has no error; returns whether none has. Collective.
    pub(in crate::mpi) fn call(&self, well: bool) -> Result<bool, Error> {
        let part = &mut *lock(&self.0);
        part.comm.ready("MPI_Iallreduce")?;
        if !part.over {
            part.say(if well { WELL } else { UNWELL })?;
        }
        // After a farewell no call is active.
        match part.hear() {
            WELL => Ok(true),
            UNWELL => Ok(false),
            farewell => {
                part.over = true;
                Err(Error::Left { gone: RANKS - (-farewell) as usize })
            }
        }
    }
}

impl Drop for Roll {
    fn drop(&mut self) {
        lock(&self.0).leave();
        forget_done();
    }
}

/// Drops the rolls that are over.
fn forget_done() {
    // Collected first, so that communicators are freed without the lock.
    let done: Vec<_> = {
        let rolls = &mut *lock(&ROLLS);
        // A locked one is in use, and so not over.
        let done =
            |part: &mut Arc<Mutex<Part>>| try_lock(part).is_some_and(|mut part| part.is_done());
        rolls.extract_if(.., done).collect()
    };
    drop(done);
}

/// Waits until all active calls are complete, which all other processes must have joined.
pub(in crate::mpi) fn hear_out() {
    let mut idle = Idle::default();
    loop {
        forget_done();
        let waits = |part: &Arc<Mutex<Part>>| try_lock(part).is_some_and(|part| part.over);
        if !lock(&ROLLS).iter().any(waits) {
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

/// Called before MPI is finalised: farewells of all rolls that have not been dropped.
unsafe extern "C" fn finalised(
    _comm: ffi::MPI_Comm,
    _key: c_int,
    _value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    if let Some(leave) = BEFORE_FINALIZE.get() {
        leave();
    }
    lock(&ROLLS).iter().for_each(|part| lock(part).leave());
    hear_out();
    ffi::MPI_SUCCESS as c_int
}
