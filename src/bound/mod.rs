//! Recipes that are bound to a communicator and buffers, wherever their data is.

mod bound;
#[cfg(feature = "cuda")]
mod device;
mod host;

#[cfg(feature = "cuda")]
pub(crate) use bound::OnDevice;
pub(crate) use bound::{Bound, check_on_host};
#[cfg(feature = "cuda")]
pub(crate) use device::bind;
#[cfg(feature = "cuda")]
pub use device::{DeviceOptions, device_in_rotation};
#[cfg(feature = "cuda")]
pub(crate) use fft_gpu::DeviceQueue;
pub(crate) use host::HostBound;
