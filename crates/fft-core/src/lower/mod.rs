//! Lowering: from a recipe to the passes over memory that execute it.

pub(crate) mod allocate;
pub(crate) mod candidate;
pub(crate) mod capabilities;
pub(crate) mod device;
pub(crate) mod fusion;
pub(crate) mod lower;
pub(crate) mod lowering;
pub(crate) mod ops;
pub(crate) mod program;
pub(crate) mod rules;
pub(crate) mod shared;
pub(crate) mod tiling;

pub use allocate::{MemoryNeeds, MemoryUse};
pub use capabilities::Capabilities;
pub use device::{
    Chunks, DeviceCapabilities, DeviceLink, EngineCopy, EngineSide, FftGroup, LineRuns, PieceGrid,
    device_chunks, is_large, loads_lines, swapped,
};
pub use ops::{AcrossFft, AxisFft, ExchangePass, StorePass};
pub use program::{DeviceOp, Program};
