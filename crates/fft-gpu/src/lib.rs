//! The place of the CUDA device.
//!
//! A transform runs on whatever implements [`fft_core::Device`]: memory, packing, local transforms. This crate
//! is where the implementation for CUDA belongs, with the launch site of the kernels in `kernels/`. It holds
//! no code yet, so nothing else depends on it and no feature names it.
//!
//! What it must keep to, so that the executor needs no change:
//!
//! - it depends on fft-core alone and knows no MPI;
//! - a machine without a GPU is a value that says why, never a panic;
//! - unsafe code stays in one file.
#![forbid(unsafe_code)]
