//! Pinned host memory.

use std::any::Any;
use std::sync::Arc;

use bytemuck::Pod;
use cudarc::driver::{CudaContext, CudaStream, DevicePtr, result, sys};
use fft_core::PinnedMemory;

use crate::base::{GpuError, tried};

/// The least bytes that are pinned.
const PINNED_BYTES: usize = 1 << 16;

/// Pins message memory for all devices of the process.
#[derive(Debug)]
pub(crate) struct Pages(pub(crate) Arc<CudaContext>);

/// A registered range of host memory.
struct Pin {
    at: usize,
    context: Arc<CudaContext>,
}

impl PinnedMemory for Pages {
    fn pin(&self, bytes: &mut [u8]) -> Option<Box<dyn Any + Send + Sync>> {
        let at = bytes.as_mut_ptr();
        if bytes.len() < PINNED_BYTES || self.0.bind_to_thread().is_err() {
            return None;
        }
        // SAFETY: the bytes stay until `Pin` is dropped. Registering does not write them.
        let pinned = unsafe {
            sys::cuMemHostRegister_v2(at.cast(), bytes.len(), sys::CU_MEMHOSTREGISTER_PORTABLE)
        };
        let pin = || Box::new(Pin { at: at.addr(), context: self.0.clone() }) as _;
        pinned.result().ok().map(|()| pin())
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let at = std::ptr::without_provenance_mut(self.at);
        // SAFETY: it was registered by `pin`, and is unregistered once.
        let _ = self.context.bind_to_thread().map(|()| unsafe { sys::cuMemHostUnregister(at) });
    }
}

/// Pinned pages that the device accesses at the same address.
pub(crate) struct Pinned {
    at: *mut u8,
    bytes: usize,
    context: Arc<CudaContext>,
}

// SAFETY: the address is valid on any thread; only `read` and `fetch` follow it.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    pub(crate) fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, GpuError> {
        let failed = |why| GpuError::allocating(bytes, why);
        context.bind_to_thread().map_err(tried("choosing a device"))?;
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the context is current. The memory is zeroed before it is read.
        let at = unsafe {
            let at = result::malloc_host(bytes.max(1), flags).map_err(failed)?.cast::<u8>();
            at.write_bytes(0, bytes.max(1));
            at
        };
        Ok(Self { at, bytes, context: context.clone() })
    }

    pub(crate) fn address(&self) -> u64 {
        self.at.expose_provenance() as u64
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Queues a copy of a buffer to the first bytes.
    pub(crate) fn fetch(
        &self,
        stream: &Arc<CudaStream>,
        from: &cudarc::driver::CudaSlice<u8>,
    ) -> Result<(), GpuError> {
        assert!(from.len() <= self.bytes, "room for the buffer");
        let (from, bytes) = (from.device_ptr(stream), from.len());
        // SAFETY: the memory lives until the context is idle, and no reference leads into it. The
        // guard of `from` orders its next writer behind the copy.
        let queued = unsafe {
            let to = std::slice::from_raw_parts_mut(self.at, bytes);
            result::memcpy_dtoh_async(to, from.0, stream.cu_stream())
        };
        queued.map_err(tried("copying states of messages"))
    }

    /// Copies bytes out; the caller has waited for the device to write them.
    pub(crate) fn read(&self, from: usize, to: &mut [u8]) {
        assert!(from + to.len() <= self.bytes, "bytes of the memory");
        // SAFETY: they are inside, and `to` is other memory. No reference leads into the pages; a
        // write by the device meanwhile spoils bytes only.
        unsafe { std::ptr::copy_nonoverlapping(self.at.add(from), to.as_mut_ptr(), to.len()) };
    }
}

impl Pinned {
    /// The first records; the caller has waited as for [`Pinned::read`].
    pub(crate) fn records<R: Pod>(&self, count: usize) -> impl Iterator<Item = R> {
        (0..count).map(|index| {
            let mut record = R::zeroed();
            self.read(index * size_of::<R>(), bytemuck::bytes_of_mut(&mut record));
            record
        })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: it was allocated by `new` and is freed once, when the context is idle.
        let _ = self.context.bind_to_thread().map(|()| unsafe {
            let _ = result::ctx::synchronize();
            let _ = result::free_host(self.at.cast());
        });
    }
}
