//! The descriptors of a launch, on the device.

use std::sync::Arc;

use bytemuck::Pod;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DeviceRepr, SyncOnDrop, ValidAsZeroBits};

use super::boxes::Items;
use super::records::BatchRecord;
use crate::base::{GpuError, tried};

/// Uploads numbers; at least one, because the device has no empty arrays.
pub(crate) fn upload<N: DeviceRepr + Pod>(
    stream: &Arc<CudaStream>,
    numbers: &[N],
) -> Result<CudaSlice<N>, GpuError> {
    let some = if numbers.is_empty() { &[N::zeroed()][..] } else { numbers };
    stream.clone_htod(some).map_err(|why| GpuError::allocating(size_of_val(some), why))
}

pub(crate) fn zeros<N: DeviceRepr + ValidAsZeroBits>(
    stream: &Arc<CudaStream>,
    len: usize,
) -> Result<CudaSlice<N>, GpuError> {
    stream.alloc_zeros(len).map_err(|why| GpuError::allocating(len * size_of::<N>(), why))
}

/// The part of a buffer that a kernel accesses: its first bytes, from an aligned address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reach {
    pub(crate) bytes: usize,
    pub(crate) align: usize,
}

/// The items of a launch, uploaded.
pub(crate) struct Batch {
    items: CudaSlice<u8>,
    list: CudaSlice<u8>,
    firsts: CudaSlice<u32>,
    pub(crate) count: usize,
    pub(crate) tiles: usize,
    pub(crate) reads: Reach,
    pub(crate) writes: Reach,
}

impl Batch {
    /// Uploads items and their tiles, which read and write only within the reaches. Launches check
    /// buffers only against the reaches.
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

    /// Replaces the items by others with the same tiles.
    pub(crate) fn update<I: Pod>(
        &mut self,
        stream: &Arc<CudaStream>,
        items: &[I],
    ) -> Result<(), GpuError> {
        let bytes: &[u8] = bytemuck::cast_slice(items);
        if bytes.is_empty() {
            return Ok(());
        }
        stream.memcpy_htod(bytes, &mut self.items).map_err(tried("updating descriptors"))
    }

    pub(crate) fn memory(&self) -> usize {
        self.items.num_bytes() + self.list.num_bytes() + self.firsts.num_bytes()
    }

    /// The addresses of the descriptors, and guards that outlive the launch that reads them.
    pub(crate) fn record<'a>(
        &'a self,
        stream: &'a CudaStream,
    ) -> (BatchRecord, [SyncOnDrop<'a>; 3]) {
        let (items, one) = self.items.device_ptr(stream);
        let (list, two) = self.list.device_ptr(stream);
        let (firsts, three) = self.firsts.device_ptr(stream);
        let (count, tiles) = (self.count as u32, self.tiles as u32);
        (BatchRecord { items, list, firsts, count, tiles }, [one, two, three])
    }
}
