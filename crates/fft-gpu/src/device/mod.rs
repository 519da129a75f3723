//! The CUDA device as plans run on it.
//!
//! Local transforms are cuFFT's, and columns may be our own. A reshape reads boxes in place where
//! ranks reach each other's memory, and sends messages elsewhere. cuFFT may load what a reshape
//! before it would move, and store what the last reshape would. Copy engines may move chunks while
//! others are transformed. Work is queued on one stream, and copies by engines on others; ranks of
//! a host synchronize once in a reshape, by events. Copies of arrays go the same ways.

mod access;
mod array_copy;
mod binder;
mod chunked_fft;
mod connections;
mod cuda;
mod direct;
mod energy;
mod epoch;
mod fastest;
mod fft_parts;
mod fused_fetch;
mod fused_store;
mod group;
mod host_staged;
mod local_fft;
mod op;
mod peer_info;
mod plans;
mod reshape;
mod resized;
mod trig;

pub use access::{DeviceFacts, WholeTransform};
pub use array_copy::DeviceCopy;
pub use cuda::Cuda;
pub use fastest::has_columns;
pub use fused_fetch::{can_load, identity, joined};
