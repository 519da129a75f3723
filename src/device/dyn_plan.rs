//! A plan on a device whose transform and number of axes are values.

use std::sync::Arc;

use fft_core::{
    Access, Algorithm, Comm, Direction, DynBrick, Error, Executor, Recipe, Reduce, Timings,
    WireError, agree,
};
use fft_gpu::cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, DeviceSlice};
use fft_gpu::{
    Cuda, DeviceMemory, Gpu, GpuError, GpuReal, GpuTransport, SharedSlice, lend, lend_mut,
};

use super::array::{DeviceArray, Memory};
use super::timings::Bench;
use crate::dyn_plan::check_recipe;
use crate::pool::Pool;
use crate::tune::Decision;
use crate::{DynDraft, Report};

/// A [`DevicePlan`](crate::DevicePlan) whose transform and number of axes are values: for programs
/// that learn these when they run.
///
/// Made by [`DynDraft::on`], of a draft of this precision.
pub struct DynDevicePlan<T: GpuReal> {
    pub(super) executor: Executor<T, Cuda<T>>,
    recipe: Recipe,
    report: Report,
    pub(super) gpu: Gpu,
    stream: Arc<CudaStream>,
    pub(super) pool: Pool<SharedSlice<T>>,
}

/// Where a plan's data is, and how it gets to other ranks.
pub struct Place {
    /// The device.
    pub gpu: Gpu,
    /// The stream that everything is queued on; a new one by default.
    pub stream: Option<Arc<CudaStream>>,
    /// How data gets to other ranks.
    pub transport: GpuTransport,
}

impl DynDraft<'_> {
    /// Makes a plan for data on a device: this rank's. Collective; the same `Ok` or error on every
    /// rank.
    ///
    /// # Errors
    /// Those of [`DeviceDraft::build`](crate::DeviceDraft::build); [`Error::OnRank`] where the
    /// draft is of another
    /// precision than `T`, or says something of other axes than the grid has.
    pub fn on<T: GpuReal>(self, place: Place) -> Result<DynDevicePlan<T>, Error> {
        let (comm, Place { gpu, stream, transport }) = (self.comm(), place);
        check_transport(comm, transport)?;
        let types = self.types();
        let fits = match types.1 == T::PRECISION {
            true => Ok(()),
            false => Err(Error::argument("precision of the draft", types.1, T::PRECISION)),
        };
        agree(comm, self.has_axes_of_grid().and(fits))?;
        let stream = match stream {
            Some(stream) => Ok(stream),
            None => gpu.new_stream().map_err(|why| why.on(comm.rank())),
        };
        let stream = agree(comm, stream)?;
        let bench = Bench { gpu: &gpu, stream: &stream, transport };
        let access = access::<T>(&self, &gpu, transport)?;
        let Decision { recipe, report, .. } = self
            .decide_for_device(access, &|problem, wanted, budget| {
                bench.by_clock::<T>(comm, problem, wanted, budget)
            })?;
        check_recipe(comm, &recipe, types)?;
        let device = agree(comm, bench.device(comm.rank()))?;
        let own = agree(comm, comm.dup())?;
        let executor = Executor::bind(&recipe, own, device, &fft_comm::exchange)?;
        if (transport, executor.device().taken())
            == (GpuTransport::GpuDirect, GpuTransport::HostStaged)
        {
            let expected = "one that ranks have: a CUDA-aware MPI, and an exchange and wires that send from devices";
            return Err(Error::argument("transport", transport, expected));
        }
        Ok(DynDevicePlan { executor, recipe, report, gpu, stream, pool: Pool::default() })
    }
}

/// Whether all ranks were told the same. Collective.
fn check_transport(comm: &dyn Comm, mine: GpuTransport) -> Result<(), Error> {
    let place = |of: GpuTransport| {
        GpuTransport::ALL.iter().position(|known| *known == of).unwrap_or(0) as u8
    };
    let mut all = vec![0; comm.size()];
    comm.allgather(&[place(mine)], &mut all)?;
    let Some(rank_b) = all.iter().position(|other| *other != all[0]) else { return Ok(()) };
    let [a, b] = [0, rank_b].map(|rank| GpuTransport::ALL[usize::from(all[rank])].to_string());
    Err(Error::Disagreement { what: "transport".into(), rank_a: 0, a, rank_b, b })
}

impl<T: GpuReal> DynDevicePlan<T> {
    /// As [`DevicePlan::recipe`](crate::DevicePlan::recipe).
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// As [`DevicePlan::report`](crate::DevicePlan::report).
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// As [`DevicePlan::comm`](crate::DevicePlan::comm).
    pub fn comm(&self) -> &dyn Comm {
        self.executor.comm()
    }

    /// As [`DevicePlan::stream`](crate::DevicePlan::stream).
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// As [`DevicePlan::wire_error`](crate::DevicePlan::wire_error).
    pub fn wire_error(&self) -> Option<WireError> {
        self.executor.lost()
    }

    /// As [`DevicePlan::memory`](crate::DevicePlan::memory).
    pub fn memory(&self) -> usize {
        self.executor.memory()
    }

    /// As [`DevicePlan::exchange`](crate::DevicePlan::exchange).
    pub fn exchange(&self) -> Algorithm {
        self.executor.exchange(self.recipe.problem().exchange)
    }

    /// As [`DevicePlan::transport`](crate::DevicePlan::transport).
    pub fn transport(&self) -> GpuTransport {
        self.executor.device().taken()
    }

    /// As [`DevicePlan::fetched`](crate::DevicePlan::fetched).
    pub fn fetched(&self, direction: Direction) -> usize {
        self.executor.device().fetched(direction)
    }

    /// As [`DevicePlan::stores`](crate::DevicePlan::stores).
    pub fn stores(&self, direction: Direction) -> bool {
        self.executor.device().stores(direction)
    }

    /// As [`DevicePlan::timings`](crate::DevicePlan::timings).
    pub fn timings(&self) -> Timings {
        self.executor.timings()
    }

    /// As [`DevicePlan::clear_timings`](crate::DevicePlan::clear_timings).
    pub fn clear_timings(&mut self) {
        self.executor.clear_timings();
    }

    /// As [`DevicePlan::input_brick`](crate::DevicePlan::input_brick).
    pub fn input_brick(&self) -> DynBrick {
        self.recipe.problem().input.brick(self.comm().rank())
    }

    /// As [`DevicePlan::output_brick`](crate::DevicePlan::output_brick).
    pub fn output_brick(&self) -> DynBrick {
        self.recipe.problem().output.brick(self.comm().rank())
    }

    /// As [`DevicePlan::input_len`](crate::DevicePlan::input_len).
    pub fn input_len(&self) -> usize {
        self.input_brick().points() * self.recipe.problem().howmany
    }

    /// As [`DevicePlan::output_len`](crate::DevicePlan::output_len).
    pub fn output_len(&self) -> usize {
        self.output_brick().points() * self.recipe.problem().howmany
    }

    /// Real numbers of physical data on this rank, and of spectral data.
    pub fn reals(&self) -> [usize; 2] {
        self.recipe.problem().reals(self.comm().rank())
    }

    /// Real numbers that an array must have room for to be transformed in place: those of whole
    /// spectral points.
    pub fn in_place_reals(&self) -> usize {
        let [physical, spectral] = self.reals();
        let [_, width] = self.recipe.problem().widths();
        spectral.max(physical.next_multiple_of(width))
    }

    /// Transforms from one array to another, of real numbers. Collective.
    ///
    /// # Errors
    /// As [`DevicePlan::forward_into`](crate::DevicePlan::forward_into).
    pub fn run(
        &mut self,
        direction: Direction,
        input: &impl DevicePtr<T>,
        output: &mut impl DevicePtrMut<T>,
    ) -> Result<(), Error> {
        let [physical, spectral] = self.reals();
        let (reads, writes) = direction.choose((physical, spectral), (spectral, physical));
        let lens: [Len; 2] = [("input", input.len(), reads), ("output", output.len(), writes)];
        let fit = lengths(self.comm().rank(), &lens);
        let stream = self.stream.clone();
        let (src, mut dst) = (lend(input, &stream), lend_mut(output, &stream));
        let seen = || self.sees(&src).and_then(|()| self.sees(&dst));
        let fit = fit.and_then(|()| seen());
        self.agree(fit)?;
        self.executor.run(direction, Some(&src), &mut dst)
    }

    /// Transforms within one array of [`DynDevicePlan::in_place_reals`] real numbers. Collective.
    ///
    /// # Errors
    /// As [`DynDevicePlan::run`].
    pub fn run_in_place(
        &mut self,
        direction: Direction,
        data: &mut impl DevicePtrMut<T>,
    ) -> Result<(), Error> {
        let reals = self.in_place_reals();
        let fit = lengths(self.comm().rank(), &[("array in place", data.len(), reals)]);
        let stream = self.stream.clone();
        let mut data = lend_mut(data, &stream);
        let fit = fit.and_then(|()| self.sees(&data));
        self.agree(fit)?;
        self.executor.run(direction, None, &mut data)
    }

    /// As [`Plan::agree`](crate::Plan::agree). Collective.
    ///
    /// # Errors
    /// As there.
    pub fn agree<R>(&mut self, mine: Result<R, Error>) -> Result<R, Error> {
        self.executor.agree(mine)
    }

    /// Zeros to be transformed in place.
    ///
    /// # Errors
    /// On this rank, when there is no memory for them.
    pub fn zeros(&self) -> Result<DeviceArray<T>, Error> {
        // There are no arrays of nothing on a device.
        let reals = self.in_place_reals().max(1);
        let rank = self.comm().rank();
        let failed = |why| GpuError::allocating(reals * size_of::<T>(), why).on(rank);
        self.stream.alloc_zeros(reals).map(DeviceArray::own).map_err(failed)
    }

    /// The same in memory that the ranks of a host see: see
    /// [`DevicePlan::shared_input`](crate::DevicePlan::shared_input). Collective.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// Never: what is pool on all ranks is pool on this one.
    pub fn shared_zeros(&mut self) -> Result<DeviceArray<T>, Error> {
        self.agree(Ok(()))?;
        // All ranks make new memory, or none.
        let mut all = [f64::from(!self.pool.is_empty())];
        self.comm().allreduce(Reduce::Min, &mut all)?;
        let lent = match all[0] > 0.0 {
            true => {
                let mut lent = self.pool.take();
                let cleared = lent.as_mut().map_or(Ok(()), |array| array.clear());
                cleared.map(|()| lent).map_err(|why| why.on(self.comm().rank()))
            }
            false => {
                let reals = self.in_place_reals();
                let made = self.executor.device_mut().allocate(reals)?;
                Ok(Some(self.pool.lend(made)))
            }
        };
        let lent = agree(self.comm(), lent)?.expect("made, or pool on all ranks");
        Ok(DeviceArray(Memory::Shared(lent)))
    }

    /// Whether an array is where it must be.
    pub(super) fn sees(&self, array: &DeviceMemory<T>) -> Result<(), Error> {
        let any = !self.recipe.problem().shared_arrays || array.is_empty();
        if any || self.executor.device().sees(array) {
            return Ok(());
        }
        let expected = "one made by DevicePlan::shared_input or shared_output, thriffty_allocate";
        Err(Error::argument("array", "one that other ranks do not see", expected))
    }
}

/// What an array is called, its length, and that which it must have.
type Len = (&'static str, usize, usize);

/// Whether every array has the length it must have.
fn lengths(rank: usize, lens: &[Len]) -> Result<(), Error> {
    match lens.iter().find(|(_, found, expected)| found != expected) {
        None => Ok(()),
        Some(&(what, found, expected)) => Err(Error::Length { what, rank, found, expected }),
    }
}

/// How transforms come to their data: they fetch it where ranks share one device, and all can;
/// that of complex numbers also where ranks have
/// devices that are joined. Collective.
fn access<T: GpuReal>(
    draft: &DynDraft<'_>,
    gpu: &Gpu,
    transport: GpuTransport,
) -> Result<Access, Error> {
    let comm = draft.comm();
    let lens = draft.complex_lens().filter(|_| transport == GpuTransport::PeerToPeer);
    let device = lens.and_then(|lens| {
        let elements = lens.iter().fold(1, |all: usize, n| all.saturating_mul(*n)) / comm.size();
        fft_gpu::fetches::<T>(gpu, &lens, elements)
    });
    // No device has this identity.
    let mine = device.unwrap_or_default();
    let mut all = vec![[0; 16]; comm.size()];
    comm.allgather(&mine, all.as_flattened_mut())?;
    let far = draft.types().0.is_complex();
    let near = |other: &[u8; 16]| *other == mine || far && fft_gpu::joined(gpu, *other);
    let fetches = !all.contains(&[0; 16]) && all.iter().all(near);
    let mut fetched = [f64::from(fetches)];
    comm.allreduce(Reduce::Min, &mut fetched)?;
    Ok(if fetched == [1.0] { Access::Fetched } else { Access::Contiguous })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DynTransform;
    use crate::tune::ByClock;
    use fft_core::{Grid, Precision};

    /// A device transforms no chunks in its cache: the recipe is the same whether messages are in
    /// chunks or whole.
    #[test]
    fn recipes_of_devices_are_those_of_whole_messages() {
        let recipes = |comm: crate::ThreadComm| {
            let recipe = |exchange: Algorithm, access| {
                let grid = Grid::new([512; 3])?;
                let draft = DynDraft::new(&comm, grid, DynTransform::C2c, Precision::F64);
                let by_clock: ByClock<'_> = &|_, _, _| unreachable!("the model chooses");
                let chosen = draft.exchange(exchange).decide_for_device(access, by_clock)?;
                Ok(chosen.recipe.to_string().replace(&format!(" {exchange} "), " "))
            };
            let others =
                [Algorithm::Shared, Algorithm::Pipelined, Algorithm::Ring(fft_core::Epochs::Fence)];
            for access in [Access::Contiguous, Access::Fetched] {
                let whole = recipe(Algorithm::P2p, access)?;
                let turned = whole.contains("zyx") || whole.contains("yzx");
                assert!(turned || access == Access::Fetched, "{whole}");
                for exchange in others {
                    assert_eq!(recipe(exchange, access)?, whole);
                }
            }
            Ok::<_, Error>(())
        };
        for ranks in [2, 4, 8] {
            crate::threads(ranks, recipes).unwrap();
        }
    }
}
