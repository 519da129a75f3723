//! A flow on a CUDA device. Its kernels are compiled when it is made.
//!
//! Everything is queued on the plan's stream. Launches allocate a few bytes of the host's memory,
//! and none of the device's.

use std::sync::Arc;

use thriffty::gpu::cudarc::driver::{
    CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use thriffty::gpu::cudarc::nvrtc::{self, CompileError};
use thriffty::gpu::{DevicePlan, GpuError};
use thriffty::planning::Device;
use thriffty::{Error, Field, Physical};

use super::place::{Advance, Place, Spectrum, Velocity};

const THREADS: u32 = 256;
/// The most blocks of a launch; threads then take several points.
const BLOCKS: u32 = 2048;

/// Fields on a device.
pub(crate) struct OnDevice {
    rank: usize,
    stream: Arc<CudaStream>,
    copy: CudaFunction,
    cross: CudaFunction,
    advance: CudaFunction,
    squares: CudaFunction,
    /// The sums of blocks.
    sums: CudaSlice<f64>,
    /// The first failure that has not been reported to other ranks yet.
    failure: Option<Error>,
}

fn compiled() -> Result<nvrtc::Ptx, GpuError> {
    let what = "compiling kernels";
    // SAFETY: it only opens NVRTC's library by its usual names.
    if !unsafe { nvrtc::sys::is_culib_present() } {
        let why = "no NVRTC on this machine (libnvrtc.so does not load)".into();
        return Err(GpuError::Driver { what, why });
    }
    nvrtc::compile_ptx(include_str!("kernels.cu")).map_err(|why| match why {
        CompileError::CompileError { log, .. } => {
            GpuError::Driver { what, why: log.to_string_lossy().into_owned() }
        }
        why => GpuError::Driver { what, why: why.to_string() },
    })
}

fn failed(what: &'static str) -> impl Fn(DriverError) -> GpuError {
    move |why| GpuError::Driver { what, why: why.to_string() }
}

fn grid(numbers: usize) -> LaunchConfig {
    let blocks = numbers.div_ceil(THREADS as usize).clamp(1, BLOCKS as usize) as u32;
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 }
}

impl OnDevice {
    /// Compiles the kernels for the plan's stream. Not collective.
    ///
    /// # Errors
    /// When there is no NVRTC, or the driver fails.
    pub(crate) fn new(plan: &DevicePlan) -> Result<Self, Error> {
        let (rank, stream) = (plan.comm().rank(), plan.stream().clone());
        Self::on(rank, stream).map_err(|why| why.on(rank))
    }

    fn on(rank: usize, stream: Arc<CudaStream>) -> Result<Self, GpuError> {
        let ptx = compiled()?;
        let module = stream.context().load_module(ptx).map_err(failed("loading kernels"))?;
        let kernel = |name| module.load_function(name).map_err(failed("finding a kernel"));
        let sums = stream.alloc_zeros(BLOCKS as usize).map_err(failed("allocating sums"))?;
        Ok(Self {
            rank,
            copy: kernel("copy")?,
            cross: kernel("cross")?,
            advance: kernel("advance")?,
            squares: kernel("squares")?,
            stream,
            sums,
            failure: None,
        })
    }

    /// Keeps a failure of this rank.
    fn keep(&mut self, done: Result<(), Error>) {
        self.failure = self.failure.take().or(done.err());
    }

    /// What this rank does next, unless it failed before.
    fn next<R>(&mut self, mine: Result<R, Error>) -> Result<R, Error> {
        self.failure.take().map_or(mine, Err)
    }
}

/// Queues a kernel with these arguments on the place's stream; unsafe as that is.
macro_rules! launch {
    ($place:ident, $kernel:ident, $numbers:expr, $($argument:expr),+) => {{
        let mut launch = $place.stream.launch_builder(&$place.$kernel);
        $(launch.arg($argument);)+
        let launched = launch.launch(grid($numbers));
        let what = concat!("launching ", stringify!($kernel));
        launched.map(drop).map_err(|why| failed(what)(why).on($place.rank))
    }};
}

impl OnDevice {
    fn copied(&self, from: &Spectrum<Self>, to: [&mut Spectrum<Self>; 2]) -> Result<(), Error> {
        let [next, stage] = to;
        let (from, mut next, mut stage) =
            (from.as_slice()?, next.as_mut_slice()?, stage.as_mut_slice()?);
        let numbers = from.len().min(next.len()).min(stage.len());
        let count = numbers as u64;
        // SAFETY: the arguments match `copy`, which accesses `count` numbers of each array.
        unsafe { launch!(self, copy, numbers, &from, &mut next, &mut stage, &count) }
    }

    fn crossed(&self, u: &mut Velocity<Self>, omega: &Velocity<Self>) -> Result<(), Error> {
        let (mut u, omega) = (u.as_mut_slice()?, omega.as_slice()?);
        let points = u.len().min(omega.len()) / 3;
        let count = points as u64;
        // SAFETY: the arguments match `cross`, which accesses three times `count` numbers of each
        // array.
        unsafe { launch!(self, cross, points, &mut u, &omega, &count) }
    }

    fn advanced(
        &self,
        Advance { viscosity, weight, ahead }: Advance,
        [velocity, rate]: [&Spectrum<Self>; 2],
        [next, stage]: [&mut Spectrum<Self>; 2],
    ) -> Result<(), Error> {
        let (velocity, rate) = (velocity.as_slice()?, rate.as_slice()?);
        let (mut next, mut stage) = (next.as_mut_slice()?, stage.as_mut_slice()?);
        let numbers = velocity.len().min(rate.len()).min(next.len()).min(stage.len());
        let (next, stage, count) = (&mut next, &mut stage, numbers as u64);
        let factors = (&viscosity, &weight, &ahead);
        // SAFETY: the arguments match `advance`, which accesses `count` numbers of each array.
        unsafe {
            launch!(
                self, advance, numbers, &velocity, &rate, next, stage, factors.0, factors.1,
                factors.2, &count
            )
        }
    }

    fn summed(&mut self, u: &Velocity<Self>) -> Result<f64, Error> {
        let (u, rank) = (u.as_slice()?, self.rank);
        let numbers = u.len();
        let (blocks, count) = (grid(numbers).grid_dim.0 as usize, numbers as u64);
        let sums = &mut self.sums;
        // SAFETY: the arguments match `squares`, which reads `count` numbers and writes one for
        // each block. There are at most `BLOCKS`.
        unsafe { launch!(self, squares, numbers, &u, sums, &count) }?;
        let copied = self.stream.clone_dtoh(&self.sums.slice(0..blocks));
        let sums = copied.map_err(|why| failed("copying sums")(why).on(rank))?;
        Ok(sums.iter().sum())
    }
}

impl Place for OnDevice {
    type Location = Device;

    fn forward(
        &mut self,
        plan: &mut DevicePlan,
        from: &Velocity<Self>,
        to: &mut Spectrum<Self>,
    ) -> Result<(), Error> {
        let arrays = from.as_slice().and_then(|from| Ok((from, to.as_mut_slice()?)));
        let arrays = self.next(arrays);
        let (from, mut to) = plan.agree(arrays)?;
        plan.forward_into(&from, &mut to)
    }

    fn inverse(
        &mut self,
        plan: &mut DevicePlan,
        from: &Spectrum<Self>,
        to: &mut Velocity<Self>,
    ) -> Result<(), Error> {
        let arrays = from.as_slice().and_then(|from| Ok((from, to.as_mut_slice()?)));
        let arrays = self.next(arrays);
        let (from, mut to) = plan.agree(arrays)?;
        plan.inverse_into(&from, &mut to)
    }

    fn copy(&mut self, from: &Spectrum<Self>, to: [&mut Spectrum<Self>; 2]) {
        let done = self.copied(from, to);
        self.keep(done);
    }

    fn cross(&mut self, u: &mut Velocity<Self>, omega: &Velocity<Self>) {
        let done = self.crossed(u, omega);
        self.keep(done);
    }

    fn advance(
        &mut self,
        factors: Advance,
        velocity_rate: [&Spectrum<Self>; 2],
        next_stage: [&mut Spectrum<Self>; 2],
    ) {
        let done = self.advanced(factors, velocity_rate, next_stage);
        self.keep(done);
    }

    fn squares(&mut self, u: &Velocity<Self>) -> Result<f64, Error> {
        self.summed(u)
    }

    fn edit(
        &mut self,
        field: &mut Velocity<Self>,
        change: impl FnOnce(&mut Field<Physical>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut here = field.to_host()?;
        change(&mut here)?;
        if here.as_slice().is_empty() {
            return Ok(());
        }
        let copied = self.stream.memcpy_htod(here.as_slice(), &mut field.as_mut_slice()?);
        copied.map_err(|why| failed("copying a field to the device")(why).on(self.rank))
    }

    fn read<R>(
        &mut self,
        field: &Velocity<Self>,
        look: impl FnOnce(&Field<Physical>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        look(&field.to_host()?)
    }

    fn agree(&mut self, plan: &mut DevicePlan) -> Result<(), Error> {
        let mine = self.next(Ok(()));
        plan.agree(mine)
    }
}
