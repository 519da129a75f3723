//! Distributed Fourier transforms in 1 to 4 dimensions over threads, MPI processes and GPUs.
//!
//! [`c2c`], [`r2c`] and [`r2r`] draft a transform; [`Draft::build`] makes the [`Plan`]. It
//! transforms slices, or a [`Field`], which knows whether it is in physical or in spectral space.
//! Ranks come from [`threads`] or, with the feature `mpi`, from `mpi::init`; both are a [`Comm`].
//!
//! ```
//! thriffty::threads(3, |world| {
//!     let mut plan = thriffty::r2c(&world, [6, 10]).build()?;
//!     let mut x = plan.input();
//!     x.fill(|[i, j]| (i + j) as f64);
//!     let spectrum = plan.forward(x)?;
//!     let y = plan.inverse(spectrum)?;
//!     y.iter().for_each(|([i, j], v)| assert!((v - (i + j) as f64).abs() < 1e-12));
//!     Ok::<(), thriffty::Error>(())
//! })?;
//! # Ok::<(), thriffty::Error>(())
//! ```
//!
//! Forward is `exp(-2πi jk/n)`, unscaled; inverse divides by the number of points; the last axis is
//! contiguous; frequencies are in natural order. Every call that communicates is collective and
//! returns the same `Ok` or error on every rank.
//!
//! The folders, each of which uses those before it:
//!
//! - `field`: kinds of data, arrays, and fields;
//! - [`spectral`]: operators on spectra;
//! - `bound`: recipes bound to the host or to a device;
//! - `tuning`: the choice of a recipe;
//! - `plan`: options, drafts and plans;
//! - [`arrays`]: copies between fields and local arrays, ghost points;
//! - `local`: plans of one process, with a team of threads;
//! - `machine`: machines of the model, in files, and measured with plans.
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

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

#[cfg(doctest)]
#[doc = include_str!("../docs/spectral.md")]
struct SpectralGuide;

#[cfg(doctest)]
#[doc = include_str!("../docs/types.md")]
struct Types;

pub mod arrays;
mod bound;
mod field;
pub mod local;
pub mod machine;
mod plan;
pub mod spectral;
pub mod tuning;
pub mod warnings;

#[cfg(feature = "mpi")]
pub use fft_comm::mpi;
pub use fft_comm::{ThreadComm, alone};
pub use fft_core::{Brick, Comm, Complex, Error, ErrorKind, Grid, Kind, Scale, Tolerance, Wire};
pub use field::{C2c, Field, Physical, R2c, R2r, Spectral};
pub use plan::{Draft, Plan, c2c, r2c, r2r};
pub use tuning::Tune;

/// Plans whose types are values, and what plans are made from: options, layouts, recipes,
/// predictions and simulations.
pub mod planning {
    pub use crate::field::{Device, DynArray, DynTransform, Host, Location, Side, Transform};
    pub use crate::plan::{DynDraft, DynPlan, Norm, Options};
    pub use crate::spectral::Wavenumbers;
    pub use fft_core::{
        Algorithm, BytesMoved, Capabilities, Direction, DynBrick, DynGrid, Element, Epochs,
        Expected, Family, Flight, Layout, MAX_AXES, Memory, Message, Node, Order, PerAxis, Played,
        Precision, Prediction, Problem, ProcGrid, Program, Real, Recipe, Reduce, Schedule,
        Simulation, Simulator, Step, Summary, Timings, WireError, agree, assert_same,
    };
}

/// Plans and fields on CUDA devices, and what they are made of.
#[cfg(feature = "cuda")]
pub mod gpu {
    pub use crate::bound::DeviceOptions;
    pub use crate::plan::{DeviceDraft, DeviceField, DevicePlan};
    pub use fft_gpu::*;
}

/// Runs `body` once per rank, each on a thread of its own; the results in order of ranks.
///
/// # Errors
/// The error of the lowest rank that failed; [`Error::Threads`] when the threads cannot be started,
/// and then no rank has run.
///
/// # Panics
/// If `ranks` is 0 or a rank panics.
pub fn threads<R: Send, E: Send + From<Error>>(
    ranks: usize,
    body: impl Fn(ThreadComm) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    fft_comm::try_threads(ranks, body)?.into_iter().collect()
}
