//! Fields to transform. They depend on global indices alone, so that they are the same for any
//! number of ranks, but for rounding of those that a transform makes.

mod charges;
mod domain;
mod field;
mod source;
mod turbulence;

pub(crate) use field::Field;
pub(crate) use source::Source;
