//! Ranks and the exchanges between them.
//!
//! Two communicators: [threads as ranks](threads) in one process, always there, and MPI processes (feature
//! `mpi`). The exchanges are written once, over fft-core's `Comm` and `Flight`.
//!
//! Unsafe code is in one file, `mpi/ffi.rs`; without the feature there is none.
#![deny(unsafe_code)]

mod exchange;
#[cfg(feature = "mpi")]
pub mod mpi;
mod threads;

pub use exchange::exchange;
pub use threads::{ThreadComm, threads};
