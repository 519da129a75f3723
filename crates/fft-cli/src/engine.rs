//! Plans wherever their data is: in memory of the host, or on a GPU.

use std::ops::{Deref, DerefMut};
use std::time::Instant;

use thriffty::{
    Algorithm, Brick, Clock, Comm, Direction, Error, Field, Physical, Plan, Recipe, Reduce, Side,
    Spectral, Step, Transform, Tune, Wire, WireError,
};

use crate::family::Family;
use crate::world::{Failure, zeros};
use crate::{choosing, cli};

/// What is known of a plan.
pub(crate) trait Planned<K: Transform, const D: usize> {
    fn recipe(&self) -> &Recipe<D>;
    fn comm(&self) -> &dyn Comm;

    fn input_brick(&self) -> Brick<D> {
        self.recipe().problem().input.brick(self.comm().rank())
    }

    fn output_brick(&self) -> Brick<D> {
        self.recipe().problem().output.brick(self.comm().rank())
    }
}

impl<K: Transform, const D: usize> Planned<K, D> for Plan<K, D> {
    fn recipe(&self) -> &Recipe<D> {
        self.recipe()
    }

    fn comm(&self) -> &dyn Comm {
        self.comm()
    }
}

/// A plan that transforms arrays of the host, on the way through a GPU where its data is there.
pub(crate) enum Engine<K: Family, const D: usize> {
    Host(Box<Plan<K, D>>),
    #[cfg(feature = "cuda")]
    Cuda(Box<crate::cuda::OnDevice<K, D>>),
}

impl<K: Family, const D: usize> Planned<K, D> for Engine<K, D> {
    fn recipe(&self) -> &Recipe<D> {
        match self {
            Self::Host(plan) => plan.recipe(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.plan.recipe(),
        }
    }

    fn comm(&self) -> &dyn Comm {
        match self {
            Self::Host(plan) => plan.comm(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.plan.comm(),
        }
    }
}

/// Input and output.
type Arrays<K, const D: usize> = (Array<Physical, K, D>, Array<Spectral, K, D>);

/// Where a rank's data is.
pub(crate) enum Array<S: Side, K: Transform, const D: usize> {
    Own(Vec<S::Element<K>>),
    Shared(Field<S, K, D>),
}

impl<S: Side, K: Transform, const D: usize> Deref for Array<S, K, D> {
    type Target = [S::Element<K>];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Own(array) => array,
            Self::Shared(field) => field.as_slice(),
        }
    }
}

impl<S: Side, K: Transform, const D: usize> DerefMut for Array<S, K, D> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Own(array) => array,
            Self::Shared(field) => field.as_mut_slice(),
        }
    }
}

impl<K: Family, const D: usize> Engine<K, D> {
    /// The plan that the options ask for. Collective.
    pub(crate) fn new(comm: &dyn Comm, options: &cli::Bench) -> Result<Self, Failure> {
        let (problem, choosing) = (&options.problem, &options.choosing);
        match options.device {
            cli::Device::Host if options.passage != "reached" => {
                crate::world::refused("--passage goes with --device cuda")
            }
            cli::Device::Host => {
                Ok(Self::Host(Box::new(choosing::plan::<K, D>(comm, problem, choosing)?)))
            }
            #[cfg(feature = "cuda")]
            cli::Device::Cuda => {
                let plan = crate::cuda::OnDevice::new(comm, problem, choosing, &options.passage)?;
                Ok(Self::Cuda(Box::new(plan)))
            }
            #[cfg(not(feature = "cuda"))]
            cli::Device::Cuda => {
                crate::world::refused("this fft-cli was built without the feature cuda")
            }
        }
    }

    /// The same without a wire, on the same machine; where there is none, by the same recipe, so that nothing may differ.
    /// Collective.
    pub(crate) fn exact(&self, problem: &cli::Problem) -> Result<Self, Failure> {
        let (comm, recipe) = (self.comm(), self.recipe());
        let asked = recipe.problem();
        let mut draft = choosing::draft::<K, D>(comm, problem)?.machine((*asked.machine).clone());
        let raw = |step: &Step| !matches!(step, Step::Reshape { wire, .. } if *wire != Wire::Raw);
        if asked.tolerance.is_none() && recipe.steps().iter().all(raw) {
            draft = draft.tune(Tune::Exact(recipe.to_string()));
        }
        Ok(match self {
            Self::Host(_) => Self::Host(Box::new(draft.build()?)),
            #[cfg(feature = "cuda")]
            Self::Cuda(_) => {
                Self::Cuda(Box::new(crate::cuda::OnDevice::of(comm, draft, Default::default())?))
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
    pub(crate) fn arrays(&mut self) -> Result<Arrays<K, D>, Failure> {
        match self {
            Self::Host(plan) if plan.recipe().problem().shared_arrays => {
                let (input, output) = (plan.shared_input()?, plan.shared_output()?);
                Ok((Array::Shared(input), Array::Shared(output)))
            }
            _ => {
                let input = zeros(self.comm(), self.input_len())?;
                Ok((Array::Own(input), Array::Own(zeros(self.comm(), self.output_len())?)))
            }
        }
    }

    pub(crate) fn forward_into(
        &mut self,
        input: &[K::Physical],
        output: &mut [K::Spectral],
    ) -> Result<(), Error> {
        match self {
            Self::Host(plan) => plan.forward_into(input, output),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.forward_into(input, output),
        }
    }

    pub(crate) fn inverse_into(
        &mut self,
        input: &[K::Spectral],
        output: &mut [K::Physical],
    ) -> Result<(), Error> {
        match self {
            Self::Host(plan) => plan.inverse_into(input, output),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.inverse_into(input, output),
        }
    }

    /// The seconds of one transform on the slowest rank: of these arrays, or of what the last one left on the GPU. Collective.
    pub(crate) fn once(
        &mut self,
        direction: Direction,
        physical: &mut [K::Physical],
        spectral: &mut [K::Spectral],
    ) -> Result<f64, Error> {
        #[cfg(feature = "cuda")]
        if let Self::Cuda(device) = self {
            device.settle()?;
        }
        self.comm().barrier()?;
        let start = Instant::now();
        match (&mut *self, direction) {
            (Self::Host(plan), Direction::Forward) => plan.forward_into(physical, spectral)?,
            (Self::Host(plan), Direction::Inverse) => plan.inverse_into(spectral, physical)?,
            #[cfg(feature = "cuda")]
            (Self::Cuda(device), direction) => device.run(direction)?,
        }
        let mut seconds = [start.elapsed().as_secs_f64()];
        self.comm().allreduce(Reduce::Max, &mut seconds)?;
        Ok(seconds[0])
    }

    pub(crate) fn last_error(&self) -> Option<WireError> {
        match self {
            Self::Host(plan) => plan.last_error(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.plan.last_error(),
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        match self {
            Self::Host(plan) => plan.clock(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.plan.clock(),
        }
    }

    pub(crate) fn clear_clock(&mut self) {
        match self {
            Self::Host(plan) => plan.clear_clock(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.plan.clear_clock(),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Host(plan) => plan.memory(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.plan.memory(),
        }
    }

    pub(crate) fn exchange(&self) -> Algorithm {
        match self {
            Self::Host(plan) => plan.exchange(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.plan.exchange(),
        }
    }

    /// How data gets to other ranks' GPUs.
    pub(crate) fn passage(&self) -> Option<String> {
        match self {
            Self::Host(_) => None,
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => Some(device.plan.passage().to_string()),
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
