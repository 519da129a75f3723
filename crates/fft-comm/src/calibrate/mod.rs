//! The machine measured by small benchmarks on all ranks.

mod alone;
mod calibrate;
mod lines;
mod links;
mod rates;

pub use calibrate::{calibrate, line_costs};
