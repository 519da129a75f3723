//! Entry points for operations on spectra.

use std::ffi::c_void;

use thriffty::Error;
#[cfg(feature = "cuda")]
use thriffty::gpu::keeping_context;

use super::Plan;
use super::addresses::null;
#[cfg(feature = "cuda")]
use super::device;
use super::pointers::{arrays, bytes_mut, tell};
use crate::registry::plans;
use crate::spectral::AskedOperator;
use crate::status::{Failure, Status, status};

/// Applies an operator to each mode of this rank's spectral data, on a box with these `lengths`,
/// one for each axis. Not collective, unless ranks divide the axis of kind "tridiagonal" of the
/// spectrum, so that a brick of spectral data does not hold it whole. Then all ranks must apply the
/// same operators in the same order, and an error on one rank is reported on every rank.
///
/// `operator` is `THRIFFTY_OPERATOR_GRADIENT` or another. `parameter` is the axis of a derivative,
/// from 0 on, the shift of Helmholtz's equation, the standard deviation of a Gaussian or the
/// fraction of a cutoff, for which NAN, as none, is refused. For other operators it is NAN or 0.
///
/// Components of a vector follow each other in memory, in the order of axes, as the arrays of a
/// batch do. The arrays have as many components as the operator, or several times as many. With
/// `output` equal to `input` it works in place, if the result has as many components.
///
/// If a plan of several ranks fails here, its next transform fails, too, on every rank, because the
/// others may be in it already.
///
/// # Safety
/// As of `thriffty_forward`; `lengths` is NULL or has as many numbers as the plan has axes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_apply(
    plan: *mut Plan,
    operator: i32,
    parameter: f64,
    lengths: *const f64,
    input: *const c_void,
    input_bytes: usize,
    output: *mut c_void,
    output_bytes: usize,
) -> Status {
    let (input, output) = ((input.cast(), input_bytes), (output.cast(), output_bytes));
    // SAFETY: the caller vouches for the arrays and the lengths.
    status(|| unsafe {
        let asked = AskedOperator { number: operator, parameter, reversed: false };
        apply(plan, asked, lengths, input, output)
    })
}

/// As `thriffty_apply`, in the order of Fortran: the first component of a vector is that along the
/// last axis, and the axis of a derivative is counted from 1, for the last axis, on.
///
/// # Safety
/// As of `thriffty_apply`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_apply_f(
    plan: *mut Plan,
    operator: i32,
    parameter: f64,
    lengths: *const f64,
    input: *const c_void,
    input_bytes: usize,
    output: *mut c_void,
    output_bytes: usize,
) -> Status {
    let (input, output) = ((input.cast(), input_bytes), (output.cast(), output_bytes));
    // SAFETY: the caller vouches for the arrays and the lengths.
    status(|| unsafe {
        let asked = AskedOperator { number: operator, parameter, reversed: true };
        apply(plan, asked, lengths, input, output)
    })
}

/// # Safety
/// As of [`thriffty_apply`].
unsafe fn apply(
    plan: *mut Plan,
    asked: AskedOperator,
    lengths: *const f64,
    input: (*const u8, usize),
    output: (*mut u8, usize),
) -> Result<(), Failure> {
    // SAFETY: there are as many lengths as axes.
    let told = |room: &mut [f64]| unsafe { numbers("lengths", lengths, room) };
    let in_place = input.0.addr() == output.0.addr() && input.1 == output.1 && input.1 > 0;
    plans().with(plan.addr(), |plan| {
        #[cfg(feature = "cuda")]
        if let Some((rank, stream)) = plan.device() {
            return keeping_context(|| {
                let place = (rank, &stream);
                // SAFETY: the caller vouches for the arrays.
                let arrays = unsafe {
                    if in_place {
                        device::array(place, "output", output.0, output.1).map(|to| (None, to))
                    } else {
                        device::arrays(place, input, output).map(|(from, to)| (Some(from), to))
                    }
                };
                let applied = arrays.and_then(|(from, mut to)| {
                    plan.apply_on_device(asked, told, from.as_ref(), &mut to)
                });
                Ok(plan.remember(applied)?)
            });
        }
        // SAFETY: the caller vouches for the arrays.
        let arrays = unsafe {
            if in_place {
                bytes_mut("output", output.0, output.1).map(|to| (None, to))
            } else {
                arrays(input, output).map(|(from, to)| (Some(from), to))
            }
        };
        let applied = plan.apply(asked, told, arrays);
        // All ranks have the error of a collective operator.
        let is_known = plan.plan().divides_systems();
        let applied = if is_known { applied } else { plan.remember(applied) };
        Ok(applied?)
    })
}

/// Multiplies each mode of this rank's spectral data by the same mode of `kernel`, or by its
/// complex conjugate: convolves with a kernel, or correlates. Not collective.
///
/// The kernel is one array, transformed by this plan or one with the same spectrum, unscaled. For a
/// batch, each array is multiplied.
///
/// After a failure the next transform fails, too, as after `thriffty_apply`.
///
/// # Safety
/// As of `thriffty_forward`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_convolve(
    plan: *mut Plan,
    kernel: *const c_void,
    kernel_bytes: usize,
    correlate: i32,
    data: *mut c_void,
    bytes: usize,
) -> Status {
    let (kernel, data) = ((kernel.cast::<u8>(), kernel_bytes), (data.cast::<u8>(), bytes));
    let correlate = correlate != 0;
    status(|| {
        plans().with(plan.addr(), |plan| {
            #[cfg(feature = "cuda")]
            if let Some((rank, stream)) = plan.device() {
                return keeping_context(|| {
                    // SAFETY: the caller vouches for the arrays.
                    let found = unsafe { device::arrays((rank, &stream), kernel, data) };
                    let multiplied = found.and_then(|(kernel, mut data)| {
                        plan.convolve_on_device(&kernel, correlate, &mut data)
                    });
                    Ok(plan.remember(multiplied)?)
                });
            }
            // SAFETY: as above.
            let found = unsafe { arrays(kernel, data) };
            let multiplied =
                found.and_then(|(kernel, data)| plan.convolve(kernel, correlate, data));
            Ok(plan.remember(multiplied)?)
        })
    })
}

/// Writes the transform of Green's function in open space, for a grid with this `spacing`: a kernel
/// for `thriffty_convolve`, with which -laplacian(phi) = rho is solved without walls or periods.
/// Collective.
///
/// The plan has 2 or 3 axes, and its option "zero_padded" is twice the shape, or more. The kernel
/// has `output_bytes` of `thriffty_plan_sizes`, where the plan's data is. Densities are assumed to
/// be constant in each cell; in two dimensions the potential of a point is -ln(r)/2 pi.
///
/// # Safety
/// `spacing` is NULL or has as many numbers as the plan has axes; `kernel` has `bytes` bytes, which
/// nobody else touches meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_green_function(
    plan: *mut Plan,
    spacing: *const f64,
    kernel: *mut c_void,
    bytes: usize,
) -> Status {
    status(|| {
        plans().with(plan.addr(), |plan| {
            let told = |asked: &mut [f64]| {
                // SAFETY: the caller vouches for the spacings.
                unsafe { numbers("spacing", spacing, asked) }
            };
            #[cfg(feature = "cuda")]
            if let Some((rank, stream)) = plan.device() {
                return keeping_context(|| {
                    let (place, data) = ((rank, &stream), kernel.cast_const().cast());
                    // SAFETY: the caller vouches for the array.
                    let array = unsafe { device::array(place, "kernel", data, bytes) };
                    Ok(plan.green_function_on_device(told, array, place)?)
                });
            }
            // SAFETY: as above, for the array.
            let array = unsafe { bytes_mut("kernel", kernel.cast(), bytes) };
            Ok(plan.green_function(told, array)?)
        })
    })
}

/// Reads as many numbers as there is room for.
///
/// # Safety
/// `place` is NULL or has as many numbers.
unsafe fn numbers(what: &str, place: *const f64, room: &mut [f64]) -> Result<(), Error> {
    if place.is_null() {
        return Err(null(what));
    }
    for (at, number) in room.iter_mut().enumerate() {
        // SAFETY: the caller vouches for the numbers; alignment is not needed.
        *number = unsafe { place.add(at).read_unaligned() };
    }
    Ok(())
}

/// Writes the wavenumbers of this rank's spectral brick along an axis of a box that is `length`
/// long there: `k`, and `odd` for derivatives of odd order, where the middle mode of an even number
/// of points is 0. Either may be NULL; `room` applies to both. Not collective.
///
/// # Safety
/// Each pointer is NULL or has room for `room` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_wavenumbers(
    plan: *mut Plan,
    axis: i32,
    length: f64,
    k: *mut f64,
    odd: *mut f64,
    room: usize,
) -> Status {
    status(|| {
        let found = plans().with(plan.addr(), |plan| Ok(plan.wavenumbers(axis, length)?))?;
        for (place, numbers) in [k, odd].into_iter().zip(found) {
            if place.is_null() {
                continue;
            }
            if numbers.len() > room {
                let expected = format!("at least {}", numbers.len());
                return Err(Error::argument("room for wavenumbers", room, expected).into());
            }
            for (at, number) in numbers.into_iter().enumerate() {
                // SAFETY: the caller vouches for the room, which is enough.
                unsafe { tell("wavenumber", place.add(at), number)? };
            }
        }
        Ok(())
    })
}

/// The smallest length of at least `n` points whose transform is fast: a product of powers of 2, 3
/// and 5. 0 if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn thriffty_next_fast_len(n: usize) -> usize {
    if n > usize::MAX / 2 { 0 } else { thriffty::spectral::next_fast_len(n) }
}
