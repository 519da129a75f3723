//! heFFTe's C interface, version 2.4, on thriffty: a program that was linked with `libheffte.so.2` runs on it without being
//! compiled anew.
//!
//! - `ffi.rs` has the entry points, and all unsafe code.
//! - `boxes.rs` turns heFFTe's boxes into thriffty's bricks: bounds are inclusive there, dimension 0 is the fastest, and the
//!   grid is what all boxes together cover.
//! - `plan.rs` has a plan for both precisions, and what heFFTe does beside transforming: real data of complex plans, a scale for
//!   each call, arrays that overlap.
//!
//! # Where it differs
//! - Boxes that overlap, leave gaps or reach beyond each other's grid are refused, with status 2 and a line on standard error.
//! - All that can fail but for want of memory or of a network fails while a plan is made; both precisions are planned
//!   then. Transforms return nothing: one that fails says why on standard error, and its output is NaN on every rank; of one
//!   without a plan, or of complex data with a plan of real data, the output is left as it is.
//! - A backend that is none is refused before ranks meet: those that were given another wait.
//! - The backends of CPUs (stock, FFTW, MKL) are one and the same; options are read and not followed, as thriffty finds by itself
//!   what they choose. The environment has two that are: `THRIFFTY_TOLERANCE=1e-6`, which encodes messages between hosts, and
//!   `THRIFFTY_EXCHANGE=p2p`. (A tolerance finer than the rounding of single precision is one of double precision alone.)
//!   With `THRIFFTY_WIRE_EVERYWHERE=1` ranks of one host send messages, too.
//! - The size of the workspace follows heFFTe's rule, of pencils that thriffty would choose. It is not used.
#![deny(unsafe_code)]

#[cfg(feature = "mpi")]
mod boxes;
#[cfg(feature = "mpi")]
pub mod ffi;
#[cfg(feature = "mpi")]
mod plan;
