//! Finding the driver and a device.

use std::sync::OnceLock;

use cudarc::driver::CudaContext;

use crate::base::{Gpu, Modules, NoGpu};

/// Whether the CUDA driver library can be loaded. If it cannot, other calls into CUDA panic.
///
/// ```
/// println!("CUDA driver: {}", fft_gpu::driver_is_present());
/// ```
pub fn driver_is_present() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: it only opens the driver library by its usual names. NVIDIA's driver supports that
    // at any time and from any thread.
    *PRESENT.get_or_init(|| unsafe { cudarc::driver::sys::is_culib_present() })
}

impl Gpu {
    /// The device with this number, if it has compute capability 8.0 or more.
    ///
    /// Retains its primary context and loads the kernels into it.
    ///
    /// # Errors
    /// [`NoGpu`] if there is no such device.
    ///
    /// ```
    /// match fft_gpu::Gpu::probe(0) {
    ///     Ok(gpu) => println!("{}", gpu.name()),
    ///     Err(why) => println!("without a GPU: {why}"),
    /// }
    /// ```
    pub fn probe(ordinal: usize) -> Result<Self, NoGpu> {
        if !driver_is_present() {
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
        Ok(Self::with(context, modules))
    }
}
