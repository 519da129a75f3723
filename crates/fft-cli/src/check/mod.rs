//! Errors and their bounds.

pub(crate) mod check;
pub(crate) mod exact_sum;
pub(crate) mod reference;
pub(crate) mod wires;
