//! Distributed Fourier transforms in 1 to 4 dimensions: bricks in, bricks out, over threads or MPI processes.
//!
//! - [`Grid`] is the index space, [`Brick`] the box of it that a rank holds; [`Grid::brick`] makes an even cut.
//! - [`Plan::c2c`], [`Plan::r2c`] and [`Plan::r2r`] draft a transform; [`Draft`] has the options;
//!   [`Draft::build`] makes the [`Plan`], whose [`Recipe`] says how it will be done.
//! - A plan transforms slices ([`Plan::forward_into`], [`Plan::forward_in_place`]) or a [`Field`], which knows
//!   whether it is in physical or in spectral space.
//! - With the feature `cuda`, `Draft::on` makes the same plans of data on GPUs, and `DeviceField` is such a field there.
//! - Ranks come from [`threads`] or, with the feature `mpi`, from `mpi::init`; both are a [`Comm`].
//!
//! ```
//! use thriffty::{Complex, Error, Grid, Plan};
//!
//! thriffty::threads(3, |world| {
//!     let mut plan = Plan::c2c(&world, Grid::new([6, 10])?).build()?;
//!     let x = vec![Complex::new(1.0, 0.0); plan.input_len()];
//!     let mut y = vec![Complex::default(); plan.output_len()];
//!     plan.forward_into(&x, &mut y)?;
//!     if plan.output_brick().lo == [0, 0] {
//!         assert_eq!(y[0].re, 60.0); // the sum over all points
//!     }
//!     Ok::<(), Error>(())
//! })?;
//! # Ok::<(), Error>(())
//! ```
//!
//! Conventions: forward is `exp(-2πi jk/n)`, unscaled; inverse divides by the number of points; the last axis is
//! contiguous; frequencies are in natural order. Every call that communicates is collective and returns the
//! same `Ok` or error on every rank.
#![forbid(unsafe_code)]

// Their examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
#[cfg(doctest)]
#[doc = include_str!("../docs/exchanges.md")]
struct Exchanges;
#[cfg(doctest)]
#[doc = include_str!("../docs/tolerance.md")]
struct ToleranceGuide;

mod array;
pub mod calibrated;
#[cfg(feature = "cuda")]
mod device;
mod draft;
mod dyn_draft;
mod dyn_plan;
mod field;
mod files;
mod fitted;
pub mod machines;
mod part;
mod plan;
mod pool;
mod transform;
mod tune;
pub mod warnings;
mod wisdom;

pub use array::DynArray;
#[cfg(feature = "cuda")]
pub use device::{DeviceArray, DeviceDraft, DeviceField, DevicePlan, DynDevicePlan, Place};
pub use draft::Draft;
pub use dyn_draft::DynDraft;
pub use dyn_plan::DynPlan;
#[cfg(feature = "mpi")]
pub use fft_comm::mpi;
pub use fft_comm::tuner::{self, Outcome, Progress, Report, ReportRow, Source};
pub use fft_comm::{ThreadComm, alone};
pub use fft_core::{
    Algorithm, Brick, BytesMoved, Codecs, Comm, Complex, Direction, DynBrick, DynGrid, Element,
    Epochs, Error, ErrorKind, Expected, Family, Flight, Grid, How, Kind, Layout, MAX_AXES, Machine,
    Memory, Message, Messages, Node, Order, PerAxis, Played, Precision, Prediction, Problem,
    ProcGrid, Quantity, Rate, Real, Recipe, Reduce, Scale, Schedule, Simulation, Simulator, Step,
    Summary, Timings, Tolerance, Wire, WireError, agree,
};
#[cfg(feature = "cuda")]
pub use fft_gpu as gpu;
pub use field::{Field, Physical, Side, Spectral};
pub use plan::Plan;
pub use transform::{C2c, DynTransform, R2c, R2r, Transform};
pub use tune::Tune;

/// Runs `body` once per rank, each on a thread of its own, and returns what they return in order of ranks.
///
/// # Errors
/// The error of the lowest rank that failed.
///
/// # Panics
/// If `ranks` is 0 or a rank panics.
pub fn threads<R: Send, E: Send>(
    ranks: usize,
    body: impl Fn(ThreadComm) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    fft_comm::threads(ranks, body).into_iter().collect()
}
