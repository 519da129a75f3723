//! Ranks, and the exchanges between them.
//!
//! Three communicators: [threads as ranks](threads) in one process, MPI processes (feature `mpi`),
//! and [process groups](group) that another framework has started. The exchanges are written once,
//! over fft-core's `Comm` and `Flight`.
//!
//! Unsafe code is in `node_memory/`, `mpi/host.rs` and four files of `group/`, where ranks of one
//! host access each other's memory, and in `mpi/ffi/`, with every call into MPI. Two `unsafe fn` of
//! `MpiComm` take a raw communicator.
#![deny(unsafe_code)]

mod exchange;
#[cfg(target_os = "linux")]
pub mod group;
mod idle;
#[cfg(feature = "mpi")]
pub mod mpi;
mod node_memory;
mod signature;
mod threads;

pub use exchange::{
    bind_copy, bind_copy_by, check_messages, exchanger, exchanger_in, usual_exchange,
};
pub use signature::{Signature, broadcast, broadcast_line, checksum, seal, unseal};
#[doc(hidden)]
pub use threads::threads_on;
pub use threads::{ThreadComm, alone, threads, try_threads};
