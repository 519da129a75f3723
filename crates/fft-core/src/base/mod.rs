//! Errors, scalar types, timings, tolerances and sizes.

pub(crate) mod cache_sizes;
pub(crate) mod error;
pub(crate) mod locked;
pub(crate) mod median;
pub(crate) mod named;
pub(crate) mod real;
pub(crate) mod text;
pub(crate) mod timings;
pub(crate) mod tolerance;

pub use error::{Error, ErrorKind};
pub use locked::locked;
pub use median::median;
pub use real::{Element, Precision, Real};
pub use text::{escaped, shown};
pub use timings::Timings;
pub use tolerance::{Energy, Tolerance, WireError};
