//! Memory that kernels work on: pieces of it, lent or a plan's own.
//!
//! A piece is an address that nobody copies: it is reached through what keeps the memory, or through a guard that borrows it.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use bytemuck::Pod;
use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut,
    DeviceSlice, DriverError, SyncOnDrop, result,
};

use fft_core::{DeviceAllocation, DeviceBuffer, Error};

use super::tried;
use crate::base::{GpuError, GpuReal};

/// An array on a device, of real numbers or bytes: what operations of a plan read and write. [`lend`] and [`lend_mut`] make
/// one of a slice of cudarc's.
pub struct DeviceMemory<T> {
    at: CUdeviceptr,
    len: usize,
    stream: Arc<CudaStream>,
    of: PhantomData<fn(T) -> T>,
}

impl<T> DeviceSlice<T> for DeviceMemory<T> {
    fn len(&self) -> usize {
        self.len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

impl<T> DevicePtr<T> for DeviceMemory<T> {
    fn device_ptr<'a>(&'a self, _stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        (self.at, SyncOnDrop::Sync(None))
    }
}

impl<T> DevicePtrMut<T> for DeviceMemory<T> {
    fn device_ptr_mut<'a>(&'a mut self, _: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        (self.at, SyncOnDrop::Sync(None))
    }
}

impl<T> DeviceMemory<T> {
    /// Where it is.
    pub(crate) fn address(&self) -> u64 {
        self.at
    }

    /// What follows the first numbers, or a part of that.
    ///
    /// # Panics
    /// If it has not as many.
    pub fn part(&self, range: Range<usize>) -> Lent<'_, T> {
        Lent { memory: self.within(range), _guard: SyncOnDrop::Sync(None) }
    }

    /// As [`DeviceMemory::part`].
    pub fn part_mut(&mut self, range: Range<usize>) -> LentMut<'_, T> {
        LentMut { memory: self.within(range), _guard: SyncOnDrop::Sync(None) }
    }

    /// The first numbers, and the rest.
    ///
    /// # Panics
    /// If it has not as many.
    pub(crate) fn split(&mut self, at: usize) -> [LentMut<'_, T>; 2] {
        [0..at, at..self.len]
            .map(|range| LentMut { memory: self.within(range), _guard: SyncOnDrop::Sync(None) })
    }

    fn within(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "a part of the memory");
        let at = self.at + (range.start * size_of::<T>()) as u64;
        Self { at, len: range.len(), stream: self.stream.clone(), of: PhantomData }
    }

    /// So many elements at an address.
    ///
    /// # Safety
    /// They are there, and only those touch them whom the order of the stream allows, until what is queued with the result is
    /// done.
    pub(super) unsafe fn at(at: CUdeviceptr, len: usize, stream: &Arc<CudaStream>) -> Self {
        Self { at, len, stream: stream.clone(), of: PhantomData }
    }

    /// All there is, for kernels that are told addresses.
    ///
    /// # Safety
    /// It goes only to launches whose descriptors name nothing but memory that they may touch until they are done.
    pub(super) unsafe fn everywhere(stream: &Arc<CudaStream>) -> Self {
        let (at, len) = (0, usize::MAX / size_of::<T>());
        Self { at, len, stream: stream.clone(), of: PhantomData }
    }
}

impl<T: Pod> DeviceMemory<T> {
    /// The same memory as elements of another type: as many as it has room for.
    ///
    /// # Panics
    /// If its address is not aligned for them.
    pub fn cast<U: Pod>(&self) -> Lent<'_, U> {
        Lent { memory: self.as_elements(), _guard: SyncOnDrop::Sync(None) }
    }

    /// As [`DeviceMemory::cast`], to be written.
    ///
    /// # Panics
    /// As [`DeviceMemory::cast`].
    pub fn cast_mut<U: Pod>(&mut self) -> LentMut<'_, U> {
        LentMut { memory: self.as_elements(), _guard: SyncOnDrop::Sync(None) }
    }

    fn as_elements<U: Pod>(&self) -> DeviceMemory<U> {
        let (at, bytes) = (self.at, self.len * size_of::<T>());
        assert!(self.is_aligned(align_of::<U>()), "elements are aligned");
        let len = bytes / size_of::<U>();
        DeviceMemory { at, len, stream: self.stream.clone(), of: PhantomData }
    }

    /// Whether the address is a multiple of so many bytes.
    pub fn is_aligned(&self, bytes: usize) -> bool {
        self.at.is_multiple_of(bytes as u64)
    }
}

/// The first real numbers of an array of bytes.
///
/// # Panics
/// If it has not as many.
pub fn numbers<T: GpuReal>(bytes: &CudaSlice<u8>, len: usize) -> CudaView<'_, T> {
    // SAFETY: any bits are a number, and an allocation is aligned for all of them.
    unsafe { bytes.transmute(len) }.expect("as many numbers as there are")
}

/// As [`numbers`], to be written.
///
/// # Panics
/// As [`numbers`].
pub fn numbers_mut<T: GpuReal>(bytes: &mut CudaSlice<u8>, len: usize) -> CudaViewMut<'_, T> {
    // SAFETY: as in `numbers`.
    unsafe { bytes.transmute_mut(len) }.expect("as many numbers as there are")
}

/// A slice that is lent to be read. What its own stream has to do to it comes before, what follows there after.
pub struct Lent<'a, T> {
    memory: DeviceMemory<T>,
    _guard: SyncOnDrop<'a>,
}

/// A slice that is lent to be written.
pub struct LentMut<'a, T> {
    memory: DeviceMemory<T>,
    _guard: SyncOnDrop<'a>,
}

impl<T> Deref for Lent<'_, T> {
    type Target = DeviceMemory<T>;

    fn deref(&self) -> &DeviceMemory<T> {
        &self.memory
    }
}

impl<T> Deref for LentMut<'_, T> {
    type Target = DeviceMemory<T>;

    fn deref(&self) -> &DeviceMemory<T> {
        &self.memory
    }
}

impl<T> DerefMut for LentMut<'_, T> {
    fn deref_mut(&mut self) -> &mut DeviceMemory<T> {
        &mut self.memory
    }
}

impl<'a> LentMut<'a, u8> {
    /// The bytes as numbers.
    ///
    /// # Panics
    /// If they do not begin where such may.
    pub(crate) fn into_numbers<T: GpuReal>(self) -> LentMut<'a, T> {
        let DeviceMemory { at, len, stream, .. } = self.memory;
        assert!(at.is_multiple_of(align_of::<T>() as u64), "numbers are aligned");
        let memory = DeviceMemory { at, len: len / size_of::<T>(), stream, of: PhantomData };
        LentMut { memory, _guard: self._guard }
    }
}

/// Lends a slice to what is queued on a stream until the guard is dropped.
pub fn lend<'a, T>(slice: &'a impl DevicePtr<T>, stream: &'a Arc<CudaStream>) -> Lent<'a, T> {
    let len = slice.len();
    let (at, _guard) = slice.device_ptr(stream);
    Lent { memory: DeviceMemory { at, len, stream: stream.clone(), of: PhantomData }, _guard }
}

/// As [`lend`], to be written.
pub fn lend_mut<'a, T>(
    slice: &'a mut impl DevicePtrMut<T>,
    stream: &'a Arc<CudaStream>,
) -> LentMut<'a, T> {
    let len = slice.len();
    let (at, _guard) = slice.device_ptr_mut(stream);
    LentMut { memory: DeviceMemory { at, len, stream: stream.clone(), of: PhantomData }, _guard }
}

/// Memory of a device that other processes can map, which pools' memory is not.
pub(crate) struct Block {
    at: CUdeviceptr,
    bytes: usize,
    context: Arc<CudaContext>,
}

impl Block {
    pub(crate) fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, GpuError> {
        let failed = |why| GpuError::allocating(bytes, why);
        context.bind_to_thread().map_err(tried("choosing a device"))?;
        // SAFETY: the context is current. What the memory holds is nobody's concern: it is numbers, written before they are read.
        let at = unsafe { result::malloc_sync(bytes.max(1)) }.map_err(failed)?;
        Ok(Self { at, bytes, context: context.clone() })
    }

    pub(crate) fn address(&self) -> u64 {
        self.at
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it was allocated by `new` and is freed once. The driver waits for what is queued on the device. There is
        // nobody to tell of a failure.
        let _ = self.context.bind_to_thread().map(|()| unsafe { result::free_sync(self.at) });
    }
}

/// A block as an array of a plan's own.
pub(crate) struct Owned<T> {
    memory: DeviceMemory<T>,
    block: Arc<Block>,
}

impl<T> Owned<T> {
    pub(crate) fn new(block: Arc<Block>, stream: &Arc<CudaStream>) -> Self {
        let (at, len) = (block.at, block.bytes / size_of::<T>());
        let memory = DeviceMemory { at, len, stream: stream.clone(), of: PhantomData };
        Self { memory, block }
    }

    pub(crate) fn memory_mut(&mut self) -> &mut DeviceMemory<T> {
        &mut self.memory
    }

    pub(crate) fn bytes(&self) -> usize {
        self.block.bytes
    }
}

impl Block {
    /// Copies bytes to the host, behind what has been queued on the stream, and waits for that.
    pub(crate) fn read(
        &self,
        stream: &CudaStream,
        from: usize,
        to: &mut [u8],
    ) -> Result<(), GpuError> {
        self.read_all(stream, [(from, to)])
    }

    /// The same for several pieces, if there are any, and waits once.
    pub(crate) fn read_all<'m>(
        &self,
        stream: &CudaStream,
        pieces: impl IntoIterator<Item = (usize, &'m mut [u8])>,
    ) -> Result<(), GpuError> {
        self.copy_all(stream, "copying messages to the host", pieces, |(from, to)| {
            assert!(from + to.len() <= self.bytes, "bytes of the memory");
            // SAFETY: the bytes are inside the block, which stays, and `to` is borrowed until all copies have been waited for.
            unsafe { result::memcpy_dtoh_async(to, self.at + from as u64, stream.cu_stream()) }
        })
    }

    /// Copies bytes from the host, behind what has been queued on the stream; returns when they have been read.
    pub(super) fn update(&self, stream: &CudaStream, from: &[u8]) -> Result<(), GpuError> {
        assert!(from.len() <= self.bytes, "bytes of the memory");
        let tried = tried("updating descriptors");
        self.context.bind_to_thread().map_err(&tried)?;
        // SAFETY: the bytes are inside the block, which stays. What the host has in pages that are not pinned is copied before the
        // call returns.
        unsafe { result::memcpy_htod_async(self.at, from, stream.cu_stream()) }.map_err(&tried)
    }

    /// Copies bytes from the host, behind what has been queued on the stream, and waits for that.
    pub(crate) fn write(
        &self,
        stream: &CudaStream,
        to: usize,
        from: &[u8],
    ) -> Result<(), GpuError> {
        self.write_all(stream, [(to, from)])
    }

    /// The same for several pieces, if there are any, and waits once.
    pub(crate) fn write_all<'m>(
        &self,
        stream: &CudaStream,
        pieces: impl IntoIterator<Item = (usize, &'m [u8])>,
    ) -> Result<(), GpuError> {
        self.copy_all(stream, "copying messages from the host", pieces, |(to, from)| {
            assert!(to + from.len() <= self.bytes, "bytes of the memory");
            // SAFETY: as in `read_all`.
            unsafe { result::memcpy_htod_async(self.at + to as u64, from, stream.cu_stream()) }
        })
    }

    /// Queues a copy for each piece, if there are any, and waits for all, also in a panic: what they borrow stays borrowed until then.
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

/// Waits for a stream, also in a panic: what is copied there is borrowed no longer.
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
        // There is nobody to tell of a failure.
        let _ = self.0.synchronize();
    }
}

/// A block that messages lie in, of a rank.
struct Kept {
    block: Arc<Block>,
    rank: usize,
}

/// A rank's block as messages lie in it.
pub(crate) fn device_buffer(block: &Arc<Block>, rank: usize) -> DeviceBuffer {
    let kept = Arc::new(Kept { block: block.clone(), rank });
    // SAFETY: the block has the bytes at that address until it is dropped. No reference points into memory of a device, and
    // a write at a bad time damages numbers only.
    unsafe { DeviceBuffer::from_raw(kept, block.at as usize, block.bytes) }
}

impl Kept {
    /// Where an address is in the block.
    fn offset(&self, at: usize) -> usize {
        at.checked_sub(self.block.at as usize).expect("an address of the block")
    }
}

impl DeviceAllocation<Error> for Kept {
    fn on_host(&self) -> bool {
        false
    }

    fn another(&self, bytes: usize) -> Result<DeviceBuffer, Error> {
        let block = Block::new(&self.block.context, bytes).map_err(|why| why.on(self.rank))?;
        Ok(device_buffer(&Arc::new(block), self.rank))
    }

    unsafe fn read(&self, at: usize, to: &mut [u8]) -> Result<(), Error> {
        let stream = self.block.context.default_stream();
        self.block.read(&stream, self.offset(at), to).map_err(|why| why.on(self.rank))
    }

    unsafe fn write(&self, at: usize, from: &[u8]) -> Result<(), Error> {
        let stream = self.block.context.default_stream();
        self.block.write(&stream, self.offset(at), from).map_err(|why| why.on(self.rank))
    }
}

/// Memory that a message is made in or read from, wherever it is: on this device, on another's, or on the host. Held for as
/// long as the slot is.
#[derive(Clone)]
pub(crate) struct Slot {
    at: u64,
    bytes: usize,
    pub(super) keeper: Arc<dyn Any + Send + Sync>,
}

impl Slot {
    /// # Panics
    /// If the memory has no such bytes.
    pub(crate) fn of_block(block: &Arc<Block>, range: Range<usize>) -> Self {
        Self::new(block.at, block.bytes, range, block.clone())
    }

    /// Of memory at this address that the keeper keeps.
    pub(super) fn new(
        at: u64,
        bytes: usize,
        range: Range<usize>,
        keeper: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        assert!(range.start <= range.end && range.end <= bytes, "a slot is inside its memory");
        Self { at: at + range.start as u64, bytes: range.len(), keeper }
    }

    pub(crate) fn address(&self) -> usize {
        self.at as usize
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
