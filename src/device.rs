//! Plans whose data is on CUDA devices.

mod array;
mod clock;
mod field;

pub use field::DeviceField;

use std::sync::Arc;

use fft_core::{
    Access, Algorithm, Brick, Clock, Comm, Direction, Element, Error, Executor, Recipe, Reduce,
    WireError, agree,
};
use fft_gpu::cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, DeviceSlice};
use fft_gpu::{Cuda, DeviceMemory, Gpu, GpuReal, Passage, SharedSlice, lend, lend_mut};

use crate::plan::{Len, check_recipe, lengths};
use crate::spare::Spare;
use crate::tune::Decision;
use crate::{Draft, Report, Transform};
use clock::Bench;

/// A plan on a device in the making: what [`Draft::on`] returns.
#[must_use = "a draft does nothing until it is built"]
pub struct DeviceDraft<'a, K: Transform, const D: usize> {
    draft: Draft<'a, K, D>,
    gpu: Gpu,
    stream: Option<Arc<CudaStream>>,
    passage: Passage,
}

/// A distributed transform of data on CUDA devices, ready to run any number of times in both directions.
///
/// Each rank has a device, or a part in one: several may share it. Ranks of one host reach each other's memory on the device,
/// threads by its address and processes by CUDA IPC. Messages to others are sent from memory of the device where the MPI takes
/// that, else through pinned memory of the host: [`DeviceDraft::passage`]. Transforms are cuFFT's, those of cosines and sines with
/// kernels before and after it. Kinds, wires, tolerances and bricks are those of [`Plan`](crate::Plan), and so are conventions.
/// Messages of [`Wire::Lossless`](crate::Wire) are made by the host, and go through it.
///
/// Slices are of real numbers, a complex number is two, and begin at a multiple of 16 bytes, as all do that are allocated. A
/// call returns when its work is queued on the plan's stream; where something may be lost on the wire, or there are messages,
/// when these are done. It is collective, and no rank's host waits for its device otherwise.
///
/// Dropping a plan is collective where ranks are MPI processes.
///
/// ```
/// use thriffty::{C2c, Grid, Plan, gpu::Gpu};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gpu = match Gpu::probe(0) {
///     Ok(gpu) => gpu,
///     Err(why) => {
///         println!("without a GPU: {why}");
///         return Ok(());
///     }
/// };
/// let sums = thriffty::threads(2, |world| {
///     let mut plan = Plan::<C2c, 3>::c2c(&world, Grid::new([8, 8, 8])?).on(&gpu).build()?;
///     let stream = plan.stream().clone();
///     let x = stream.clone_htod(&vec![1.0; 2 * plan.input_len()])?;
///     let mut y = stream.alloc_zeros::<f64>(2 * plan.output_len())?;
///     plan.forward_into(&x, &mut y)?;
///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(stream.clone_dtoh(&y)?[0])
/// });
/// assert_eq!(sums.map_err(|why| why.to_string())?[0], 512.0); // the sum over all points
/// # Ok(())
/// # }
/// ```
pub struct DevicePlan<K: Transform, const D: usize>
where
    K::Real: GpuReal,
{
    executor: Executor<K::Real, Cuda<K::Real>>,
    recipe: Recipe<D>,
    report: Report,
    gpu: Gpu,
    stream: Arc<CudaStream>,
    spare: Spare<SharedSlice<K::Real>>,
}

impl<'a, K: Transform, const D: usize> Draft<'a, K, D>
where
    K::Real: GpuReal,
{
    /// Makes a plan for data on a device: this rank's.
    pub fn on(self, gpu: &Gpu) -> DeviceDraft<'a, K, D> {
        let passage = Passage::default();
        DeviceDraft { draft: self, gpu: gpu.clone(), stream: None, passage }
    }
}

impl<K: Transform, const D: usize> DeviceDraft<'_, K, D>
where
    K::Real: GpuReal,
{
    /// The stream that everything is queued on; a new one by default.
    pub fn stream(mut self, stream: Arc<CudaStream>) -> Self {
        self.stream = Some(stream);
        self
    }

    /// How data gets to other ranks: by default as [`Passage::Reached`] says. The others make messages of all data that changes
    /// ranks, also between those that reach each other; to study what that does. The same on all ranks.
    pub fn passage(mut self, passage: Passage) -> Self {
        self.passage = passage;
        self
    }

    /// Makes the plan. Collective; the same `Ok` or error on every rank.
    ///
    /// # Errors
    /// Those of [`Draft::recipe`]; [`Error::Argument`] for [`Tune::Wisdom`](crate::Tune), for
    /// [`Memory::Least`](crate::Memory), and for [`Passage::Device`] where the exchange, the wire or the transport does not
    /// send from there; [`Error::Disagreement`] for ranks that were told different passages; [`Error::OnRank`] when a rank
    /// lacks memory, cuFFT, or the driver fails.
    pub fn build(self) -> Result<DevicePlan<K, D>, Error> {
        let (comm, Self { draft, gpu, stream, passage }) = (self.draft.comm(), self);
        check_passage(comm, passage)?;
        let stream = match stream {
            Some(stream) => Ok(stream),
            None => gpu.new_stream().map_err(|why| why.on(comm.rank())),
        };
        let stream = agree(comm, stream)?;
        let bench = Bench { gpu: &gpu, stream: &stream, passage };
        let access = access(&draft, &gpu, passage)?;
        let Decision { recipe, report, .. } = draft
            .decide_for_device(access, &|problem, wanted, budget| {
                bench.by_clock::<K::Real, D>(comm, problem, wanted, budget)
            })?;
        check_recipe::<K, D>(comm, &recipe)?;
        let device = agree(comm, bench.device(comm.rank()))?;
        let own = agree(comm, comm.dup())?;
        let executor = Executor::bind(&recipe, own, device, &fft_comm::exchange)?;
        if (passage, executor.device().taken()) == (Passage::Device, Passage::Host) {
            let expected = "one that ranks have: a CUDA-aware MPI, and an exchange and wires that send from devices";
            return Err(Error::argument("passage", passage, expected));
        }
        Ok(DevicePlan { executor, recipe, report, gpu, stream, spare: Spare::default() })
    }
}

/// Whether all ranks were told the same. Collective.
fn check_passage(comm: &dyn Comm, mine: Passage) -> Result<(), Error> {
    let place = |of: Passage| Passage::ALL.iter().position(|known| *known == of).unwrap_or(0) as u8;
    let mut all = vec![0; comm.size()];
    comm.allgather(&[place(mine)], &mut all)?;
    let Some(rank_b) = all.iter().position(|other| *other != all[0]) else { return Ok(()) };
    let [a, b] = [0, rank_b].map(|rank| Passage::ALL[usize::from(all[rank])].to_string());
    Err(Error::Disagreement { what: "passage".into(), rank_a: 0, a, rank_b, b })
}

impl<K: Transform, const D: usize> DevicePlan<K, D>
where
    K::Real: GpuReal,
{
    /// How it is done.
    pub fn recipe(&self) -> &Recipe<D> {
        &self.recipe
    }

    /// What the recipe was chosen from, as [`Plan::report`](crate::Plan::report); times are those of the device.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The communicator, a duplicate of the one the plan was made with.
    pub fn comm(&self) -> &dyn Comm {
        self.executor.comm()
    }

    /// The stream that everything is queued on.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// What the last transform lost on the wire, the same on all ranks; `None` when no wire loses anything, or none has run.
    pub fn last_error(&self) -> Option<WireError> {
        self.executor.lost()
    }

    /// Bytes of memory that the plan holds beside input and output, on the device and for messages on the host.
    pub fn memory(&self) -> usize {
        self.executor.memory()
    }

    /// How messages travel to ranks that are not reached otherwise.
    pub fn exchange(&self) -> Algorithm {
        self.executor.exchange(self.recipe.problem().exchange)
    }

    /// How data gets to the ranks that are hardest to reach: [`Passage::Reached`] where there are no messages.
    pub fn passage(&self) -> Passage {
        self.executor.device().taken()
    }

    /// Of this rank's reshapes in a direction, how many take no pass of their own: the transforms behind them fetch what they
    /// read from the ranks that have it.
    pub fn fetched(&self, direction: Direction) -> usize {
        self.executor.device().fetched(direction)
    }

    /// Whether a direction's last reshape takes no pass of its own: the transforms before it store what they make where ranks want it.
    pub fn stores(&self, direction: Direction) -> bool {
        self.executor.device().stores(direction)
    }

    /// Where the host's time went since the last [`DevicePlan::clear_clock`], and what was sent.
    pub fn clock(&self) -> Clock {
        self.executor.clock()
    }

    /// Sets all times to zero.
    pub fn clear_clock(&mut self) {
        self.executor.clear_clock();
    }

    /// This rank's part of physical data.
    pub fn input_brick(&self) -> Brick<D> {
        self.recipe.problem().input.brick(self.comm().rank())
    }

    /// This rank's part of spectral data.
    pub fn output_brick(&self) -> Brick<D> {
        self.recipe.problem().output.brick(self.comm().rank())
    }

    /// Points of physical data on this rank, all batches together.
    pub fn input_len(&self) -> usize {
        self.input_brick().points() * self.recipe.problem().howmany
    }

    /// Points of spectral data on this rank, all batches together.
    pub fn output_len(&self) -> usize {
        self.output_brick().points() * self.recipe.problem().howmany
    }

    /// Spectral points that an array must have room for to be transformed in place.
    pub fn in_place_len(&self) -> usize {
        let reals = self.input_len() * K::Physical::WIDTH;
        self.output_len().max(reals.div_ceil(K::Spectral::WIDTH))
    }

    /// Transforms physical to spectral data. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] when a slice has the wrong length on any or, with [`Draft::shared_arrays`], is none that others see
    /// who look (nothing is queued then), a message is damaged, the transport or the driver fails.
    pub fn forward_into(
        &mut self,
        input: &impl DevicePtr<K::Real>,
        output: &mut impl DevicePtrMut<K::Real>,
    ) -> Result<(), Error> {
        let reals = [self.input_len() * K::Physical::WIDTH, self.output_len() * K::Spectral::WIDTH];
        self.run(Direction::Forward, input, output, reals)
    }

    /// Transforms spectral to physical data. Collective. The spectrum stays as it is.
    ///
    /// # Errors
    /// As [`DevicePlan::forward_into`].
    pub fn inverse_into(
        &mut self,
        input: &impl DevicePtr<K::Real>,
        output: &mut impl DevicePtrMut<K::Real>,
    ) -> Result<(), Error> {
        let reals = [self.output_len() * K::Spectral::WIDTH, self.input_len() * K::Physical::WIDTH];
        self.run(Direction::Inverse, input, output, reals)
    }

    /// Transforms physical to spectral data in one array of [`DevicePlan::in_place_len`] spectral points: input and output both
    /// begin at its start, without padding. Collective.
    ///
    /// # Errors
    /// As [`DevicePlan::forward_into`].
    pub fn forward_in_place(&mut self, data: &mut impl DevicePtrMut<K::Real>) -> Result<(), Error> {
        self.in_place(Direction::Forward, data)
    }

    /// Transforms spectral to physical data in one array, as [`DevicePlan::forward_in_place`]. Collective.
    ///
    /// # Errors
    /// As [`DevicePlan::forward_into`].
    pub fn inverse_in_place(&mut self, data: &mut impl DevicePtrMut<K::Real>) -> Result<(), Error> {
        self.in_place(Direction::Inverse, data)
    }

    /// What every transform begins with, as [`Plan::agree`](crate::Plan::agree). Collective.
    ///
    /// # Errors
    /// As there.
    pub fn agree<R>(&mut self, mine: Result<R, Error>) -> Result<R, Error> {
        self.executor.agree(mine)
    }

    /// Whether an array is where it must be.
    fn sees(&self, array: &DeviceMemory<K::Real>) -> Result<(), Error> {
        let any = !self.recipe.problem().shared_arrays || array.is_empty();
        if any || self.executor.device().sees(array) {
            return Ok(());
        }
        let expected = "one made by DevicePlan::shared_input or shared_output, thriffty_allocate";
        Err(Error::argument("array", "one that other ranks do not see", expected))
    }

    fn run(
        &mut self,
        direction: Direction,
        input: &impl DevicePtr<K::Real>,
        output: &mut impl DevicePtrMut<K::Real>,
        [reads, writes]: [usize; 2],
    ) -> Result<(), Error> {
        let lens: [Len; 2] = [("input", input.len(), reads), ("output", output.len(), writes)];
        let fit = lengths(self.comm().rank(), &lens);
        let stream = self.stream.clone();
        let (src, mut dst) = (lend(input, &stream), lend_mut(output, &stream));
        let seen = || self.sees(&src).and_then(|()| self.sees(&dst));
        let fit = fit.and_then(|()| seen());
        self.agree(fit)?;
        self.executor.run(direction, Some(&src), &mut dst)
    }

    fn in_place(
        &mut self,
        direction: Direction,
        data: &mut impl DevicePtrMut<K::Real>,
    ) -> Result<(), Error> {
        let reals = self.in_place_len() * K::Spectral::WIDTH;
        let fit = lengths(self.comm().rank(), &[("array in place", data.len(), reals)]);
        let stream = self.stream.clone();
        let mut data = lend_mut(data, &stream);
        let fit = fit.and_then(|()| self.sees(&data));
        self.agree(fit)?;
        self.executor.run(direction, None, &mut data)
    }
}

/// How transforms come to their data: they fetch it where ranks share one device, and all can; that of complex numbers also where ranks have
/// devices that are joined. Collective.
fn access<K: Transform, const D: usize>(
    draft: &Draft<'_, K, D>,
    gpu: &Gpu,
    passage: Passage,
) -> Result<Access, Error>
where
    K::Real: GpuReal,
{
    let comm = draft.comm();
    let lens = draft.complex_lens().filter(|_| passage == Passage::Reached);
    let device = lens.and_then(|lens| {
        let elements = lens.iter().fold(1, |all: usize, n| all.saturating_mul(*n)) / comm.size();
        fft_gpu::fetches::<K::Real>(gpu, &lens, elements)
    });
    // No device has this identity.
    let mine = device.unwrap_or_default();
    let mut all = vec![[0; 16]; comm.size()];
    comm.allgather(&mine, all.as_flattened_mut())?;
    let far = K::Physical::WIDTH == 2;
    let near = |other: &[u8; 16]| *other == mine || far && fft_gpu::joined(gpu, *other);
    let fetches = !all.contains(&[0; 16]) && all.iter().all(near);
    let mut fetched = [f64::from(fetches)];
    comm.allreduce(Reduce::Min, &mut fetched)?;
    Ok(if fetched == [1.0] { Access::Fetched } else { Access::Contiguous })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::C2c;
    use crate::tune::ByClock;
    use fft_core::Grid;

    /// A device transforms no chunks in its cache: the recipe is the same whether messages are in chunks or whole.
    #[test]
    fn recipes_of_devices_are_those_of_whole_messages() {
        let recipes = |comm: crate::ThreadComm| {
            let recipe = |exchange: Algorithm, access| {
                let draft = Draft::<C2c<f64>, 3>::new(&comm, Grid::new([512; 3])?);
                let by_clock: ByClock<'_, 3> = &|_, _, _| unreachable!("the model chooses");
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
