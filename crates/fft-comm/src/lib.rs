//! Ranks and the exchanges between them.
//!
//! Two communicators: [threads as ranks](threads) in one process, always there, and MPI processes (feature
//! `mpi`). The exchanges are written once, over fft-core's `Comm` and `Flight`.
//!
//! Unsafe code is in three places: `commons.rs`, with its copies in `lent.rs`, and `mpi/host.rs`, in which ranks of one host reach
//! each other's memory, and `mpi/ffi.rs` with its folder, which make every call into MPI; and the two `unsafe fn` of `mpi/mod.rs`
//! take a raw communicator.
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

pub use calibrate::calibrate;
pub use exchange::{exchange, exchange_in};
pub use signature::{Signature, broadcast, checksum, same, seal, unseal};
#[doc(hidden)]
pub use threads::threads_on;
pub use threads::{ThreadComm, alone, threads};
