//! Every call into CUDA, and all unsafe code of this crate.
#![allow(unsafe_code)]

/// Whether the CUDA driver library can be loaded here. Everything else of CUDA panics where it cannot, so this is
/// asked first.
///
/// ```
/// // Without a driver the answer is no; it is not a panic.
/// println!("CUDA driver: {}", fft_gpu::driver_is_present());
/// ```
pub fn driver_is_present() -> bool {
    // SAFETY: it only tries to open the driver library by its usual names. Opening runs the library's
    // initialisers, which NVIDIA's driver supports at any time and from any thread.
    unsafe { cudarc::driver::sys::is_culib_present() }
}
