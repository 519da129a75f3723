//! Memory that libraries read and write by its address alone, such as a device's.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Owns memory of a [`DeviceBuffer`], and copies small pieces of it for trials. `E` is the error of
/// a failure.
pub trait DeviceAllocation<E>: Send + Sync {
    /// Whether the host can address the memory, so that any library can send from it.
    fn on_host(&self) -> bool;

    /// Allocates other memory of the same kind. A trial may overwrite it, and leaks it after a
    /// failure.
    ///
    /// # Errors
    /// When memory is short.
    fn another(&self, bytes: usize) -> Result<DeviceBuffer<E>, E>;

    /// Copies bytes from an address to the host.
    ///
    /// # Safety
    /// The memory must have these bytes.
    ///
    /// # Errors
    /// When the device fails.
    unsafe fn read(&self, at: usize, to: &mut [u8]) -> Result<(), E>;

    /// Copies bytes of the host to an address.
    ///
    /// # Safety
    /// The memory must have these bytes.
    ///
    /// # Errors
    /// When the device fails.
    unsafe fn write(&self, at: usize, from: &[u8]) -> Result<(), E>;
}

/// A range of memory known by its address. It shares the ownership of the memory.
///
/// ```
/// # fn f<E>(memory: &fft_stream::DeviceBuffer<E>) {
/// let second_half = memory.part(memory.bytes() / 2..memory.bytes());
/// # }
/// ```
pub struct DeviceBuffer<E> {
    at: usize,
    bytes: usize,
    owner: Arc<dyn DeviceAllocation<E>>,
}

impl<E> DeviceBuffer<E> {
    /// `bytes` bytes at the address `at`.
    ///
    /// # Safety
    /// The memory exists as long as its owner. Whoever has the buffer or a part of it may read and
    /// write it at any time. No reference of Rust points into it.
    pub unsafe fn from_raw(owner: Arc<dyn DeviceAllocation<E>>, at: usize, bytes: usize) -> Self {
        Self { at, bytes, owner }
    }

    /// The address, to be passed to a library.
    pub fn address(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.at)
    }

    /// The length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A part of it.
    ///
    /// # Panics
    /// If the range exceeds the buffer.
    pub fn part(&self, range: Range<usize>) -> Self {
        let inside = range.start <= range.end && range.end <= self.bytes;
        assert!(inside, "bytes {range:?} of {}", self.bytes);
        Self { at: self.at + range.start, bytes: range.len(), owner: self.owner.clone() }
    }

    /// Whether the host can address it.
    pub fn on_host(&self) -> bool {
        self.owner.on_host()
    }

    /// Allocates other memory of the same kind, for trials.
    ///
    /// # Errors
    /// When memory is short.
    pub fn another(&self, bytes: usize) -> Result<Self, E> {
        self.owner.another(bytes)
    }

    /// Copies its first bytes to the host, for trials.
    ///
    /// # Errors
    /// When the device fails.
    pub fn read(&self, to: &mut [u8]) -> Result<(), E> {
        let part = self.part(0..to.len());
        // SAFETY: `part` checked the range.
        unsafe { self.owner.read(part.at, to) }
    }

    /// Copies bytes of the host to its beginning, for trials.
    ///
    /// # Errors
    /// When the device fails.
    pub fn write(&self, from: &[u8]) -> Result<(), E> {
        let part = self.part(0..from.len());
        // SAFETY: `part` checked the range.
        unsafe { self.owner.write(part.at, from) }
    }
}

impl<E> Clone for DeviceBuffer<E> {
    fn clone(&self) -> Self {
        self.part(0..self.bytes)
    }
}

/// Buffers are equal when they are the same bytes.
impl<E> PartialEq for DeviceBuffer<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.bytes) == (other.at, other.bytes)
    }
}

impl<E> Eq for DeviceBuffer<E> {}

impl<E> fmt::Debug for DeviceBuffer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceBuffer({} bytes at {:#x})", self.bytes, self.at)
    }
}
