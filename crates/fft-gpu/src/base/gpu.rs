//! A device with its kernels.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DeviceRepr, ValidAsZeroBits};
use fft_core::{GpuTransport, Real};

use super::error::{GpuError, tried};
use super::modules::{Kernel, Modules, Source};

/// A CUDA device: its primary context and the loaded kernels. Cheap to clone.
#[derive(Clone)]
pub struct Gpu {
    context: Arc<CudaContext>,
    modules: Arc<Modules>,
}

/// A device, the stream that work is queued on, and how data gets to other ranks.
#[derive(Clone)]
pub struct DeviceQueue {
    /// The device.
    pub gpu: Gpu,
    /// The stream.
    pub stream: Arc<CudaStream>,
    /// The transport to other ranks.
    pub transport: GpuTransport,
}

/// `f32` or `f64` on devices.
pub trait GpuReal: Real + DeviceRepr + ValidAsZeroBits {
    /// The suffix in names of kernels.
    #[doc(hidden)]
    const NAME: &'static str;
}

impl GpuReal for f32 {
    const NAME: &'static str = "f32";
}

impl GpuReal for f64 {
    const NAME: &'static str = "f64";
}

impl Gpu {
    pub(crate) fn with(context: Arc<CudaContext>, modules: Modules) -> Self {
        Self { context, modules: Arc::new(modules) }
    }

    /// The device's name.
    pub fn name(&self) -> String {
        self.context.name().unwrap_or_else(|_| "a CUDA device".into())
    }

    /// Its primary context.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The context's default stream.
    pub fn stream(&self) -> Arc<CudaStream> {
        self.context.default_stream()
    }

    /// A new stream.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn new_stream(&self) -> Result<Arc<CudaStream>, GpuError> {
        self.context.new_stream().map_err(tried("making a stream"))
    }

    /// The kernels that are loaded and compiled, and the measurements of this device.
    pub(crate) fn modules(&self) -> &Modules {
        &self.modules
    }

    /// A kernel, ready to be launched.
    pub(crate) fn kernel(&self, source: Source, name: &str) -> Result<Kernel, GpuError> {
        self.modules.kernel(source, name)
    }
}
