//! All tests of the program.

mod common;

mod bench;
mod fields;
mod limits;
#[cfg(feature = "mpi")]
mod mpi;
mod numpy;
mod plan;
mod signals;
mod study;
mod transform;
mod tune;
mod wires;
