//! The CUDA device that plans run on.
//!
//! Local transforms use cuFFT, and columns may use thriffty's own kernels. A reshape reads boxes in
//! place if ranks reach each other's memory, and otherwise sends messages. cuFFT may load the data
//! of the reshape before it, and store the data of the last reshape. Copy engines may move chunks
//! while others are transformed. Work is queued on one stream, and copies by engines on others;
//! ranks of a host synchronize once in a reshape, by events. Copies of arrays work in the same way.

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
