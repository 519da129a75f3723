//! Reports and plots.

pub(crate) mod plot;
pub(crate) mod report;
pub(crate) mod split;
pub(crate) mod units;
