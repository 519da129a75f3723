//! A plan on a GPU, with arrays there.

use bytemuck::{cast_slice, cast_slice_mut};
use thriffty::gpu::cudarc::driver::{CudaContext, DriverError};
use thriffty::gpu::{Gpu, GpuReal, GpuTransport, driver_is_present};
use thriffty::{
    Algorithm, Comm, DeviceArray, Direction, DynDevicePlan, DynDraft, Error, Place, Recipe,
    Timings, Transform, Tune, WireError,
};

use super::family::Family;
use crate::args::{cli, draft_options};
use crate::ranks::world::{Failure, agree, refused};

/// A plan and its two arrays, of either precision.
pub(crate) trait OnDevice {
    fn recipe(&self) -> &Recipe;
    fn comm(&self) -> &dyn Comm;
    fn wire_error(&self) -> Option<WireError>;
    fn timings(&self) -> Timings;
    fn clear_timings(&mut self);
    fn memory(&self) -> usize;
    fn exchange(&self) -> Algorithm;
    fn transport(&self) -> String;
    /// Waits for the device.
    fn synchronize(&self) -> Result<(), Error>;
    /// Transforms what is there, and waits for it. Collective.
    fn run(&mut self, direction: Direction) -> Result<(), Error>;
    /// Transforms from one array of the host to another, through the device. Collective.
    fn run_through(
        &mut self,
        direction: Direction,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error>;
}

/// The GPU of a rank: those of a host are dealt out in turn.
fn gpu(comm: &dyn Comm) -> Result<Gpu, String> {
    let rank = comm.rank();
    let before = (0..rank).filter(|other| comm.host(*other) == comm.host(rank)).count();
    let devices = match driver_is_present() {
        true => CudaContext::device_count().unwrap_or(0).max(1) as usize,
        false => 1,
    };
    Gpu::probe(before % devices).map_err(|why| why.to_string())
}

/// As the options say. Collective.
pub(crate) fn new<K: Family>(
    comm: &dyn Comm,
    problem: &cli::Problem,
    choosing: &cli::Choosing,
    transport: &str,
) -> Result<Box<dyn OnDevice>, Failure> {
    let tune = match (&choosing.wisdom, &choosing.recipe, choosing.tune) {
        (None, Some(text), _) => Tune::Recipe(text.clone()),
        (None, None, cli::By::Model) => Tune::Model,
        (None, None, cli::By::Timings) => Tune::Measure { budget: choosing.budget },
        (Some(_), _, _) => return refused("--device cuda has no wisdom"),
    };
    let draft = draft_options::asked::<K>(comm, problem)?;
    of::<K>(comm, draft.tune(tune), transport.parse()?)
}

/// Of a draft. Collective.
pub(crate) fn of<K: Transform<Real: GpuReal>>(
    comm: &dyn Comm,
    draft: DynDraft<'_>,
    transport: GpuTransport,
) -> Result<Box<dyn OnDevice>, Failure> {
    Ok(Box::new(Bound::<K::Real>::new(comm, draft, transport)?))
}

struct Bound<T: GpuReal> {
    plan: DynDevicePlan<T>,
    physical: DeviceArray<T>,
    spectral: DeviceArray<T>,
}

impl<T: GpuReal> Bound<T> {
    fn new(comm: &dyn Comm, draft: DynDraft<'_>, transport: GpuTransport) -> Result<Self, Failure> {
        let gpu = agree(comm, gpu(comm))?;
        let mut plan = draft.on::<T>(Place { gpu, stream: None, transport })?;
        let [physical, spectral] = match plan.recipe().problem().shared_arrays {
            true => [Ok(plan.shared_zeros()?), Ok(plan.shared_zeros()?)],
            false => [plan.zeros(), plan.zeros()],
        };
        let both = physical.and_then(|physical| Ok((physical, spectral?)));
        let (physical, spectral) = agree(comm, both)?;
        Ok(Self { plan, physical, spectral })
    }

    fn failed(&self, what: &'static str) -> impl Fn(DriverError) -> Error + use<T> {
        let rank = self.plan.comm().rank();
        move |why| Error::Transport { rank, call: what, text: why.to_string() }
    }
}

impl<T: GpuReal> OnDevice for Bound<T> {
    fn recipe(&self) -> &Recipe {
        self.plan.recipe()
    }

    fn comm(&self) -> &dyn Comm {
        self.plan.comm()
    }

    fn wire_error(&self) -> Option<WireError> {
        self.plan.wire_error()
    }

    fn timings(&self) -> Timings {
        self.plan.timings()
    }

    fn clear_timings(&mut self) {
        self.plan.clear_timings();
    }

    fn memory(&self) -> usize {
        self.plan.memory()
    }

    fn exchange(&self) -> Algorithm {
        self.plan.exchange()
    }

    fn transport(&self) -> String {
        self.plan.transport().to_string()
    }

    fn synchronize(&self) -> Result<(), Error> {
        self.plan.stream().synchronize().map_err(self.failed("waiting for the device"))
    }

    fn run(&mut self, direction: Direction) -> Result<(), Error> {
        let Self { plan, physical, spectral } = self;
        let [here, there] = plan.reals();
        match direction {
            Direction::Forward => {
                plan.run(direction, &physical.slice(0..here), &mut spectral.slice_mut(0..there))?;
            }
            Direction::Inverse => {
                plan.run(direction, &spectral.slice(0..there), &mut physical.slice_mut(0..here))?;
            }
        }
        self.synchronize()
    }

    fn run_through(
        &mut self,
        direction: Direction,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        let (stream, failed) = (self.plan.stream().clone(), self.failed("copying"));
        let (from, to): (&[T], &mut [T]) = (cast_slice(input), cast_slice_mut(output));
        let source = direction.choose(&mut self.physical, &mut self.spectral);
        if !from.is_empty() {
            stream.memcpy_htod(from, &mut source.slice_mut(0..from.len())).map_err(&failed)?;
        }
        self.run(direction)?;
        let result = direction.choose(&self.spectral, &self.physical);
        if !to.is_empty() {
            stream.memcpy_dtoh(&result.slice(0..to.len()), to).map_err(&failed)?;
        }
        self.synchronize()
    }
}
