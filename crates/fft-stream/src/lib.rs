//! The unsafe code that fft-core and fft-lines need and do not contain: copies of memory larger
//! than the caches, prefetching, strided rows, pinned registers, and addresses of device memory.

mod copy;
mod device_buffer;
mod pin;
mod strided;

pub use copy::{
    LARGE_BYTES, LINE, LONG_BYTES, ahead, ahead_of_computing, copy_near, copy_past, fence, near,
    past,
};
pub use device_buffer::{DeviceAllocation, DeviceBuffer};
#[cfg(target_arch = "x86_64")]
pub use pin::pin;
pub use strided::{Strided, StridedMut};
