//! Memory of a device.

pub use fft_stream::DeviceAllocation;

use crate::base::Error;

/// A range of memory that messages are sent from and received into by address.
pub type DeviceBuffer = fft_stream::DeviceBuffer<Error>;
