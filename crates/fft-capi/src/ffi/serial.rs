//! Transforms of one process without a plan of the program's.

use std::ffi::c_void;

use thriffty::Error;
use thriffty::local;
use thriffty::planning::Direction;

use super::pointers::{arrays, bytes_mut, request};
use crate::status::{Failure, Status, status};
use crate::values::Options;

/// The arguments of a call.
struct Call {
    transform: i32,
    axes: i32,
    shape: *const i64,
    options: *const Options,
    input: (*const u8, usize),
    output: (*mut u8, usize),
}

/// Transforms physical to spectral data on this process, without a plan of yours. The library makes
/// a plan as `thriffty_plan_create_serial` does and keeps it, so that later calls with equal
/// arguments cost little. Several threads may call this at the same time.
///
/// `input_bytes` and `output_bytes` are the sizes of the arrays. The arrays do not overlap, or are
/// one array: then `input` is `output`, and both sizes are the size of the longer side, as a whole
/// number of spectral points. Plans are kept while they hold at most 256 MiB together, not counting
/// the last one; `thriffty_clear_plans` frees them. Small arrays are transformed on the calling
/// thread, others on the number of threads that the option `threads` sets. Data on devices needs a
/// plan.
///
/// # Safety
/// Pointers are NULL or point at what their types say. `input` has `input_bytes` bytes, which
/// nobody writes to meanwhile, and `output` has `output_bytes` bytes, which nobody else touches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_forward_serial(
    transform: i32,
    axes: i32,
    shape: *const i64,
    options: *const Options,
    input: *const c_void,
    input_bytes: usize,
    output: *mut c_void,
    output_bytes: usize,
) -> Status {
    let (input, output) = ((input.cast(), input_bytes), (output.cast(), output_bytes));
    let call = Call { transform, axes, shape, options, input, output };
    // SAFETY: the caller vouches for the pointers.
    status(|| unsafe { run(Direction::Forward, &call) })
}

/// Transforms spectral to physical data on this process, as `thriffty_forward_serial`.
///
/// # Safety
/// As of `thriffty_forward_serial`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_inverse_serial(
    transform: i32,
    axes: i32,
    shape: *const i64,
    options: *const Options,
    input: *const c_void,
    input_bytes: usize,
    output: *mut c_void,
    output_bytes: usize,
) -> Status {
    let (input, output) = ((input.cast(), input_bytes), (output.cast(), output_bytes));
    let call = Call { transform, axes, shape, options, input, output };
    // SAFETY: the caller vouches for the pointers.
    status(|| unsafe { run(Direction::Inverse, &call) })
}

/// # Safety
/// As of [`thriffty_forward_serial`].
unsafe fn run(direction: Direction, call: &Call) -> Result<(), Failure> {
    let family = (call.transform, call.axes);
    let bricks = [std::ptr::null(); 2];
    // SAFETY: the caller vouches for the pointers.
    let asked = unsafe { request(None, family, call.shape, bricks, call.options) };
    let draft = asked?.draft(None)?;
    if std::ptr::addr_eq(call.input.0, call.output.0) && call.output.1 > 0 {
        if call.input.1 != call.output.1 {
            let what = "bytes of the input of an array in place";
            return Err(Error::argument(what, call.input.1, call.output.1).into());
        }
        // SAFETY: the caller vouches for the array.
        let array = unsafe { bytes_mut("array", call.output.0, call.output.1) }?;
        return Ok(draft.run_once_in_place(direction, array)?);
    }
    // SAFETY: the caller vouches for the arrays.
    let (input, output) = unsafe { arrays(call.input, call.output) }?;
    Ok(draft.run_once(direction, input, output)?)
}

/// Frees the plans that `thriffty_forward_serial` and `thriffty_inverse_serial` have made, with
/// their memory and threads. Later calls make new ones.
#[unsafe(no_mangle)]
pub extern "C" fn thriffty_clear_plans() -> Status {
    status(|| {
        local::clear_plans();
        Ok(())
    })
}

/// The most threads of a plan of one process whose option "threads" is "default": the environment
/// variable `THRIFFTY_THREADS`, or `OMP_NUM_THREADS`, or the number of cores that this process may
/// use by its affinity and the quota of its control group.
#[unsafe(no_mangle)]
pub extern "C" fn thriffty_default_threads() -> i32 {
    i32::try_from(local::default_threads()).unwrap_or(i32::MAX)
}
