//! Reports and plots.

pub(crate) mod plot;
pub(crate) mod report;
