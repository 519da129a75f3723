//! Entry points that say how operators discretise derivatives.

use std::ffi::c_char;

use super::Plan;
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
/// slope is 0.
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
