//! Errors, the device with its kernels, and how devices reach each other.

pub(crate) mod error;
pub(crate) mod gpu;
pub(crate) mod gpu_transport;

pub use error::{GpuError, NoGpu};
pub use gpu::{Gpu, GpuReal};
pub use gpu_transport::GpuTransport;
