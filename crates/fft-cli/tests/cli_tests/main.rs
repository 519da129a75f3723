//! All tests of the program.

mod common;

mod bench;
mod fields;
#[cfg(feature = "mpi")]
mod jobs;
mod limits;
#[cfg(feature = "mpi")]
mod mpi;
mod numpy;
mod plan;
mod resized;
mod signals;
mod streams;
mod study;
mod texts;
mod transform;
mod tune;
mod wires;
