//! The command line, and what its values mean.

pub(crate) mod cli;
pub(crate) mod draft_options;
pub(crate) mod shape;
