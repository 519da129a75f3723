//! Rolls that processes answer to, of which one may have left.
//!
//! A process that drops its roll answers one call in advance, with a farewell: in the call that the others make next they
//! hear of it, instead of waiting. So calls are non-blocking reductions on a communicator of their own, of which the last one may
//! be under way long after its roll is gone; it is kept in a list then, at the latest until MPI is finalised.
//!
//! Two things are up to the library. A farewell goes on while its process calls MPI: others of a larger tree may hear of it when the
//! one that left calls MPI next, at the latest when it finalises it. And communicators of rolls that are over are freed by each process when it
//! finds them so: `MPI_Comm_free` waits for nobody in Open MPI and MPICH, as the standard lets it.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use super::*;

/// What a process says in a call: that all is well, that it is not, or that it has left. The smallest is on_progress.
const WELL: f64 = 1.0;
const UNWELL: f64 = 0.0;

/// What `rank` of `size` says when it leaves: of several the lowest is on_progress.
fn farewell(rank: usize, size: usize) -> f64 {
    -((size - rank) as f64)
}

/// What is said in a call and what is on_progress, where MPI reads and writes them for as long as the call is under way.
struct Numbers(NonNull<[f64; 2]>);

impl Numbers {
    fn new() -> Self {
        Self(NonNull::from(Box::leak(Box::new([WELL; 2]))))
    }

    /// Where they are: said, on_progress.
    fn at(&self) -> [*mut f64; 2] {
        let first = self.0.as_ptr().cast::<f64>();
        [first, first.wrapping_add(1)]
    }
}

/// This process' part in a roll.
struct Part {
    comm: RawComm,
    /// Leaked by a part that is dropped in the midst of a call.
    numbers: Numbers,
    /// Null between calls.
    request: ffi::MPI_Request,
    /// Whether it has said farewell, or on_progress one: there are no more calls.
    over: bool,
}

// SAFETY: request handles are valid in every thread of the process; `RawComm` checks the thread. The numbers are this part's own.
unsafe impl Send for Part {}

/// All rolls of this process that may have a call under way, or may yet have one. Each stays in its place.
static ROLLS: Mutex<Vec<Arc<Mutex<Part>>>> = Mutex::new(Vec::new());

/// What a panic has left is as good as before: no one is changed by parts.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same, unless it is in use.
fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(left)) => Some(left.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Part {
    /// Begins a call.
    fn say(&mut self, said: f64) -> Result<(), Error> {
        let call = "MPI_Iallreduce";
        self.comm.ready(call)?;
        let [from, to] = self.numbers.at();
        // SAFETY: no call is under way, so that the numbers are ours; from here until the request is complete they are MPI's, and
        // nobody else touches them. The rest are constants and our own communicator.
        let code = unsafe {
            from.write(said);
            let (double, min, comm) = (ffi::RSMPI_DOUBLE, ffi::RSMPI_MIN, self.comm.handle);
            ffi::MPI_Iallreduce(from.cast(), to.cast(), 1, double, min, comm, &mut self.request)
        };
        // A process that gives up here is one that the others wait for.
        vital(self.comm.rank, call, code);
        Ok(())
    }

    /// Ends the last call, which the others may not have come to yet: what was on_progress in it.
    fn hear(&mut self) -> f64 {
        // SAFETY: the request is active or null, and is null afterwards.
        let code = unsafe { ffi::MPI_Wait(&mut self.request, ffi::RSMPI_STATUS_IGNORE) };
        vital(self.comm.rank, "MPI_Wait", code);
        // SAFETY: no call is under way, so that the number is ours; it was written when it was made.
        unsafe { self.numbers.at()[1].read() }
    }

    /// Says farewell, once, if it can now.
    fn leave(&mut self) {
        self.over = self.over || self.say(farewell(self.comm.rank, self.comm.size)).is_ok();
    }

    /// Whether all have on_progress its farewell, or it theirs.
    fn is_done(&mut self) -> bool {
        let mut flag = 0;
        if self.over && self.comm.ready("MPI_Test").is_ok() {
            // SAFETY: the request is active or null; the call writes an int, and nulls the request when it is complete.
            let code =
                unsafe { ffi::MPI_Test(&mut self.request, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
            vital(self.comm.rank, "MPI_Test", code);
        }
        flag != 0
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // SAFETY: a constant of the library.
        if self.request == unsafe { ffi::RSMPI_REQUEST_NULL } {
            // SAFETY: they were leaked from a box, and no call is under way.
            drop(unsafe { Box::from_raw(self.numbers.0.as_ptr()) });
        }
    }
}

/// One roll of a process.
pub(in crate::mpi) struct Roll(Arc<Mutex<Part>>);

impl Roll {
    /// On a duplicate of a communicator. Collective over it.
    ///
    /// # Errors
    /// On every rank when one fails.
    pub(in crate::mpi) fn new(comm: &RawComm) -> Result<Self, Error> {
        let own = comm.dup();
        let comm = comm.all(at_the_end().and(own))?;
        forget_done();
        // SAFETY: reading a constant of the library.
        let request = unsafe { ffi::RSMPI_REQUEST_NULL };
        let part = Part { comm, numbers: Numbers::new(), request, over: false };
        let part = Arc::new(Mutex::new(part));
        lock(&ROLLS).push(part.clone());
        Ok(Self(part))
    }

    /// Tells all ranks whether all is well with this one: whether all are well. Collective.
    ///
    /// # Errors
    /// [`Error::Left`] on every rank that calls when one has dropped its roll, now and in every later call.
    pub(in crate::mpi) fn call(&self, well: bool) -> Result<bool, Error> {
        let part = &mut *lock(&self.0);
        part.comm.ready("MPI_Iallreduce")?;
        if !part.over {
            part.say(if well { WELL } else { UNWELL })?;
        }
        // Nothing is under way where a farewell has been on_progress.
        match part.hear() {
            WELL => Ok(true),
            UNWELL => Ok(false),
            farewell => {
                part.over = true;
                Err(Error::Left { gone: part.comm.size - (-farewell) as usize })
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

/// Lets go of the rolls that are over.
fn forget_done() {
    // Freeing communicators is no business of those who wait for the list.
    let done: Vec<_> = {
        let rolls = &mut *lock(&ROLLS);
        // One that is in use is not done.
        let done =
            |part: &mut Arc<Mutex<Part>>| try_lock(part).is_some_and(|mut part| part.is_done());
        rolls.extract_if(.., done).collect()
    };
    drop(done);
}

/// Waits until all calls that are under way are over, which takes that all others have come to them, too.
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

/// Has MPI call us back when it is finalised, before all else. Once in a process.
fn at_the_end() -> Result<(), Error> {
    static SET: OnceLock<Result<(), Error>> = OnceLock::new();
    SET.get_or_init(|| {
        let mut key = 0;
        // SAFETY: both functions are of the types that MPI wants; the key is written before it is used; MPI_COMM_SELF lives as
        // long as MPI, which deletes its attributes first of all in MPI_Finalize (MPI 4.0, section 11.2.4).
        unsafe {
            let (copy, delete, none) =
                (Some(not_copied as _), Some(finalised as _), std::ptr::null_mut());
            let code = ffi::MPI_Comm_create_keyval(copy, delete, &mut key, none);
            checked(0, "MPI_Comm_create_keyval", code)?;
            checked(0, "MPI_Comm_set_attr", ffi::MPI_Comm_set_attr(ffi::RSMPI_COMM_SELF, key, none))
        }
    })
    .clone()
}

/// The attribute is not that of duplicates.
unsafe extern "C" fn not_copied(
    _comm: ffi::MPI_Comm,
    _key: c_int,
    _extra: *mut c_void,
    _value: *mut c_void,
    _new_value: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: MPI hands in the address of an int.
    unsafe { *flag = 0 };
    ffi::MPI_SUCCESS as c_int
}

/// MPI is about to be finalised: farewell to all, also on behalf of what nobody drops in time.
unsafe extern "C" fn finalised(
    _comm: ffi::MPI_Comm,
    _key: c_int,
    _value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    host::leave_all();
    lock(&ROLLS).iter().for_each(|part| lock(part).leave());
    hear_out();
    ffi::MPI_SUCCESS as c_int
}
