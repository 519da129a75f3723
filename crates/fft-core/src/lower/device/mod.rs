//! Lowering for devices whose library transforms, such as cuFFT.

pub(crate) mod capabilities;
pub(crate) mod chunks;
pub(crate) mod engine_copy;
pub(crate) mod group;
pub(crate) mod pieces;
pub(crate) mod rank_group;
pub(crate) mod rules;

pub use capabilities::{DeviceCapabilities, DeviceLink};
pub use chunks::{Chunks, device_chunks};
pub use engine_copy::{EngineCopy, EngineSide};
pub use group::{FftGroup, LineRuns, is_large};
pub use pieces::PieceGrid;
pub use rules::{loads_lines, swapped};

#[cfg(test)]
mod tests;
