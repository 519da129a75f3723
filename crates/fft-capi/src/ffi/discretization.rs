//! Entry points that set how operators discretise derivatives.

use std::ffi::c_char;

use thriffty::spectral::Tridiagonal;
use thriffty::{Ends, Error};

use super::Plan;
use super::addresses::null;
use super::pointers::text;
use crate::registry::plans;
use crate::status::{Failure, Status, status};

/// Sets the difference schemes whose symbols later calls of `thriffty_apply` and
/// `thriffty_wavenumbers` use: names with commas between them, one for each axis, or one for all.
/// NULL stands for "exact". Not collective.
///
/// "central2" and "central4" are central differences of second and fourth order. "staggered2" and
/// "staggered4" have scalars at cells, and components of vectors at the faces between a cell and
/// the next: gradients are differences forward, divergences backward. The spacing follows from the
/// length of an axis, for cosine and sine transforms the distance of the ends where a value or a
/// slope is 0. On devices, operators with first derivatives refuse staggered schemes.
///
/// # Safety
/// `schemes` is NULL or a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_set_schemes(plan: *mut Plan, schemes: *const c_char) -> Status {
    // SAFETY: the caller vouches for the text.
    status(|| unsafe { set_schemes(plan, schemes, false) })
}

/// As `thriffty_set_schemes`, with the axes in the order of Fortran.
///
/// # Safety
/// As of `thriffty_set_schemes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_set_schemes_f(plan: *mut Plan, schemes: *const c_char) -> Status {
    // SAFETY: the caller vouches for the text.
    status(|| unsafe { set_schemes(plan, schemes, true) })
}

/// # Safety
/// As of [`thriffty_set_schemes`].
unsafe fn set_schemes(
    plan: *mut Plan,
    schemes: *const c_char,
    reversed: bool,
) -> Result<(), Failure> {
    // SAFETY: the caller vouches for the text.
    let names = unsafe { text("schemes", schemes)? };
    plans().with(plan.addr(), |plan| Ok(plan.set_schemes(names.as_deref(), reversed)?))
}

/// Sets the coefficients of a difference scheme along the axis of kind "tridiagonal", for later
/// calls of `thriffty_apply` with the operators Laplacian, Poisson and Helmholtz: the second
/// derivative of point j is `lower[j] f[j-1] + diagonal[j] f[j] + upper[j] f[j+1]`. Not collective.
///
/// `lower[0]` multiplies the last point and `upper[n-1]` the first; both are 0 unless the axis is
/// periodic. If no end fixes the mean of a solution, it is 0, and the mean of the right-hand side
/// is ignored. Both are weighted so that fluxes cancel, for example by the widths of cells.
///
/// # Safety
/// Each array is NULL, which is refused, or has `n` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_set_tridiagonal(
    plan: *mut Plan,
    lower: *const f64,
    diagonal: *const f64,
    upper: *const f64,
    n: usize,
) -> Status {
    status(|| {
        let read = |what: &str, place: *const f64| {
            // SAFETY: the caller vouches for the numbers.
            unsafe { numbers(what, place, n) }
        };
        let (lower, diagonal) = (read("lower", lower)?, read("diagonal", diagonal)?);
        let scheme = Tridiagonal::new(&lower, &diagonal, &read("upper", upper)?);
        plans().with(plan.addr(), |plan| Ok(plan.set_tridiagonal(scheme)?))
    })
}

/// Sets the coefficients of the second derivative of second order on a stretched grid, as
/// `thriffty_set_tridiagonal`, by the boundary conditions at its ends and the places of its `count`
/// faces, in ascending order: one more than points at cells.
///
/// `ends` is "neumann", "dirichlet", "neumann-dirichlet" or "dirichlet-neumann", with "@faces"
/// behind where the points are the faces, except for ends where the value is 0, or "periodic".
///
/// # Safety
/// `ends` is NULL, which is refused, or a text that ends with a zero; `faces` is NULL, which is
/// refused, or has `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_set_stretched(
    plan: *mut Plan,
    ends: *const c_char,
    faces: *const f64,
    count: usize,
) -> Status {
    status(|| {
        // SAFETY: the caller vouches for the text and the numbers.
        let (ends, faces) = unsafe { (text("ends", ends)?, numbers("faces", faces, count)?) };
        let ends: Ends = ends.ok_or_else(|| null("ends"))?.parse()?;
        let scheme = Tridiagonal::second_derivative(&faces, ends);
        plans().with(plan.addr(), |plan| Ok(plan.set_tridiagonal(scheme)?))
    })
}

/// Reads `count` numbers.
///
/// # Safety
/// `place` is NULL or has as many numbers.
unsafe fn numbers(what: &str, place: *const f64, count: usize) -> Result<Vec<f64>, Error> {
    if place.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller vouches for the numbers; alignment is not needed.
    Ok((0..count).map(|at| unsafe { place.add(at).read_unaligned() }).collect())
}
