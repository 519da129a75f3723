//! The CUDA device of thriffty: packing, codecs and local transforms on a GPU.
//!
//! [`Cuda`] is the device that plans run on. Work is prepared once and then queued on a stream,
//! without allocation. Field data is an array of real numbers; a complex number is two.
//!
//! The driver and cuFFT are loaded at run time, and the kernels of `kernels/` are checked in as
//! binaries. Without the feature `cuda` the crate is empty. `ARCHITECTURE.md` has the design,
//! `kernels/README.md` the contracts of kernels.
#![cfg_attr(not(feature = "cuda"), allow(rustdoc::broken_intra_doc_links))]
#![cfg(feature = "cuda")]
#![deny(unsafe_code)]

mod abi;
mod base;
mod device;
mod ffi;
mod kernel;
#[cfg(test)]
#[path = "on_cpu/tests.rs"]
mod on_cpu;

pub use cudarc;
pub use {
    abi::{Fft, FftRun, Move, PlacedTransfer, Spread, transposed_when_read},
    base::{DeviceQueue, Gpu, GpuError, GpuReal, GpuTransport, NoGpu},
    device::{
        Cuda, DeviceCopy, DeviceFacts, WholeTransform, can_load, has_columns, identity, joined,
    },
    ffi::{
        DeviceMemory, FftPlan, Lent, LentMut, SharedSlice, borrow, borrow_stream,
        driver_is_present, keeping_context, lend, lend_mut, numbers, numbers_mut,
    },
    kernel::{ColumnFft, Decoder, DeviceModes, Encoder, Noise, Scaling, Transfers},
};
