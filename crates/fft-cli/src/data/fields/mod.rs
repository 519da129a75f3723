//! Fields to transform. They depend on global indices alone: they are the same for any number of
//! ranks, but for rounding where a transform makes them.

mod charges;
mod domain;
mod field;
mod source;
mod turbulence;

pub(crate) use field::Field;
pub(crate) use source::{Distance, Source};
