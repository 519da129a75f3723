//! Pages of the host that the device copies to and from while the host goes on.

use std::any::Any;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DevicePtr, result, sys};
use fft_core::PinnedMemory;

use super::tried;
use crate::base::GpuError;

/// Bytes from which on pinning pays.
const PINNED_BYTES: usize = 1 << 16;

/// PinnedMemory memory of messages for all devices of the process.
#[derive(Debug)]
pub(crate) struct Pages(pub(crate) Arc<CudaContext>);

/// Memory that is pinned.
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
        // SAFETY: the bytes are there, and stay until `Pin` is dropped. The driver writes nothing to them by that.
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
        // SAFETY: it was registered by `pin`, and is given back once.
        let _ = self.context.bind_to_thread().map(|()| unsafe { sys::cuMemHostUnregister(at) });
    }
}

/// Pages of the host that stay where they are, and which the device reads and writes at the same address.
pub(crate) struct Pinned {
    at: *mut u8,
    bytes: usize,
    context: Arc<CudaContext>,
}

// SAFETY: the address is as good on any thread; `read` says when it may be followed.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    pub(crate) fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, GpuError> {
        let failed = |why| GpuError::allocating(bytes, why);
        context.bind_to_thread().map_err(tried("choosing a device"))?;
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the context is current. The memory is set to zeros before anyone reads it.
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

    /// Copies what a buffer holds to the beginning, on a stream.
    ///
    /// # Panics
    /// If there is no room.
    pub(crate) fn fetch(
        &self,
        stream: &Arc<CudaStream>,
        from: &cudarc::driver::CudaSlice<u8>,
    ) -> Result<(), GpuError> {
        assert!(from.len() <= self.bytes, "room for the buffer");
        let (from, bytes) = (from.device_ptr(stream), from.len());
        // SAFETY: the memory lives until the context is idle, and nobody has a reference into it. `from` outlives the call that
        // queues the copy, and its guard makes who writes it next wait.
        let queued = unsafe {
            let to = std::slice::from_raw_parts_mut(self.at, bytes);
            result::memcpy_dtoh_async(to, from.0, stream.cu_stream())
        };
        queued.map_err(tried("fetching what became of messages"))
    }

    /// Copies bytes out, when an event has said that the device has written them.
    pub(crate) fn read(&self, from: usize, to: &mut [u8]) {
        assert!(from + to.len() <= self.bytes, "bytes of the memory");
        // SAFETY: they are inside, and `to` is other memory. Nobody has a reference into it; should the device write meanwhile,
        // the bytes are of no use, but bytes.
        unsafe { std::ptr::copy_nonoverlapping(self.at.add(from), to.as_mut_ptr(), to.len()) };
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: it was allocated by `new` and is freed once, after all that is queued in the context is done.
        let _ = self.context.bind_to_thread().map(|()| unsafe {
            let _ = result::ctx::synchronize();
            let _ = result::free_host(self.at.cast());
        });
    }
}
