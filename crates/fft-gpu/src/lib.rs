//! The place of the CUDA device.
//!
//! A transform runs on whatever implements [`fft_core::Device`]: memory, packing, local transforms. This crate
//! is where the implementation for CUDA belongs, with the launch site of the kernels in `kernels/`. So far it
//! can only say whether there is a driver to build on ([`driver_is_present`], feature `cuda`).
//!
//! What it must keep to, so that the executor needs no change:
//!
//! - it depends on fft-core alone and knows no MPI;
//! - a machine without a GPU is a value, never a panic;
//! - unsafe code stays in one file, `ffi.rs`.
#![deny(unsafe_code)]

#[cfg(feature = "cuda")]
mod ffi;

#[cfg(feature = "cuda")]
pub use ffi::driver_is_present;
