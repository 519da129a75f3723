//! How large errors are, and how large they may be.

pub(crate) mod check;
pub(crate) mod reference;
pub(crate) mod wires;
