//! Errors and their bounds.

pub(crate) mod check;
pub(crate) mod reference;
pub(crate) mod wires;
