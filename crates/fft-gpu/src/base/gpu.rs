//! A device with its kernels.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DeviceRepr, ValidAsZeroBits};
use fft_core::Real;

use super::error::{GpuError, NoGpu};
use crate::ffi;
use crate::ffi::{Kernel, Modules, Source};

/// A CUDA device that computes: its context and the kernels, loaded. Cheap to clone.
#[derive(Clone)]
pub struct Gpu {
    context: Arc<CudaContext>,
    modules: Arc<Modules>,
}

/// `f32` or `f64`, as devices have them.
pub trait GpuReal: Real + DeviceRepr + ValidAsZeroBits + FftReal {
    /// What kernels are called by.
    #[doc(hidden)]
    const NAME: &'static str;
}

pub(crate) use ffi::FftReal;

impl GpuReal for f32 {
    const NAME: &'static str = "f32";
}

impl GpuReal for f64 {
    const NAME: &'static str = "f64";
}

impl Gpu {
    /// The device of this number, if there is one with compute capability 8.0 or more. Its primary context is retained and
    /// the kernels are loaded into it: some 100 ms the first time.
    ///
    /// # Errors
    /// [`NoGpu`], which says why there is none. Never a panic.
    ///
    /// ```
    /// match fft_gpu::Gpu::probe(0) {
    ///     Ok(gpu) => println!("{}", gpu.name()),
    ///     Err(why) => println!("without a GPU: {why}"),
    /// }
    /// ```
    pub fn probe(ordinal: usize) -> Result<Self, NoGpu> {
        if !ffi::driver_is_present() {
            return Err(NoGpu::NoDriver);
        }
        let no_device =
            |why: &dyn std::fmt::Display| NoGpu::NoDevice { ordinal, why: why.to_string() };
        let context = CudaContext::new(ordinal).map_err(|why| no_device(&why))?;
        let found = context.compute_capability().map_err(|why| no_device(&why))?;
        if found.0 < 8 {
            return Err(NoGpu::TooOld { ordinal, found });
        }
        let modules = Modules::load(&context).map_err(|why| no_device(&why))?;
        Ok(Self { context, modules: Arc::new(modules) })
    }

    /// What the device is called.
    pub fn name(&self) -> String {
        self.context.name().unwrap_or_else(|_| "a CUDA device".into())
    }

    /// Its context, to make streams and buffers with.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The stream that everything may be run on.
    pub fn stream(&self) -> Arc<CudaStream> {
        self.context.default_stream()
    }

    /// A stream of its own.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn new_stream(&self) -> Result<Arc<CudaStream>, GpuError> {
        self.context.new_stream().map_err(ffi::tried("making a stream"))
    }

    /// A kernel, ready to be launched.
    pub(crate) fn kernel(&self, source: Source, name: &str) -> Result<Kernel, GpuError> {
        self.modules.kernel(source, name)
    }
}
