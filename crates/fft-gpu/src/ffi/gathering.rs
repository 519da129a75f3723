//! Transforms that load their input from several ranks' memory, and may store results there.
//!
//! The passes of the transform do the reshapes before and after it.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::Precision;

use super::block::Block;
use super::cufft::FftPlan;
use super::memory::DeviceMemory;
use super::rank_memory::{RankAddresses, RankMemory};
use crate::abi::fft::Many;
use crate::abi::pieces::{Pieces, Table};
use crate::base::{Gpu, GpuError, GpuReal};

/// A plan of complex transforms with a table of loads, and perhaps one of stores.
pub(crate) struct Gathering {
    plan: FftPlan<f64>,
    sides: Vec<(Pieces, RankAddresses)>,
}

type MemoryOf<'a, 'v> = &'a dyn Fn(usize) -> RankMemory<'v>;

impl Gathering {
    /// Plans transforms. `None` if cuFFT cannot, or if a table is for another array. A plan that
    /// stores must also work without a work area.
    pub(crate) fn new<T: GpuReal, const D: usize>(
        gpu: &Gpu,
        many: &Many<D>,
        from: Pieces,
        to: Option<Pieces>,
    ) -> Result<Option<Self>, GpuError> {
        let [input, output] = &many.sides;
        let elements = input.reach(many.batch);
        let fits = |pieces: &Pieces| elements == Some(pieces.elements);
        let double = T::PRECISION == Precision::F64;
        if !double || input != output || !fits(&from) || !to.iter().all(fits) {
            return Ok(None);
        }
        let table = |pieces: &Pieces| {
            Block::new(gpu.context(), size_of::<Table>()).map(|block| (block, pieces.cuts))
        };
        let (source, target) = (table(&from)?, to.as_ref().map(table).transpose()?);
        // SAFETY: the tables are of as many elements. Before a run they name memory that is lent
        // for it.
        let plan = unsafe { FftPlan::gathering(gpu.context(), many, source, target) }?;
        let side = |pieces: Pieces| {
            let addresses = RankAddresses::new(pieces.reaches.clone());
            (pieces, addresses)
        };
        let stores = to.is_some();
        let sides = [from].into_iter().chain(to).map(side).collect();
        // Lines without a work area are done in one pass, which writes nothing but results.
        let plan = plan.filter(|plan| !stores || D == 1 && plan.work_bytes() == 0);
        Ok(plan.map(|plan| Self { plan, sides }))
    }

    /// Bytes of the work area that it needs.
    pub(crate) fn work_bytes(&self) -> usize {
        self.plan.work_bytes()
    }

    /// Bytes of device memory in addition to the work area.
    pub(crate) fn memory(&self) -> usize {
        self.plan.linked_blocks().map(Block::bytes).sum()
    }

    /// Queues transforms of the sources, into `dst`.
    pub(crate) fn run<'v, T: GpuReal>(
        &mut self,
        stream: &Arc<CudaStream>,
        source: MemoryOf<'_, 'v>,
        dst: &mut DeviceMemory<T>,
        work: &mut DeviceMemory<u8>,
    ) -> Result<(), GpuError> {
        assert!(self.sides.len() == 1, "a plan with a table of stores needs targets");
        self.update(stream, [source, source])?;
        // SAFETY: cuFFT does not read its input, and only writes `dst`, in the stream's order.
        unsafe { self.plan.run_at(stream, RankMemory::own(dst), work) }
    }

    /// Queues transforms of the sources into the targets; ranks without a target use `dst`. cuFFT
    /// also takes an array that it does not access: `dst`, or `spare` if that is longer.
    pub(crate) fn store<'v, T: GpuReal>(
        &mut self,
        stream: &Arc<CudaStream>,
        source: MemoryOf<'_, 'v>,
        target: &dyn Fn(usize) -> Option<RankMemory<'v>>,
        (dst, spare): (&mut DeviceMemory<T>, &DeviceMemory<T>),
        work: &mut DeviceMemory<u8>,
    ) -> Result<(), GpuError> {
        assert!(self.sides.len() == 2, "a plan that does not store");
        let here = RankMemory::own(dst);
        let target = |rank: usize| target(rank).unwrap_or(here);
        self.update(stream, [&|rank| source(rank), &target])?;
        let spare = RankMemory::own(spare);
        let array = if spare.bytes > here.bytes { spare } else { here };
        // SAFETY: cuFFT replaces its loads and stores by the tables' functions. `new` admits only
        // plans of one pass, which access nothing else; a test makes sure of that.
        unsafe { self.plan.run_at(stream, array, work) }
    }

    /// Writes the addresses of ranks' memory into the tables.
    fn update(
        &mut self,
        stream: &Arc<CudaStream>,
        of: [MemoryOf<'_, '_>; 2],
    ) -> Result<(), GpuError> {
        let Self { plan, sides } = self;
        for (((pieces, addresses), block), memory) in
            sides.iter_mut().zip(plan.linked_blocks()).zip(of)
        {
            addresses.follow(memory, |bases| {
                block.update(stream, bytemuck::bytes_of(pieces.table(bases)))
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
