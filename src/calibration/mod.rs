//! The machine of these ranks, measured: benchmarks of its parts and of whole transforms.

mod agreed;
mod fitted;
mod load;
#[cfg(feature = "cuda")]
mod on_device;
mod on_host;

pub use fitted::measure;
#[cfg(feature = "cuda")]
pub use on_device::measure_on_device;
