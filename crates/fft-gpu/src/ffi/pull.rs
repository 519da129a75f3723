//! Copies of boxes out of several ranks' memory into this one's: a reshape between ranks that reach each other, in one pass.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::Transfer;

use super::launch::{Kernel, Source as Binary, run_pull};
use super::memory::DeviceMemory;
use crate::batch::{Batch, Reach};
use crate::boxes::Tiled;
use crate::transfers::{Tiles, tile};
use crate::{Gpu, GpuError, GpuReal, Move};

/// Sources begin at multiples of this many bytes.
const ALIGN: u64 = 16;

/// Memory of some rank that may be read until what it is borrowed from ends.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    at: u64,
    bytes: usize,
    lent: PhantomData<&'a ()>,
}

impl<'a> Source<'a> {
    /// This rank's own.
    pub(crate) fn own<T>(memory: &'a DeviceMemory<T>) -> Self {
        use cudarc::driver::DeviceSlice;
        Self { at: memory.address(), bytes: memory.num_bytes(), lent: PhantomData }
    }

    /// Another rank's.
    ///
    /// # Safety
    /// It can be read on this device until `'a` ends, and so can what is queued by then.
    pub(super) unsafe fn of(at: u64, bytes: usize) -> Self {
        Self { at, bytes, lent: PhantomData }
    }

    /// Nothing, of a rank that is not reached.
    pub(crate) fn nothing() -> Self {
        Self { at: 0, bytes: 0, lent: PhantomData }
    }
}

/// Where sources begin that have so many bytes each; whether some have moved.
///
/// # Errors
/// [`GpuError::Short`] and [`GpuError::Unaligned`].
pub(super) fn locate<'v>(
    reaches: &[usize],
    source: &dyn Fn(usize) -> Source<'v>,
    bases: &mut [u64],
) -> Result<bool, GpuError> {
    let what = "the source of a rank";
    let mut moved = false;
    for (number, &expected) in reaches.iter().enumerate().filter(|(_, n)| **n > 0) {
        let source = source(number);
        let found = source.bytes;
        if found < expected {
            return Err(GpuError::Short { what, found, expected });
        }
        if !source.at.is_multiple_of(ALIGN) {
            let (found, expected) = (source.at, ALIGN as usize);
            return Err(GpuError::Unaligned { what, found, expected });
        }
        moved |= std::mem::replace(&mut bases[number], source.at) != source.at;
    }
    Ok(moved)
}

/// Boxes, each out of one of several sources, ready to run as one launch.
pub(crate) struct Pulls {
    kernel: Kernel,
    batch: Batch,
    items: Vec<Tiled>,
    /// For each, its source, and where in that it begins, in units of `unit` bytes.
    places: Vec<(usize, u64)>,
    unit: u64,
    /// Bytes that each source must have.
    reaches: Vec<usize>,
    /// Where the sources were when descriptors were uploaded last.
    bases: Vec<u64>,
}

impl Pulls {
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
        let moves: Vec<_> =
            parts.iter().map(|(_, transfer)| Move { transfer, from: 0, to: 0 }).collect();
        let element = width * size_of::<T>();
        let Tiles { all, unit, reaches: (_, writes) } = tile(element, &moves)?;
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
        let kernel = gpu.kernel(Binary::Transfer, &format!("transfer_{unit}"))?;
        let (unit, bases, items) = (unit as u64, vec![0; sources], all.items);
        Ok(Self { kernel, batch, items, places, unit, reaches, bases })
    }

    /// Has descriptors name where the sources are now.
    fn follow<'v>(
        &mut self,
        stream: &Arc<CudaStream>,
        source: &dyn Fn(usize) -> Source<'v>,
    ) -> Result<(), GpuError> {
        if !locate(&self.reaches, source, &mut self.bases)? {
            return Ok(());
        }
        for (item, (source, place)) in self.items.iter_mut().zip(&self.places) {
            item.set_source(self.bases[*source] / self.unit + place);
        }
        self.batch.update(stream, &self.items)
    }

    /// Copies; returns when the launch is queued.
    ///
    /// # Errors
    /// [`GpuError::Short`] and [`GpuError::Unaligned`], in which case nothing is launched; [`GpuError::Driver`].
    pub(crate) fn run<'v, T>(
        &mut self,
        stream: &Arc<CudaStream>,
        source: &dyn Fn(usize) -> Source<'v>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        let followed = self.follow(stream, source);
        if followed.is_err() {
            // What is on the device names who knows what.
            self.bases.fill(0);
        }
        followed?;
        // SAFETY: the boxes are inside the sources, which may be read until they are no longer borrowed, and that is after the
        // launch is queued.
        unsafe { run_pull(stream, &self.kernel, &self.batch, dst) }
    }
}
