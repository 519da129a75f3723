//! Fields to transform. They depend only on global indices, so they are the same for any number of
//! ranks, except for rounding if a transform makes them.

mod charges;
mod domain;
mod field;
mod source;
mod turbulence;

pub(crate) use field::Field;
pub(crate) use source::{Distance, Source};
