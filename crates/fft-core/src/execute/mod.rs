//! The executor: a bound recipe, its buffers, and the device that it runs on.

pub(crate) mod buffer_assignment;
pub(crate) mod device;
pub(crate) mod error_budget;
pub(crate) mod executor;
pub(crate) mod program;

pub use buffer_assignment::BufferRequirement;
pub use device::{
    BindContext, CallerArrays, Device, OpBuffers, Operation, Operations, RunContext, RunParts,
};
pub use executor::{AnyExecutor, Executor, MakeExchanger};
