//! Transforms that fetch what they read out of several ranks' memory: a reshape and a transform in the passes of the transform.

use std::sync::Arc;

use cudarc::driver::CudaStream;

use super::cufft::{FftReal, Handle, Many, Run};
use super::memory::{Block, DeviceMemory};
use super::pull::{Source, Sources};
use crate::gather::{Gather, Table};
use crate::{Gpu, GpuError};

/// A plan of complex transforms, with the table that it is told.
pub(crate) struct Gathering {
    handle: Handle,
    run: Run,
    gather: Gather,
    sources: Sources,
}

impl Gathering {
    /// Plans transforms. `None` where cuFFT has no such plan, or the table is of another array than they
    /// transform.
    ///
    /// # Errors
    /// As [`Handle::new`].
    pub(crate) fn new<T: FftReal, const D: usize>(
        gpu: &Gpu,
        many: &Many<D>,
        gather: Gather,
    ) -> Result<Option<Self>, GpuError> {
        let [input, output] = &many.sides;
        if input != output || input.reach(many.batch) != Some(gather.elements()) {
            return Ok(None);
        }
        let table = Block::new(gpu.context(), size_of::<Table>())?;
        // SAFETY: the table is made for that code, and of as many elements. Before a run it names what was lent for it.
        let handle =
            unsafe { Handle::gathering::<T, D>(gpu.context(), many, (table, gather.cuts())) }?;
        let (run, sources) = (many.run, Sources::new(gather.reaches().to_vec()));
        Ok(handle.map(|handle| Self { handle, run, gather, sources }))
    }

    /// Bytes of the work area that it needs.
    pub(crate) fn work_bytes(&self) -> usize {
        self.handle.work()
    }

    /// Bytes of memory of the device beside that.
    pub(crate) fn memory(&self) -> usize {
        self.handle.told().map_or(0, Block::bytes)
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
        let Self { handle, gather, sources, .. } = self;
        let block = handle.told().expect("what it was planned with");
        sources.follow(source, |bases| {
            block.update(stream, bytemuck::bytes_of(gather.table(bases)))
        })?;
        // What cuFFT takes for the input is never read.
        self.handle.run_in_place(self.run, stream, dst, work)
    }
}
