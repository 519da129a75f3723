//! Lowering: from a recipe to the passes over memory that execute it.

pub(crate) mod capabilities;
pub(crate) mod fusion;
pub(crate) mod lower;
pub(crate) mod memory_plan;
pub(crate) mod program;
pub(crate) mod stages;
pub(crate) mod tiling;

pub use capabilities::Capabilities;
pub use program::{AxisFft, DeviceOp, ExchangePass, Program};
