//! Arrays as programs have them: ghost points, strides, several bricks per rank.
//!
//! A [`Subarray`] describes where a brick lies in a local array. A rank may have several, in one
//! array or in more. [`copy`] plans a copy between such arrays of all ranks, [`halo`] the exchange
//! of ghost points. A [`FieldCopy`] loads fields of a plan from such arrays, and stores them. For
//! arrays on GPUs, `bind_on_device` binds a [`CopyPlan`] to devices.
//!
//! ```
//! use thriffty::arrays::{FieldCopy, Ghosts, GridData, Subarray, halo};
//! use thriffty::{Complex, Grid};
//! let shape = [8, 8];
//! thriffty::run(2, |world| {
//!     // A brick with one ghost point on each side, along both axes.
//!     let brick = Grid::new(shape)?.brick(world.rank(), world.size());
//!     let here = Subarray::with_ghosts(brick, [1, 1], [1, 1]);
//!     let mut u = vec![Complex::new(1.0, 0.0); here.distance];
//!     let mut plan = thriffty::c2c(world, shape).transposed_input(true).build()?;
//!     let mut copy = FieldCopy::input(&plan, &[here])?;
//!     let mut field = plan.input();
//!     copy.load(&[&u], &mut field)?;
//!     let spectrum = plan.forward(field)?;
//!     copy.store(&plan.inverse(spectrum)?, &mut [&mut u])?;
//!     let ghosts = Ghosts::new([1, 1], [1, 1], [true; 2]);
//!     let data = GridData::of::<Complex<f64>>(Grid::new(shape)?);
//!     halo(world, data, ghosts, &[here])?.run_in_place(&mut [&mut u])
//! })?;
//! # Ok::<(), thriffty::Error>(())
//! ```

mod bound_copy;
mod field_copy;
#[cfg(feature = "cuda")]
mod on_device;

use fft_core::{Comm, Error};

pub use bound_copy::BoundCopy;
pub use fft_comm::{bind_copy as bind, bind_copy_by as bind_by};
pub use fft_core::{
    ArrayRole, CopyMessage, CopyPart, CopyPlan, Ghosts, GridData, OwnCopy, ParallelCopy, Subarray,
};
#[cfg(feature = "cuda")]
pub use fft_gpu::DeviceCopy;
pub use field_copy::{FieldCopy, check_in_order};
#[cfg(feature = "cuda")]
pub use on_device::bind_on_device;

/// Plans a copy from local arrays of all ranks to others. Collective.
///
/// # Errors
/// The errors of [`CopyPlan::new`] and [`bind`].
pub fn copy(
    comm: &dyn Comm,
    data: GridData,
    sources: &[Subarray],
    targets: &[Subarray],
) -> Result<ParallelCopy, Error> {
    bind(comm, CopyPlan::new(comm, data, sources, targets)?)
}

/// Plans the exchange of ghost points. It [runs in place](ParallelCopy::run_in_place). Collective.
///
/// # Errors
/// The errors of [`CopyPlan::halo`] and [`bind`].
pub fn halo(
    comm: &dyn Comm,
    data: GridData,
    ghosts: Ghosts,
    arrays: &[Subarray],
) -> Result<ParallelCopy, Error> {
    bind(comm, CopyPlan::halo(comm, data, ghosts, arrays)?)
}
