//! What kernels are given, laid out as `kernels/` reads it.

pub(crate) mod batch;
pub(crate) mod boxes;
pub(crate) mod message;
pub(crate) mod pieces;

pub use message::transposed_when_read;
