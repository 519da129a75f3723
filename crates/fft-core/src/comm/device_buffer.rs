//! Device memory.

pub use fft_stream::DeviceAllocation;

use crate::base::Error;

/// Device memory that messages are sent from and received into by address.
pub type DeviceBuffer = fft_stream::DeviceBuffer<Error>;
