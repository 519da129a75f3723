//! The executor: a bound recipe, its buffers, and the device that it runs on.

pub(crate) mod device;
pub(crate) mod error_budget;
pub(crate) mod executor;
pub(crate) mod program;
pub(crate) mod trace;

pub use device::{
    BindContext, Device, OpBuffers, Operation, Operations, Places, RunContext, RunParts, Window,
    WorkReals,
};
pub use executor::{AnyExecutor, Executor, MakeExchanger};
pub use trace::{Activity, Event, Profiler, Recorder};
