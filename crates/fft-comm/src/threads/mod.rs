//! Threads of one process as ranks.
//!
//! Messages are not copied: the sender's slot moves to the receiver, which reads it and sends it
//! back. Ranks wait for messages on condition variables, so having more ranks than cores does no
//! harm. A rank that ends or panics while others need it wakes them with an error.

mod comm;
mod flight;
mod world;

#[cfg(feature = "mpi")]
pub(crate) use flight::ThreadFlight;
#[cfg(feature = "mpi")]
pub(crate) use world::{FlagsOf, Member, Remote, World};

pub use comm::{ThreadComm, alone, threads, threads_on, try_threads};
