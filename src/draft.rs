//! Options of a plan that is still to be made.

use std::marker::PhantomData;

use fft_comm::tuner::Progress;
use fft_core::{
    Algorithm, Brick, Comm, Error, Grid, Kind, Machine, Memory, Real, Recipe, Scale, Tolerance,
    Wire,
};

use crate::{DynDraft, Plan, Transform, Tune};

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
    draft: DynDraft<'a>,
    transform: PhantomData<fn() -> K>,
}

impl<'a, K: Transform, const D: usize> Draft<'a, K, D> {
    /// Drafts a transform of the grid over the ranks of `comm`, with the kinds of its family: what [`Plan::c2c`],
    /// [`Plan::r2c`] and [`Plan::r2r`] do, for code that is written once for all of them.
    pub fn new(comm: &'a dyn Comm, grid: Grid<D>) -> Self {
        let draft = DynDraft::new(comm, grid, K::DYN, K::Real::PRECISION);
        Self { draft, transform: PhantomData }
    }

    /// The same draft with an option changed.
    fn with(self, change: impl FnOnce(DynDraft<'a>) -> DynDraft<'a>) -> Self {
        Self { draft: change(self.draft), ..self }
    }

    /// The part of physical data that this rank holds; [`Grid::brick`] by default. The bricks of all ranks
    /// must tile the grid; [`Brick::EMPTY`] is to hold nothing.
    pub fn input_brick(self, brick: Brick<D>) -> Self {
        self.with(|draft| draft.input_brick(brick))
    }

    /// The part of spectral data that this rank gets; [`Grid::brick`] of [`Draft::spectral_grid`] by
    /// default.
    pub fn output_brick(self, brick: Brick<D>) -> Self {
        self.with(|draft| draft.output_brick(brick))
    }

    /// The order of axes in memory of physical data, slowest first; row-major by default.
    pub fn input_order(self, order: [usize; D]) -> Self {
        self.with(|draft| draft.input_order(order))
    }

    /// The order of axes in memory of spectral data, slowest first; row-major by default.
    pub fn output_order(self, order: [usize; D]) -> Self {
        self.with(|draft| draft.output_order(order))
    }

    /// What is done along each axis.
    pub fn kinds(self, kinds: [Kind; D]) -> Self {
        self.with(|draft| draft.kinds(kinds))
    }

    /// So many equal transforms at once, their arrays one after the other in memory; they share messages, and a tolerance,
    /// which is one for all of them together.
    pub fn howmany(self, howmany: usize) -> Self {
        self.with(|draft| draft.howmany(howmany))
    }

    /// What results are multiplied by; [`Scale::None`] forward and [`Scale::Full`] inverse by default.
    pub fn scale(self, forward: Scale, inverse: Scale) -> Self {
        self.with(|draft| draft.scale(forward, inverse))
    }

    /// How data travels; chosen with the recipe ([`Draft::tune`]) by default.
    pub fn exchange(self, exchange: Algorithm) -> Self {
        self.with(|draft| draft.exchange(exchange))
    }

    /// How much memory the plan, which is not on a device, takes beside input and output: [`Memory::Ample`] by default. With
    /// [`Memory::Least`] messages go in rounds, between which the network rests, and lines that lie far apart are transformed by few
    /// at a time.
    pub fn memory(self, memory: Memory) -> Self {
        self.with(|draft| draft.memory(memory))
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
    pub fn shared_arrays(self) -> Self {
        self.with(|draft| draft.shared_arrays())
    }

    /// How the recipe is chosen; [`Tune::Model`] by default.
    pub fn tune(self, tune: Tune) -> Self {
        self.with(|draft| draft.tune(tune))
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
    pub fn machine(self, machine: Machine) -> Self {
        self.with(|draft| draft.machine(machine))
    }

    /// Calls this on every rank before each turn of [`Tune::Measure`], to show how far it is.
    pub fn watch(self, news: impl Fn(Progress) + 'a) -> Self {
        self.with(|draft| draft.watch(news))
    }

    /// What the whole transform may lose when its messages are encoded: the library sends the bits that this takes. Nothing
    /// by default. [`Plan::wire_error`] tells what was lost.
    ///
    /// ```
    /// use thriffty::{Grid, Plan, R2c, Tolerance};
    /// thriffty::threads(4, |world| {
    ///     let draft = Plan::<R2c>::r2c(&world, Grid::new([16, 16, 16])?).ignore_shared_memory();
    ///     let mut plan = draft.tolerance(Tolerance::relative(1e-6)?).build()?;
    ///     let mut x = plan.input();
    ///     x.fill(|[i, j, k]| ((i * j) as f64).cos() + (k as f64).sin());
    ///     let _spectrum = plan.forward(x)?;
    ///     let lost = plan.wire_error().expect("a tolerance was given");
    ///     assert!(lost.estimate < 1e-6);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    pub fn tolerance(self, tolerance: Tolerance) -> Self {
        self.with(|draft| draft.tolerance(tolerance))
    }

    /// Makes the tolerance one that is kept whatever the data: see [`Tolerance::strict`]. Nothing without a tolerance.
    pub fn strict(self) -> Self {
        self.with(|draft| draft.strict())
    }

    /// How messages to other hosts are represented: by default as they are in memory, or as
    /// [`Wire::Tolerance`] where there is a tolerance.
    pub fn wire(self, wire: Wire) -> Self {
        self.with(|draft| draft.wire(wire))
    }

    /// How messages of one reshape are represented, by its number in the recipe of the forward transform, from 0 on. The
    /// inverse has the same reshapes in reverse. A tolerance governs the reshapes whose wire is [`Wire::Tolerance`]; what
    /// others lose comes on top, and a strict one does not go with them.
    pub fn wire_of(self, reshape: usize, wire: Wire) -> Self {
        self.with(|draft| draft.wire_of(reshape, wire))
    }

    /// Treats all ranks as if each were on a host of its own: all data that changes ranks is sent, and encoded. To study
    /// what that does.
    pub fn ignore_shared_memory(self) -> Self {
        self.with(|draft| draft.ignore_shared_memory())
    }

    /// The grid of spectral data: the axis of kind R2C has `n/2 + 1` points.
    pub fn spectral_grid(&self) -> Grid<D> {
        self.draft.spectral_grid().typed()
    }

    /// The recipe that [`Draft::build`] would bind. Collective: every rank gets the same. [`Tune::Measure`] measures for
    /// it.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Disagreement`] when they were given different options;
    /// [`Error::Geometry`] when the bricks do not tile the grids;
    /// [`Error::Argument`] or [`Error::TooLarge`].
    pub fn recipe(&self) -> Result<Recipe, Error> {
        self.draft.recipe()
    }

    /// The same draft without its types.
    #[cfg(feature = "cuda")]
    pub(crate) fn erased(self) -> DynDraft<'a> {
        self.draft
    }

    /// Makes the plan. Collective; the same `Ok` or error on every rank. Where the ranks of a host cannot share as much
    /// memory as [`Algorithm::Shared`] needs, they exchange messages, and it is said once in a warning.
    ///
    /// # Errors
    /// Those of [`Draft::recipe`], and [`Error::OnRank`] when a rank lacks memory or the transport fails.
    pub fn build(self) -> Result<Plan<K, D>, Error> {
        self.draft.build().map(Plan::of)
    }
}
