//! A plan on a GPU, with arrays there.

use thriffty::gpu::cudarc::driver::{CudaContext, DriverError};
use thriffty::gpu::{Gpu, Passage, driver_is_present};
use thriffty::{Comm, DeviceField, DevicePlan, Direction, Draft, Error, Physical, Spectral, Tune};

use crate::family::Family;
use crate::world::{Failure, agree, refused};
use crate::{choosing, cli};

/// A plan and its two arrays.
pub(crate) struct OnDevice<K: Family, const D: usize> {
    pub(crate) plan: DevicePlan<K, D>,
    physical: DeviceField<Physical, K, D>,
    spectral: DeviceField<Spectral, K, D>,
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

impl<K: Family, const D: usize> OnDevice<K, D> {
    /// As the options say. Collective.
    pub(crate) fn new(
        comm: &dyn Comm,
        problem: &cli::Problem,
        choosing: &cli::Choosing,
        passage: &str,
    ) -> Result<Self, Failure> {
        let tune = match (&choosing.wisdom, &choosing.recipe, choosing.tune) {
            (None, Some(text), _) => Tune::Exact(text.clone()),
            (None, None, cli::By::Model) => Tune::Model,
            (None, None, cli::By::Clock) => Tune::Measure { budget: choosing.budget },
            (Some(_), _, _) => return refused("--device cuda has no wisdom"),
        };
        let draft = choosing::asked::<K, D>(comm, problem)?;
        Self::of(comm, draft.tune(tune), passage.parse()?)
    }

    /// Of a draft. Collective.
    pub(crate) fn of(
        comm: &dyn Comm,
        draft: Draft<'_, K, D>,
        passage: Passage,
    ) -> Result<Self, Failure> {
        let gpu = agree(comm, gpu(comm))?;
        let mut plan = draft.on(&gpu).passage(passage).build()?;
        let (physical, spectral) = match plan.recipe().problem().shared_arrays {
            true => (plan.shared_input()?, plan.shared_output()?),
            false => (plan.input(), plan.output()),
        };
        agree(comm, physical.as_slice().and(spectral.as_slice()).map(drop))?;
        Ok(Self { plan, physical, spectral })
    }

    fn failed(&self, what: &'static str) -> impl Fn(DriverError) -> Error + use<K, D> {
        let rank = self.plan.comm().rank();
        move |why| Error::Transport { rank, call: what, text: why.to_string() }
    }

    /// Waits for the device.
    pub(crate) fn settle(&self) -> Result<(), Error> {
        self.plan.stream().synchronize().map_err(self.failed("waiting for the device"))
    }

    /// Transforms what is there, and waits for it. Collective.
    pub(crate) fn run(&mut self, direction: Direction) -> Result<(), Error> {
        let Self { plan, physical, spectral } = self;
        match direction {
            Direction::Forward => {
                plan.forward_into(&physical.as_slice()?, &mut spectral.as_mut_slice()?)?;
            }
            Direction::Inverse => {
                plan.inverse_into(&spectral.as_slice()?, &mut physical.as_mut_slice()?)?;
            }
        }
        self.settle()
    }

    /// Through the device and back. Collective.
    pub(crate) fn forward_into(
        &mut self,
        input: &[K::Physical],
        output: &mut [K::Spectral],
    ) -> Result<(), Error> {
        let (stream, failed) = (self.plan.stream().clone(), self.failed("copying"));
        let (from, to): (&[K::Real], &mut [K::Real]) =
            (bytemuck::cast_slice(input), bytemuck::cast_slice_mut(output));
        if !from.is_empty() {
            stream.memcpy_htod(from, &mut self.physical.as_mut_slice()?).map_err(&failed)?;
        }
        self.run(Direction::Forward)?;
        if !to.is_empty() {
            stream.memcpy_dtoh(&self.spectral.as_slice()?, to).map_err(&failed)?;
        }
        self.settle()
    }

    /// Through the device and back. Collective.
    pub(crate) fn inverse_into(
        &mut self,
        input: &[K::Spectral],
        output: &mut [K::Physical],
    ) -> Result<(), Error> {
        let (stream, failed) = (self.plan.stream().clone(), self.failed("copying"));
        let (from, to): (&[K::Real], &mut [K::Real]) =
            (bytemuck::cast_slice(input), bytemuck::cast_slice_mut(output));
        if !from.is_empty() {
            stream.memcpy_htod(from, &mut self.spectral.as_mut_slice()?).map_err(&failed)?;
        }
        self.run(Direction::Inverse)?;
        if !to.is_empty() {
            stream.memcpy_dtoh(&self.physical.as_slice()?, to).map_err(&failed)?;
        }
        self.settle()
    }
}
