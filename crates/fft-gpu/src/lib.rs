//! The CUDA device of thriffty: packing, codecs and local transforms, without the host.
//!
//! A machine without a GPU is a value: [`Gpu::probe`] says why there is none. What there is on one that has:
//!
//! - [`Cuda`] is the device that plans run on, with everything below;
//! - [`Transfers`] copy boxes with any order of axes, all of a reshape in one launch: packing and unpacking as it is;
//! - [`Encoder`] and [`Decoder`] do the same for every wire but `lossless`, with messages that are bit for bit those of
//!   [`fft_core::Codec`];
//! - [`FftPlan`] is cuFFT with types: a plan of one kind cannot be run as another, nor on memory that is too short;
//! - [`Modes`], [`Scaling`]: what is done to spectra between transforms.
//!
//! Everything is prepared once, with descriptors on the device, and then runs on the stream it is given, without allocating and
//! without waiting for the device. Field data is an array of real numbers; a complex number is two, real part first.
//!
//! The crate builds without CUDA: the driver and cuFFT are found when the program runs, and the kernels of `kernels/` are checked
//! in as binaries (`cargo xtask kernels` makes them). It depends on fft-core alone and knows no MPI; unsafe code is in
//! `ffi/`. Without the feature `cuda` there is nothing in it.
#![deny(unsafe_code)]
#![cfg_attr(not(feature = "cuda"), allow(rustdoc::broken_intra_doc_links))]

#[cfg(feature = "cuda")]
mod abi;
#[cfg(feature = "cuda")]
mod base;
#[cfg(feature = "cuda")]
mod device;
#[cfg(feature = "cuda")]
mod ffi;
#[cfg(feature = "cuda")]
mod kernel;
#[cfg(all(test, feature = "cuda"))]
mod on_cpu;

#[cfg(feature = "cuda")]
pub use cudarc;
#[cfg(feature = "cuda")]
pub use {
    abi::transposed_when_read,
    base::{Gpu, GpuError, GpuReal, GpuTransport, NoGpu},
    device::{Cuda, CudaOp, CudaWork, fetches, joined},
    ffi::{
        DeviceMemory, Lent, LentMut, SharedSlice, borrow, borrow_stream, driver_is_present,
        keeping_context, lend, lend_mut, numbers, numbers_mut,
    },
    kernel::{
        C2c, C2r, Decoder, Encoder, Fft, FftKind, FftPlan, Incoming, Modes, Move, Outgoing, R2c,
        Scaling, Spread, Transfers,
    },
};
