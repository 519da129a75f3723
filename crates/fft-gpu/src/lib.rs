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
mod batch;
#[cfg(feature = "cuda")]
mod boxes;
#[cfg(feature = "cuda")]
mod decoder;
#[cfg(feature = "cuda")]
mod device;
#[cfg(feature = "cuda")]
mod encoder;
#[cfg(feature = "cuda")]
mod error;
#[cfg(feature = "cuda")]
mod ffi;
#[cfg(feature = "cuda")]
mod fft;
#[cfg(feature = "cuda")]
mod gpu;
#[cfg(feature = "cuda")]
mod message;
#[cfg(feature = "cuda")]
mod modes;
#[cfg(all(test, feature = "cuda"))]
mod on_cpu;
#[cfg(feature = "cuda")]
mod passage;
#[cfg(feature = "cuda")]
mod pieces;
#[cfg(feature = "cuda")]
mod transfers;

#[cfg(feature = "cuda")]
pub use cudarc;
#[cfg(feature = "cuda")]
pub use {
    decoder::{Decoder, Incoming},
    device::{Cuda, CudaOp, CudaWork, fetches, joined},
    encoder::{Encoder, Outgoing},
    error::{GpuError, NoGpu},
    ffi::{
        DeviceMemory, Lent, LentMut, SharedSlice, borrow, borrow_stream, driver_is_present,
        keeping_context, lend, lend_mut,
    },
    fft::{C2c, C2r, Fft, FftKind, FftPlan, R2c, Spread},
    gpu::{Gpu, GpuReal},
    message::turned_when_read,
    modes::{Modes, Scaling},
    passage::Passage,
    transfers::{Move, Transfers},
};
