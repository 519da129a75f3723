//! Boxes or messages on the device, with what they touch.

use std::sync::Arc;

use bytemuck::Pod;
use cudarc::driver::{CudaSlice, CudaStream};

use crate::GpuError;
use crate::boxes::Items;
use crate::ffi::tried;

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
    /// [`GpuError::Driver`], as when memory is short.
    pub(crate) fn new<I: Pod>(
        stream: &Arc<CudaStream>,
        all: &Items<I>,
        (reads, writes): (Reach, Reach),
    ) -> Result<Self, GpuError> {
        let (count, tiles) = (all.items.len(), all.tiles.len());
        let tried = tried("uploading descriptors");
        let upload = |bytes: &[u8]| {
            stream.clone_htod(if bytes.is_empty() { &[0u8][..] } else { bytes }).map_err(&tried)
        };
        Ok(Self {
            items: upload(bytemuck::cast_slice(&all.items))?,
            list: upload(bytemuck::cast_slice(&all.tiles))?,
            firsts: stream.clone_htod(&all.firsts).map_err(&tried)?,
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
