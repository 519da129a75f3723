//! Distributed Fourier transforms in 1 to 4 dimensions over threads, MPI processes and GPUs.
//!
//! [`c2c`], [`r2c`] and [`r2r`] draft a transform; [`Draft::build`] makes the [`Plan`]. It
//! transforms slices, or a [`Field`], whose type says whether it is in physical or in spectral
//! space. [`run`] starts the ranks: threads or, with the feature `mpi` and under a launcher, MPI
//! processes. Each rank gets a [`Comm`]. To start only threads or only MPI, call [`threads`] or
//! `mpi::init`. A [`group::GroupComm`] connects processes that another launcher or framework has
//! started.
//!
//! ```
//! thriffty::run(3, |world| {
//!     let mut plan = thriffty::r2c(world, [6, 10]).build()?;
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
//! The folders, each of which uses only the ones before it:
//!
//! - `field`: kinds of data, arrays, and fields;
//! - [`spectral`]: operators on spectra;
//! - `bound`: recipes bound to the host or to a device;
//! - `options`: the options of plans, in one table;
//! - `team`: the threads of a process that share the work of its plans;
//! - `tuning`: the choice of a recipe;
//! - `machines`: machines of the model, by name or in files;
//! - `trace`: files that record what ranks do, and when;
//! - `plan`: drafts and plans, of ranks and of [this process alone](local);
//! - [`arrays`]: copies between fields and local arrays, ghost points;
//! - `calibration`: machines of the model, measured with plans.
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
#[doc = include_str!("../docs/reproducible.md")]
struct ReproducibleGuide;
#[cfg(doctest)]
#[doc = include_str!("../docs/spectral.md")]
struct SpectralGuide;

#[cfg(doctest)]
#[doc = include_str!("../docs/arrays.md")]
struct ArraysGuide;

#[cfg(doctest)]
#[doc = include_str!("../docs/one-axis.md")]
struct OneAxisGuide;

#[cfg(doctest)]
#[doc = include_str!("../docs/types.md")]
struct Types;

pub mod arrays;
mod bound;
mod calibration;
mod field;
mod job;
pub mod local;
mod machines;
mod options;
mod plan;
pub mod spectral;
mod team;
mod trace;
pub mod tuning;
pub mod warnings;

#[cfg(feature = "mpi")]
pub use fft_comm::mpi;
pub use fft_comm::{ThreadComm, alone};
#[doc(hidden)]
pub use fft_core::PerProcess;
pub use fft_core::{
    Brick, Comm, Complex, Ends, Error, ErrorKind, Grid, Kind, Scale, SharesMemory, Tolerance, Wire,
};
pub use field::{C2c, Field, Physical, R2c, R2r, Spectral};
pub use job::Job;
pub use options::Tuning;
pub use plan::{Draft, Plan, c2c, r2c, r2r};

/// Communicators without MPI, made from groups of processes that another framework has started.
#[cfg(target_os = "linux")]
pub mod group {
    #[doc(inline)]
    pub use fft_comm::group::*;
    pub use fft_core::{DeviceBuffer, Part, Parts, Slot};
}

/// Plans whose types are values, a cache of plans, and the parts that plans are made from: options,
/// layouts, recipes, predictions and simulations.
pub mod planning {
    pub use crate::field::{
        Device, DynArray, DynTransform, Host, Location, RankArrays, Side, Transform,
    };
    pub use crate::options::{
        DeviceChoice, Form, GlobalArrays, MachineChoice, OptionInfo, OptionRow, Options, Placement,
        Scope, Settings,
    };
    pub use crate::plan::{DynDraft, DynPlan, PlanCache};
    pub use crate::spectral::Wavenumbers;
    pub use fft_core::{
        Access, BytesMoved, Capabilities, DeviceCapabilities, Direction, Division, DynBrick,
        DynGrid, Element, Epochs, Exchange, Expected, Factors, Flight, GpuTransport, Layout,
        Layouts, MAX_AXES, Memory, Message, Node, Norm, Order, Pattern, PerAxis, Precision,
        Prediction, Problem, ProcGrid, Program, Real, Recipe, Reduce, Schedule, SimulatedStep,
        Simulation, Simulator, Step, Summary, Timings, WireError, agree, assert_same, on_all_ranks,
        on_any_rank,
    };
}

/// Machines for the model of costs: by name, from files, or measured.
///
/// A machine file is TOML with the fields of [`Machine`](machine::Machine): each number has a
/// `value`, its `source`, and whether it was measured, fitted or assumed. `measure` and `save` make
/// a file; `load` and `read` read it on all ranks, `read_file` only on this one. With the feature
/// `cuda`, `measure_on_device`, `load_on_device` and `read_on_device` do the same for plans on
/// GPUs.
pub mod machine {
    pub use crate::calibration::measure;
    #[cfg(feature = "cuda")]
    pub use crate::calibration::measure_on_device;
    pub use crate::machines::{NAMES, load, named, read, read_file, save};
    #[cfg(feature = "cuda")]
    pub use crate::machines::{load_on_device, read_on_device};
    pub use fft_core::{Codecs, Costs, How, LineCosts, Machine, Messages, Quantity, Rate};
}

/// Plans and fields on CUDA devices, and the parts that they are made of.
#[cfg(feature = "cuda")]
pub mod gpu {
    pub use crate::bound::{DeviceOptions, device_in_rotation};
    pub use crate::plan::{DeviceDraft, DeviceField, DevicePlan, planned_access};
    pub use fft_gpu::*;
}

/// Runs `body` on every rank: on the processes of this MPI job, or on `ranks` threads.
///
/// With the feature `mpi`, each process that a launcher such as `mpirun` started is one rank: see
/// [`Job`]. Its communicator contains all processes of the job, and `ranks` is ignored. MPI is
/// initialised before `body` and finalised after it, which works only once in a process.
///
/// Otherwise ranks are threads of this process, as with [`threads`].
///
/// Returns the result of this process's rank; if ranks are threads, the result of rank 0.
///
/// ```
/// use thriffty::planning::Reduce;
/// let ranks = thriffty::run(4, |world| {
///     let mut count = [1.0];
///     world.allreduce(Reduce::Sum, &mut count)?;
///     Ok::<_, thriffty::Error>(count[0])
/// })?;
/// assert_eq!(ranks, 4.0);
/// # Ok::<(), thriffty::Error>(())
/// ```
///
/// # Errors
/// The error of `body` on this process's own rank; if ranks are threads, see [`threads`].
/// [`Error::Transport`] when MPI fails or was initialised before. [`Error::Argument`] under a
/// launcher of several processes without the feature `mpi`.
///
/// # Panics
/// As [`threads`], if ranks are threads. A panic of a process ends its MPI job.
pub fn run<R: Send, E: Send + From<Error>>(
    ranks: usize,
    body: impl Fn(&dyn Comm) -> Result<R, E> + Sync,
) -> Result<R, E> {
    let job = Job::of_this_process();
    #[cfg(feature = "mpi")]
    if job.is_some() {
        let mpi = mpi::init()?;
        let world = mpi.world()?;
        return body(&world);
    }
    if job.is_some_and(|job| job.has_others()) {
        let expected = "one process, or thriffty with the feature mpi";
        return Err(Error::argument("MPI job", "several processes", expected).into());
    }
    Ok(threads(ranks, |world| body(&world))?.swap_remove(0))
}

/// Runs `body` once per rank, each on a thread of its own, and returns the results in the order of
/// ranks.
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
