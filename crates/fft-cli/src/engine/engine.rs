//! Plans wherever their data is: in memory of the host, or on a GPU.

use std::ops::{Deref, DerefMut};
use std::time::Instant;

use bytemuck::{cast_slice, cast_slice_mut};
use thriffty::planning::{Direction, DynArray, DynPlan, Element, Reduce, Step};
use thriffty::{Comm, Error, Tune, Wire};

use super::family::Family;
use crate::args::{cli, draft_options};
use crate::ranks::world::{Failure, refused, zeros};

/// A plan that transforms arrays of the host, on the way through a GPU where its data is there.
pub(crate) struct Engine {
    /// Physical and spectral data on the plan's device. Dropped first: it may be the plan's.
    on_device: Option<[DynArray; 2]>,
    plan: DynPlan,
}

impl Deref for Engine {
    type Target = DynPlan;

    fn deref(&self) -> &DynPlan {
        &self.plan
    }
}

impl DerefMut for Engine {
    fn deref_mut(&mut self) -> &mut DynPlan {
        &mut self.plan
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

/// What is read, and what is written.
fn from_to<'a>(
    direction: Direction,
    physical: &'a mut DynArray,
    spectral: &'a mut DynArray,
) -> (&'a mut DynArray, &'a mut DynArray) {
    match direction {
        Direction::Forward => (physical, spectral),
        Direction::Inverse => (spectral, physical),
    }
}

impl Engine {
    /// The plan that the options ask for. Collective.
    pub(crate) fn new<K: Family>(comm: &dyn Comm, options: &cli::Bench) -> Result<Self, Failure> {
        let (problem, choosing) = (&options.problem, &options.choosing);
        match options.device {
            cli::Device::Host if options.transport != "reached" => {
                refused("--transport goes with --device cuda")
            }
            cli::Device::Host => {
                let plan = draft_options::plan::<K>(comm, problem, choosing)?;
                Ok(Self { on_device: None, plan })
            }
            #[cfg(feature = "cuda")]
            cli::Device::Cuda if choosing.wisdom.is_some() => {
                refused("--device cuda has no wisdom")
            }
            #[cfg(feature = "cuda")]
            cli::Device::Cuda => {
                let mut draft = draft_options::asked::<K>(comm, problem)?;
                draft.options.tune = draft_options::tune(choosing);
                let transport = options.transport.parse()?;
                Self::with_arrays(draft.on(super::cuda::device(comm, transport)?).build()?)
            }
            #[cfg(not(feature = "cuda"))]
            cli::Device::Cuda => refused("this fft-cli was built without the feature cuda"),
        }
    }

    /// The same plan without a wire; by the same recipe, if it has none. Collective.
    pub(crate) fn exact<K: Family>(&self, problem: &cli::Problem) -> Result<Self, Failure> {
        let (comm, recipe) = (self.comm(), self.recipe());
        let asked = recipe.problem();
        let mut draft = draft_options::draft::<K>(comm, problem)?;
        draft.options.machine = Some(asked.machine.clone());
        let raw = |step: &Step| !matches!(step, Step::Reshape { wire, .. } if *wire != Wire::Raw);
        if asked.options.tolerance.is_none() && recipe.steps().iter().all(raw) {
            draft.options.tune = Tune::Recipe(recipe.to_string());
        }
        #[cfg(feature = "cuda")]
        if self.on_device.is_some() {
            let device = super::cuda::device(comm, Default::default())?;
            return Self::with_arrays(draft.on(device).build()?);
        }
        Ok(Self { on_device: None, plan: draft.build()? })
    }

    /// A plan on a device with arrays there. Collective.
    #[cfg(feature = "cuda")]
    fn with_arrays(mut plan: DynPlan) -> Result<Self, Failure> {
        let [physical, spectral] = match plan.recipe().problem().options.shared_arrays {
            true => [Ok(plan.shared_zeros()?), Ok(plan.shared_zeros()?)],
            false => [plan.zeros(), plan.zeros()],
        };
        let both = physical.and_then(|physical| Ok([physical, spectral?]));
        let on_device = Some(plan.agree(both)?);
        Ok(Self { on_device, plan })
    }

    /// Arrays of zeros for input and output, where the plan wants them. Collective.
    pub(crate) fn arrays<A: Element, B: Element>(
        &mut self,
    ) -> Result<(Array<A>, Array<B>), Failure> {
        let (physical, spectral) = (self.input_len(), self.output_len());
        if self.on_device.is_none() && self.recipe().problem().options.shared_arrays {
            let (input, output) = (self.plan.shared_zeros()?, self.plan.shared_zeros()?);
            return Ok((Array::Shared(input, physical), Array::Shared(output, spectral)));
        }
        let input = zeros(self.comm(), physical)?;
        Ok((Array::Own(input), Array::Own(zeros(self.comm(), spectral)?)))
    }

    /// Transforms from one array of the host to another. Collective.
    pub(crate) fn run(
        &mut self,
        direction: Direction,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        let Some([physical, spectral]) = &mut self.on_device else {
            return self.plan.run(direction, input, output);
        };
        let (from, to) = from_to(direction, physical, spectral);
        from.write(input)?;
        self.plan.run_arrays(direction, from, to)?;
        to.read(output)
    }

    /// The seconds of one transform on the slowest rank: of these arrays, or of those on the GPU.
    /// Collective.
    pub(crate) fn once(
        &mut self,
        direction: Direction,
        physical: &mut [u8],
        spectral: &mut [u8],
    ) -> Result<f64, Error> {
        if let Some([array, _]) = &self.on_device {
            array.synchronize()?;
        }
        self.comm().barrier()?;
        let start = Instant::now();
        match (&mut self.on_device, direction) {
            (None, Direction::Forward) => self.plan.run(direction, physical, spectral)?,
            (None, Direction::Inverse) => self.plan.run(direction, spectral, physical)?,
            (Some([physical, spectral]), _) => {
                let (from, to) = from_to(direction, physical, spectral);
                self.plan.run_arrays(direction, from, to)?;
                to.synchronize()?;
            }
        }
        let mut seconds = [start.elapsed().as_secs_f64()];
        self.comm().allreduce(Reduce::Max, &mut seconds)?;
        Ok(seconds[0])
    }

    /// How data gets to other ranks' GPUs.
    pub(crate) fn transport(&self) -> Option<String> {
        #[cfg(feature = "cuda")]
        return self.plan.transport().map(|transport| transport.to_string());
        #[cfg(not(feature = "cuda"))]
        None
    }

    /// What the model expected of forward transforms, on a host.
    pub(crate) fn predicted(&self) -> Option<f64> {
        self.on_device.is_none().then(|| self.report().chosen().predicted)
    }
}
