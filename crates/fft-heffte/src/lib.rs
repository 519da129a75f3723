//! heFFTe's C interface, version 2.4, on thriffty: a program that was linked with `libheffte.so.2`
//! runs on it unchanged.
//!
//! - `ffi.rs` has the entry points, and all unsafe code.
//! - `boxes.rs` turns heFFTe's inclusive boxes into bricks.
//! - `plan.rs` has a plan for both precisions, and real data of complex plans, scales of each call,
//!   and arrays that overlap.
//!
//! # Differences
//! - Boxes that overlap, leave gaps or leave the grid are refused, with status 2 and a line on
//!   standard error.
//! - Both precisions are planned at once, so that errors appear when a plan is made. A transform
//!   that fails prints its reason on standard error, and its output is NaN on every rank. Without a
//!   plan, or with complex data and a plan of real data, the output is left unchanged.
//! - An unknown backend is refused on this rank only, and others wait.
//! - The CPU backends (stock, FFTW, MKL) are the same, and options are ignored. The environment has
//!   thriffty's options, as in `THRIFFTY_TOLERANCE=1e-6`, and `THRIFFTY_WISDOM=FILE`, to which
//!   measured recipes are saved. A tolerance finer than the rounding of single precision holds
//!   only for double precision.
//! - The size of the workspace follows heFFTe's rule. It is not used.
#![deny(unsafe_code)]

#[cfg(feature = "mpi")]
mod boxes;
#[cfg(feature = "mpi")]
pub mod ffi;
#[cfg(feature = "mpi")]
mod plan;
