//! The entry points: what `include/thriffty.h` declares, with its documentation.
//!
//! Here and in `pointers.rs` is all unsafe code of this crate. What the documentation asks of pointers is what makes the calls
//! sound; what breaks it and can be seen to is refused.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;

#[cfg(feature = "cuda")]
use thriffty::gpu::keeping_context;
use thriffty::{Comm, Direction, Error};
#[cfg(feature = "mpi")]
use thriffty::{
    mpi::MpiComm,
    mpi::rsmpi::ffi::{MPI_Comm, RSMPI_Fint as MPI_Fint},
};

use crate::request::Request;
use crate::status::{Failure, Status, attempt, last, status};
#[cfg(feature = "mpi")]
use crate::values::Brick;
use crate::values::{Options, Sizes};
use crate::{plan, registry};

mod addresses;
#[cfg(feature = "cuda")]
mod device;
mod pointers;

use pointers::{arrays, bytes_mut, request, tell, tell_options, tell_struct, tell_text, text};

/// A distributed transform, ready to run any number of times in both directions.
///
/// A plan may be used on any thread, by one at a time; with MPI, on those that may call MPI. One that was destroyed, or never
/// was a plan, is refused with `THRIFFTY_STATUS_PLAN`, by every call and on this rank alone: ranks that were given a plan
/// meanwhile wait for this one.
pub struct Plan {
    _nobody_makes_one: [u8; 0],
}

/// Takes a plan that was made; its handle.
fn handle(number: usize) -> *mut Plan {
    std::ptr::without_provenance_mut(number)
}

/// The version of the library, "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn thriffty_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Why the last call of this thread that failed did so, in a sentence; "" when none has. Valid until the next call of this
/// thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn thriffty_last_error() -> *const c_char {
    last()
}

/// Sets all options to what they are by default. `struct_size` is `sizeof(thriffty_options)`.
///
/// # Safety
/// `options` is NULL or has room for so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_options_init(
    options: *mut Options,
    struct_size: usize,
) -> Status {
    // SAFETY: the caller vouches for the room.
    status(|| unsafe { Ok(tell_options(options, struct_size)?) })
}

/// Makes a plan of one process, which communicates with nobody. See `thriffty_plan_create`; the only brick is the whole grid.
///
/// # Safety
/// Pointers are NULL or point at what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_create_serial(
    plan: *mut *mut Plan,
    transform: i32,
    axes: i32,
    shape: *const i64,
    options: *const Options,
) -> Status {
    status(|| {
        let bricks = [std::ptr::null(); 2];
        let comm = thriffty::alone();
        // SAFETY: the caller vouches for the pointers.
        unsafe { create(plan, &comm, request(0, (transform, axes), shape, bricks, options)) }
    })
}

/// Makes a plan. Collective over `comm`, which is duplicated; the same status on every rank.
///
/// `transform` is `THRIFFTY_TRANSFORM_C2C` or another; `axes`, 1 to 4, says how many entries of all arrays count; `shape` has
/// the points along each axis, the last of which is contiguous. `input` and `output` are this rank's part of physical and of
/// spectral data, or NULL for an even cut into bricks (`thriffty_plan_sizes` tells which). Those of all ranks tile the grid;
/// the grid of spectral data has n/2 + 1 points along an axis of kind R2C. `options` may be NULL.
///
/// MPI must be initialised. MPI_COMM_NULL and inter-communicators are refused with `THRIFFTY_STATUS_TRANSPORT`, on this rank
/// alone, as is a thread that may not call MPI; a copy of a handle that was freed cannot be told from a good one, and MPI may end the process for it. On failure
/// `*plan` is NULL.
///
/// With `device` of the options the data is on CUDA devices, for all ranks or for none; where there is no such device, or the
/// library was built without CUDA, the status is `THRIFFTY_STATUS_DEVICE`.
///
/// # Safety
/// Pointers are NULL or point at what their types say; the communicator has not been freed, and a stream is one.
#[cfg(feature = "mpi")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_create(
    plan: *mut *mut Plan,
    comm: MPI_Comm,
    transform: i32,
    axes: i32,
    shape: *const i64,
    input: *const Brick,
    output: *const Brick,
    options: *const Options,
) -> Status {
    status(|| {
        // SAFETY: the caller vouches for the communicator and the pointers.
        unsafe {
            let comm = MpiComm::from_raw(comm)?;
            let asked = request(comm.rank(), (transform, axes), shape, [input, output], options);
            create(plan, &comm, asked)
        }
    })
}

/// As `thriffty_plan_create`, with a communicator of Fortran: an integer.
///
/// # Safety
/// Pointers are NULL or point at what their types say; the communicator has not been freed.
#[cfg(feature = "mpi")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_create_f(
    plan: *mut *mut Plan,
    comm: MPI_Fint,
    transform: i32,
    axes: i32,
    shape: *const i64,
    input: *const Brick,
    output: *const Brick,
    options: *const Options,
) -> Status {
    status(|| {
        // SAFETY: the caller vouches for the communicator and the pointers.
        unsafe {
            let comm = MpiComm::from_fortran(comm)?;
            let asked = request(comm.rank(), (transform, axes), shape, [input, output], options);
            create(plan, &comm, asked)
        }
    })
}

/// Makes the plan that is asked for, and tells its handle. Collective.
///
/// # Safety
/// `place` must be NULL or have room for a handle.
unsafe fn create(
    place: *mut *mut Plan,
    comm: &dyn Comm,
    asked: Result<Request, Error>,
) -> Result<(), Failure> {
    thriffty::warnings::show("thriffty");
    // SAFETY: the caller vouches for the room.
    let told = unsafe { tell("plan", place, std::ptr::null_mut()) };
    let plan = plan::build(comm, told.and(asked))?;
    // SAFETY: as above.
    unsafe { Ok(tell("plan", place, handle(registry::insert(plan)))?) }
}

/// Destroys a plan. Collective over its ranks, as communicators are freed. NULL is no plan, and nothing is done. After
/// MPI_Finalize what belongs to MPI is left to it.
#[unsafe(no_mangle)]
pub extern "C" fn thriffty_plan_destroy(plan: *mut Plan) -> Status {
    status(|| match plan.addr() {
        0 => Ok(()),
        number => registry::remove(number),
    })
}

/// Transforms physical to spectral data. Collective; the same status on every rank.
///
/// The arrays are this rank's bricks, and do not overlap; `input_bytes` and `output_bytes` say how much room there is, which
/// must be at least what `thriffty_plan_sizes` tells: numbers of a shorter precision than the plan's are found out by that,
/// longer ones are not. `input` is not written to.
///
/// Of a plan on a device (`device` of the options) the arrays are there, and begin at multiples of 16 bytes; NULL, memory of the
/// host or of another device, and more bytes than were allocated are refused. What the plan's stream was given before comes
/// before. The call returns when its work is queued; where something may be lost on the wire, or messages go through the host,
/// when it is done.
///
/// # Safety
/// `input` has `input_bytes` bytes, which nobody writes to meanwhile, and `output` `output_bytes`, which nobody else touches. On a
/// device that is until what is queued is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_forward(
    plan: *mut Plan,
    input: *const c_void,
    input_bytes: usize,
    output: *mut c_void,
    output_bytes: usize,
) -> Status {
    let (input, output) = ((input.cast(), input_bytes), (output.cast(), output_bytes));
    // SAFETY: the caller vouches for the arrays.
    status(|| unsafe { run(plan, Direction::Forward, input, output) })
}

/// Transforms spectral to physical data. Collective. As `thriffty_forward`, with spectral data as input.
///
/// # Safety
/// As of `thriffty_forward`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_inverse(
    plan: *mut Plan,
    input: *const c_void,
    input_bytes: usize,
    output: *mut c_void,
    output_bytes: usize,
) -> Status {
    let (input, output) = ((input.cast(), input_bytes), (output.cast(), output_bytes));
    // SAFETY: the caller vouches for the arrays.
    status(|| unsafe { run(plan, Direction::Inverse, input, output) })
}

/// Transforms between two arrays, in bytes. Collective.
///
/// # Safety
/// As of [`thriffty_forward`].
unsafe fn run(
    plan: *mut Plan,
    direction: Direction,
    input: (*const u8, usize),
    output: (*mut u8, usize),
) -> Result<(), Failure> {
    registry::with(plan.addr(), |plan| {
        #[cfg(feature = "cuda")]
        if let Some((rank, stream)) = plan.device() {
            return keeping_context(|| {
                // SAFETY: the caller vouches for the arrays.
                let arrays = unsafe { device::arrays((rank, &stream), input, output) };
                Ok(plan.run_on_device(direction, arrays)?)
            });
        }
        // SAFETY: as above.
        Ok(plan.run(direction, unsafe { arrays(input, output) })?)
    })
}

/// Transforms physical to spectral data in one array of `in_place_bytes` bytes (see `thriffty_plan_sizes`) or more: input and
/// output both begin at its start, without padding. Collective.
///
/// # Safety
/// `data` has `bytes` bytes, which nobody else touches meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_forward_in_place(
    plan: *mut Plan,
    data: *mut c_void,
    bytes: usize,
) -> Status {
    // SAFETY: the caller vouches for the array.
    status(|| unsafe { run_in_place(plan, Direction::Forward, data.cast(), bytes) })
}

/// Transforms spectral to physical data in one array, as `thriffty_forward_in_place`. Collective.
///
/// # Safety
/// As of `thriffty_forward_in_place`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_inverse_in_place(
    plan: *mut Plan,
    data: *mut c_void,
    bytes: usize,
) -> Status {
    // SAFETY: the caller vouches for the array.
    status(|| unsafe { run_in_place(plan, Direction::Inverse, data.cast(), bytes) })
}

/// Transforms one array, in bytes. Collective.
///
/// # Safety
/// As of [`thriffty_forward_in_place`].
unsafe fn run_in_place(
    plan: *mut Plan,
    direction: Direction,
    data: *mut u8,
    bytes: usize,
) -> Result<(), Failure> {
    registry::with(plan.addr(), |plan| {
        #[cfg(feature = "cuda")]
        if let Some((rank, stream)) = plan.device() {
            return keeping_context(|| {
                // SAFETY: the caller vouches for the array.
                let array = unsafe { device::array((rank, &stream), "array", data, bytes) };
                Ok(plan.run_in_place_on_device(direction, array)?)
            });
        }
        // SAFETY: as above.
        let array = unsafe { bytes_mut("array", data, bytes) };
        Ok(plan.run_in_place(direction, array)?)
    })
}

/// Makes an array of `in_place_bytes` bytes (see `thriffty_plan_sizes`), all 0, for this plan: long enough for its input and for
/// its output, where processes of one host can see it (`shared_arrays` of the options), in memory of the plan's device if it has one. It lives as
/// long as the plan, and MPI. Collective; `*array` is NULL where it fails.
///
/// # Safety
/// `array` is NULL or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_allocate(plan: *mut Plan, array: *mut *mut c_void) -> Status {
    status(|| {
        // SAFETY: the caller vouches for the room.
        let told = unsafe { tell("array", array, std::ptr::null_mut()) };
        let made = registry::with(plan.addr(), |plan| Ok(plan.allocate(told)?))?;
        // SAFETY: as above.
        unsafe { Ok(tell("array", array, made.cast())?) }
    })
}

/// Tells this rank's bricks and what memory the plan needs. `struct_size` is `sizeof(thriffty_sizes)`.
///
/// # Safety
/// `sizes` is NULL or has room for so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_sizes(
    plan: *const Plan,
    sizes: *mut Sizes,
    struct_size: usize,
) -> Status {
    status(|| {
        let found = registry::with(plan.addr(), |plan| Ok(plan.sizes()))?;
        // SAFETY: the caller vouches for the room.
        unsafe { Ok(tell_struct("sizes", sizes, struct_size, found)?) }
    })
}

/// Tells what the last transform lost on the wire, as a share of the l2 norm of its result: an estimate, and what it cannot
/// exceed. Both are 0 when no message can lose anything, or none has run. The same on all ranks.
///
/// # Safety
/// Each pointer is NULL, where the number is not wanted, or has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_error(
    plan: *const Plan,
    estimate: *mut f64,
    bound: *mut f64,
) -> Status {
    status(|| {
        let lost = registry::with(plan.addr(), |plan| Ok(plan.wire_error()))?;
        let lost = lost.unwrap_or_default();
        for (place, number) in [(estimate, lost.estimate), (bound, lost.bound)] {
            if !place.is_null() {
                // SAFETY: the caller vouches for the room.
                unsafe { tell("number", place, number)? };
            }
        }
        Ok(())
    })
}

/// Writes how the transform is done, in one line, as snprintf does: at most `room` bytes with a zero at the end. Returns the
/// bytes of the whole text without the zero, or, where it fails, a status times -1.
///
/// # Safety
/// `recipe` is NULL or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_recipe(
    plan: *const Plan,
    recipe: *mut c_char,
    room: usize,
) -> i64 {
    let found = attempt(|| registry::with(plan.addr(), |plan| Ok(plan.recipe())));
    match found {
        // SAFETY: the caller vouches for the room.
        Ok(found) => unsafe { tell_text(recipe, room, &found) },
        Err(status) => -(status as i64),
    }
}

/// Remembers what was measured (`THRIFFTY_TUNE_MEASURE`) for `THRIFFTY_TUNE_WISDOM`: adds it to this file, or replaces what
/// the file has of the same transform on the same machine. Collective.
///
/// # Safety
/// `path` is NULL or a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_save_wisdom(
    plan: *const Plan,
    path: *const c_char,
) -> Status {
    status(|| {
        registry::with(plan.addr(), |plan| {
            // SAFETY: the caller vouches for the text.
            let path = unsafe { text("path", path) };
            let path =
                path.and_then(|path| path.ok_or_else(|| Error::argument("path", "NULL", "a text")));
            let path = path.as_deref().map(Path::new).map_err(Clone::clone);
            Ok(plan.save_wisdom(path)?)
        })
    })
}
