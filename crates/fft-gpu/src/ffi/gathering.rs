//! Transforms that fetch what they read out of several ranks' memory: a reshape and a transform in the passes of the transform.

use std::sync::Arc;

use cudarc::driver::CudaStream;

use super::cufft::{FftReal, Handle, Run, Span};
use super::memory::{Block, DeviceMemory};
use super::pull::{Source, locate};
use crate::gather::{Gather, Table};
use crate::{Gpu, GpuError};

/// A plan of complex transforms, with the table that it is told.
pub(crate) struct Gathering {
    handle: Handle,
    run: Run,
    gather: Gather,
    /// Where the sources were when the table was uploaded last.
    bases: Vec<u64>,
}

impl Gathering {
    /// Plans so many transforms of these lengths. `None` where cuFFT has no such plan, or the table is of another array than they
    /// transform.
    ///
    /// # Errors
    /// As [`Handle::new`].
    pub(crate) fn new<T: FftReal, const D: usize>(
        gpu: &Gpu,
        run: Run,
        n: [usize; D],
        batch: usize,
        sides: [Span<D>; 2],
        gather: Gather,
    ) -> Result<Option<Self>, GpuError> {
        let bases = vec![0; gather.reaches().len()];
        if sides[0] != sides[1] || sides[0].reach(batch) != Some(gather.elements()) {
            return Ok(None);
        }
        let cuts = gather.cuts();
        let table = Block::new(gpu.context(), size_of::<Table>())?;
        // SAFETY: the table is made for that code, and of as many elements. Before a run it names what was lent for it.
        let handle = unsafe {
            Handle::gathering::<T, D>(gpu.context(), run, n, batch, sides, (table, cuts))
        }?;
        Ok(handle.map(|handle| Self { handle, run, gather, bases }))
    }

    /// Bytes of the work area that it needs.
    pub(crate) fn work_bytes(&self) -> usize {
        self.handle.work()
    }

    /// Transforms what the sources hold; returns when that is queued.
    ///
    /// # Errors
    /// As [`super::Pulls::run`], and for a short destination or work area.
    pub(crate) fn run<'v, T: FftReal>(
        &mut self,
        stream: &Arc<CudaStream>,
        source: &dyn Fn(usize) -> Source<'v>,
        dst: &mut DeviceMemory<T>,
        work: &mut DeviceMemory<u8>,
    ) -> Result<(), GpuError> {
        let moved = locate(self.gather.reaches(), source, &mut self.bases);
        let told = moved.and_then(|moved| match moved {
            true => {
                let table = self.gather.table(&self.bases);
                let block = self.handle.told().expect("what it was planned with");
                block.update(stream, bytemuck::bytes_of(table))
            }
            false => Ok(()),
        });
        if told.is_err() {
            // What is on the device names who knows what.
            self.bases.fill(0);
        }
        told?;
        // What cuFFT takes for the input is never read.
        self.handle.run_in_place(self.run, stream, dst, work)
    }
}
