//! What a device plan needs in addition to a host plan.

use std::sync::Arc;
use std::time::Duration;

use fft_comm::broadcast_line;
use fft_core::{
    Access, Comm, DynGrid, Error, Kind, Machine, Memory, PerAxis, Precision, Problem, Recipe,
    on_all_ranks,
};
use fft_gpu::GpuTransport::{GpuDirect, HostStaged, PeerToPeer};
use fft_gpu::cudarc::driver::CudaStream;
use fft_gpu::{DeviceFacts, Gpu, GpuTransport, WholeTransform};

use super::dyn_plan::DynPlan;
use crate::bound::{Bound, DeviceOptions, DeviceQueue, bind};
use crate::field::DynTransform;
use crate::options::Options;
use crate::tuning::{Chosen, Wanted, by_device_clock};

/// The device of a plan that is about to be made.
pub(super) struct Ready {
    queue: DeviceQueue,
    access: Access,
    /// Rank 0's GPU, the transport and the access, for wisdom.
    name: String,
}

impl Ready {
    /// Collective.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Disagreement`] about the transport; [`Error::OnRank`] for
    /// options that devices do not support, and when the driver fails.
    pub(super) fn new(
        comm: &dyn Comm,
        device: &DeviceOptions,
        options: &Options,
        grid: DynGrid,
        (transform, precision): (DynTransform, Precision),
    ) -> Result<Self, Error> {
        let queue = device.settle(comm, check(options))?;
        let DeviceQueue { gpu, transport, .. } = &queue;
        let machine = options.given_machine().map(AsRef::as_ref);
        let case = whole_transform(options, (transform, precision), grid, comm.size());
        let access = match transport {
            PeerToPeer => access(comm, gpu, &case, machine)?,
            _ => Access::Contiguous,
        };
        let name = broadcast_line(comm, &format!("{}, {transport}, {access:?}", gpu.name()))?;
        Ok(Self { queue, access, name })
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
        let bind = |recipe: &Recipe| bind(comm, recipe, &self.queue);
        by_device_clock(comm, problem, wanted, budget, &bind)
    }

    /// Binds a recipe. Collective.
    ///
    /// # Errors
    /// As [`bind`]; [`Error::Argument`] when messages cannot be sent from devices, although this
    /// was requested.
    pub(super) fn bind(&self, comm: &dyn Comm, recipe: &Recipe) -> Result<Box<dyn Bound>, Error> {
        let (bound, wanted) = (bind(comm, recipe, &self.queue)?, self.queue.transport);
        let taken = bound.on_device().map(|device| device.transport);
        if (wanted, taken) == (GpuDirect, Some(HostStaged)) {
            let expected = "one that ranks have: a CUDA-aware MPI, or a process group with NCCL and the exchange alltoallv; and wires that send from devices";
            return Err(Error::argument("transport", wanted, expected));
        }
        Ok(bound)
    }
}

/// Checks that devices support these options.
fn check(options: &Options) -> Result<(), Error> {
    let (usual, memory) = (Memory::default(), options.memory);
    if memory == usual {
        return Ok(());
    }
    let what = "memory of a plan on a device";
    Err(Error::argument(what, memory, usual))
}

/// The properties of a transform that matter on devices. With padded or truncated lines, other
/// kinds or more than three axes, it has no lengths.
fn whole_transform(
    options: &Options,
    (transform, precision): (DynTransform, Precision),
    grid: DynGrid,
    ranks: usize,
) -> WholeTransform {
    let (axes, shape) = (grid.axes(), grid.shape());
    let kinds = options.kinds_of(transform, axes);
    let complex = |axis: usize| {
        let kind = kinds[axis];
        kind == Kind::C2C || axis + 1 == axes && kind == Kind::R2C
    };
    let cosines = |axis: usize| kinds[axis].is_real();
    let whole = options.lengths(grid) == [shape; 2] && axes <= 3;
    let [complex, cosines] =
        [(0..axes).all(complex), (0..axes).all(cosines)].map(|all| (whole && all).then_some(shape));
    WholeTransform {
        complex,
        cosines,
        has_complex_input: transform.is_complex(),
        same_orders: options.input_order_of(axes) == options.output_order_of(axes),
        batch: options.batch,
        ranks,
        precision,
    }
}

/// How transforms access their data on GPUs like NVIDIA's H200, one for each rank, which are all
/// joined or not. No GPU is needed.
pub fn planned_access(
    options: &Options,
    what: (DynTransform, Precision),
    grid: DynGrid,
    ranks: usize,
    joined: bool,
) -> Access {
    let case = whole_transform(options, what, grid, ranks);
    let (columns, one) = (case.has_columns(), ranks == 1);
    let machine = options.given_machine().map(AsRef::as_ref);
    case.access(DeviceFacts { loads: true, columns, joined, one }, machine)
}

/// How transforms access their data on these devices. Collective.
fn access(
    comm: &dyn Comm,
    gpu: &Gpu,
    case: &WholeTransform,
    machine: Option<&Machine>,
) -> Result<Access, Error> {
    let mine = fft_gpu::identity(gpu);
    let mut all = vec![[0; 16]; comm.size()];
    comm.allgather(&mine, all.as_flattened_mut())?;
    let lens = case.complex.filter(|_| case.has_large_columns());
    let has_columns = |lens: PerAxis<usize>| match case.precision {
        Precision::F32 => fft_gpu::has_columns::<f32>(gpu, &lens),
        Precision::F64 => fft_gpu::has_columns::<f64>(gpu, &lens),
    };
    // Zeros if the driver reports no identity.
    let is_known = !all.contains(&[0; 16]);
    let facts = [
        fft_gpu::can_load(),
        lens.is_some_and(has_columns),
        is_known && all.iter().all(|other| fft_gpu::joined(gpu, *other)),
        is_known && all.iter().all(|other| *other == mine),
    ];
    let [loads, columns, joined, one] = on_all_ranks(comm, facts)?;
    Ok(case.access(DeviceFacts { loads, columns, joined, one }, machine))
}

impl DynPlan {
    /// The stream that everything is queued on, of a plan on a device.
    pub fn stream(&self) -> Option<&Arc<CudaStream>> {
        self.bound.on_device().map(|device| &device.queue.stream)
    }

    /// The device of this rank, with its stream and transport, if the plan is on a device.
    pub fn device_options(&self) -> Option<DeviceOptions> {
        let DeviceQueue { gpu, stream, transport } = self.bound.on_device()?.queue.clone();
        Some(DeviceOptions { gpu, stream: Some(stream), transport })
    }

    /// How data gets to the ranks that are hardest to reach from a plan's device:
    /// [`GpuTransport::PeerToPeer`] if there are no messages.
    pub fn transport(&self) -> Option<GpuTransport> {
        self.bound.on_device().map(|device| device.transport)
    }
}
