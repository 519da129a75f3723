//! Boxes or messages on the device, with what they touch.

use std::sync::Arc;

use bytemuck::Pod;
use cudarc::driver::{CudaSlice, CudaStream};

use crate::GpuError;
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
    firsts: CudaSlice<u32>,
    count: usize,
    tiles: usize,
    reads: Reach,
    writes: Reach,
}

impl Batch {
    /// Uploads items, of each of which the number of its first tile is given, and of the end at last.
    ///
    /// What they read and write must be within the reaches: the launches rely on it.
    ///
    /// # Errors
    /// [`GpuError::Driver`], as when memory is short; [`GpuError::TooLarge`] beyond 2^31 tiles.
    pub(crate) fn new<I: Pod>(
        stream: &Arc<CudaStream>,
        items: &[I],
        firsts: &[u32],
        (reads, writes): (Reach, Reach),
    ) -> Result<Self, GpuError> {
        let (count, tiles) = (items.len(), firsts[items.len()] as usize);
        let expected = i32::MAX as usize;
        if tiles > expected {
            return Err(GpuError::TooLarge { what: "the number of tiles", found: tiles, expected });
        }
        let bytes: &[u8] = bytemuck::cast_slice(items);
        let tried = tried("uploading descriptors");
        Ok(Self {
            items: stream
                .clone_htod(if bytes.is_empty() { &[0u8][..] } else { bytes })
                .map_err(&tried)?,
            firsts: stream.clone_htod(firsts).map_err(&tried)?,
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
