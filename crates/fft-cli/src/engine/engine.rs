//! Plans with their data on the host or on a GPU.

use std::ops::{Deref, DerefMut};
use std::time::Instant;

use bytemuck::{cast_slice, cast_slice_mut};
use thriffty::planning::{
    DeviceChoice, Direction, DynArray, DynPlan, Element, MachineChoice, Options, Recipe, Reduce,
    Step,
};
use thriffty::{Comm, Error, Tuning, Wire};

use super::draft;
use super::place::Site;
use crate::args::encoding::Encoding;
use crate::args::options::Problem;
use crate::ranks::world::{Failure, refused, zeros};

/// A plan that transforms arrays of the host, perhaps through a GPU.
pub(crate) struct Engine {
    /// Physical and spectral data on the plan's device. Dropped first, because it may belong to the
    /// plan.
    on_device: Option<[DynArray; 2]>,
    #[cfg(feature = "cuda")]
    gpu: Option<thriffty::gpu::Gpu>,
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

/// A rank's data.
pub(crate) enum Array<E> {
    Own(Vec<E>),
    /// The first points of a shared array.
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
    /// The plan of the options. Collective.
    pub(crate) fn new(comm: &dyn Comm, problem: &Problem) -> Result<Self, Failure> {
        match Site::of(comm, &problem.transform.choices.placement)? {
            Site::Host => Ok(Self::on_host(draft::plan(comm, problem, 1)?)),
            #[cfg(feature = "cuda")]
            Site::Cuda(device) => {
                let gpu = device.gpu.clone();
                Self::with_arrays(gpu, draft::on_device(comm, problem, device)?)
            }
        }
    }

    /// The plan of the options for processes with this number of threads each. Collective.
    pub(crate) fn with_threads(
        comm: &dyn Comm,
        problem: &Problem,
        threads: usize,
    ) -> Result<Self, Failure> {
        if comm.size() > 1 && comm.name() == "threads" {
            return refused("--threads is for processes, not for --ranks");
        }
        let placement = &problem.transform.choices.placement;
        if placement.device != DeviceChoice::Host || problem.options().shared_arrays {
            return refused("--threads is for the host, and for arrays of a process's own");
        }
        let is_cut = problem.grids.input_grid.is_some() || problem.grids.output_grid.is_some();
        let options = problem.options();
        let is_sent = is_cut || options.exchange.is_some() || Encoding::of(options).is_asked_for();
        if comm.size() == 1 && is_sent {
            return refused("one process with --threads has whole arrays and sends nothing");
        }
        Ok(Self::on_host(draft::plan(comm, problem, threads)?))
    }

    /// Whether it encodes messages.
    fn encodes(&self) -> bool {
        let encodes =
            |step: &Step| matches!(step, Step::Reshape { wire, .. } if *wire != Wire::Raw);
        self.recipe().steps().iter().any(encodes)
    }

    /// Why it encodes no messages, if it does not.
    pub(crate) fn why_exact(&self) -> Option<&'static str> {
        let problem = self.recipe().problem();
        if self.encodes() {
            None
        } else if problem.input.ranks() == 1 {
            Some("one rank sends nothing")
        } else if problem.is_on_one_host() {
            Some("nothing is encoded between ranks of one host; --ignore-shared-memory sends all")
        } else {
            Some("messages are raw")
        }
    }

    /// The same plan without a wire; on ranks of the host by the same recipe. Collective.
    pub(crate) fn exact(&self, problem: &Problem) -> Result<Self, Failure> {
        let (comm, recipe) = (self.comm(), self.recipe());
        let asked = recipe.problem();
        let mut draft = draft::draft(comm, problem)?.with(without_encoding);
        draft.options.machine = Some(MachineChoice::Given(asked.machine.clone()));
        // Recipes of threads are for other problems.
        if self.on_device.is_none() && asked.as_given() == *self.problem() {
            draft.options.tuning = Tuning::Recipe(raw(recipe));
        }
        #[cfg(feature = "cuda")]
        if self.on_device.is_some() {
            let device = super::cuda::device(comm, DeviceChoice::Cuda, Default::default())?;
            let gpu = device.gpu.clone();
            return Self::with_arrays(gpu, draft.on(device).build()?);
        }
        Ok(Self::on_host(draft.build()?))
    }

    fn on_host(plan: DynPlan) -> Self {
        Self {
            on_device: None,
            #[cfg(feature = "cuda")]
            gpu: None,
            plan,
        }
    }

    /// A plan on a device with arrays there. Collective.
    #[cfg(feature = "cuda")]
    fn with_arrays(gpu: thriffty::gpu::Gpu, mut plan: DynPlan) -> Result<Self, Failure> {
        let [physical, spectral] = if plan.problem().options.shared_arrays {
            [Ok(plan.shared_zeros()?), Ok(plan.shared_zeros()?)]
        } else {
            [plan.zeros(), plan.zeros()]
        };
        let both = physical.and_then(|physical| Ok([physical, spectral?]));
        let on_device = Some(plan.agree(both)?);
        Ok(Self { on_device, gpu: Some(gpu), plan })
    }

    /// Arrays of zeros for input and output, shared if the plan shares them. Collective.
    pub(crate) fn arrays<A: Element, B: Element>(
        &mut self,
    ) -> Result<(Array<A>, Array<B>), Failure> {
        let (physical, spectral) = (self.input_len(), self.output_len());
        if self.on_device.is_none() && self.problem().options.shared_arrays {
            let (input, output) = (self.plan.shared_zeros()?, self.plan.shared_zeros()?);
            return Ok((Array::Shared(input, physical), Array::Shared(output, spectral)));
        }
        let input = zeros(self.comm(), physical)?;
        Ok((Array::Own(input), Array::Own(zeros(self.comm(), spectral)?)))
    }

    /// Transforms one array of the host to another. Collective.
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

    /// The seconds of one transform on the slowest rank, of these arrays or of the arrays on the
    /// GPU. Collective.
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

    /// Fills physical data on the device with noise of this scale and transforms it. False if data
    /// is on the host. Collective.
    pub(crate) fn noise_on_device(&mut self, _scale: f64) -> Result<bool, Error> {
        #[cfg(feature = "cuda")]
        if self.on_device.is_some() {
            self.transform_noise(_scale)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// The distance of that noise from itself after forward and inverse on this rank: sums of
    /// squares of difference and noise, and the largest of both. Collective.
    pub(crate) fn distance_on_device(&mut self, _scale: f64) -> Result<[f64; 4], Error> {
        #[cfg(feature = "cuda")]
        if self.on_device.is_some() {
            return self.distance_of_noise(_scale);
        }
        Ok([0.0; 4])
    }

    /// Transforms the arrays on the device. Collective.
    #[cfg(feature = "cuda")]
    pub(super) fn run_on_device(&mut self, direction: Direction) -> Result<(), Error> {
        let [physical, spectral] = self.on_device.as_mut().expect("a plan on a device");
        let (from, to) = from_to(direction, physical, spectral);
        self.plan.run_arrays(direction, from, to)
    }

    /// The GPU, physical data on it, and the plan.
    #[cfg(feature = "cuda")]
    pub(super) fn device_parts(&mut self) -> (&thriffty::gpu::Gpu, &mut DynArray, &DynPlan) {
        let gpu = self.gpu.as_ref().expect("a plan on a device");
        let [physical, _] = self.on_device.as_mut().expect("a plan on a device");
        (gpu, physical, &self.plan)
    }

    /// How data gets to other ranks' GPUs.
    pub(crate) fn transport(&self) -> Option<String> {
        #[cfg(feature = "cuda")]
        return self.plan.transport().map(|transport| transport.to_string());
        #[cfg(not(feature = "cuda"))]
        None
    }

    /// Why its recipe was chosen.
    pub(crate) fn reason(&self) -> &str {
        &self.report().reason
    }

    /// The model's time of forward transforms: on the host, or of a machine of GPUs.
    pub(crate) fn predicted(&self) -> Option<f64> {
        let is_of_gpus = self.plan.recipe().problem().machine.gpu.is_some();
        (self.on_device.is_none() || is_of_gpus).then(|| self.report().chosen().predicted)
    }
}

/// Sends raw messages between arrays of the program's own, by the recipe of the model.
fn without_encoding(options: &mut Options) {
    (options.wire, options.tolerance) = (None, None);
    (options.shared_arrays, options.tuning) = (false, Tuning::Model);
}

/// The text of a recipe whose messages are raw.
fn raw(recipe: &Recipe) -> String {
    let mut text = recipe.to_string();
    if let Some(tolerance) = recipe.problem().options.tolerance {
        text = text.replace(&format!(" tolerance={tolerance}"), "");
    }
    // Only the words of an exchange end with a wire.
    text.replace(&format!(" {})", recipe.problem().wire()), &format!(" {})", Wire::Raw))
}
