//! How ranks start, and how they end.

pub(crate) mod signals;
pub(crate) mod world;
