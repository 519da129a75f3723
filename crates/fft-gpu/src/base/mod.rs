//! Errors, the device with its loaded kernels, and transports between devices.

pub(crate) mod error;
pub(crate) mod gpu;
pub(crate) mod modules;

pub(crate) use error::tried;
pub use error::{GpuError, NoGpu};
pub use fft_core::GpuTransport;
pub use gpu::{DeviceQueue, Gpu, GpuReal};
pub(crate) use modules::{Kernel, Modules, Source, THREADS};
