//! Recipes that are bound to a communicator and buffers, wherever their data is.

mod bound;
#[cfg(feature = "cuda")]
mod device;
mod host;

pub(crate) use bound::Bound;
#[cfg(feature = "cuda")]
pub(crate) use bound::OnDevice;
#[cfg(feature = "cuda")]
pub(crate) use device::bind;
#[cfg(feature = "cuda")]
pub use device::{DeviceOptions, device_in_rotation};
pub(crate) use host::HostBound;
