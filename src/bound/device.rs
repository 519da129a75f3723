//! Recipes that are bound to a CUDA device.

use std::fmt;
use std::sync::Arc;

use fft_core::{
    AnyExecutor, Comm, Direction, Error, Executor, Precision, Recipe, agree, assert_same,
};
use fft_gpu::cudarc::driver::{CudaContext, CudaStream, DeviceSlice};
use fft_gpu::{
    Cuda, DeviceMemory, DeviceQueue, Gpu, GpuReal, GpuTransport, SharedSlice, driver_is_present,
};

use super::bound::{Bound, OnDevice, misaligned, misplaced};
use crate::field::{Bytes, BytesMut, DeviceArray, DynArray, Pool, Pooled};

/// The device of a rank's plan, and how data gets from it to other ranks.
///
/// A reference to a [`Gpu`] becomes options with a stream of the plan's own.
#[derive(Clone)]
pub struct DeviceOptions {
    /// The device.
    pub gpu: Gpu,
    /// The stream that everything is queued on; `None` for a new one.
    pub stream: Option<Arc<CudaStream>>,
    /// How data gets to other ranks; the same on all of them.
    pub transport: GpuTransport,
}

impl DeviceOptions {
    /// The device with its stream, once all ranks agree on the transport. `fits` is this rank's
    /// result of checks that precede it. Collective.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Disagreement`] about the transport; [`Error::OnRank`] when
    /// checks failed on a rank, or it gets no stream.
    pub(crate) fn settle(
        &self,
        comm: &dyn Comm,
        fits: Result<(), Error>,
    ) -> Result<DeviceQueue, Error> {
        let Self { gpu, stream, transport } = self.clone();
        assert_same(comm, &[("transport", transport.to_string())])?;
        let stream = match stream {
            Some(stream) => Ok(stream),
            None => gpu.new_stream().map_err(|why| why.on(comm.rank())),
        };
        let stream = agree(comm, fits.and(stream))?;
        Ok(DeviceQueue { gpu, stream, transport })
    }
}

impl From<&Gpu> for DeviceOptions {
    fn from(gpu: &Gpu) -> Self {
        Self { gpu: gpu.clone(), stream: None, transport: GpuTransport::default() }
    }
}

impl fmt::Debug for DeviceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceOptions")
            .field("gpu", &self.gpu.name())
            .field("stream", &self.stream)
            .field("transport", &self.transport)
            .finish()
    }
}

/// The number of this rank's device, if the ranks of each host use its devices in rotation.
pub fn device_in_rotation(comm: &dyn Comm) -> usize {
    let rank = comm.rank();
    let ranks_before = (0..rank).filter(|other| comm.host(*other) == comm.host(rank)).count();
    let devices = if driver_is_present() {
        CudaContext::device_count().unwrap_or(0).max(1) as usize
    } else {
        1
    };
    ranks_before % devices
}

/// Binds a recipe to a device in its precision. Collective; all ranks have the same recipe.
///
/// # Errors
/// The same on every rank: the errors of [`Executor::bind`].
pub(crate) fn bind(
    comm: &dyn Comm,
    recipe: &Recipe,
    queue: &DeviceQueue,
) -> Result<Box<dyn Bound>, Error> {
    match recipe.problem().precision {
        Precision::F32 => Ok(Box::new(DeviceBound::<f32>::new(comm, recipe, queue)?)),
        Precision::F64 => Ok(Box::new(DeviceBound::<f64>::new(comm, recipe, queue)?)),
    }
}

struct DeviceBound<T: GpuReal> {
    executor: Executor<T, Cuda>,
    queue: DeviceQueue,
    pool: Pool<SharedSlice>,
}

impl<T: GpuReal> DeviceBound<T> {
    fn new(comm: &dyn Comm, recipe: &Recipe, queue: &DeviceQueue) -> Result<Self, Error> {
        let device = agree(comm, Cuda::new(queue).map_err(|why| why.on(comm.rank())))?;
        let own = agree(comm, comm.dup())?;
        let executor = Executor::bind(recipe, own, device, &fft_comm::exchanger)?;
        Ok(Self { executor, queue: queue.clone(), pool: Pool::default() })
    }

    fn array(&self, memory: Pooled<SharedSlice>) -> DynArray {
        let rank = self.executor.comm().rank();
        DynArray::on_device(DeviceArray::shared(&self.queue.gpu, memory, rank))
    }
}

impl<T: GpuReal> Bound for DeviceBound<T> {
    fn executor(&self) -> &dyn AnyExecutor {
        &self.executor
    }

    fn executor_mut(&mut self) -> &mut dyn AnyExecutor {
        &mut self.executor
    }

    fn check(&self, what: &'static str, array: Bytes<'_>) -> Result<(), Error> {
        match array {
            Bytes::Host(_) => Err(misplaced(what, true)),
            Bytes::Device(memory) => {
                let align = align_of::<T>();
                if memory.is_empty() || memory.is_aligned(align) {
                    Ok(())
                } else {
                    Err(misaligned(what, "another".into(), align))
                }
            }
        }
    }

    fn sees(&self, array: Bytes<'_>) -> bool {
        match array {
            Bytes::Host(_) => false,
            Bytes::Device(memory) => memory.is_empty() || self.executor.device().sees(memory),
        }
    }

    fn run(
        &mut self,
        direction: Direction,
        input: Option<Bytes<'_>>,
        output: BytesMut<'_>,
    ) -> Result<(), Error> {
        let numbers = |array| match array {
            Bytes::Host(_) => unreachable!("the place was checked"),
            Bytes::Device(memory) => DeviceMemory::cast::<T>(memory),
        };
        let input = input.map(numbers);
        match output {
            BytesMut::Host(_) => unreachable!("the place was checked"),
            BytesMut::Device(output) => {
                self.executor.run(direction, input.as_deref(), &mut output.cast_mut::<T>())
            }
        }
    }

    fn zeros(&self, bytes: usize) -> Result<DynArray, Error> {
        let (DeviceQueue { gpu, stream, .. }, rank) = (&self.queue, self.executor.comm().rank());
        DeviceArray::zeros(gpu, stream, bytes, rank).map(DynArray::on_device)
    }

    fn has_spare(&mut self) -> bool {
        !self.pool.is_empty()
    }

    fn spare(&mut self, bytes: usize) -> Result<DynArray, Error> {
        let Some(mut pooled) = self.pool.take() else { return self.zeros(bytes) };
        pooled.clear().map_err(|why| why.on(self.executor.comm().rank()))?;
        Ok(self.array(pooled))
    }

    fn allocate(&mut self, bytes: usize) -> Result<DynArray, Error> {
        let made = self.executor.device_mut().allocate(bytes)?;
        Ok(self.array(self.pool.lend(made)))
    }

    fn on_device(&self) -> Option<OnDevice<'_>> {
        Some(OnDevice { queue: &self.queue, transport: self.executor.device().taken() })
    }
}
