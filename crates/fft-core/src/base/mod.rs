//! Errors, scalar types, timings, tolerances, sizes and state of the process.

pub(crate) mod cache_sizes;
pub(crate) mod error;
pub(crate) mod per_process;
pub(crate) mod real;
pub(crate) mod text;
pub(crate) mod timings;
pub(crate) mod tolerance;

pub use error::{Error, ErrorKind};
pub use per_process::PerProcess;
pub use real::{Element, Precision, Real};
pub use text::{escaped, shown};
pub use timings::Timings;
pub use tolerance::{Energy, Tolerance, WireError};
