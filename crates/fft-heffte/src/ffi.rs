//! The entry points: the 25 functions of heFFTe's C interface, with its names, types and numbers.
//!
//! All unsafe code of this crate is here. Calls are sound if programs keep heFFTe's rules:
//!
//! - A plan is NULL or valid, and one thread at a time uses it.
//! - A place for a plan or for options is NULL or has room for it.
//! - Bounds and orders are NULL or three numbers each.
//! - A communicator has not been freed.
//! - Arrays are NULL, or aligned and as long as the plan says.
//! - Nobody else accesses arrays during a call.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use thriffty::mpi::MpiComm;
use thriffty::mpi::rsmpi::ffi::MPI_Comm;
use thriffty::planning::{Direction, Element, Precision, Real, agree};
use thriffty::{Comm, Complex, Error, Scale};

use crate::boxes::{Extent, ORDER};
use crate::plan::{Both, build};

/// The result of functions that make or destroy plans.
const SUCCESS: c_int = 0;
const UNKNOWN_BACKEND: c_int = 1;
const FAILURE: c_int = 2;
const BAD_PLAN: c_int = 3;

/// The stock backend, FFTW and MKL: the CPU.
const BACKENDS: std::ops::RangeInclusive<c_int> = 0..=2;
const MKL: c_int = 2;

/// Options in heFFTe's layout. They choose among heFFTe's algorithms.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Options {
    use_reorder: c_int,
    algorithm: c_int,
    use_pencils: c_int,
    use_gpu_aware: c_int,
}

/// A plan in heFFTe's layout. Its last field points to a `Both`.
#[derive(Debug)]
#[repr(C)]
pub struct Fft {
    backend_type: c_int,
    using_r2c: c_int,
    fft: *mut c_void,
}

/// How lines on standard error begin.
const NAME: &str = "thriffty in the place of heFFTe";

fn complain(why: &str) {
    // The program gets a status, whether this can be printed or not.
    let _ = std::io::stderr().write_all(format!("{NAME}: {why}\n").as_bytes());
}

/// Runs something that may panic; the message of a panic is on standard error already.
fn guarded<R>(body: impl FnOnce() -> R, otherwise: R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// Writes heFFTe's own defaults. 0, or 1 for an unknown backend.
///
/// # Safety
/// As of this module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_set_default_options(
    backend: c_int,
    options: *mut Options,
) -> c_int {
    if !BACKENDS.contains(&backend) {
        return UNKNOWN_BACKEND;
    }
    let usual = Options {
        use_reorder: c_int::from(backend != MKL),
        algorithm: 0,
        use_pencils: 1,
        use_gpu_aware: 1,
    };
    if options.is_null() {
        complain("heffte_set_default_options: options is NULL");
        return FAILURE;
    }
    // SAFETY: the caller has room for options there.
    unsafe { options.write(usual) };
    SUCCESS
}

/// A box of a program.
///
/// # Safety
/// Pointers must be NULL or point to three numbers.
unsafe fn extent(
    low: *const c_int,
    high: *const c_int,
    order: *const c_int,
) -> Result<Extent, Error> {
    // SAFETY: the caller vouches for the pointers.
    let three = |at: *const c_int| (!at.is_null()).then(|| unsafe { at.cast::<[i32; 3]>().read() });
    let null = || Error::argument("bounds of a box", "NULL", "three numbers");
    let (low, high) = (three(low).ok_or_else(null)?, three(high).ok_or_else(null)?);
    Ok(Extent { low, high, order: three(order).unwrap_or(ORDER) })
}

/// Makes a plan.
///
/// # Safety
/// The communicator has not been freed; `plan` is NULL or has room for a pointer.
unsafe fn create(
    backend: c_int,
    boxes: [Result<Extent, Error>; 2],
    halved: Option<c_int>,
    comm: MPI_Comm,
    plan: *mut *mut Fft,
) -> c_int {
    if !BACKENDS.contains(&backend) {
        return UNKNOWN_BACKEND;
    }
    let place = if plan.is_null() {
        Err(Error::argument("plan", "NULL", "a pointer"))
    } else {
        // SAFETY: the caller has room for a pointer there.
        unsafe { plan.write(std::ptr::null_mut()) };
        Ok(plan)
    };
    let mut first = true;
    thriffty::warnings::show(NAME);
    let made = || {
        // SAFETY: the caller vouches for the communicator.
        let comm = unsafe { MpiComm::from_raw(comm) }?;
        first = comm.rank() == 0;
        let [input, output] = boxes;
        let asked = place.and_then(|place| Ok((place, [input?, output?])));
        let (place, boxes) = agree(&comm, asked)?;
        let fft = Box::into_raw(Box::new(build(&comm, boxes, halved)?)).cast();
        let using_r2c = c_int::from(halved.is_some());
        // SAFETY: as above.
        unsafe {
            place.write(Box::into_raw(Box::new(Fft { backend_type: backend, using_r2c, fft })))
        };
        Ok::<(), Error>(())
    };
    match guarded(made, Err(Error::argument("library", "a bug", "none"))) {
        Ok(()) => SUCCESS,
        Err(error) => {
            // All ranks have the same error.
            if first {
                complain(&error.to_string());
            }
            FAILURE
        }
    }
}

/// Makes a plan of complex data. Returns 0, 1 for an unknown backend, or 2 for other errors.
/// Collective.
///
/// # Safety
/// As of this module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_plan_create(
    backend: c_int,
    inbox_low: *const c_int,
    inbox_high: *const c_int,
    inbox_order: *const c_int,
    outbox_low: *const c_int,
    outbox_high: *const c_int,
    outbox_order: *const c_int,
    comm: MPI_Comm,
    _options: *const Options,
    plan: *mut *mut Fft,
) -> c_int {
    // SAFETY: the caller's bounds and orders are three numbers each.
    unsafe {
        let input = extent(inbox_low, inbox_high, inbox_order);
        let output = extent(outbox_low, outbox_high, outbox_order);
        create(backend, [input, output], None, comm, plan)
    }
}

/// Makes a plan of real data with half a spectrum along a dimension, as [`heffte_plan_create`].
///
/// # Safety
/// As of this module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_plan_create_r2c(
    backend: c_int,
    inbox_low: *const c_int,
    inbox_high: *const c_int,
    inbox_order: *const c_int,
    outbox_low: *const c_int,
    outbox_high: *const c_int,
    outbox_order: *const c_int,
    r2c_direction: c_int,
    comm: MPI_Comm,
    _options: *const Options,
    plan: *mut *mut Fft,
) -> c_int {
    // SAFETY: the caller's bounds and orders are three numbers each.
    unsafe {
        let input = extent(inbox_low, inbox_high, inbox_order);
        let output = extent(outbox_low, outbox_high, outbox_order);
        create(backend, [input, output], Some(r2c_direction), comm, plan)
    }
}

/// Destroys a plan. Returns 0, or 3 if the handle is not a plan. Collective.
///
/// # Safety
/// As of this module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_plan_destroy(plan: *mut Fft) -> c_int {
    // SAFETY: the caller's plan is NULL, or one that was made and not destroyed.
    unsafe {
        if plan.is_null() || !BACKENDS.contains(&(*plan).backend_type) {
            return BAD_PLAN;
        }
        let plan = Box::from_raw(plan);
        guarded(|| drop(Box::from_raw(plan.fft.cast::<Both>())), ());
    }
    SUCCESS
}

/// Something of a plan; `otherwise` of NULL.
///
/// # Safety
/// The plan must be NULL, or one that was made and not destroyed.
unsafe fn of(plan: *const Fft, otherwise: c_int, ask: impl FnOnce(&Both) -> usize) -> c_int {
    if plan.is_null() {
        return otherwise;
    }
    // SAFETY: the caller vouches for the plan, whose last field is ours.
    let found = unsafe { ask(&*(*plan).fft.cast::<Both>()) };
    c_int::try_from(found).unwrap_or(c_int::MAX)
}

/// Numbers of the input on this rank.
///
/// # Safety
/// As of this module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_size_inbox(plan: *const Fft) -> c_int {
    // SAFETY: the caller's plan is one.
    unsafe { of(plan, 0, |both| both.double.plan.input_len()) }
}

/// Numbers of the output on this rank.
///
/// # Safety
/// As of this module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_size_outbox(plan: *const Fft) -> c_int {
    // SAFETY: the caller's plan is one.
    unsafe { of(plan, 0, |both| both.double.plan.output_len()) }
}

/// Complex numbers of the workspace that `_buffered` functions take.
///
/// # Safety
/// As of this module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_size_workspace(plan: *const Fft) -> c_int {
    // SAFETY: the caller's plan is one.
    unsafe { of(plan, 0, |both| both.workspace) }
}

/// The backend that the plan was made with; -1 for NULL.
///
/// # Safety
/// As of this module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_get_backend(plan: *const Fft) -> c_int {
    // SAFETY: the caller's plan is one.
    if plan.is_null() { -1 } else { unsafe { (*plan).backend_type } }
}

/// 1 for a plan of real data, otherwise 0.
///
/// # Safety
/// As of this module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_is_r2c(plan: *const Fft) -> c_int {
    // SAFETY: the caller's plan is one.
    if plan.is_null() { 0 } else { unsafe { c_int::from((*plan).using_r2c != 0) } }
}

/// heFFTe's number for a scale; unknown ones stand for no scale, as in heFFTe.
fn scaled(scale: c_int) -> Scale {
    match scale {
        1 => Scale::Full,
        2 => Scale::Symmetric,
        _ => Scale::None,
    }
}

/// Transforms from one array to another, which may overlap. NULL is an array without numbers, which
/// is too short unless the brick is empty.
///
/// # Safety
/// The plan is NULL or valid, and nobody else uses it meanwhile. The arrays are NULL or have as
/// many numbers as the plan says, which nobody else touches.
unsafe fn transform<A: Element, B: Element<Real = A::Real>>(
    plan: *const Fft,
    direction: Direction,
    input: *const A,
    output: *mut B,
    scale: Scale,
) {
    if plan.is_null() {
        return complain("the plan is NULL");
    }
    // SAFETY: the caller vouches for the plan, whose last field is ours, and for both arrays. An
    // input that the output overlaps is copied before the output becomes a slice.
    unsafe {
        let Both { single, double, first, .. } = &mut *(*plan).fft.cast::<Both>();
        let transformer = match A::Real::PRECISION {
            Precision::F32 => single,
            Precision::F64 => double,
        };
        let [from, to] = transformer.lens::<A, B>(direction);
        let lens = [if input.is_null() { 0 } else { from }, if output.is_null() { 0 } else { to }];
        let ends = [input.wrapping_add(lens[0]).addr(), output.wrapping_add(lens[1]).addr()];
        let overlap = input.addr() < ends[1] && output.addr() < ends[0];
        let copy: Vec<A>;
        let source = match (lens[0], overlap) {
            (0, _) => &[],
            (len, false) => std::slice::from_raw_parts(input, len),
            (len, true) => {
                copy = std::slice::from_raw_parts(input, len).to_vec();
                &copy
            }
        };
        let target = match lens[1] {
            0 => &mut [],
            len => std::slice::from_raw_parts_mut(output, len),
        };
        let bug = Err(Error::argument("library", "a bug", "none"));
        let run = || transformer.run(direction, source, target, scale);
        if let Err(error) = guarded(run, bug) {
            if *first {
                complain(&error.to_string());
            }
            let numbers: &mut [B::Real] = bytemuck::cast_slice_mut(target);
            numbers.fill(B::Real::of(f64::NAN));
        }
    }
}

/// A function and its twin that takes a workspace.
macro_rules! transforms {
    ($($name:ident, $buffered:ident: $from:ty => $to:ty, $direction:ident;)*) => {$(
        #[doc = concat!("Transforms as `", stringify!($direction), "`, in the precision of its arrays. Collective.")]
        ///
        /// # Safety
        /// As of this module.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            plan: *const Fft,
            input: *const $from,
            output: *mut $to,
            scale: c_int,
        ) {
            // SAFETY: the caller's plan is one, and its arrays have as many numbers as it says.
            unsafe { transform(plan, Direction::$direction, input, output, scaled(scale)) }
        }

        #[doc = concat!("As [`", stringify!($name), "`; the workspace is not used.")]
        ///
        /// # Safety
        /// As of this module.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $buffered(
            plan: *const Fft,
            input: *const $from,
            output: *mut $to,
            _workspace: *mut c_void,
            scale: c_int,
        ) {
            // SAFETY: as of the other.
            unsafe { $name(plan, input, output, scale) }
        }
    )*};
}

transforms! {
    heffte_forward_s2c, heffte_forward_s2c_buffered: f32 => Complex<f32>, Forward;
    heffte_forward_c2c, heffte_forward_c2c_buffered: Complex<f32> => Complex<f32>, Forward;
    heffte_forward_d2z, heffte_forward_d2z_buffered: f64 => Complex<f64>, Forward;
    heffte_forward_z2z, heffte_forward_z2z_buffered: Complex<f64> => Complex<f64>, Forward;
    heffte_backward_c2s, heffte_backward_c2s_buffered: Complex<f32> => f32, Inverse;
    heffte_backward_c2c, heffte_backward_c2c_buffered: Complex<f32> => Complex<f32>, Inverse;
    heffte_backward_z2d, heffte_backward_z2d_buffered: Complex<f64> => f64, Inverse;
    heffte_backward_z2z, heffte_backward_z2z_buffered: Complex<f64> => Complex<f64>, Inverse;
}
