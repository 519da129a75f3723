//! What a plan on a device needs beside one on the host.

use std::sync::Arc;
use std::time::Duration;

use fft_comm::broadcast_line;
use fft_core::{
    Access, Comm, Direction, DynGrid, Error, Kind, Machine, Memory, PerAxis, Precision, Problem,
    Recipe, Reduce, agree, assert_same,
};
use fft_gpu::GpuTransport::{GpuDirect, HostStaged, PeerToPeer};
use fft_gpu::cudarc::driver::CudaStream;
use fft_gpu::{Gpu, GpuReal, GpuTransport};

use super::dyn_plan::DynPlan;
use crate::bound::{Bound, DeviceOptions, bind};
use crate::field::DynTransform;
use crate::options::{MachineChoice, Options};
use crate::tuning::{Chosen, Wanted, by_device_clock};

/// The device of a plan that is about to be made.
pub(super) struct Ready {
    gpu: Gpu,
    stream: Arc<CudaStream>,
    transport: GpuTransport,
    access: Access,
    /// Rank 0's GPU, the transport and the access, for wisdom.
    name: String,
}

impl Ready {
    /// Collective.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Disagreement`] about the transport; [`Error::OnRank`] for
    /// options that devices do not know, and when the driver fails.
    pub(super) fn new(
        comm: &dyn Comm,
        device: &DeviceOptions,
        options: &Options,
        grid: DynGrid,
        (transform, precision): (DynTransform, Precision),
    ) -> Result<Self, Error> {
        let DeviceOptions { gpu, stream, transport } = device.clone();
        assert_same(comm, &[("transport", transport.to_string())])?;
        let stream = match stream {
            Some(stream) => Ok(stream),
            None => gpu.new_stream().map_err(|why| why.on(comm.rank())),
        };
        let stream = agree(comm, check(options).and(stream))?;
        let lens = whole_lens(options, transform, grid);
        let lens = lens.map(|it| it.filter(|_| transport == PeerToPeer));
        let axes = grid.axes();
        let same_orders = options.input_order_of(axes) == options.output_order_of(axes);
        let kind = (transform.is_complex(), same_orders, options.batch);
        let machine = match &options.machine {
            Some(MachineChoice::Given(machine)) => Some(machine.as_ref()),
            _ => None,
        };
        let access = match precision {
            Precision::F32 => access::<f32>(comm, (&gpu, machine), lens, kind),
            Precision::F64 => access::<f64>(comm, (&gpu, machine), lens, kind),
        }?;
        let name = broadcast_line(comm, &format!("{}, {transport}, {access:?}", gpu.name()))?;
        Ok(Self { gpu, stream, transport, access, name })
    }

    pub(super) fn access(&self) -> Access {
        self.access
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Times recipes on the device. Collective.
    pub(super) fn by_clock(
        &self,
        comm: &dyn Comm,
        problem: &Problem,
        wanted: &Wanted<'_>,
        budget: Duration,
    ) -> Result<Chosen, Error> {
        let bind = |recipe: &Recipe| bind(comm, recipe, &self.gpu, &self.stream, self.transport);
        by_device_clock(comm, problem, wanted, budget, &bind)
    }

    /// Binds a recipe. Collective.
    ///
    /// # Errors
    /// As [`bind`]; [`Error::Argument`] when messages cannot be sent from devices, as was asked.
    pub(super) fn bind(&self, comm: &dyn Comm, recipe: &Recipe) -> Result<Box<dyn Bound>, Error> {
        let bound = bind(comm, recipe, &self.gpu, &self.stream, self.transport)?;
        let taken = bound.on_device().map(|device| device.transport);
        if (self.transport, taken) == (GpuDirect, Some(HostStaged)) {
            let expected = "one that ranks have: a CUDA-aware MPI, and an exchange and wires that send from devices";
            return Err(Error::argument("transport", self.transport, expected));
        }
        Ok(bound)
    }
}

/// Whether devices know these options.
fn check(options: &Options) -> Result<(), Error> {
    let (usual, memory) = (Memory::default(), options.memory);
    if memory == usual {
        return Ok(());
    }
    let what = "memory of a plan on a device";
    Err(Error::argument(what, memory, usual))
}

/// Points along each axis, of a whole transform of at most three axes: if they are all complex, the
/// last one perhaps halved; and if all have cosine or sine transforms.
fn whole_lens(
    options: &Options,
    transform: DynTransform,
    grid: DynGrid,
) -> [Option<PerAxis<usize>>; 2] {
    let (axes, shape) = (grid.axes(), grid.shape());
    let kinds = options.kinds_of(transform, axes);
    let complex = |axis: usize| {
        let kind = kinds[axis];
        kind == Kind::C2C || axis + 1 == axes && kind == Kind::R2C
    };
    let cosines = |axis: usize| kinds[axis].is_real();
    let whole = options.lengths(grid) == [shape; 2] && axes <= 3;
    [(0..axes).all(complex), (0..axes).all(cosines)].map(|all| (whole && all).then_some(shape))
}

/// How transforms come to their data. They fetch it from ranks on the same device, if all ranks
/// can; those of complex numbers also from ranks on joined devices. Otherwise columns may be as
/// fast as contiguous lines. Cosine transforms are strided where chunks need it. Collective.
fn access<T: GpuReal>(
    comm: &dyn Comm,
    (gpu, machine): (&Gpu, Option<&Machine>),
    [lens, cosines]: [Option<PerAxis<usize>>; 2],
    (complex, same_orders, batch): (bool, bool, usize),
) -> Result<Access, Error> {
    let product = |lens: &[usize]| lens.iter().fold(batch, |all, n| all.saturating_mul(*n));
    let elements = |lens: &[usize]| product(lens) / comm.size();
    // Tables of what is fetched are of one array.
    let single = lens.filter(|_| batch == 1);
    let device = single.and_then(|lens| fft_gpu::fetches::<T>(gpu, &lens, elements(&lens)));
    let columns =
        lens.is_some_and(|lens| fft_gpu::has_fast_columns::<T>(gpu, &lens, elements(&lens)));
    // Between devices engines copy chunks while others are transformed, which gains more. They turn
    // no axes.
    let prefers = |elements: usize| {
        same_orders && fft_gpu::prefers_chunks::<T>(elements, comm.size(), machine)
    };
    let chunks = columns && lens.is_some_and(|lens| prefers(elements(&lens)));
    let halves = if complex { 1 } else { 2 };
    let cosines = cosines.is_some_and(|lens| prefers(elements(&lens) / halves));
    let device = if cosines { Some(fft_gpu::identity(gpu)) } else { device };
    // No device has this identity.
    let mine = device.unwrap_or_default();
    let mut all = vec![[0; 16]; comm.size()];
    comm.allgather(&mine, all.as_flattened_mut())?;
    let joins = complex || cosines;
    let near = |other: &[u8; 16]| *other == mine || joins && fft_gpu::joined(gpu, *other);
    let near = !all.contains(&[0; 16]) && all.iter().all(near);
    let one = all.iter().all(|other| *other == mine);
    let fetches = near && !cosines && (!chunks || one);
    let columns = columns || cosines && near && !one;
    let mut by_all = [fetches, columns].map(f64::from);
    comm.allreduce(Reduce::Min, &mut by_all)?;
    Ok(match by_all {
        [1.0, _] => Access::Fetched,
        [_, 1.0] => Access::Strided,
        _ => Access::Contiguous,
    })
}

impl DynPlan {
    /// The stream that everything is queued on, of a plan on a device.
    pub fn stream(&self) -> Option<&Arc<CudaStream>> {
        self.bound.on_device().map(|device| device.stream)
    }

    /// The device of this rank and what is used with it, of a plan on a device.
    pub fn device_options(&self) -> Option<DeviceOptions> {
        let found = self.bound.on_device()?;
        let (gpu, stream) = (found.gpu.clone(), Some(found.stream.clone()));
        Some(DeviceOptions { gpu, stream, transport: found.wanted })
    }

    /// How data gets to the ranks that are hardest to reach, from a plan's device:
    /// [`GpuTransport::PeerToPeer`] where there are no messages.
    pub fn transport(&self) -> Option<GpuTransport> {
        self.bound.on_device().map(|device| device.transport)
    }

    /// This rank's reshapes in a direction that take no pass on the device: the transforms behind
    /// them read from other ranks.
    pub fn fetched(&self, direction: Direction) -> usize {
        self.bound
            .on_device()
            .map_or(0, |device| direction.choose(device.fetched[0], device.fetched[1]))
    }

    /// Whether a direction's last reshape takes no pass on the device: the transforms before it
    /// write to other ranks.
    pub fn stores(&self, direction: Direction) -> bool {
        let stores = |device: crate::bound::OnDevice<'_>| device.stores;
        let [forward, inverse] = self.bound.on_device().map_or([false; 2], stores);
        direction.choose(forward, inverse)
    }
}
