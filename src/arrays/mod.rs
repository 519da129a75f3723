//! Arrays as programs have them: ghost points, strides, several bricks per rank.
//!
//! A [`Subarray`] tells where a brick is in a local array. A rank may have several, in one array or
//! in more. [`copy`] plans a copy between such arrays of all ranks, [`halo`] the exchange of ghost
//! points. A [`FieldCopy`] loads fields of a plan from such arrays, and stores them.
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
//!     let mut plan = thriffty::c2c(world, shape).transposed_input().build()?;
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

mod field_copy;

use fft_comm::exchange;
use fft_core::{Algorithm, Comm, Error, Exchange, agree};

pub use fft_core::{Ghosts, GridData, ParallelCopy, Subarray};
pub use field_copy::FieldCopy;

/// Plans a copy from local arrays of all ranks to others. Collective.
///
/// # Errors
/// Those of [`ParallelCopy::new`].
pub fn copy(
    comm: &dyn Comm,
    data: GridData,
    sources: &[Subarray],
    targets: &[Subarray],
) -> Result<ParallelCopy, Error> {
    let own = agree(comm, comm.dup())?;
    let exchange = p2p(own.as_ref())?;
    ParallelCopy::new(own, exchange, data, sources, targets)
}

/// Plans the exchange of ghost points. Collective.
///
/// # Errors
/// Those of [`ParallelCopy::halo`].
pub fn halo(
    comm: &dyn Comm,
    data: GridData,
    ghosts: Ghosts,
    arrays: &[Subarray],
) -> Result<ParallelCopy, Error> {
    let own = agree(comm, comm.dup())?;
    let exchange = p2p(own.as_ref())?;
    ParallelCopy::halo(own, exchange, data, ghosts, arrays)
}

/// The exchange of a copy. Collective.
fn p2p(comm: &dyn Comm) -> Result<Box<dyn Exchange>, Error> {
    agree(comm, exchange(Algorithm::P2p, comm))
}
