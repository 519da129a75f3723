//! Ranks, and the exchanges between them.
//!
//! Two communicators: [threads as ranks](threads) in one process, and MPI processes (feature
//! `mpi`). The exchanges are written once, over fft-core's `Comm` and `Flight`.
//!
//! Unsafe code is in `node_memory/` and `mpi/host.rs`, where ranks of one host access each other's
//! memory, and in `mpi/ffi/`, with every call into MPI. Two `unsafe fn` of `MpiComm` take a raw
//! communicator.
#![deny(unsafe_code)]

mod calibrate;
mod exchange;
mod idle;
#[cfg(feature = "mpi")]
pub mod mpi;
mod node_memory;
mod signature;
mod threads;
pub mod tuner;

pub use calibrate::{calibrate, line_costs};
pub use exchange::{exchange, exchange_in};
pub use signature::{Signature, broadcast, broadcast_line, checksum, seal, unseal};
#[doc(hidden)]
pub use threads::threads_on;
pub use threads::{ThreadComm, alone, threads, try_threads};
