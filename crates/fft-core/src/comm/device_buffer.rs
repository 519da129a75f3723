//! Memory that messages travel in and the host does not look into: that of a device.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::base::Error;

/// What keeps memory that the host does not look into, and copies small pieces of it, for trials.
pub trait DeviceAllocation: Send + Sync {
    /// Whether the host could look, so that any library can send what is there.
    fn on_host(&self) -> bool;

    /// Other memory of the kind, of so many bytes: what a trial may overwrite, and keep for ever where it goes wrong.
    ///
    /// # Errors
    /// When there is none.
    fn another(&self, bytes: usize) -> Result<DeviceBuffer, Error>;

    /// Copies bytes from an address inside the memory to the host.
    ///
    /// # Errors
    /// When the device fails.
    fn read(&self, at: usize, to: &mut [u8]) -> Result<(), Error>;

    /// Copies bytes of the host to an address inside the memory.
    ///
    /// # Errors
    /// When the device fails.
    fn write(&self, at: usize, from: &[u8]) -> Result<(), Error>;
}

/// A piece of memory that is sent from and received into by its address alone. Whoever has one keeps the memory.
///
/// ```
/// # fn f(memory: &fft_core::DeviceBuffer) {
/// let second_half = memory.part(memory.bytes() / 2..memory.bytes());
/// # }
/// ```
#[derive(Clone)]
pub struct DeviceBuffer {
    at: usize,
    bytes: usize,
    keeper: Arc<dyn DeviceAllocation>,
}

/// The promise that an address is what it is said to be: what a library is told to read and write.
///
/// This crate has no unsafe code, and so no unsafe function that could take the promise. Instead nothing but unsafe code can
/// make one of these, as `transmute::<(), Vouched>(())`, and owes the reason there:
///
/// ```compile_fail,E0423
/// let promise = fft_core::Vouched(());
/// ```
/// ```
/// // SAFETY: nobody is told an address.
/// let promise = unsafe { std::mem::transmute::<(), fft_core::Vouched>(()) };
/// # drop(promise);
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct Vouched(());

impl DeviceBuffer {
    /// So many bytes at an address. It is vouched for that they are there as long as the keeper is, that they may be read and
    /// written at any time, by anyone who has this or a part of it, and that no reference of Rust's leads into them.
    pub fn new(keeper: Arc<dyn DeviceAllocation>, at: usize, bytes: usize, _: Vouched) -> Self {
        Self { at, bytes, keeper }
    }

    /// Where it is.
    pub fn address(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.at)
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A piece of it.
    ///
    /// # Panics
    /// If it has no such bytes.
    pub fn part(&self, range: Range<usize>) -> Self {
        let inside = range.start <= range.end && range.end <= self.bytes;
        assert!(inside, "bytes {range:?} of {}", self.bytes);
        Self { at: self.at + range.start, bytes: range.len(), keeper: self.keeper.clone() }
    }

    /// Whether the host could look into it.
    pub fn on_host(&self) -> bool {
        self.keeper.on_host()
    }

    /// Other memory of the kind, for trials.
    ///
    /// # Errors
    /// When there is none.
    pub fn another(&self, bytes: usize) -> Result<Self, Error> {
        self.keeper.another(bytes)
    }

    /// Copies its first bytes to the host, for trials.
    ///
    /// # Errors
    /// When the device fails.
    pub fn read(&self, to: &mut [u8]) -> Result<(), Error> {
        self.keeper.read(self.part(0..to.len()).at, to)
    }

    /// Copies bytes of the host to its beginning, for trials.
    ///
    /// # Errors
    /// When the device fails.
    pub fn write(&self, from: &[u8]) -> Result<(), Error> {
        self.keeper.write(self.part(0..from.len()).at, from)
    }
}

/// The same bytes.
impl PartialEq for DeviceBuffer {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.bytes) == (other.at, other.bytes)
    }
}

impl Eq for DeviceBuffer {}

impl fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceBuffer({} bytes at {:#x})", self.bytes, self.at)
    }
}
