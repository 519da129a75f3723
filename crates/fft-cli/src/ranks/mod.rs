//! How ranks start, and how they end.

pub(crate) mod world;
