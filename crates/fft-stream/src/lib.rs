//! The unsafe code that fft-core needs and does not contain: copies of memory larger than the
//! caches, prefetching, and addresses of device memory.

mod copy;
mod device_buffer;

pub use copy::{
    LARGE_BYTES, LINE, LONG_BYTES, ahead, ahead_of_computing, copy_near, copy_past, fence, near,
    past,
};
pub use device_buffer::{DeviceAllocation, DeviceBuffer};
