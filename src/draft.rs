//! Options of a plan that is still to be made.

mod compare;

use std::marker::PhantomData;
use std::sync::{Arc, Once};

use fft_comm::tuner::Progress;
use fft_core::{
    Access, Algorithm, Brick, Comm, Element, Error, ErrorKind, Grid, Kind, Layout, Machine, Memory,
    Problem, Real, Recipe, Scale, Tolerance, Wire,
};

use crate::tune::{ByClock, Decision, Wanted, by_clock, decide};
use crate::{Plan, Transform, Tune};
use compare::{MAX_WIRES, Words, brick_of};

/// A plan in the making: options, nothing checked, nothing sent. [`Draft::build`] makes the plan.
///
/// Every rank drafts the same transform, each with its own bricks.
///
/// ```
/// use thriffty::{Grid, Plan, R2c};
/// thriffty::threads(2, |world| {
///     let draft = Plan::r2c(&world, Grid::new([8, 8])?);
///     let mut plan: Plan<R2c, 2> = draft.build()?;
///     plan.forward_into(&[1.0; 32], &mut vec![Default::default(); plan.output_len()])
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
/// A draft cannot be executed:
/// ```compile_fail,E0599
/// use thriffty::{Grid, Plan, R2c};
/// thriffty::threads(2, |world| {
///     let draft = Plan::<R2c, 2>::r2c(&world, Grid::new([8, 8])?);
///     draft.forward_into(&[1.0; 32], &mut vec![Default::default(); 20])
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
#[must_use = "a draft does nothing until it is built"]
pub struct Draft<'a, K: Transform, const D: usize> {
    comm: &'a dyn Comm,
    grid: Grid<D>,
    kinds: [Kind; D],
    input: Option<Brick<D>>,
    output: Option<Brick<D>>,
    orders: [[usize; D]; 2],
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
    transform: PhantomData<K>,
}

impl<'a, K: Transform, const D: usize> Draft<'a, K, D> {
    /// Drafts a transform of the grid over the ranks of `comm`, with the kinds of its family: what [`Plan::c2c`],
    /// [`Plan::r2c`] and [`Plan::r2r`] do, for code that is written once for all of them.
    pub fn new(comm: &'a dyn Comm, grid: Grid<D>) -> Self {
        Self {
            comm,
            grid,
            kinds: K::kinds(),
            input: None,
            output: None,
            orders: [std::array::from_fn(|axis| axis); 2],
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
            transform: PhantomData,
        }
    }

    /// The part of physical data that this rank holds; [`Grid::brick`] by default. The bricks of all ranks
    /// must tile the grid; [`Brick::EMPTY`] is to hold nothing.
    pub fn input_brick(mut self, brick: Brick<D>) -> Self {
        self.input = Some(brick);
        self
    }

    /// The part of spectral data that this rank gets; [`Grid::brick`] of [`Draft::spectral_grid`] by
    /// default.
    pub fn output_brick(mut self, brick: Brick<D>) -> Self {
        self.output = Some(brick);
        self
    }

    /// The order of axes in memory of physical data, slowest first; row-major by default.
    pub fn input_order(mut self, order: [usize; D]) -> Self {
        self.orders[0] = order;
        self
    }

    /// The order of axes in memory of spectral data, slowest first; row-major by default.
    pub fn output_order(mut self, order: [usize; D]) -> Self {
        self.orders[1] = order;
        self
    }

    /// What is done along each axis.
    pub fn kinds(mut self, kinds: [Kind; D]) -> Self {
        self.kinds = kinds;
        self
    }

    /// So many equal transforms at once, their arrays one after the other in memory; they share messages, and a tolerance,
    /// which is one for all of them together.
    pub fn howmany(mut self, howmany: usize) -> Self {
        self.howmany = howmany;
        self
    }

    /// What results are multiplied by; [`Scale::None`] forward and [`Scale::Full`] inverse by default.
    pub fn scale(mut self, forward: Scale, inverse: Scale) -> Self {
        self.scales = [forward, inverse];
        self
    }

    /// How data travels; chosen with the recipe ([`Draft::tune`]) by default.
    pub fn exchange(mut self, exchange: Algorithm) -> Self {
        self.exchange = Some(exchange);
        self
    }

    /// How much memory the plan, which is not on a device, takes beside input and output: [`Memory::Ample`] by default. With
    /// [`Memory::Least`] messages go in rounds, between which the network rests, and lines that lie far apart are transformed by few
    /// at a time.
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = memory;
        self
    }

    /// Promises that all data is in memory which the ranks of a host share: in fields, or their slices, of
    /// [`Plan::shared_input`] and [`Plan::shared_output`]. Under MPI processes then read and write it where it is,
    /// and it need not be brought to a window and back: a pass over memory less, or two. Complex data that ends where it
    /// began takes hardly any memory beside on a host; real data once the data. Threads reach all memory anyway. On a device the fields are those
    /// of `DevicePlan::shared_input` and `shared_output`; there `Tune::Measure` has arrays for each recipe that it compares.
    ///
    /// ```
    /// use thriffty::{C2c, Complex, Grid, Plan};
    /// thriffty::threads(2, |world| {
    ///     let draft = Plan::<C2c>::c2c(&world, Grid::new([8, 8, 8])?);
    ///     let mut plan = draft.shared_arrays().build()?;
    ///     let (mut x, mut y) = (plan.shared_input()?, plan.shared_output()?);
    ///     x.fill(|_| Complex::new(1.0, 0.0));
    ///     plan.forward_into(x.as_slice(), y.as_mut_slice())?;
    ///     plan.forward(x).map(|z| assert_eq!(y.as_slice(), z.as_slice()))
    /// })?;
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    pub fn shared_arrays(mut self) -> Self {
        self.shared_arrays = true;
        self
    }

    /// How the recipe is chosen; [`Tune::Model`] by default.
    pub fn tune(mut self, tune: Tune) -> Self {
        self.tune = tune;
        self
    }

    /// The machine that the model reckons with, the same on all ranks; [`Machine::default`] unless told otherwise. See
    /// [`calibrated`](crate::calibrated) for how to get that of these ranks.
    ///
    /// ```
    /// use thriffty::{C2c, Grid, Machine, Plan};
    /// let mut slow = Machine::default();
    /// slow.memory.value /= 4.0;
    /// let seconds = thriffty::threads(2, |world| {
    ///     let predict = |machine: &Machine| {
    ///         let draft = Plan::<C2c>::c2c(&world, Grid::new([32, 32, 32])?);
    ///         Ok::<_, thriffty::Error>(draft.machine(machine.clone()).recipe()?.predict().seconds)
    ///     };
    ///     Ok::<_, thriffty::Error>([predict(&Machine::default())?, predict(&slow)?])
    /// })?;
    /// assert!(seconds[0][0] < seconds[0][1]);
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(Arc::new(machine));
        self
    }

    /// Calls this on every rank before each turn of [`Tune::Measure`], to show how far it is.
    pub fn watch(mut self, news: impl Fn(Progress) + 'a) -> Self {
        self.watch = Some(Box::new(news));
        self
    }

    /// What the whole transform may lose when its messages are encoded: the library sends the bits that this takes. Nothing
    /// by default. [`Plan::last_error`] tells what was lost.
    ///
    /// ```
    /// use thriffty::{Grid, Plan, R2c, Tolerance};
    /// thriffty::threads(4, |world| {
    ///     let draft = Plan::<R2c>::r2c(&world, Grid::new([16, 16, 16])?).wire_everywhere();
    ///     let mut plan = draft.tolerance(Tolerance::relative(1e-6)?).build()?;
    ///     let mut x = plan.input();
    ///     x.fill(|[i, j, k]| ((i * j) as f64).cos() + (k as f64).sin());
    ///     let _spectrum = plan.forward(x)?;
    ///     let lost = plan.last_error().expect("a tolerance was given");
    ///     assert!(lost.estimate < 1e-6);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = Some(tolerance);
        self
    }

    /// Makes the tolerance one that is kept whatever the data: see [`Tolerance::strict`]. Nothing without a tolerance.
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// The tolerance, with everything that has been said of it.
    fn tolerated(&self) -> Option<Tolerance> {
        self.tolerance.map(|tolerance| if self.strict { tolerance.strict() } else { tolerance })
    }

    /// How messages to other hosts are represented: by default as they are in memory, or as
    /// [`Wire::Tolerance`] where there is a tolerance.
    pub fn wire(mut self, wire: Wire) -> Self {
        self.wire = Some(wire);
        self
    }

    /// How messages of one reshape are represented, by its number in the recipe of the forward transform, from 0 on. The
    /// inverse has the same reshapes in reverse. A tolerance governs the reshapes whose wire is [`Wire::Tolerance`]; what
    /// others lose comes on top, and a strict one does not go with them.
    pub fn wire_of(mut self, reshape: usize, wire: Wire) -> Self {
        self.wires.push((reshape, wire));
        self
    }

    /// Treats all ranks as if each were on a host of its own: all data that changes ranks is sent, and encoded. To study
    /// what that does.
    pub fn wire_everywhere(mut self) -> Self {
        self.everywhere = true;
        self
    }

    /// The grid of spectral data: the axis of kind R2C has `n/2 + 1` points.
    pub fn spectral_grid(&self) -> Grid<D> {
        Problem::spectral_grid(self.grid, self.kinds)
    }

    /// The recipe that [`Draft::build`] would bind. Collective: every rank gets the same. [`Tune::Measure`] measures for
    /// it.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Disagreement`] when they were given different options;
    /// [`Error::Overlap`], [`Error::Gap`], [`Error::OutOfRange`] when the bricks do not tile the grids;
    /// [`Error::Order`], [`Error::Argument`] or [`Error::TooLarge`].
    pub fn recipe(&self) -> Result<Recipe<D>, Error> {
        Ok(self.decide()?.recipe)
    }

    /// The recipe for a device, where transforms come to their data so, and what there was to choose from. Collective.
    #[cfg(feature = "cuda")]
    pub(crate) fn decide_for_device(
        mut self,
        access: Access,
        by_clock: ByClock<'_, D>,
    ) -> Result<Decision<D>, Error> {
        let known = match self.tune {
            Tune::Wisdom(_) => Err(Error::argument(
                "tuning of a plan on a device",
                format!("{:?}", self.tune),
                "Tune::Model, Tune::Measure or Tune::Exact",
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

    /// Points along each axis, where it is one transform of complex numbers, but perhaps for the last axis, of three axes at most.
    #[cfg(feature = "cuda")]
    pub(crate) fn complex_lens(&self) -> Option<[usize; D]> {
        let complex = |axis: usize| {
            self.kinds[axis] == Kind::C2C || axis + 1 == D && self.kinds[axis] == Kind::R2C
        };
        (self.howmany == 1 && D <= 3 && (0..D).all(complex)).then(|| self.grid.shape())
    }

    /// Whose draft it is.
    #[cfg(feature = "cuda")]
    pub(crate) fn comm(&self) -> &'a dyn Comm {
        self.comm
    }

    /// The recipe, and what there was to choose from. Collective.
    fn decide(&self) -> Result<Decision<D>, Error> {
        self.decide_by(&|problem, wanted, budget| {
            by_clock::<K::Real, D>(self.comm, problem, wanted, budget)
        })
    }

    fn decide_by(&self, by_clock: ByClock<'_, D>) -> Result<Decision<D>, Error> {
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
    fn problem(&self) -> Result<Problem<D>, Error> {
        // A rank that has left is heard of before anything is gathered.
        fft_core::agree(self.comm, Ok(()))?;
        let drafts = self.gather()?;
        self.compare(&drafts)?;
        if self.wires.len() > MAX_WIRES {
            let (found, expected) = (self.wires.len(), format!("at most {MAX_WIRES}"));
            return Err(Error::argument("reshapes with wires of their own", found, expected));
        }
        let layout = |grid, side: usize| {
            let brick = |draft: &Words| brick_of(draft, side);
            let bricks = drafts.iter().map(brick).collect();
            Layout::new(grid, bricks, self.comm.size())?.ordered(self.orders[side])
        };
        let (input, output) = (layout(self.grid, 0)?, layout(self.spectral_grid(), 1)?);
        let complex = K::Physical::WIDTH == 2;
        let complex_spectrum = K::Spectral::WIDTH == 2;
        let precision = K::Real::PRECISION;
        let mut problem = Problem::new(self.kinds, complex, precision, input, output)?;
        if problem.complex_spectrum() != complex_spectrum {
            let list = self.kinds.map(Kind::name).join(", ");
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

    /// Makes the plan. Collective; the same `Ok` or error on every rank. Where the ranks of a host cannot share as much
    /// memory as [`Algorithm::Shared`] needs, they exchange messages, and it is said once in a warning.
    ///
    /// # Errors
    /// Those of [`Draft::recipe`], and [`Error::OnRank`] when a rank lacks memory or the transport fails.
    pub fn build(mut self) -> Result<Plan<K, D>, Error> {
        match Plan::bind_chosen(self.comm, self.decide()?) {
            Err(error) if error.kind() == ErrorKind::SharedMemory => {
                if self.comm.rank() == 0 {
                    NOT_SHARED
                        .call_once(|| log::warn!("messages instead of shared memory: {error}"));
                }
                (self.exchange, self.tune) = (Some(Algorithm::Pipelined), Tune::Model);
                Plan::bind_chosen(self.comm, self.decide()?)
            }
            made => made,
        }
    }
}

/// Said once in a process.
static NOT_SHARED: Once = Once::new();
