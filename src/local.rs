//! Transforms of whole arrays by this process alone, on several threads.
//!
//! ```
//! use thriffty::Complex;
//! let mut plan = thriffty::local::c2c([6, 10]).threads(2).build()?;
//! let x = vec![Complex::new(1.0, 0.0); 60];
//! let mut y = vec![Complex::default(); 60];
//! plan.forward_into(&x, &mut y)?;
//! assert_eq!(y[0].re, 60.0); // the sum over all points
//! # Ok::<(), thriffty::Error>(())
//! ```
//!
//! [`Draft::forward_once`] and [`Draft::inverse_once`] need no plan, because they keep the plans
//! that they make.
//!
//! Internally, each thread is a rank with a part of the arrays, cut along their slowest axis.
//! Threads read each other's parts in place, so nothing is copied before or after, unless arrays
//! are transformed in place and parts change their length. All plans of the process share their
//! threads, which park between calls. Plans of several threads that run at the same time wait for
//! each other if there are too few cores. In a forked process, the plans of its parent return an
//! error, but you can make new ones.

use fft_core::{Kind, check_axes};

use crate::field::{C2c, R2c, R2r};
use crate::plan::Draft;
pub use crate::plan::clear_plans;
pub use crate::team::default_threads;

/// Drafts a transform of complex data by this process, in double precision.
pub fn c2c<const D: usize>(shape: [usize; D]) -> Draft<'static, C2c, D> {
    const { check_axes(D) };
    Draft::local(shape)
}

/// Drafts a transform of real data to half a spectrum by this process, in double precision: the
/// last axis has `n/2 + 1` frequencies.
///
/// ```
/// let mut plan = thriffty::local::r2c([4, 6]).build()?;
/// let mut spectrum = vec![Default::default(); plan.output_len()];
/// plan.forward_into(&[1.0; 24], &mut spectrum)?;
/// assert_eq!((spectrum.len(), spectrum[0].re), (16, 24.0));
/// # Ok::<(), thriffty::Error>(())
/// ```
pub fn r2c<const D: usize>(shape: [usize; D]) -> Draft<'static, R2c, D> {
    const { check_axes(D) };
    Draft::local(shape)
}

/// Drafts cosine and sine transforms of real data by this process, one kind for each axis, in
/// double precision.
pub fn r2r<const D: usize>(shape: [usize; D], kinds: [Kind; D]) -> Draft<'static, R2r, D> {
    const { check_axes(D) };
    Draft::local(shape).kinds(kinds)
}
