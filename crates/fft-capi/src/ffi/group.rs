//! Communicators without MPI, made from groups of processes that another framework has started.

use std::ffi::{c_char, c_void};

use thriffty::planning::agree;
use thriffty::{Comm, Error, ErrorKind};

use super::addresses::null;
#[cfg(target_os = "linux")]
use super::callbacks::{communicator, read};
use super::pointers::{request, tell, text};
use super::{Plan, create};
use crate::registry::comms;
use crate::status::{Status, status};
use crate::values::{Brick, GroupCallbacks, Options};

/// The ranks of a process group, without MPI.
///
/// It may be used on any thread, by one at a time. A handle that is not a communicator, was
/// destroyed, or belongs to the parent of a forked process is refused with `THRIFFTY_STATUS_PLAN`,
/// on this rank only.
pub struct Communicator {
    _nobody_makes_one: [u8; 0],
}

/// Makes a communicator of the processes of a group, in which this one is `rank` of `size`.
/// Collective; the same status on every rank, except that a `rank`, `size` or struct without a
/// meaning is refused on this rank only. On failure `*comm` is NULL.
///
/// `callbacks` is copied, and its `struct_size` is `sizeof(thriffty_group_callbacks)`. The ranks of
/// a host share memory, so that functions of the group are called only now, if it has one host,
/// except `device_alltoallv`. If a process ends, calls on the other ranks fail with
/// `THRIFFTY_STATUS_TRANSPORT` and a text that names it, and so do later calls. The others can then
/// make a communicator of a smaller group. Groups need Linux. docs/without-mpi.md has more.
///
/// # Safety
/// Pointers are NULL or point at what their types say. The functions do what
/// `thriffty_group_callbacks` says, return without an exception or a jump, may be called on any
/// thread that calls this library, and stay valid with the context until the communicator and all
/// plans and copies that were made with it are destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_comm_create(
    comm: *mut *mut Communicator,
    rank: i32,
    size: i32,
    callbacks: *const GroupCallbacks,
    context: *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller vouches for the room.
        let told = unsafe { tell("comm", comm, std::ptr::null_mut()) };
        if callbacks.is_null() {
            return Err(null("callbacks").into());
        }
        // SAFETY: the caller vouches for the size, which comes first.
        let size_of_struct = unsafe { callbacks.cast::<usize>().read_unaligned() };
        // SAFETY: the caller vouches for the struct.
        let callbacks = unsafe { read(callbacks, size_of_struct)? };
        // SAFETY: the caller vouches for its functions.
        let made = unsafe { communicator((rank, size), callbacks, context)? };
        agree(&*made, told)?;
        let number = comms().insert(made);
        // SAFETY: as above.
        unsafe { Ok(tell("comm", comm, std::ptr::without_provenance_mut(number))?) }
    })
}

/// Process groups need Linux.
///
/// # Safety
/// None.
#[cfg(not(target_os = "linux"))]
unsafe fn read(_: *const GroupCallbacks, _: usize) -> Result<GroupCallbacks, Error> {
    Err(Error::argument("system of a process group", std::env::consts::OS, "linux"))
}

/// See [`read`].
///
/// # Safety
/// None.
#[cfg(not(target_os = "linux"))]
unsafe fn communicator(
    _: (i32, i32),
    _: GroupCallbacks,
    _: *mut c_void,
) -> Result<Box<dyn Comm>, Error> {
    unreachable!("there are no callbacks")
}

/// Makes a plan of the ranks of a communicator, as `thriffty_plan_create`. Collective; the same
/// status on every rank. The plan may outlive the communicator.
///
/// # Safety
/// Pointers are NULL or point at what their types say, and the stream is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_create_group(
    plan: *mut *mut Plan,
    comm: *mut Communicator,
    transform: i32,
    axes: i32,
    shape: *const i64,
    input: *const Brick,
    output: *const Brick,
    options: *const Options,
) -> Status {
    status(|| {
        // SAFETY: the caller vouches for the room.
        let _ = unsafe { tell("plan", plan, std::ptr::null_mut()) };
        comms().with(comm.addr(), |comm| {
            let comm: &dyn Comm = &**comm;
            // SAFETY: the caller vouches for the pointers.
            unsafe {
                let asked = request(Some(comm), (transform, axes), shape, [input, output], options);
                create(plan, Some(comm), asked)
            }
        })
    })
}

/// Agrees that all ranks can go on: `why` is NULL, or says why this rank cannot. Then every rank
/// returns `THRIFFTY_STATUS_ARGUMENT` and the text of the lowest rank that has one. For programs
/// that check their arguments before they call. Collective.
///
/// # Safety
/// `why` is NULL or a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_comm_agree(
    comm: *mut Communicator,
    why: *const c_char,
) -> Status {
    status(|| {
        comms().with(comm.addr(), |comm| {
            let rank = comm.rank();
            // SAFETY: the caller vouches for the text.
            let mine = match unsafe { text("why", why) } {
                Ok(None) => Ok(()),
                Ok(Some(message)) => {
                    Err(Error::OnRank { rank, kind: ErrorKind::Argument, message })
                }
                Err(error) => Err(error),
            };
            Ok(agree(&**comm, mine)?)
        })
    })
}

/// Destroys a communicator, at once. Plans and copies that were made with it go on. NULL is
/// ignored.
#[unsafe(no_mangle)]
pub extern "C" fn thriffty_comm_destroy(comm: *mut Communicator) -> Status {
    status(|| match comm.addr() {
        0 => Ok(()),
        number => comms().remove(number),
    })
}
