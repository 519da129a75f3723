//! Copies of boxes out of several ranks' memory into this one's: a reshape between ranks that reach each other, in one pass.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::Transfer;

use super::launch::run_pull;
use super::memory::DeviceMemory;
use super::modules::{Kernel, Source};
use crate::abi::batch::{Batch, Reach};
use crate::abi::boxes::Tiled;
use crate::base::{Gpu, GpuError, GpuReal};
use crate::kernel::Move;
use crate::kernel::transfers::{Tiles, tile};

/// Memory of ranks begins at multiples of this many bytes.
const ALIGN: u64 = 16;

/// Memory of some rank that may be read, or written if it is lent for that, until what it is borrowed from ends.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    at: u64,
    bytes: usize,
    lent: PhantomData<&'a ()>,
}

impl<'a> Place<'a> {
    /// This rank's own.
    pub(crate) fn own<T>(memory: &'a DeviceMemory<T>) -> Self {
        use cudarc::driver::DeviceSlice;
        Self { at: memory.address(), bytes: memory.num_bytes(), lent: PhantomData }
    }

    /// Another rank's.
    ///
    /// # Safety
    /// It can be read on this device, or written if it is lent for that, until `'a` ends, and so can what is queued by then.
    pub(super) unsafe fn of(at: u64, bytes: usize) -> Self {
        Self { at, bytes, lent: PhantomData }
    }

    pub(super) fn address(&self) -> u64 {
        self.at
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Nothing, of a rank that is not reached.
    pub(crate) fn nothing() -> Self {
        Self { at: 0, bytes: 0, lent: PhantomData }
    }
}

/// Memories of ranks, and where they were when the device was told last.
pub(super) struct Places {
    /// Bytes that each must have.
    reaches: Vec<usize>,
    bases: Vec<u64>,
}

impl Places {
    /// Of which the device has not been told yet.
    pub(super) fn new(reaches: Vec<usize>) -> Self {
        let bases = vec![0; reaches.len()];
        Self { reaches, bases }
    }

    /// Tells the device where they begin, if any has moved.
    ///
    /// # Errors
    /// [`GpuError::Short`] and [`GpuError::Unaligned`]; those of `tell`.
    pub(super) fn follow<'v>(
        &mut self,
        place: &dyn Fn(usize) -> Place<'v>,
        tell: impl FnOnce(&[u64]) -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        let told = self.locate(place).and_then(|moved| match moved {
            true => tell(&self.bases),
            false => Ok(()),
        });
        if told.is_err() {
            // What the device knows is no longer what is here.
            self.bases.fill(0);
        }
        told
    }

    /// Whether some have moved.
    fn locate<'v>(&mut self, place: &dyn Fn(usize) -> Place<'v>) -> Result<bool, GpuError> {
        let what = "the memory of a rank";
        let mut moved = false;
        for (number, &expected) in self.reaches.iter().enumerate().filter(|(_, n)| **n > 0) {
            let place = place(number);
            let found = place.bytes;
            if found < expected {
                return Err(GpuError::Short { what, found, expected });
            }
            if !place.at.is_multiple_of(ALIGN) {
                let (found, expected) = (place.at, ALIGN as usize);
                return Err(GpuError::Unaligned { what, found, expected });
            }
            moved |= std::mem::replace(&mut self.bases[number], place.at) != place.at;
        }
        Ok(moved)
    }
}

/// Boxes, each out of one of several sources, ready to run as one launch.
pub(crate) struct PeerGets {
    kernel: Kernel,
    batch: Batch,
    items: Vec<Tiled>,
    /// For each, its source, and where in that it begins, in units of `unit` bytes.
    places: Vec<(usize, u64)>,
    unit: u64,
    sources: Places,
}

impl PeerGets {
    /// Prepares copies of elements of `width` real numbers, each out of the source of this number, of so many.
    ///
    /// # Errors
    /// As [`crate::Transfers::new`].
    pub(crate) fn new<T: GpuReal>(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        width: usize,
        sources: usize,
        parts: &[(usize, &Transfer)],
    ) -> Result<Self, GpuError> {
        let redistribution: Vec<_> =
            parts.iter().map(|(_, transfer)| Move { transfer, from: 0, to: 0 }).collect();
        let element = width * size_of::<T>();
        let Tiles { all, unit, reaches: (_, writes), .. } =
            tile(element, &redistribution)?.into_one();
        let mut reaches = vec![0; sources];
        let mut places = Vec::with_capacity(all.items.len());
        let filled = parts.iter().filter(|(_, transfer)| transfer.elements() > 0);
        for ((source, transfer), item) in filled.zip(&all.items) {
            reaches[*source] = reaches[*source].max(transfer.reach() * element);
            places.push((*source, item.source()));
        }
        // What is read is checked source by source.
        let reads = Reach { bytes: 0, align: 1 };
        let batch = Batch::new(stream, &all, (reads, writes))?;
        let kernel = gpu.kernel(Source::Transfer, &format!("transfer_{unit}"))?;
        let (unit, sources, items) = (unit as u64, Places::new(reaches), all.items);
        Ok(Self { kernel, batch, items, places, unit, sources })
    }

    /// Bytes of memory of the device.
    pub(crate) fn memory(&self) -> usize {
        self.batch.memory()
    }

    /// Copies; returns when the launch is queued.
    ///
    /// # Errors
    /// [`GpuError::Short`] and [`GpuError::Unaligned`], in which case nothing is launched; [`GpuError::Driver`].
    pub(crate) fn run<'v, T>(
        &mut self,
        stream: &Arc<CudaStream>,
        source: &dyn Fn(usize) -> Place<'v>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        let Self { batch, items, places, unit, sources, .. } = self;
        sources.follow(source, |bases| {
            for (item, (source, place)) in items.iter_mut().zip(&*places) {
                item.set_source(bases[*source] / *unit + place);
            }
            batch.update(stream, items)
        })?;
        // SAFETY: the boxes are inside the sources, which may be read until they are no longer borrowed, and that is after the
        // launch is queued.
        unsafe { run_pull(stream, &self.kernel, &self.batch, dst) }
    }
}
