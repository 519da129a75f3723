//! A plan's own memory: allocations that other processes can map.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaStream, DriverError, result};
use fft_core::{DeviceAllocation, DeviceBuffer, Error};

use super::memory::DeviceMemory;
use crate::base::{GpuError, tried};

/// Bytes of the driver's large pages; allocations consist of whole ones. Transforms of several
/// processes were slower if other allocations ended within a page, for a reason that is not known
/// (`benches/records/2026-11-29-h200x2-pages.txt`).
const PAGE: usize = 2 << 20;

/// An allocation of its own; CUDA IPC cannot export memory of pools.
pub(crate) struct Block {
    at: CUdeviceptr,
    bytes: usize,
    context: Arc<CudaContext>,
}

impl Block {
    pub(crate) fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, GpuError> {
        let failed = |why| GpuError::allocating(bytes, why);
        context.bind_to_thread().map_err(tried("choosing a device"))?;
        // SAFETY: the context is current. The memory holds numbers, written before they are read.
        let at = unsafe { result::malloc_sync(in_whole_pages(bytes)) }.map_err(failed)?;
        Ok(Self { at, bytes, context: context.clone() })
    }

    pub(crate) fn address(&self) -> u64 {
        self.at
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies pieces, each from where it begins, to the host in the stream's order, and waits once.
    pub(crate) fn read<'m>(
        &self,
        stream: &CudaStream,
        pieces: impl IntoIterator<Item = (usize, &'m mut [u8])>,
    ) -> Result<(), GpuError> {
        self.copy_all(stream, "copying messages to the host", pieces, |(from, to)| {
            assert!(from + to.len() <= self.bytes, "bytes of the memory");
            // SAFETY: the bytes are inside the block, and `to` is borrowed until `copy_all` waited.
            unsafe { result::memcpy_dtoh_async(to, self.at + from as u64, stream.cu_stream()) }
        })
    }

    /// Copies bytes from the host in the stream's order, without waiting for the stream.
    pub(super) fn update(&self, stream: &CudaStream, from: &[u8]) -> Result<(), GpuError> {
        assert!(from.len() <= self.bytes, "bytes of the memory");
        let tried = tried("updating descriptors");
        self.context.bind_to_thread().map_err(&tried)?;
        // SAFETY: the bytes are inside the block. The call copies unpinned pages before it returns.
        unsafe { result::memcpy_htod_async(self.at, from, stream.cu_stream()) }.map_err(&tried)
    }

    /// Copies pieces, each to where it begins, from the host in the stream's order, and waits once.
    pub(crate) fn write<'m>(
        &self,
        stream: &CudaStream,
        pieces: impl IntoIterator<Item = (usize, &'m [u8])>,
    ) -> Result<(), GpuError> {
        self.copy_all(stream, "copying messages from the host", pieces, |(to, from)| {
            assert!(to + from.len() <= self.bytes, "bytes of the memory");
            // SAFETY: as in `read`.
            unsafe { result::memcpy_htod_async(self.at + to as u64, from, stream.cu_stream()) }
        })
    }

    /// Queues a copy of each piece and waits for all, also in a panic, because they borrow the
    /// pieces.
    fn copy_all<P>(
        &self,
        stream: &CudaStream,
        what: &'static str,
        pieces: impl IntoIterator<Item = P>,
        mut copy: impl FnMut(P) -> Result<(), DriverError>,
    ) -> Result<(), GpuError> {
        let (tried, mut pieces) = (tried(what), pieces.into_iter().peekable());
        if pieces.peek().is_none() {
            return Ok(());
        }
        self.context.bind_to_thread().map_err(&tried)?;
        let (wait, mut queued) = (Wait(stream), Ok(()));
        for piece in pieces {
            queued = queued.and(copy(piece));
        }
        wait.now().and(queued).map_err(&tried)
    }
}

/// The size of an allocation for `bytes` bytes: whole pages beyond the first, and never 0.
fn in_whole_pages(bytes: usize) -> usize {
    match bytes {
        ..=PAGE => bytes.max(1),
        // No device has as much as the largest number of bytes.
        _ => bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes),
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it was allocated by `new` and is freed once. The driver waits for queued work. A
        // failure has no one to report to.
        let _ = self.context.bind_to_thread().map(|()| unsafe { result::free_sync(self.at) });
    }
}

/// Waits for a stream when dropped.
struct Wait<'a>(&'a CudaStream);

impl Wait<'_> {
    fn now(self) -> Result<(), DriverError> {
        let waited = self.0.synchronize();
        std::mem::forget(self);
        waited
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        // A failure has no one to report to.
        let _ = self.0.synchronize();
    }
}

/// A block as an array.
pub(crate) struct Owned<T> {
    memory: DeviceMemory<T>,
    block: Arc<Block>,
}

impl<T> Owned<T> {
    pub(crate) fn new(block: Arc<Block>, stream: &Arc<CudaStream>) -> Self {
        // SAFETY: the block is held, and its accesses are in the order of the stream, or after
        // events that order them.
        let memory = unsafe { DeviceMemory::at(block.at, block.bytes / size_of::<T>(), stream) };
        Self { memory, block }
    }

    /// An allocation of this number of bytes in a block of its own.
    pub(crate) fn allocated(
        context: &Arc<CudaContext>,
        bytes: usize,
        stream: &Arc<CudaStream>,
    ) -> Result<Self, GpuError> {
        Ok(Self::new(Arc::new(Block::new(context, bytes)?), stream))
    }

    pub(crate) fn memory_mut(&mut self) -> &mut DeviceMemory<T> {
        &mut self.memory
    }

    pub(crate) fn bytes(&self) -> usize {
        self.block.bytes
    }

    pub(crate) fn block(&self) -> &Arc<Block> {
        &self.block
    }
}

/// The block of a [`DeviceBuffer`].
struct BufferBlock {
    block: Arc<Block>,
    rank: usize,
}

/// A rank's block as a buffer of messages.
pub(crate) fn device_buffer(block: &Arc<Block>, rank: usize) -> DeviceBuffer {
    let kept = Arc::new(BufferBlock { block: block.clone(), rank });
    // SAFETY: the block has the bytes at that address until it is dropped. No reference points into
    // device memory; an access at a bad time damages numbers only.
    unsafe { DeviceBuffer::from_raw(kept, block.at as usize, block.bytes) }
}

impl BufferBlock {
    /// The byte of the block at an address.
    fn offset(&self, at: usize) -> usize {
        at.checked_sub(self.block.at as usize).expect("an address of the block")
    }
}

impl DeviceAllocation<Error> for BufferBlock {
    fn on_host(&self) -> bool {
        false
    }

    fn another(&self, bytes: usize) -> Result<DeviceBuffer, Error> {
        let block = Block::new(&self.block.context, bytes).map_err(|why| why.on(self.rank))?;
        Ok(device_buffer(&Arc::new(block), self.rank))
    }

    unsafe fn read(&self, at: usize, to: &mut [u8]) -> Result<(), Error> {
        let stream = self.block.context.default_stream();
        self.block.read(&stream, [(self.offset(at), to)]).map_err(|why| why.on(self.rank))
    }

    unsafe fn write(&self, at: usize, from: &[u8]) -> Result<(), Error> {
        let stream = self.block.context.default_stream();
        self.block.write(&stream, [(self.offset(at), from)]).map_err(|why| why.on(self.rank))
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE, in_whole_pages};

    #[test]
    fn large_allocations_end_at_the_end_of_a_page() {
        for (bytes, allocated) in [
            (0, 1),
            (1, 1),
            (PAGE - 1, PAGE - 1),
            (PAGE, PAGE),
            (PAGE + 1, 2 * PAGE),
            (8_000_000_000, 3815 * PAGE),
            (usize::MAX, usize::MAX),
        ] {
            assert_eq!(in_whole_pages(bytes), allocated, "{bytes}");
        }
    }
}
