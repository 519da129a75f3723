//! Distributed Fourier transforms that spend as few bytes on the wire as possible.
//!
//! Placeholder.
#![forbid(unsafe_code)]

mod draft;
mod field;
mod plan;
mod transform;

pub use draft::Draft;
pub use fft_comm::ThreadComm;
#[cfg(feature = "mpi")]
pub use fft_comm::mpi;
pub use fft_core::{
    Algorithm, Brick, Clock, Comm, Complex, Direction, Element, Error, ErrorKind, Grid, Kind,
    Layout, Precision, Problem, ProcGrid, Real, Recipe, Reduce, Scale, Step, Wire, agree,
};
pub use field::{Field, Physical, Side, Spectral};
pub use plan::Plan;
pub use transform::{C2c, R2c, R2r, Transform};

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
