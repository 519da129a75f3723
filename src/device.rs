//! Plans whose data is on CUDA devices.

mod array;
mod dyn_plan;
mod field;
mod timings;

pub use array::DeviceArray;
pub use dyn_plan::{DynDevicePlan, Place};
pub use field::DeviceField;

use std::marker::PhantomData;
use std::sync::Arc;

use fft_core::{Algorithm, Brick, Comm, Direction, Element, Error, Recipe, Timings, WireError};
use fft_gpu::cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};
use fft_gpu::{Gpu, GpuReal, GpuTransport};

use crate::{Draft, DynDraft, Report, Transform};

/// A plan on a device in the making: what [`Draft::on`] returns.
#[must_use = "a draft does nothing until it is built"]
pub struct DeviceDraft<'a, K: Transform, const D: usize> {
    draft: DynDraft<'a>,
    place: Place,
    transform: PhantomData<fn() -> K>,
}

/// A distributed transform of data on CUDA devices, ready to run any number of times in both directions.
///
/// Each rank has a device, or a part in one: several may share it. Ranks of one host reach each other's memory on the device,
/// threads by its address and processes by CUDA IPC. Messages to others are sent from memory of the device where the MPI takes
/// that, else through pinned memory of the host: [`DeviceDraft::transport`]. Transforms are cuFFT's, those of cosines and sines with
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
    plan: DynDevicePlan<K::Real>,
    transform: PhantomData<fn() -> K>,
}

impl<'a, K: Transform, const D: usize> Draft<'a, K, D>
where
    K::Real: GpuReal,
{
    /// Makes a plan for data on a device: this rank's.
    pub fn on(self, gpu: &Gpu) -> DeviceDraft<'a, K, D> {
        let place = Place { gpu: gpu.clone(), stream: None, transport: GpuTransport::default() };
        DeviceDraft { draft: self.erased(), place, transform: PhantomData }
    }
}

impl<K: Transform, const D: usize> DeviceDraft<'_, K, D>
where
    K::Real: GpuReal,
{
    /// The stream that everything is queued on; a new one by default.
    pub fn stream(mut self, stream: Arc<CudaStream>) -> Self {
        self.place.stream = Some(stream);
        self
    }

    /// How data gets to other ranks: by default as [`GpuTransport::PeerToPeer`] says. The others make messages of all data that changes
    /// ranks, also between those that reach each other; to study what that does. The same on all ranks.
    pub fn transport(mut self, transport: GpuTransport) -> Self {
        self.place.transport = transport;
        self
    }

    /// Makes the plan. Collective; the same `Ok` or error on every rank.
    ///
    /// # Errors
    /// Those of [`Draft::recipe`]; [`Error::Argument`] for [`Tune::Wisdom`](crate::Tune), for
    /// [`Memory::Least`](crate::Memory), and for [`GpuTransport::GpuDirect`] where the exchange, the wire or the transport does not
    /// send from there; [`Error::Disagreement`] for ranks that were told different transports; [`Error::OnRank`] when a rank
    /// lacks memory, cuFFT, or the driver fails.
    pub fn build(self) -> Result<DevicePlan<K, D>, Error> {
        let plan = self.draft.on(self.place)?;
        Ok(DevicePlan { plan, transform: PhantomData })
    }
}

impl<K: Transform, const D: usize> DevicePlan<K, D>
where
    K::Real: GpuReal,
{
    /// How it is done.
    pub fn recipe(&self) -> &Recipe {
        self.plan.recipe()
    }

    /// What the recipe was chosen from, as [`Plan::report`](crate::Plan::report); times are those of the device.
    pub fn report(&self) -> &Report {
        self.plan.report()
    }

    /// The communicator, a duplicate of the one the plan was made with.
    pub fn comm(&self) -> &dyn Comm {
        self.plan.comm()
    }

    /// The stream that everything is queued on.
    pub fn stream(&self) -> &Arc<CudaStream> {
        self.plan.stream()
    }

    /// What the last transform lost on the wire, the same on all ranks; `None` when no wire loses anything, or none has run.
    pub fn wire_error(&self) -> Option<WireError> {
        self.plan.wire_error()
    }

    /// Bytes of memory that the plan holds beside input and output, on the device and for messages on the host.
    pub fn memory(&self) -> usize {
        self.plan.memory()
    }

    /// How messages travel to ranks that are not reached otherwise.
    pub fn exchange(&self) -> Algorithm {
        self.plan.exchange()
    }

    /// How data gets to the ranks that are hardest to reach: [`GpuTransport::PeerToPeer`] where there are no messages.
    pub fn transport(&self) -> GpuTransport {
        self.plan.transport()
    }

    /// Of this rank's reshapes in a direction, how many take no pass of their own: the transforms behind them fetch what they
    /// read from the ranks that have it.
    pub fn fetched(&self, direction: Direction) -> usize {
        self.plan.fetched(direction)
    }

    /// Whether a direction's last reshape takes no pass of its own: the transforms before it store what they make where ranks want it.
    pub fn stores(&self, direction: Direction) -> bool {
        self.plan.stores(direction)
    }

    /// Where the host's time went since the last [`DevicePlan::clear_timings`], and what was sent.
    pub fn timings(&self) -> Timings {
        self.plan.timings()
    }

    /// Sets all times to zero.
    pub fn clear_timings(&mut self) {
        self.plan.clear_timings();
    }

    /// This rank's part of physical data.
    pub fn input_brick(&self) -> Brick<D> {
        self.plan.input_brick().typed()
    }

    /// This rank's part of spectral data.
    pub fn output_brick(&self) -> Brick<D> {
        self.plan.output_brick().typed()
    }

    /// Points of physical data on this rank, all batches together.
    pub fn input_len(&self) -> usize {
        self.plan.input_len()
    }

    /// Points of spectral data on this rank, all batches together.
    pub fn output_len(&self) -> usize {
        self.plan.output_len()
    }

    /// Spectral points that an array must have room for to be transformed in place.
    pub fn in_place_len(&self) -> usize {
        self.plan.in_place_reals() / K::Spectral::WIDTH
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
        self.plan.run(Direction::Forward, input, output)
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
        self.plan.run(Direction::Inverse, input, output)
    }

    /// Transforms physical to spectral data in one array of [`DevicePlan::in_place_len`] spectral points: input and output both
    /// begin at its start, without padding. Collective.
    ///
    /// # Errors
    /// As [`DevicePlan::forward_into`].
    pub fn forward_in_place(&mut self, data: &mut impl DevicePtrMut<K::Real>) -> Result<(), Error> {
        self.plan.run_in_place(Direction::Forward, data)
    }

    /// Transforms spectral to physical data in one array, as [`DevicePlan::forward_in_place`]. Collective.
    ///
    /// # Errors
    /// As [`DevicePlan::forward_into`].
    pub fn inverse_in_place(&mut self, data: &mut impl DevicePtrMut<K::Real>) -> Result<(), Error> {
        self.plan.run_in_place(Direction::Inverse, data)
    }

    /// What every transform begins with, as [`Plan::agree`](crate::Plan::agree). Collective.
    ///
    /// # Errors
    /// As there.
    pub fn agree<R>(&mut self, mine: Result<R, Error>) -> Result<R, Error> {
        self.plan.agree(mine)
    }
}
