//! Options of a plan that is still to be made, whose types and number of axes are values.

mod compare;

use std::sync::{Arc, Once};

use fft_comm::tuner::Progress;
use fft_core::{
    Access, Algorithm, Comm, DynBrick, DynGrid, Error, ErrorKind, Kind, Layout, Machine, Memory,
    PerAxis, Precision, Problem, Recipe, Scale, Tolerance, Wire,
};

use crate::tune::{ByClock, Decision, Wanted, by_clock, decide};
use crate::{DynPlan, DynTransform, Tune};
use compare::{MAX_WIRES, Words, brick_of};

/// A [`Draft`](crate::Draft) whose transform, precision and number of axes are run-time values.
/// It is for programs that learn these when they run.
/// Its methods are those of a draft, which says what they do.
///
/// ```
/// use bytemuck::{cast_slice, cast_slice_mut};
/// use thriffty::{Direction, DynDraft, DynGrid, DynTransform, Precision};
/// let spectrum = thriffty::threads(2, |world| {
///     let grid = DynGrid::new([8, 8])?;
///     let draft = DynDraft::new(&world, grid, DynTransform::R2c, Precision::F64);
///     let mut plan = draft.build()?;
///     let input = vec![1.0; plan.input_len()];
///     let mut output = vec![[0.0; 2]; plan.output_len()];
///     plan.run(Direction::Forward, cast_slice(&input), cast_slice_mut(&mut output))?;
///     Ok::<_, thriffty::Error>(output)
/// })?;
/// assert_eq!(spectrum[0][0], [64.0, 0.0]); // the sum over all points
/// # Ok::<(), thriffty::Error>(())
/// ```
#[must_use = "a draft does nothing until it is built"]
pub struct DynDraft<'a> {
    comm: &'a dyn Comm,
    grid: DynGrid,
    transform: DynTransform,
    precision: Precision,
    kinds: PerAxis<Kind>,
    input: Option<DynBrick>,
    output: Option<DynBrick>,
    orders: [PerAxis<usize>; 2],
    howmany: usize,
    scales: [Scale; 2],
    exchange: Option<Algorithm>,
    wire: Option<Wire>,
    wires: Vec<(usize, Wire)>,
    everywhere: bool,
    /// Cached but for devices.
    access: Access,
    memory: Memory,
    shared_arrays: bool,
    tolerance: Option<Tolerance>,
    strict: bool,
    tune: Tune,
    machine: Option<Arc<Machine>>,
    watch: Option<Box<dyn Fn(Progress) + 'a>>,
}

impl<'a> DynDraft<'a> {
    /// Drafts a transform of the grid over the ranks of `comm`, with the transform's usual kinds.
    pub fn new(
        comm: &'a dyn Comm,
        grid: impl Into<DynGrid>,
        transform: DynTransform,
        precision: Precision,
    ) -> Self {
        let grid = grid.into();
        let axes = grid.axes();
        Self {
            comm,
            grid,
            transform,
            precision,
            kinds: transform.kinds(axes),
            input: None,
            output: None,
            orders: [PerAxis::row_major(axes); 2],
            howmany: 1,
            scales: [Scale::None, Scale::Full],
            exchange: None,
            wire: None,
            wires: Vec::new(),
            everywhere: false,
            access: Access::default(),
            memory: Memory::default(),
            shared_arrays: false,
            tolerance: None,
            strict: false,
            tune: Tune::Model,
            machine: None,
            watch: None,
        }
    }

    /// As [`Draft::input_brick`](crate::Draft::input_brick).
    pub fn input_brick(mut self, brick: impl Into<DynBrick>) -> Self {
        self.input = Some(brick.into());
        self
    }

    /// As [`Draft::output_brick`](crate::Draft::output_brick).
    pub fn output_brick(mut self, brick: impl Into<DynBrick>) -> Self {
        self.output = Some(brick.into());
        self
    }

    /// As [`Draft::input_order`](crate::Draft::input_order).
    pub fn input_order(mut self, order: impl Into<PerAxis<usize>>) -> Self {
        self.orders[0] = order.into();
        self
    }

    /// As [`Draft::output_order`](crate::Draft::output_order).
    pub fn output_order(mut self, order: impl Into<PerAxis<usize>>) -> Self {
        self.orders[1] = order.into();
        self
    }

    /// As [`Draft::kinds`](crate::Draft::kinds).
    pub fn kinds(mut self, kinds: impl Into<PerAxis<Kind>>) -> Self {
        self.kinds = kinds.into();
        self
    }

    /// As [`Draft::howmany`](crate::Draft::howmany).
    pub fn howmany(mut self, howmany: usize) -> Self {
        self.howmany = howmany;
        self
    }

    /// As [`Draft::scale`](crate::Draft::scale).
    pub fn scale(mut self, forward: Scale, inverse: Scale) -> Self {
        self.scales = [forward, inverse];
        self
    }

    /// As [`Draft::exchange`](crate::Draft::exchange).
    pub fn exchange(mut self, exchange: Algorithm) -> Self {
        self.exchange = Some(exchange);
        self
    }

    /// As [`Draft::memory`](crate::Draft::memory).
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = memory;
        self
    }

    /// As [`Draft::shared_arrays`](crate::Draft::shared_arrays).
    pub fn shared_arrays(mut self) -> Self {
        self.shared_arrays = true;
        self
    }

    /// As [`Draft::tune`](crate::Draft::tune).
    pub fn tune(mut self, tune: Tune) -> Self {
        self.tune = tune;
        self
    }

    /// As [`Draft::machine`](crate::Draft::machine).
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(Arc::new(machine));
        self
    }

    /// As [`Draft::watch`](crate::Draft::watch).
    pub fn watch(mut self, news: impl Fn(Progress) + 'a) -> Self {
        self.watch = Some(Box::new(news));
        self
    }

    /// As [`Draft::tolerance`](crate::Draft::tolerance).
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = Some(tolerance);
        self
    }

    /// As [`Draft::strict`](crate::Draft::strict).
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// The tolerance, with everything that has been said of it.
    fn tolerated(&self) -> Option<Tolerance> {
        self.tolerance.map(|tolerance| if self.strict { tolerance.strict() } else { tolerance })
    }

    /// As [`Draft::wire`](crate::Draft::wire).
    pub fn wire(mut self, wire: Wire) -> Self {
        self.wire = Some(wire);
        self
    }

    /// As [`Draft::wire_of`](crate::Draft::wire_of).
    pub fn wire_of(mut self, reshape: usize, wire: Wire) -> Self {
        self.wires.push((reshape, wire));
        self
    }

    /// As [`Draft::ignore_shared_memory`](crate::Draft::ignore_shared_memory).
    pub fn ignore_shared_memory(mut self) -> Self {
        self.everywhere = true;
        self
    }

    /// As [`Draft::spectral_grid`](crate::Draft::spectral_grid).
    ///
    /// # Panics
    /// If there are more kinds than axes.
    pub fn spectral_grid(&self) -> DynGrid {
        Problem::spectral_grid(self.grid, self.kinds)
    }

    /// As [`Draft::recipe`](crate::Draft::recipe). Collective.
    ///
    /// # Errors
    /// Those of a draft; [`Error::OnRank`] for bricks, orders or kinds that have other axes than
    /// the grid.
    pub fn recipe(&self) -> Result<Recipe, Error> {
        Ok(self.decide()?.recipe)
    }

    /// The recipe for a device, where transforms come to their data so, and what there was to
    /// choose from. Collective.
    #[cfg(feature = "cuda")]
    pub(crate) fn decide_for_device(
        mut self,
        access: Access,
        by_clock: ByClock<'_>,
    ) -> Result<Decision, Error> {
        let known = match self.tune {
            Tune::Wisdom(_) => Err(Error::argument(
                "tuning of a plan on a device",
                format!("{:?}", self.tune),
                "Tune::Model, Tune::Measure or Tune::Recipe",
            )),
            _ if self.memory != Memory::default() => Err(Error::argument(
                "memory of a plan on a device",
                format!("{:?}", self.memory),
                format!("{:?}", Memory::default()),
            )),
            _ => Ok(()),
        };
        fft_core::agree(self.comm, known)?;
        self.access = access;
        self.exchange = self.exchange.or(Some(Algorithm::P2p));
        self.decide_by(by_clock)
    }

    /// Points along each axis, where it is one transform of complex numbers, but perhaps for the
    /// last axis, of three axes at most.
    #[cfg(feature = "cuda")]
    pub(crate) fn complex_lens(&self) -> Option<PerAxis<usize>> {
        let axes = self.grid.axes();
        let complex = |axis: usize| {
            self.kinds[axis] == Kind::C2C || axis + 1 == axes && self.kinds[axis] == Kind::R2C
        };
        (self.howmany == 1 && axes <= 3 && (0..axes).all(complex)).then(|| self.grid.shape())
    }

    /// Whose draft it is.
    #[cfg(feature = "cuda")]
    pub(crate) fn comm(&self) -> &'a dyn Comm {
        self.comm
    }

    /// What the data is made of.
    #[cfg(feature = "cuda")]
    pub(crate) fn types(&self) -> (DynTransform, Precision) {
        (self.transform, self.precision)
    }

    /// The recipe, and what there was to choose from. Collective.
    fn decide(&self) -> Result<Decision, Error> {
        self.decide_by(&|problem, wanted, budget| by_clock(self.comm, problem, wanted, budget))
    }

    fn decide_by(&self, by_clock: ByClock<'_>) -> Result<Decision, Error> {
        let nobody = |_| ();
        let wanted = Wanted {
            tune: &self.tune,
            exchange: self.exchange,
            fixed: self.wire.is_some(),
            watch: self.watch.as_deref().unwrap_or(&nobody),
        };
        decide(self.comm, self.problem()?, &wanted, by_clock)
    }

    /// What is to be done, once all ranks have told their bricks and agree on the rest. Collective.
    fn problem(&self) -> Result<Problem, Error> {
        // A rank that has left is on_progress of before anything is gathered.
        fft_core::agree(self.comm, self.has_axes_of_grid())?;
        let drafts = self.gather()?;
        self.compare(&drafts)?;
        if self.wires.len() > MAX_WIRES {
            let (found, expected) = (self.wires.len(), format!("at most {MAX_WIRES}"));
            return Err(Error::argument("reshapes with wires of their own", found, expected));
        }
        let layout = |grid: DynGrid, side: usize| {
            let brick = |draft: &Words| brick_of(grid.axes(), draft, side);
            let bricks: Vec<_> = drafts.iter().map(brick).collect();
            Layout::new(grid, bricks, self.comm.size())?.ordered(self.orders[side])
        };
        let (input, output) = (layout(self.grid, 0)?, layout(self.spectral_grid(), 1)?);
        let complex = self.transform.is_complex();
        let complex_spectrum = self.transform.has_complex_spectrum();
        let mut problem = Problem::new(self.kinds, complex, self.precision, input, output)?;
        if problem.complex_spectrum() != complex_spectrum {
            let list: Vec<_> = self.kinds.iter().map(|kind| kind.name()).collect();
            let list = list.join(", ");
            let expected = if complex_spectrum { "one axis of kind r2c" } else { "no r2c" };
            return Err(Error::argument("kinds", list, expected));
        }
        if self.howmany == 0 {
            return Err(Error::argument("howmany", 0, "at least 1"));
        }
        problem.howmany = self.howmany;
        [problem.forward, problem.inverse] = self.scales;
        problem.exchange = self.exchange.unwrap_or_default();
        if let Some(machine) = &self.machine {
            problem.machine = machine.clone();
        }
        problem.tolerance = self.tolerated();
        problem.wire = self.wire.unwrap_or(match self.tolerance {
            Some(_) => Wire::Tolerance,
            None => Wire::Raw,
        });
        problem.wires.clone_from(&self.wires);
        problem.access = self.access;
        problem.memory = self.memory;
        problem.shared_arrays = self.shared_arrays;
        if !self.everywhere {
            problem.hosts = (0..self.comm.size()).map(|rank| self.comm.host(rank)).collect();
        }
        Ok(problem)
    }

    /// Whether all that is said for each axis is said for as many axes as the grid has.
    pub(crate) fn has_axes_of_grid(&self) -> Result<(), Error> {
        let axes = self.grid.axes();
        let bricks = [self.input, self.output].into_iter().flatten();
        let orders = self.orders.iter().map(|order| ("axes of an order", order.len()));
        let kinds = [("axes with a kind", self.kinds.len())];
        let ends = bricks.flat_map(|brick| [brick.lo.len(), brick.hi.len()]);
        let said = ends.map(|axes| ("axes of a brick", axes)).chain(orders).chain(kinds);
        match said.into_iter().find(|(_, found)| *found != axes) {
            Some((what, found)) => Err(Error::argument(what, found, axes)),
            None => Ok(()),
        }
    }

    /// As [`Draft::build`](crate::Draft::build). Collective.
    ///
    /// # Errors
    /// Those of [`DynDraft::recipe`], and [`Error::OnRank`] when a rank lacks memory or the
    /// transport fails.
    pub fn build(mut self) -> Result<DynPlan, Error> {
        match DynPlan::bind_chosen(self.comm, self.decide()?) {
            Err(error) if error.kind() == ErrorKind::SharedMemory => {
                if self.comm.rank() == 0 {
                    NOT_SHARED
                        .call_once(|| log::warn!("messages instead of shared memory: {error}"));
                }
                (self.exchange, self.tune) = (Some(Algorithm::Pipelined), Tune::Model);
                DynPlan::bind_chosen(self.comm, self.decide()?)
            }
            made => made,
        }
    }
}

/// Said once in a process.
static NOT_SHARED: Once = Once::new();
