//! Boxes or messages on the device, with what they touch.

use std::sync::Arc;

use bytemuck::Pod;
use cudarc::driver::{CudaSlice, CudaStream, DeviceRepr, ValidAsZeroBits};

use super::boxes::Items;
use crate::base::GpuError;
use crate::ffi::tried;

/// Numbers on the device: never none, as it has no such arrays.
///
/// # Errors
/// [`GpuError::Memory`], [`GpuError::Driver`].
pub(crate) fn upload<N: DeviceRepr + Pod>(
    stream: &Arc<CudaStream>,
    numbers: &[N],
) -> Result<CudaSlice<N>, GpuError> {
    let some = if numbers.is_empty() { &[N::zeroed()][..] } else { numbers };
    stream.clone_htod(some).map_err(|why| GpuError::allocating(size_of_val(some), why))
}

/// So many zeros there.
///
/// # Errors
/// As [`upload`].
pub(crate) fn zeros<N: DeviceRepr + ValidAsZeroBits>(
    stream: &Arc<CudaStream>,
    len: usize,
) -> Result<CudaSlice<N>, GpuError> {
    stream.alloc_zeros(len).map_err(|why| GpuError::allocating(len * size_of::<N>(), why))
}

/// What a kernel may access of a buffer: its first bytes, from an address that is a multiple.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reach {
    pub(crate) bytes: usize,
    pub(crate) align: usize,
}

/// Items of a launch, numbered through by their tiles. Never empty on the device, which has no arrays of length 0.
pub(crate) struct Batch {
    items: CudaSlice<u8>,
    list: CudaSlice<u8>,
    firsts: CudaSlice<u32>,
    count: usize,
    tiles: usize,
    reads: Reach,
    writes: Reach,
}

impl Batch {
    /// Uploads items and their tiles.
    ///
    /// What they read and write must be within the reaches: the launches rely on it.
    ///
    /// # Errors
    /// [`GpuError::Memory`], [`GpuError::Driver`].
    pub(crate) fn new<I: Pod>(
        stream: &Arc<CudaStream>,
        all: &Items<I>,
        (reads, writes): (Reach, Reach),
    ) -> Result<Self, GpuError> {
        let (count, tiles) = (all.items.len(), all.tiles.len());
        Ok(Self {
            items: upload(stream, bytemuck::cast_slice(&all.items))?,
            list: upload(stream, bytemuck::cast_slice(&all.tiles))?,
            firsts: upload(stream, &all.firsts)?,
            count,
            tiles,
            reads,
            writes,
        })
    }

    /// Replaces the items by others with as many tiles.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub(crate) fn update<I: Pod>(
        &mut self,
        stream: &Arc<CudaStream>,
        items: &[I],
    ) -> Result<(), GpuError> {
        let bytes: &[u8] = bytemuck::cast_slice(items);
        match bytes.is_empty() {
            true => Ok(()),
            false => {
                stream.memcpy_htod(bytes, &mut self.items).map_err(tried("updating descriptors"))
            }
        }
    }

    /// Bytes of memory of the device.
    pub(crate) fn memory(&self) -> usize {
        self.items.num_bytes() + self.list.num_bytes() + self.firsts.num_bytes()
    }

    pub(crate) fn items(&self) -> &CudaSlice<u8> {
        &self.items
    }

    pub(crate) fn list(&self) -> &CudaSlice<u8> {
        &self.list
    }

    pub(crate) fn firsts(&self) -> &CudaSlice<u32> {
        &self.firsts
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn tiles(&self) -> usize {
        self.tiles
    }

    pub(crate) fn reads(&self) -> Reach {
        self.reads
    }

    pub(crate) fn writes(&self) -> Reach {
        self.writes
    }
}
