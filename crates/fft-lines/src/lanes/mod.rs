//! Transforms of many lines at once, one line per SIMD lane.
//!
//! ```text
//! for as many adjacent lines as a vector has lanes:
//!     first stage: for each butterfly of R numbers at distances of n/R:
//!         load them, each a vector with one number of each line
//!         transform them in registers, multiply by twiddle factors, store them to scratch
//!     middle stages: the same within blocks of n/R numbers, in place
//!     last stage: without twiddle factors, from scratch to the destination in order of frequencies
//! ```
//!
//! This is decimation in frequency with mixed radices (Gentleman and Sande, *Fast Fourier
//! transforms: for fun and profit*, 1966). Lines that lie side by side are loaded as they are, and
//! contiguous lines are turned when loaded.

mod ahead;
mod batch;
mod butterfly;
mod columns;
mod complex;
mod kernel;
mod pairs;
mod plan;
mod radices;
mod real;
mod rows;
mod stages;
mod trigonometric;
mod turn;
mod vector;

pub use batch::{BatchFft, Lines};
pub use kernel::Strides;
pub(crate) use plan::{Batch, plan, time_radices};
pub(crate) use stages::Lie;
pub use trigonometric::{Trigonometric, TrigonometricType};
pub(crate) use vector::Real;
