//! The executor: a bound recipe, its buffers, and the device that it runs on.

pub(crate) mod buffer_assignment;
pub(crate) mod device;
pub(crate) mod error_budget;
pub(crate) mod executor;
pub(crate) mod program;

pub use buffer_assignment::Manner;
pub use device::{Between, Device, Operation, Operations, Site, Split, Tools};
pub use executor::{Executor, MakeExchange};
