//! A plan in the making.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use fft_comm::tuner::Progress;
use fft_core::{
    Algorithm, Brick, Comm, Complex, Element, Error, Family, Grid, Kind, Machine, Memory, Real,
    Recipe, Scale, Tolerance, Wire, check_axes,
};

use super::dyn_draft::DynDraft;
use super::dyn_plan::DynPlan;
use super::norm::Norm;
use super::options::Options;
use super::plan::Plan;
#[cfg(feature = "cuda")]
use crate::bound::DeviceOptions;
#[cfg(feature = "cuda")]
use crate::field::Device;
use crate::field::{C2c, Host, Location, R2c, R2r, Transform};
use crate::tuning::Tune;

/// Drafts a complex transform over the ranks of `comm`, in double precision. Shapes have 1 to 4
/// axes; others do not compile.
///
/// ```
/// use thriffty::Complex;
/// thriffty::threads(2, |world| {
///     let mut plan = thriffty::c2c(&world, [6, 10]).build()?;
///     let mut x = plan.input();
///     x.fill(|_| Complex::new(1.0, 0.0));
///     let y = plan.forward(x)?;
///     if y.brick().lo == [0, 0] {
///         assert_eq!(y[[0, 0]].re, 60.0); // the sum over all points
///     }
///     Ok::<(), thriffty::Error>(())
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
/// ```
/// thriffty::threads(2, |world| thriffty::c2c(&world, [4; 4]).build().map(drop))?;
/// # Ok::<(), thriffty::Error>(())
/// ```
/// ```compile_fail,E0080
/// thriffty::threads(2, |world| thriffty::c2c(&world, [4; 5]).build().map(drop))?;
/// # Ok::<(), thriffty::Error>(())
/// ```
pub fn c2c<const D: usize>(comm: &dyn Comm, shape: [usize; D]) -> Draft<'_, C2c, D> {
    const { check_axes(D) };
    Draft::of_shape(comm, shape)
}

/// Drafts a transform of real data over the ranks of `comm`, in double precision: the last axis is
/// halved to its `n/2 + 1` non-negative frequencies, unless [`Draft::kinds`] chooses another.
///
/// ```
/// thriffty::threads(2, |world| {
///     let mut plan = thriffty::r2c(&world, [8, 8]).precision::<f32>().build()?;
///     let spectrum = plan.forward(plan.input())?;
///     assert_eq!(spectrum.brick().shape()[1], 5);
///     Ok::<(), thriffty::Error>(())
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
pub fn r2c<const D: usize>(comm: &dyn Comm, shape: [usize; D]) -> Draft<'_, R2c, D> {
    const { check_axes(D) };
    Draft::of_shape(comm, shape)
}

/// Drafts cosine and sine transforms of real data over the ranks of `comm`, one kind for each axis,
/// in double precision.
///
/// ```
/// use thriffty::Kind;
/// thriffty::threads(2, |world| {
///     let mut plan = thriffty::r2r(&world, [8, 8], [Kind::Dct2, Kind::Dst2]).build()?;
///     plan.forward(plan.input())
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
pub fn r2r<const D: usize>(
    comm: &dyn Comm,
    shape: [usize; D],
    kinds: [Kind; D],
) -> Draft<'_, R2r, D> {
    const { check_axes(D) };
    Draft::of_shape(comm, shape).kinds(kinds)
}

/// A plan in the making: options, nothing checked, nothing sent. [`Draft::build`] makes the plan.
///
/// Every rank drafts the same transform, each with its own bricks. The methods set [`Options`].
///
/// ```
/// use thriffty::{Scale, Tolerance};
/// thriffty::threads(4, |world| {
///     let draft = thriffty::r2c(&world, [16, 16, 16]).scale(Scale::Symmetric, Scale::Symmetric);
///     let mut plan = draft.tolerance(Tolerance::relative(1e-6)?).build()?;
///     plan.forward(plan.input())
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
#[must_use = "a draft does nothing until it is built"]
pub struct Draft<'a, K: Transform, const D: usize, L: Location = Host> {
    draft: DynDraft<'a>,
    types: PhantomData<fn() -> (K, L)>,
}

/// The constructor of a family's plans in either precision, and the change of precision. The bounds
/// are those of the family for numbers `T` and `U`.
macro_rules! family {
    ($family:ident, $draft:ident, [$($t:tt)*], [$($u:tt)*], $what:literal) => {
        impl<T: Real, const D: usize> Plan<$family<T>, D> $($t)* {
            #[doc = $what]
            pub fn $draft(comm: &dyn Comm, grid: Grid<D>) -> Draft<'_, $family<T>, D> {
                Draft::new(comm, grid)
            }
        }

        impl<'a, T: Real, const D: usize> Draft<'a, $family<T>, D> $($t)* {
            /// The same transform of numbers of another precision.
            pub fn precision<U: Real>(self) -> Draft<'a, $family<U>, D> $($u)* {
                Draft::of(self.draft.with_precision(U::PRECISION))
            }
        }
    };
}

family!(
    C2c,
    c2c,
    [where Complex<T>: Element<Real = T>],
    [where Complex<U>: Element<Real = U>],
    "As [`c2c`](crate::c2c), in the precision of the plan's type."
);
family!(
    R2c,
    r2c,
    [where Complex<T>: Element<Real = T>],
    [where Complex<U>: Element<Real = U>],
    "As [`r2c`](crate::r2c), in the precision of the plan's type."
);
family!(
    R2r,
    r2r,
    [],
    [],
    "Cosine transforms (II), or those of [`Draft::kinds`], in the precision of the plan's type."
);

impl<'a, K: Transform, const D: usize> Draft<'a, K, D> {
    /// Drafts the transform that `K` names, with its usual kinds: for code that is generic in it.
    pub fn new(comm: &'a dyn Comm, grid: Grid<D>) -> Self {
        Self::of(DynDraft::new(comm, grid, K::DYN, K::Real::PRECISION))
    }

    fn of_shape(comm: &'a dyn Comm, shape: [usize; D]) -> Self {
        Self::of(DynDraft::of_shape(comm, shape, K::DYN, K::Real::PRECISION))
    }

    /// Drafts the plan for data on a device: this rank's. A reference to a
    /// [`Gpu`](crate::gpu::Gpu) will do.
    #[cfg(feature = "cuda")]
    pub fn on(self, device: impl Into<DeviceOptions>) -> Draft<'a, K, D, Device> {
        Draft::of(self.draft.on(device))
    }
}

impl<'a, K: Transform, const D: usize, L: Location> Draft<'a, K, D, L> {
    pub(super) fn of(draft: DynDraft<'a>) -> Self {
        Self { draft, types: PhantomData }
    }

    fn set(mut self, set: impl FnOnce(&mut Options)) -> Self {
        set(&mut self.draft.options);
        self
    }

    #[cfg(feature = "cuda")]
    pub(super) fn dyn_mut(&mut self) -> &mut DynDraft<'a> {
        &mut self.draft
    }

    pub(super) fn into_dyn(self) -> DynDraft<'a> {
        self.draft
    }

    /// The options as they are.
    pub fn options(&self) -> &Options {
        &self.draft.options
    }

    /// The part of physical data that this rank holds; [`Grid::brick`] by default. The bricks of
    /// all ranks must tile the grid; [`Brick::EMPTY`] holds nothing.
    pub fn input_brick(self, brick: Brick<D>) -> Self {
        self.set(|options| options.input = Some(brick.into()))
    }

    /// The part of spectral data that this rank gets; [`Grid::brick`] of [`Draft::spectral_grid`]
    /// by default.
    pub fn output_brick(self, brick: Brick<D>) -> Self {
        self.set(|options| options.output = Some(brick.into()))
    }

    /// The order of axes in memory of physical data, slowest first; row-major by default.
    pub fn input_order(self, order: [usize; D]) -> Self {
        self.set(|options| options.input_order = order.into())
    }

    /// The order of axes in memory of spectral data, slowest first; row-major by default.
    pub fn output_order(self, order: [usize; D]) -> Self {
        self.set(|options| options.output_order = order.into())
    }

    /// Transforms of these lengths: physical data is 0 beyond its grid, and the inverse discards
    /// that part. Zeros are neither sent nor transformed.
    ///
    /// For axes of kind C2C and R2C, and for messages that lose nothing. Frequencies and scales are
    /// those of the transform. On a device whole lines can take work memory, which
    /// [`DynPlan::workspace_bytes`] counts.
    ///
    /// ```
    /// use thriffty::{Complex, Kind};
    /// thriffty::threads(2, |world| {
    ///     let mut plan = thriffty::c2c(&world, [4, 4]).zero_padded([8, 4]).build()?;
    ///     assert_eq!(plan.recipe().problem().output.grid().shape(), [8, 4]);
    ///     let mut ones = plan.input();
    ///     ones.fill(|_| Complex::new(1.0, 0.0));
    ///     plan.forward(ones)
    /// })?;
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    pub fn zero_padded(self, transform: [usize; D]) -> Self {
        self.set(|options| options.transform = Some(transform.into()))
    }

    /// Keeps the lowest frequencies, as many as of a transform of these lengths: the spectral grid
    /// is that of such a transform, and physical data has more points. The inverse takes the others
    /// as 0. Of an even number of modes below the length, the middle one is 0.
    ///
    /// Products of fields on 3/2 as many points as modes have no aliases among the modes. As for
    /// [`Draft::zero_padded`], what is not kept is neither sent nor transformed further.
    pub fn modes(self, modes: [usize; D]) -> Self {
        self.set(|options| options.modes = Some(modes.into()))
    }

    /// Leaves spectral data in the bricks and the order of axes that cost least, for programs that
    /// work on spectra mode by mode. [`Plan::output_brick`] and
    /// [`DynPlan::output_order`](crate::planning::DynPlan::output_order) tell them.
    ///
    /// The model chooses them, before [`Tune`] chooses the recipe. Bricks and orders of the output
    /// are refused beside it.
    pub fn transposed_output(self) -> Self {
        self.set(|options| options.transposed_output = true)
    }

    /// Takes physical data in the bricks and the order of axes that cost least.
    /// [`arrays::FieldCopy`](crate::arrays::FieldCopy) brings it there, straight from a program's
    /// arrays. [`Plan::input_brick`] and
    /// [`DynPlan::input_order`](crate::planning::DynPlan::input_order) tell them.
    ///
    /// Bricks and orders of the input are refused beside it, as for [`Draft::transposed_output`].
    pub fn transposed_input(self) -> Self {
        self.set(|options| options.transposed_input = true)
    }

    /// The bricks and orders of axes of another plan's data, on both sides, and its padding and
    /// modes: spectra of both plans then have the same layout.
    pub fn like(self, plan: &DynPlan) -> Self {
        self.set(|options| {
            options.input = Some(plan.input_brick());
            options.output = Some(plan.output_brick());
            options.input_order = plan.input_order();
            options.output_order = plan.output_order();
            (options.transposed_input, options.transposed_output) = (false, false);
            let problem = plan.recipe().problem();
            (options.transform, options.modes) = (Some(problem.transform), Some(problem.modes));
        })
    }

    /// What is done along each axis.
    pub fn kinds(self, kinds: [Kind; D]) -> Self {
        self.set(|options| options.kinds = kinds.into())
    }

    /// So many equal transforms at once, their arrays one after the other in memory. They share
    /// messages, and one tolerance.
    pub fn batch(self, batch: usize) -> Self {
        self.set(|options| options.batch = batch)
    }

    /// What results are multiplied by: [`Scale::None`] forward and [`Scale::Full`] inverse by
    /// default.
    pub fn scale(self, forward: Scale, inverse: Scale) -> Self {
        self.set(|options| (options.forward, options.inverse) = (forward, inverse))
    }

    /// The scales of both directions by NumPy's names; [`Norm::Backward`] by default.
    pub fn norm(self, norm: Norm) -> Self {
        let [forward, inverse] = norm.scales();
        self.scale(forward, inverse)
    }

    /// How messages travel; chosen with the recipe by default.
    pub fn exchange(self, exchange: Algorithm) -> Self {
        self.set(|options| options.exchange = Some(exchange))
    }

    /// The layouts between input and output that the choice of a recipe considers;
    /// [`Family::Any`] by default. Recipes of [`Tune::Recipe`] and [`Tune::Wisdom`] have their own.
    pub fn layouts(self, layouts: Family) -> Self {
        self.set(|options| options.layouts = layouts)
    }

    /// How much memory a plan on the host takes beside input and output; [`Memory::Ample`] by
    /// default. With [`Memory::Least`] messages go in rounds, each of which ends before the next.
    pub fn memory(self, memory: Memory) -> Self {
        self.set(|options| options.memory = memory)
    }

    /// Promises that all arrays are those of [`Plan::shared_input`] and [`Plan::shared_output`], in
    /// memory that the ranks of a host share.
    ///
    /// MPI processes of a host then read and write each other's arrays directly, without copying
    /// them to a window. Threads and ranks that share a device see all memory anyway.
    pub fn shared_arrays(self) -> Self {
        self.set(|options| options.shared_arrays = true)
    }

    /// How the recipe is chosen; [`Tune::Model`] by default.
    pub fn tune(self, tune: Tune) -> Self {
        self.set(|options| options.tune = tune)
    }

    /// The machine of the model, the same on all ranks; [`Machine::default`] unless told otherwise.
    /// [`machine::load`](crate::machine::load) has that of these ranks.
    pub fn machine(self, machine: Machine) -> Self {
        self.set(|options| options.machine = Some(Arc::new(machine)))
    }

    /// Calls this on every rank before each turn of [`Tune::Measure`].
    pub fn watch(self, news: impl Fn(Progress) + 'a) -> Self {
        Self::of(self.draft.watch(news))
    }

    /// What the whole transform may lose by encoded messages; nothing by default. The library sends
    /// as few bits as that takes. [`DynPlan::wire_error`](crate::planning::DynPlan::wire_error)
    /// tells what was lost. Norms of half a spectrum are those of the whole, see [`Tolerance`].
    pub fn tolerance(self, tolerance: Tolerance) -> Self {
        self.set(|options| options.tolerance = Some(tolerance))
    }

    /// How messages to other hosts are encoded. By default they are not; with a tolerance, it is
    /// [`Wire::Tolerance`].
    pub fn wire(self, wire: Wire) -> Self {
        self.set(|options| options.wire = Some(wire))
    }

    /// Treats every rank as if it were on a host of its own: all data that changes ranks is sent,
    /// and encoded.
    pub fn ignore_shared_memory(self) -> Self {
        self.set(|options| options.ignore_shared_memory = true)
    }

    /// The grid of spectral data: the axis of kind R2C has `n/2 + 1` points, of n modes.
    pub fn spectral_grid(&self) -> Grid<D> {
        self.draft.spectral_grid().typed()
    }

    /// The recipe that [`Draft::build`] would bind. Collective: every rank gets the same.
    /// [`Tune::Measure`] measures for it.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Disagreement`] when they were given different options;
    /// [`Error::Geometry`] when the bricks do not tile the grids; [`Error::Argument`] or
    /// [`Error::TooLarge`].
    pub fn recipe(&self) -> Result<Recipe, Error> {
        self.draft.recipe()
    }

    /// Makes the plan. Collective; the same `Ok` or error on every rank.
    ///
    /// Where the ranks of a host cannot share as much memory as [`Algorithm::Shared`] needs, they
    /// exchange messages, with one warning.
    ///
    /// # Errors
    /// Those of [`Draft::recipe`]; [`Error::OnRank`] when a rank lacks memory, or the transport or
    /// the driver fails. On a device also [`Error::Argument`] for [`Memory::Least`] and a transport
    /// that is not there.
    pub fn build(self) -> Result<Plan<K, D, L>, Error> {
        self.draft.build().map(Plan::of)
    }
}

impl<K: Transform, const D: usize, L: Location> fmt::Debug for Draft<'_, K, D, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.draft.fmt(f)
    }
}
