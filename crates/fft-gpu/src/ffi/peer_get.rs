//! Copies of boxes out of several ranks' memory into this one's, in one pass.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::Transfer;

use super::launch::run_peer_get;
use super::memory::DeviceMemory;
use super::rank_memory::{RankAddresses, RankMemory};
use crate::abi::Move;
use crate::abi::batch::{Batch, Reach};
use crate::abi::boxes::TiledBox;
use crate::abi::copies::TiledCopies;
use crate::base::{Gpu, GpuError, GpuReal, Kernel, Source};

/// Copies from several sources, ready to run as one launch.
pub(crate) struct PeerGets {
    kernel: Kernel,
    batch: Batch,
    items: Vec<TiledBox>,
    /// The source of each item, and the item's offset there, in units of `unit` bytes.
    offsets: Vec<(usize, u64)>,
    unit: u64,
    sources: RankAddresses,
}

impl PeerGets {
    /// Prepares copies of elements of `width` real numbers, each out of a source of this number.
    pub(crate) fn new<T: GpuReal>(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        width: usize,
        sources: usize,
        parts: &[(usize, &Transfer)],
    ) -> Result<Self, GpuError> {
        let moves: Vec<_> =
            parts.iter().map(|(_, transfer)| Move { transfer, from: 0, to: 0 }).collect();
        let element = width * size_of::<T>();
        let TiledCopies { all, unit, reaches: (_, writes), .. } =
            TiledCopies::new(element, &moves)?.into_one();
        let mut reaches = vec![0; sources];
        let mut offsets = Vec::with_capacity(all.items.len());
        let filled = parts.iter().filter(|(_, transfer)| transfer.elements() > 0);
        for ((source, transfer), item) in filled.zip(&all.items) {
            reaches[*source] = reaches[*source].max(transfer.reach() * element);
            offsets.push((*source, item.from.offset));
        }
        // Reads are checked for each source.
        let reads = Reach { bytes: 0, align: 1 };
        let batch = Batch::new(stream, &all, (reads, writes))?;
        let kernel = gpu.kernel(Source::Transfer, &format!("transfer_{unit}"))?;
        let (unit, sources, items) = (unit as u64, RankAddresses::new(reaches), all.items);
        Ok(Self { kernel, batch, items, offsets, unit, sources })
    }

    pub(crate) fn memory(&self) -> usize {
        self.batch.memory()
    }

    pub(crate) fn run<'v, T>(
        &mut self,
        stream: &Arc<CudaStream>,
        source: &dyn Fn(usize) -> RankMemory<'v>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        let Self { batch, items, offsets, unit, sources, .. } = self;
        sources.follow(source, |bases| {
            for (item, (source, offset)) in items.iter_mut().zip(&*offsets) {
                item.from.offset = bases[*source] / *unit + offset;
            }
            batch.update(stream, items)
        })?;
        // SAFETY: the boxes are inside the sources, which work queued now may read.
        unsafe { run_peer_get(stream, &self.kernel, &self.batch, dst) }
    }
}
