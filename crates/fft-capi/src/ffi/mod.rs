//! The entry points: what `include/thriffty.h` declares, with its documentation.
//!
//! All unsafe code of this crate is in this folder. The documentation says what pointers must point
//! at; violations that can be detected are refused.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;

#[cfg(feature = "cuda")]
use thriffty::gpu::keeping_context;
use thriffty::planning::Direction;
use thriffty::{Comm, Error};
#[cfg(feature = "mpi")]
use thriffty::{
    mpi::MpiComm,
    mpi::rsmpi::ffi::{MPI_Comm, RSMPI_Fint as MPI_Fint},
};

use crate::plan;
use crate::registry::plans;
use crate::request::Request;
use crate::status::{Failure, Status, last, status};
#[cfg(feature = "mpi")]
use crate::values::Brick;
use crate::values::{Options, SIZES_BYTES, Sizes, Timings};

mod addresses;
pub mod arrays;
#[cfg(target_os = "linux")]
mod callbacks;
#[cfg(feature = "cuda")]
mod device;
pub mod discretization;
pub mod group;
pub mod options;
mod pointers;
pub mod serial;
pub mod spectral;

use pointers::{arrays, bytes_mut, request, tell, tell_struct, text, write_text};

/// A distributed transform, ready to run any number of times in both directions.
///
/// A plan may be used on any thread, by one at a time; with MPI, on threads that may call MPI: with
/// `MPI_THREAD_SERIALIZED` on any, if no two calls of the process overlap, and with less on the one
/// that initialised MPI. A handle that is not a plan, or was destroyed, is refused with
/// `THRIFFTY_STATUS_PLAN` on this rank only, and other ranks wait for it.
pub struct Plan {
    _nobody_makes_one: [u8; 0],
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

/// Why the last failing call of this thread failed, in a sentence; "" when none has. Valid until
/// the next failure on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn thriffty_last_error() -> *const c_char {
    last()
}

/// Makes a plan of one process, without MPI. Its only brick is the whole grid. See
/// `thriffty_plan_create`.
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
        let (comm, bricks) = (thriffty::alone(), [std::ptr::null(); 2]);
        // SAFETY: the caller vouches for the pointers.
        let asked = unsafe { request(Some(&comm), (transform, axes), shape, bricks, options) };
        // SAFETY: as above.
        unsafe { create(plan, None, asked) }
    })
}

/// Makes a plan. Collective over `comm`, which is duplicated; the same status on every rank.
///
/// `transform` is `THRIFFTY_TRANSFORM_C2C` or another, `axes` is 1 to 4, and `shape` has the points
/// along each axis; the last axis is contiguous. `input` and `output` are this rank's bricks of
/// physical and of spectral data; NULL is an even cut or, where ranks share a single axis, a block
/// that suits its factors (see `thriffty_plan_sizes`). The bricks of all ranks tile the grid. The
/// spectral grid has n/2 + 1 points along an axis of kind r2c. `options` may be NULL. On failure
/// `*plan` is NULL.
///
/// MPI must be initialised and not finalised. MPI_COMM_NULL, inter-communicators and threads that
/// may not call MPI are refused with `THRIFFTY_STATUS_TRANSPORT`, on this rank alone. Freed
/// communicators are not detected.
///
/// If the option "device" names a CUDA device, the data is there; all ranks use devices, or none
/// does. Without such a device the status is `THRIFFTY_STATUS_DEVICE`.
///
/// # Safety
/// Pointers are NULL or point at what their types say. The communicator has not been freed, and the
/// stream is valid. With `MPI_THREAD_SERIALIZED`, calls of MPI and of this library do not overlap.
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
            let asked = request(Some(&comm), (transform, axes), shape, [input, output], options);
            create(plan, Some(&comm), asked)
        }
    })
}

/// As `thriffty_plan_create`, with a communicator of Fortran: an integer.
///
/// # Safety
/// As of `thriffty_plan_create`.
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
            let asked = request(Some(&comm), (transform, axes), shape, [input, output], options);
            create(plan, Some(&comm), asked)
        }
    })
}

/// Makes the requested plan, and writes its handle. Collective.
///
/// # Safety
/// `place` must be NULL or have room for a handle.
unsafe fn create(
    place: *mut *mut Plan,
    comm: Option<&dyn Comm>,
    asked: Result<Request, Error>,
) -> Result<(), Failure> {
    thriffty::warnings::show("thriffty");
    // SAFETY: the caller vouches for the room.
    let told = unsafe { tell("plan", place, std::ptr::null_mut()) };
    let number = plans().insert(plan::build(comm, told.and(asked))?);
    // SAFETY: as above.
    unsafe { Ok(tell("plan", place, std::ptr::without_provenance_mut(number))?) }
}

/// Destroys a plan. Collective over its ranks if these are MPI processes. NULL is ignored. After
/// MPI_Finalize, objects of MPI are left to MPI.
#[unsafe(no_mangle)]
pub extern "C" fn thriffty_plan_destroy(plan: *mut Plan) -> Status {
    status(|| match plan.addr() {
        0 => Ok(()),
        number => plans().remove(number),
    })
}

/// Transforms physical to spectral data. Collective; the same status on every rank.
///
/// The arrays are this rank's bricks, and do not overlap; `input` is not written to. `input_bytes`
/// and `output_bytes` are the sizes of the arrays, at least the ones that `thriffty_plan_sizes`
/// returns.
///
/// If the plan has a device, the arrays are there and begin at multiples of 16 bytes. NULL, memory
/// elsewhere, and more bytes than were allocated are refused. Work is queued on the plan's stream.
/// The call returns when it is queued or, if a wire is lossy or messages pass the host, done.
///
/// # Safety
/// `input` has `input_bytes` bytes, which nobody writes to meanwhile, and `output` has
/// `output_bytes` bytes, which nobody else touches; on a device, until the queued work is done.
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

/// Transforms spectral to physical data, as `thriffty_forward`. Collective.
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

/// Transforms from one array to another. Collective.
///
/// # Safety
/// As of [`thriffty_forward`].
unsafe fn run(
    plan: *mut Plan,
    direction: Direction,
    input: (*const u8, usize),
    output: (*mut u8, usize),
) -> Result<(), Failure> {
    plans().with(plan.addr(), |plan| {
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

/// Transforms physical to spectral data in one array of at least `in_place_bytes` bytes (see
/// `thriffty_plan_sizes`): input and output both begin at its start, without padding. Collective.
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

/// Transforms within one array. Collective.
///
/// # Safety
/// As of [`thriffty_forward_in_place`].
unsafe fn run_in_place(
    plan: *mut Plan,
    direction: Direction,
    data: *mut u8,
    bytes: usize,
) -> Result<(), Failure> {
    plans().with(plan.addr(), |plan| {
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

/// Allocates an array of `in_place_bytes` bytes (see `thriffty_plan_sizes`), all 0: room for the
/// input or the output of this plan, in memory that the processes of a host share (the option
/// "shared_arrays"), or on the plan's device. It lives as long as the plan, and MPI. Collective;
/// `*array` is NULL on failure.
///
/// # Safety
/// `array` is NULL or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_allocate(plan: *mut Plan, array: *mut *mut c_void) -> Status {
    status(|| {
        // SAFETY: the caller vouches for the room.
        let told = unsafe { tell("array", array, std::ptr::null_mut()) };
        let made = plans().with(plan.addr(), |plan| Ok(plan.allocate(told)?))?;
        // SAFETY: as above.
        unsafe { Ok(tell("array", array, made.cast())?) }
    })
}

/// Writes this rank's bricks and sizes of memory. `struct_size` is `sizeof(thriffty_sizes)`.
///
/// # Safety
/// `sizes` is NULL or has room for `struct_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_sizes(
    plan: *const Plan,
    sizes: *mut Sizes,
    struct_size: usize,
) -> Status {
    status(|| {
        let found = plans().with(plan.addr(), |plan| Ok(plan.sizes()))?;
        let found = Sizes { struct_size, ..found };
        // SAFETY: the caller vouches for the room.
        unsafe { Ok(tell_struct("sizes", sizes, struct_size, found, &SIZES_BYTES)?) }
    })
}

/// Writes where the time of the plan's transforms went on this rank. `struct_size` is
/// `sizeof(thriffty_timings)`. If processes have several threads, times are those of the first.
///
/// # Safety
/// `timings` is NULL or has room for `struct_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_timings(
    plan: *const Plan,
    timings: *mut Timings,
    struct_size: usize,
) -> Status {
    status(|| {
        let found = plans().with(plan.addr(), |plan| Ok(plan.timings()))?;
        let found = Timings { struct_size, ..found };
        // SAFETY: the caller vouches for the room.
        unsafe { Ok(tell_struct("timings", timings, struct_size, found, &[size_of::<Timings>()])?) }
    })
}

/// Sets the times of the plan on this rank to zero.
#[unsafe(no_mangle)]
pub extern "C" fn thriffty_plan_clear_timings(plan: *mut Plan) -> Status {
    status(|| {
        plans().with(plan.addr(), |plan| {
            plan.clear_timings();
            Ok(())
        })
    })
}

/// Writes the error of encoded messages in the last transform, relative to the l2 norm of its
/// result: an estimate, and an upper bound. Both are 0 if no wire is lossy, or nothing has run. The
/// same on all ranks.
///
/// # Safety
/// Each pointer is NULL, if the number is not wanted, or has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_wire_error(
    plan: *const Plan,
    estimate: *mut f64,
    bound: *mut f64,
) -> Status {
    status(|| {
        let lost = plans().with(plan.addr(), |plan| Ok(plan.wire_error()))?;
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

/// Writes the recipe, in one line, as snprintf does: at most `room` bytes with the final zero.
/// Returns the length of the whole text without the zero or, on failure, a status times -1.
///
/// # Safety
/// `recipe` is NULL or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_recipe(
    plan: *const Plan,
    recipe: *mut c_char,
    room: usize,
) -> i64 {
    // SAFETY: the caller vouches for the room.
    unsafe { write_text(recipe, room, || plans().with(plan.addr(), |plan| Ok(plan.recipe()))) }
}

/// Writes, as `thriffty_plan_recipe`, why the recipe was chosen, for example "from wisdom, measured
/// 33.80 ms", and the candidates as a table, one line each, with predicted and measured times, and
/// a mark at the choice.
///
/// # Safety
/// `report` is NULL or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_report(
    plan: *const Plan,
    report: *mut c_char,
    room: usize,
) -> i64 {
    // SAFETY: the caller vouches for the room.
    unsafe { write_text(report, room, || plans().with(plan.addr(), |plan| Ok(plan.report()))) }
}

/// Fails on this rank in place of a transform. Every rank, also one that transforms, returns
/// `THRIFFTY_STATUS_ARGUMENT` and the text "`what`: found `found`, expected `expected`". For
/// programs and bindings that check more than the library can, such as types of elements.
/// Collective.
///
/// # Safety
/// Each text is NULL or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_refuse(
    plan: *mut Plan,
    what: *const c_char,
    found: *const c_char,
    expected: *const c_char,
) -> Status {
    status(|| {
        plans().with(plan.addr(), |plan| {
            // SAFETY: the caller vouches for the texts.
            let word = |place| unsafe { text("text", place) }.map(Option::unwrap_or_default);
            let words = || Ok([word(what)?, word(found)?, word(expected)?]);
            let why = match words() {
                Ok([what, found, expected]) => Error::argument(what, found, expected),
                Err(error) => error,
            };
            Ok(plan.refuse(why)?)
        })
    })
}

/// Saves the result of "measure" of the option "tuning", for "wisdom:FILE" in later plans: adds an
/// entry to this file, or replaces the entry of this transform on this machine. Collective.
///
/// # Safety
/// `path` is NULL or a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_plan_save_wisdom(
    plan: *const Plan,
    path: *const c_char,
) -> Status {
    status(|| {
        plans().with(plan.addr(), |plan| {
            // SAFETY: the caller vouches for the text.
            let path = unsafe { text("path", path) };
            let path =
                path.and_then(|path| path.ok_or_else(|| Error::argument("path", "NULL", "a text")));
            let path = path.as_deref().map(Path::new).map_err(Clone::clone);
            Ok(plan.save_wisdom(path)?)
        })
    })
}
