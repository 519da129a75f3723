//! Options that commands share, and how their values are read.

pub(crate) mod choices;
pub(crate) mod encoding;
pub(crate) mod kinds;
pub(crate) mod options;
pub(crate) mod parse;
pub(crate) mod shape;
