//! Plans wherever their data is: in memory of the host, or on a GPU.

use std::ops::{Deref, DerefMut};
use std::time::Instant;

use bytemuck::{cast_slice, cast_slice_mut};
use thriffty::{
    Algorithm, Comm, Direction, DynArray, DynBrick, DynPlan, Element, Error, Recipe, Reduce, Step,
    Timings, Tune, Wire, WireError,
};

use super::family::Family;
use crate::args::{cli, draft_options};
use crate::ranks::world::{Failure, zeros};

/// What is known of a plan.
pub(crate) trait Planned {
    fn recipe(&self) -> &Recipe;
    fn comm(&self) -> &dyn Comm;

    fn input_brick(&self) -> DynBrick {
        self.recipe().problem().input.brick(self.comm().rank())
    }

    fn output_brick(&self) -> DynBrick {
        self.recipe().problem().output.brick(self.comm().rank())
    }
}

impl Planned for DynPlan {
    fn recipe(&self) -> &Recipe {
        self.recipe()
    }

    fn comm(&self) -> &dyn Comm {
        self.comm()
    }
}

/// A plan that transforms arrays of the host, on the way through a GPU where its data is there.
pub(crate) enum Engine {
    Host(Box<DynPlan>),
    #[cfg(feature = "cuda")]
    Cuda(Box<dyn crate::engine::cuda::OnDevice>),
}

impl Planned for Engine {
    fn recipe(&self) -> &Recipe {
        match self {
            Self::Host(plan) => plan.recipe(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.recipe(),
        }
    }

    fn comm(&self) -> &dyn Comm {
        match self {
            Self::Host(plan) => plan.comm(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.comm(),
        }
    }
}

/// Where a rank's data is.
pub(crate) enum Array<E> {
    Own(Vec<E>),
    /// So many points at the beginning.
    Shared(DynArray, usize),
}

impl<E: Element> Deref for Array<E> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        match self {
            Self::Own(array) => array,
            Self::Shared(array, points) => &cast_slice(array.bytes())[..*points],
        }
    }
}

impl<E: Element> DerefMut for Array<E> {
    fn deref_mut(&mut self) -> &mut [E] {
        match self {
            Self::Own(array) => array,
            Self::Shared(array, points) => &mut cast_slice_mut(array.bytes_mut())[..*points],
        }
    }
}

/// Transforms a plan's physical data to spectral data. Collective.
pub(crate) fn forward<A: Element, B: Element>(
    plan: &mut DynPlan,
    input: &[A],
    output: &mut [B],
) -> Result<(), Error> {
    plan.run(Direction::Forward, cast_slice(input), cast_slice_mut(output))
}

/// Transforms a plan's spectral data to physical data. Collective.
pub(crate) fn inverse<A: Element, B: Element>(
    plan: &mut DynPlan,
    input: &[A],
    output: &mut [B],
) -> Result<(), Error> {
    plan.run(Direction::Inverse, cast_slice(input), cast_slice_mut(output))
}

impl Engine {
    /// The plan that the options ask for. Collective.
    pub(crate) fn new<K: Family>(comm: &dyn Comm, options: &cli::Bench) -> Result<Self, Failure> {
        let (problem, choosing) = (&options.problem, &options.choosing);
        match options.device {
            cli::Device::Host if options.transport != "reached" => {
                crate::ranks::world::refused("--transport goes with --device cuda")
            }
            cli::Device::Host => {
                Ok(Self::Host(Box::new(draft_options::plan::<K>(comm, problem, choosing)?)))
            }
            #[cfg(feature = "cuda")]
            cli::Device::Cuda => Ok(Self::Cuda(crate::engine::cuda::new::<K>(
                comm,
                problem,
                choosing,
                &options.transport,
            )?)),
            #[cfg(not(feature = "cuda"))]
            cli::Device::Cuda => {
                crate::ranks::world::refused("this fft-cli was built without the feature cuda")
            }
        }
    }

    /// The same without a wire, on the same machine; where there is none, by the same recipe, so that nothing may differ.
    /// Collective.
    pub(crate) fn exact<K: Family>(&self, problem: &cli::Problem) -> Result<Self, Failure> {
        let (comm, recipe) = (self.comm(), self.recipe());
        let asked = recipe.problem();
        let mut draft = draft_options::draft::<K>(comm, problem)?.machine((*asked.machine).clone());
        let raw = |step: &Step| !matches!(step, Step::Reshape { wire, .. } if *wire != Wire::Raw);
        if asked.tolerance.is_none() && recipe.steps().iter().all(raw) {
            draft = draft.tune(Tune::Recipe(recipe.to_string()));
        }
        Ok(match self {
            Self::Host(_) => Self::Host(Box::new(draft.build()?)),
            #[cfg(feature = "cuda")]
            Self::Cuda(_) => {
                Self::Cuda(crate::engine::cuda::of::<K>(comm, draft, Default::default())?)
            }
        })
    }

    pub(crate) fn input_len(&self) -> usize {
        self.input_brick().points() * self.recipe().problem().howmany
    }

    pub(crate) fn output_len(&self) -> usize {
        self.output_brick().points() * self.recipe().problem().howmany
    }

    /// Arrays of zeros for input and output, where the plan wants them. Collective.
    pub(crate) fn arrays<A: Element, B: Element>(
        &mut self,
    ) -> Result<(Array<A>, Array<B>), Failure> {
        let (physical, spectral) = (self.input_len(), self.output_len());
        match self {
            Self::Host(plan) if plan.recipe().problem().shared_arrays => {
                let (input, output) = (plan.shared_zeros()?, plan.shared_zeros()?);
                Ok((Array::Shared(input, physical), Array::Shared(output, spectral)))
            }
            _ => {
                let input = zeros(self.comm(), physical)?;
                Ok((Array::Own(input), Array::Own(zeros(self.comm(), spectral)?)))
            }
        }
    }

    /// Transforms from one array of the host to another. Collective.
    pub(crate) fn run(
        &mut self,
        direction: Direction,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        match self {
            Self::Host(plan) => plan.run(direction, input, output),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.run_through(direction, input, output),
        }
    }

    /// The seconds of one transform on the slowest rank: of these arrays, or of what the last one left on the GPU. Collective.
    pub(crate) fn once(
        &mut self,
        direction: Direction,
        physical: &mut [u8],
        spectral: &mut [u8],
    ) -> Result<f64, Error> {
        #[cfg(feature = "cuda")]
        if let Self::Cuda(device) = self {
            device.synchronize()?;
        }
        self.comm().barrier()?;
        let start = Instant::now();
        match (&mut *self, direction) {
            (Self::Host(plan), Direction::Forward) => plan.run(direction, physical, spectral)?,
            (Self::Host(plan), Direction::Inverse) => plan.run(direction, spectral, physical)?,
            #[cfg(feature = "cuda")]
            (Self::Cuda(device), direction) => device.run(direction)?,
        }
        let mut seconds = [start.elapsed().as_secs_f64()];
        self.comm().allreduce(Reduce::Max, &mut seconds)?;
        Ok(seconds[0])
    }

    pub(crate) fn wire_error(&self) -> Option<WireError> {
        match self {
            Self::Host(plan) => plan.wire_error(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.wire_error(),
        }
    }

    pub(crate) fn timings(&self) -> Timings {
        match self {
            Self::Host(plan) => plan.timings(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.timings(),
        }
    }

    pub(crate) fn clear_timings(&mut self) {
        match self {
            Self::Host(plan) => plan.clear_timings(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.clear_timings(),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Host(plan) => plan.memory(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.memory(),
        }
    }

    pub(crate) fn exchange(&self) -> Algorithm {
        match self {
            Self::Host(plan) => plan.exchange(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.exchange(),
        }
    }

    /// How data gets to other ranks' GPUs.
    pub(crate) fn transport(&self) -> Option<String> {
        match self {
            Self::Host(_) => None,
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => Some(device.transport()),
        }
    }

    /// What the model expected of forward transforms, on a host.
    pub(crate) fn predicted(&self) -> Option<f64> {
        match self {
            Self::Host(plan) => Some(plan.report().chosen().predicted),
            #[cfg(feature = "cuda")]
            Self::Cuda(_) => None,
        }
    }
}
