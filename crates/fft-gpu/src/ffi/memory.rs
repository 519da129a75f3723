//! Arrays on a device that operations read and write, and loans of cudarc's slices.
//!
//! A [`DeviceMemory`] is an address that is not copied: its owner, or a guard, lends it.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use bytemuck::Pod;
use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{
    CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceSlice, SyncOnDrop,
};

use crate::base::GpuReal;

/// An array of real numbers or bytes on a device.
///
/// [`lend`] and [`lend_mut`] make one of a slice of cudarc's.
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
    pub(crate) fn address(&self) -> u64 {
        self.at
    }

    /// A part.
    ///
    /// # Panics
    /// If the range is not inside.
    pub fn part(&self, range: Range<usize>) -> Lent<'_, T> {
        Loan { memory: self.within(range), _guard: SyncOnDrop::Sync(None) }
    }

    /// As [`DeviceMemory::part`], for writing.
    ///
    /// # Panics
    /// As [`DeviceMemory::part`].
    pub fn part_mut(&mut self, range: Range<usize>) -> LentMut<'_, T> {
        Loan { memory: self.within(range), _guard: SyncOnDrop::Sync(None) }
    }

    /// The first `at` numbers, and the rest.
    pub(crate) fn split(&mut self, at: usize) -> [LentMut<'_, T>; 2] {
        [0..at, at..self.len]
            .map(|range| Loan { memory: self.within(range), _guard: SyncOnDrop::Sync(None) })
    }

    /// The same memory, for work that reads and writes different parts of it.
    pub(crate) fn alias(&self) -> Self {
        self.within(0..self.len)
    }

    fn within(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "a part of the memory");
        let at = self.at + (range.start * size_of::<T>()) as u64;
        Self { at, len: range.len(), stream: self.stream.clone(), of: PhantomData }
    }

    /// Elements at an address.
    ///
    /// # Safety
    /// They are there until the work queued with the result is done. Others access them only in the
    /// order of the stream.
    pub(super) unsafe fn at(at: CUdeviceptr, len: usize, stream: &Arc<CudaStream>) -> Self {
        Self { at, len, stream: stream.clone(), of: PhantomData }
    }

    /// All addresses, for kernels whose descriptors hold addresses.
    ///
    /// # Safety
    /// It goes only to launches whose descriptors name accessible memory until they are done.
    pub(super) unsafe fn everywhere(stream: &Arc<CudaStream>) -> Self {
        let (at, len) = (0, usize::MAX / size_of::<T>());
        Self { at, len, stream: stream.clone(), of: PhantomData }
    }
}

impl<T: Pod> DeviceMemory<T> {
    /// The same memory as elements of another type: as many as fit.
    ///
    /// # Panics
    /// If its address is not aligned for them.
    pub fn cast<U: Pod>(&self) -> Lent<'_, U> {
        Loan { memory: self.as_elements(), _guard: SyncOnDrop::Sync(None) }
    }

    /// As [`DeviceMemory::cast`], for writing.
    ///
    /// # Panics
    /// As [`DeviceMemory::cast`].
    pub fn cast_mut<U: Pod>(&mut self) -> LentMut<'_, U> {
        Loan { memory: self.as_elements(), _guard: SyncOnDrop::Sync(None) }
    }

    fn as_elements<U: Pod>(&self) -> DeviceMemory<U> {
        assert!(self.is_aligned(align_of::<U>()), "elements are aligned");
        let len = self.len * size_of::<T>() / size_of::<U>();
        DeviceMemory { at: self.at, len, stream: self.stream.clone(), of: PhantomData }
    }

    /// Whether the address is a multiple of `bytes` bytes.
    pub fn is_aligned(&self, bytes: usize) -> bool {
        self.at.is_multiple_of(bytes as u64)
    }
}

/// The first real numbers of an array of bytes.
///
/// # Panics
/// If it is shorter.
pub fn numbers<T: GpuReal>(bytes: &CudaSlice<u8>, len: usize) -> CudaView<'_, T> {
    // SAFETY: any bits are a number, and an allocation is aligned for all of them.
    unsafe { bytes.transmute(len) }.expect("as many numbers as there are")
}

/// As [`numbers`], for writing.
///
/// # Panics
/// As [`numbers`].
pub fn numbers_mut<T: GpuReal>(bytes: &mut CudaSlice<u8>, len: usize) -> CudaViewMut<'_, T> {
    // SAFETY: as in `numbers`.
    unsafe { bytes.transmute_mut(len) }.expect("as many numbers as there are")
}

/// A borrowed slice; cudarc orders its stream's other work before and after the loan.
pub struct Loan<'a, T, const MUT: bool> {
    memory: DeviceMemory<T>,
    _guard: SyncOnDrop<'a>,
}

/// A slice that is borrowed for reading.
pub type Lent<'a, T> = Loan<'a, T, false>;
/// A slice that is borrowed for writing.
pub type LentMut<'a, T> = Loan<'a, T, true>;

impl<T, const MUT: bool> Deref for Loan<'_, T, MUT> {
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

impl<'a, T: Pod, const MUT: bool> Loan<'a, T, MUT> {
    /// The numbers as bytes.
    pub fn into_bytes(self) -> Loan<'a, u8, MUT> {
        Loan { memory: self.memory.as_elements(), _guard: self._guard }
    }
}

impl<'a> LentMut<'a, u8> {
    /// The bytes as numbers.
    pub(crate) fn into_numbers<T: GpuReal>(self) -> LentMut<'a, T> {
        let DeviceMemory { at, len, stream, .. } = self.memory;
        assert!(at.is_multiple_of(align_of::<T>() as u64), "numbers are aligned");
        let memory = DeviceMemory { at, len: len / size_of::<T>(), stream, of: PhantomData };
        Loan { memory, _guard: self._guard }
    }
}

/// Lends a slice to work on a stream until the guard is dropped.
pub fn lend<'a, T>(slice: &'a impl DevicePtr<T>, stream: &'a Arc<CudaStream>) -> Lent<'a, T> {
    let len = slice.len();
    let (at, _guard) = slice.device_ptr(stream);
    Loan { memory: DeviceMemory { at, len, stream: stream.clone(), of: PhantomData }, _guard }
}

/// As [`lend`], for writing.
pub fn lend_mut<'a, T>(
    slice: &'a mut impl DevicePtrMut<T>,
    stream: &'a Arc<CudaStream>,
) -> LentMut<'a, T> {
    let len = slice.len();
    let (at, _guard) = slice.device_ptr_mut(stream);
    Loan { memory: DeviceMemory { at, len, stream: stream.clone(), of: PhantomData }, _guard }
}
