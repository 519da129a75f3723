//! Traces: files in Chrome's format, which all ranks of a plan write together.

mod clock;
mod file;
#[cfg(feature = "nvtx")]
mod nvtx;
mod tracer;

#[cfg(feature = "nvtx")]
pub(crate) use nvtx::profiler;
pub(crate) use tracer::Tracer;

/// The active profiler of this process. Without the feature `nvtx` there is none.
#[cfg(not(feature = "nvtx"))]
pub(crate) fn profiler() -> Option<Box<dyn fft_core::Profiler>> {
    None
}
