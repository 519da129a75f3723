//! MPI processes as ranks, through rsmpi.
//!
//! Every communicator is a duplicate of the caller's, so that its messages never match other
//! messages, and returns errors instead of aborting.

mod device_buffer;
mod ffi;
mod flight;
mod funnel;
mod host;
mod impl_comm;
mod library;
mod lines;
mod mpi_comm;
mod pieces;
mod rma;
pub mod window;

/// The bindings, for callers who use MPI themselves.
pub use ::mpi as rsmpi;

pub use funnel::{FunneledComm, threads};
pub(crate) use library::library;
pub use library::{Mpi, abort, complete_calls, init};
pub use mpi_comm::MpiComm;
pub use window::{Rma, Window};
