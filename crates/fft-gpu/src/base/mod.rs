//! Errors, the device with its loaded kernels, and transports between devices.

pub(crate) mod error;
pub(crate) mod gpu;
pub(crate) mod gpu_transport;
pub(crate) mod modules;

pub(crate) use error::tried;
pub use error::{GpuError, NoGpu};
pub use gpu::{Gpu, GpuReal};
pub use gpu_transport::GpuTransport;
pub(crate) use modules::{Kernel, Modules, Source, THREADS};
