//! Memory of fields: a rank's own, or shared by the ranks of a host; on the host or on a device.

use std::fmt;

use fft_core::{Error, SharedMemory};
#[cfg(feature = "cuda")]
use fft_gpu::cudarc::driver::{CudaView, CudaViewMut};
#[cfg(feature = "cuda")]
use fft_gpu::{DeviceMemory, GpuReal};

#[cfg(feature = "cuda")]
use super::device_array::DeviceArray;
use super::pool::Pooled;

#[derive(Clone, Copy)]
pub(crate) enum Bytes<'a> {
    Host(&'a [u8]),
    #[cfg(feature = "cuda")]
    Device(&'a DeviceMemory<u8>),
}

pub(crate) enum BytesMut<'a> {
    Host(&'a mut [u8]),
    #[cfg(feature = "cuda")]
    Device(&'a mut DeviceMemory<u8>),
}

impl<'a> Bytes<'a> {
    /// The bytes of an array that was checked to be on the host.
    pub(crate) fn on_host(self) -> &'a [u8] {
        match self {
            Self::Host(bytes) => bytes,
            #[cfg(feature = "cuda")]
            Self::Device(_) => unreachable!("the place was checked"),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Host(bytes) => bytes.len(),
            #[cfg(feature = "cuda")]
            Self::Device(memory) => fft_gpu::cudarc::driver::DeviceSlice::len(*memory),
        }
    }
}

impl<'a> BytesMut<'a> {
    /// The bytes of an array that was checked to be on the host.
    pub(crate) fn on_host(self) -> &'a mut [u8] {
        match self {
            Self::Host(bytes) => bytes,
            #[cfg(feature = "cuda")]
            Self::Device(_) => unreachable!("the place was checked"),
        }
    }

    pub(crate) fn as_bytes(&self) -> Bytes<'_> {
        match self {
            Self::Host(bytes) => Bytes::Host(bytes),
            #[cfg(feature = "cuda")]
            Self::Device(memory) => Bytes::Device(memory),
        }
    }
}

/// An array for a [`DynPlan`](crate::planning::DynPlan), where its data is: bytes, aligned for any
/// number.
///
/// [`DynPlan::zeros`](crate::planning::DynPlan::zeros) and
/// [`DynPlan::shared_zeros`](crate::planning::DynPlan::shared_zeros) make them.
pub struct DynArray(pub(super) Memory);

pub(super) enum Memory {
    /// An allocation and the number of its bytes that are used. The system zeroes pages lazily for
    /// types of this alignment, but not for larger ones.
    Own(Vec<u128>, usize),
    Shared(Pooled<Box<dyn SharedMemory>>),
    #[cfg(feature = "cuda")]
    Device(DeviceArray),
}

impl DynArray {
    /// An array on the host that belongs to this rank alone.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn zeros(bytes: usize, rank: usize) -> Result<Self, Error> {
        let words = bytemuck::allocation::try_zeroed_vec(bytes.div_ceil(size_of::<u128>()));
        let words = words.map_err(|()| Error::Memory { rank, bytes })?;
        Ok(Self(Memory::Own(words, bytes)))
    }

    /// An array without bytes, for a field without an array.
    pub(crate) fn empty() -> Self {
        Self(Memory::Own(Vec::new(), 0))
    }

    /// An array that the other ranks of the host can access.
    pub(crate) fn shared(memory: Pooled<Box<dyn SharedMemory>>) -> Self {
        Self(Memory::Shared(memory))
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn on_device(array: DeviceArray) -> Self {
        Self(Memory::Device(array))
    }

    /// The array, if it is on a device.
    #[cfg(feature = "cuda")]
    pub(crate) fn device(&self) -> Option<&DeviceArray> {
        if let Memory::Device(array) = &self.0 { Some(array) } else { None }
    }

    /// As [`DynArray::device`], to be written.
    #[cfg(feature = "cuda")]
    pub(crate) fn device_mut(&mut self) -> Option<&mut DeviceArray> {
        if let Memory::Device(array) = &mut self.0 { Some(array) } else { None }
    }

    /// Its first real numbers on a device; `None` if it is on the host.
    ///
    /// # Panics
    /// If it is shorter.
    #[cfg(feature = "cuda")]
    pub fn device_numbers<T: GpuReal>(&self, len: usize) -> Option<CudaView<'_, T>> {
        self.device().map(|array| array.numbers(len))
    }

    /// As [`DynArray::device_numbers`], to be written.
    ///
    /// # Panics
    /// If it is shorter.
    #[cfg(feature = "cuda")]
    pub fn device_numbers_mut<T: GpuReal>(&mut self, len: usize) -> Option<CudaViewMut<'_, T>> {
        self.device_mut().map(|array| array.numbers_mut(len))
    }

    /// Its bytes.
    ///
    /// # Panics
    /// If it is on a device.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Memory::Own(words, bytes) => &bytemuck::cast_slice(words)[..*bytes],
            Memory::Shared(memory) => memory.bytes(),
            #[cfg(feature = "cuda")]
            Memory::Device(_) => panic!("an array on a device has no bytes on the host"),
        }
    }

    /// Its bytes, to be written.
    ///
    /// # Panics
    /// If it is on a device.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Memory::Own(words, bytes) => &mut bytemuck::cast_slice_mut(words)[..*bytes],
            Memory::Shared(memory) => memory.bytes_mut(),
            #[cfg(feature = "cuda")]
            Memory::Device(_) => panic!("an array on a device has no bytes on the host"),
        }
    }

    /// Copies bytes of the host to its beginning; on a device, after the work that is queued on its
    /// stream.
    ///
    /// # Errors
    /// [`Error::Transport`] when the driver fails.
    ///
    /// # Panics
    /// If it is shorter.
    pub fn write(&mut self, from: &[u8]) -> Result<(), Error> {
        #[cfg(feature = "cuda")]
        if let Memory::Device(array) = &mut self.0 {
            return array.write(from);
        }
        self.bytes_mut()[..from.len()].copy_from_slice(from);
        Ok(())
    }

    /// Copies its first bytes to the host. On a device, waits for its stream.
    ///
    /// # Errors
    /// As [`DynArray::write`].
    ///
    /// # Panics
    /// If it is shorter.
    pub fn read(&self, to: &mut [u8]) -> Result<(), Error> {
        #[cfg(feature = "cuda")]
        if let Memory::Device(array) = &self.0 {
            return array.read(to);
        }
        to.copy_from_slice(&self.bytes()[..to.len()]);
        Ok(())
    }

    /// Waits for the work that is queued on its device, if it is on one.
    ///
    /// # Errors
    /// [`Error::Transport`] when the driver fails.
    pub fn synchronize(&self) -> Result<(), Error> {
        #[cfg(feature = "cuda")]
        if let Memory::Device(array) = &self.0 {
            return array.done("waiting for the device", array.stream().synchronize());
        }
        Ok(())
    }

    /// Its address, if it is on a device.
    pub fn device_address(&self) -> Option<u64> {
        #[cfg(feature = "cuda")]
        if let Memory::Device(array) = &self.0 {
            return Some(array.address());
        }
        None
    }

    /// Zeros in memory of this rank alone, where this array is.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub(super) fn zeros_beside(&self, rank: usize) -> Result<Self, Error> {
        #[cfg(feature = "cuda")]
        if let Memory::Device(array) = &self.0 {
            let zeros = DeviceArray::zeros(array.gpu(), array.stream(), array.len(), rank);
            return zeros.map(Self::on_device);
        }
        Self::zeros(self.bytes().len(), rank)
    }

    /// A copy of an array on the host, in memory of this rank alone.
    pub(super) fn copy(&self) -> Self {
        let bytes = self.bytes();
        if let Memory::Own(words, bytes) = &self.0 {
            return Self(Memory::Own(words.clone(), *bytes));
        }
        let mut words = vec![0u128; bytes.len().div_ceil(size_of::<u128>())];
        bytemuck::cast_slice_mut::<_, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Self(Memory::Own(words, bytes.len()))
    }
}

impl fmt::Debug for DynArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, what) = match &self.0 {
            Memory::Own(_, bytes) => (*bytes, "own"),
            Memory::Shared(memory) => (memory.bytes().len(), "shared"),
            #[cfg(feature = "cuda")]
            Memory::Device(array) => (array.len(), "device"),
        };
        write!(f, "DynArray({bytes} bytes, {what})")
    }
}
