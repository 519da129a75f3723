//! A plan in the making.

use std::fmt;
use std::marker::PhantomData;

use bytemuck::{cast_slice, cast_slice_mut};
use fft_core::{
    Brick, Comm, Complex, Direction, Element, Ends, Error, Grid, Kind, Layout, Norm, Real, Recipe,
    check_axes,
};

use super::dyn_draft::DynDraft;
use super::dyn_plan::DynPlan;
use super::plan::Plan;
#[cfg(feature = "cuda")]
use crate::bound::DeviceOptions;
#[cfg(feature = "cuda")]
use crate::field::Device;
use crate::field::{C2c, Host, Location, R2c, R2r, Transform};
use crate::options::{Options, options_table, setters};
use crate::tuning::Progress;

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
    Draft::of_shape(Some(comm), shape)
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
    Draft::of_shape(Some(comm), shape)
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
    Draft::of_shape(Some(comm), shape).kinds(kinds)
}

/// A plan in the making: options, nothing checked, nothing sent. [`Draft::build`] makes the plan.
///
/// Every rank drafts the same transform, each with its own bricks. The methods set [`Options`].
///
/// ```
/// use thriffty::Tolerance;
/// thriffty::threads(4, |world| {
///     let draft = thriffty::r2c(&world, [16, 16, 16]).norm("ortho".parse()?);
///     let mut plan = draft.tolerance(Tolerance::relative(1e-6)?).build()?;
///     plan.forward(plan.input())
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "a draft does nothing until it is built"]
pub struct Draft<'a, K: Transform, const D: usize, L: Location = Host> {
    draft: DynDraft<'a>,
    types: PhantomData<fn() -> (K, L)>,
}

/// The constructor of a family's plans in either precision, and the change of precision. The bounds
/// are the family's, for numbers `T` and `U`.
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
    /// Drafts the transform `K` with its default kinds, for code that is generic in `K`.
    pub fn new(comm: &'a dyn Comm, grid: Grid<D>) -> Self {
        Self::of(DynDraft::new(comm, grid, K::DYN, K::Real::PRECISION))
    }

    fn of_shape(comm: Option<&'a dyn Comm>, shape: [usize; D]) -> Self {
        Self::of(DynDraft::of_shape(comm, shape, K::DYN, K::Real::PRECISION))
    }

    /// Drafts the transform `K` by this process alone, in its precision, with its default kinds:
    /// see [`local`](crate::local).
    ///
    /// ```
    /// use thriffty::{C2c, Draft};
    /// let plan = Draft::<C2c<f32>, 1>::local([100]).build()?;
    /// assert_eq!((plan.input_bytes(), plan.threads()), (800, 1));
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there are not 1 to 4 axes.
    pub fn local(shape: [usize; D]) -> Draft<'static, K, D> {
        Draft::of_shape(None, shape)
    }

    /// Uses at most this number of threads for this rank. By default a rank of a communicator has
    /// one thread, and a [draft of this process alone](Draft::local) uses as many as are worth it,
    /// at most [`default_threads`](crate::local::default_threads).
    ///
    /// Threads share a rank's brick, cut along its slowest axis; ranks may have different numbers.
    /// A single rank uses fewer threads for short axes, and one for a single axis, unless its
    /// transform is complex. Only the calling thread communicates. Later calls must be made on the
    /// same thread, unless MPI has `MPI_THREAD_MULTIPLE`, or `MPI_THREAD_SERIALIZED` and a
    /// communicator that `MpiComm::from_raw` made. [`Draft::build`] refuses several threads if
    /// ranks are threads themselves, and transposed or cyclic data of several ranks with them.
    pub fn threads(mut self, threads: usize) -> Self {
        self.draft.threads = Some(threads);
        self
    }

    /// Transforms physical to spectral data of this process alone, by a plan that later calls with
    /// an equal draft use again: see [`DynDraft::run_once`].
    ///
    /// ```
    /// use thriffty::{Complex, local};
    /// let mut spectrum = [Complex::default(); 3];
    /// local::c2c([3]).forward_once(&[Complex::new(1.0, 0.0); 3], &mut spectrum)?;
    /// assert_eq!(spectrum[0].re, 3.0);
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`DynDraft::run_once`].
    pub fn forward_once(
        &self,
        input: &[K::Physical],
        output: &mut [K::Spectral],
    ) -> Result<(), Error> {
        self.draft.run_once(Direction::Forward, cast_slice(input), cast_slice_mut(output))
    }

    /// Transforms spectral to physical data, as [`Draft::forward_once`].
    ///
    /// # Errors
    /// The errors of [`DynDraft::run_once`].
    pub fn inverse_once(
        &self,
        input: &[K::Spectral],
        output: &mut [K::Physical],
    ) -> Result<(), Error> {
        self.draft.run_once(Direction::Inverse, cast_slice(input), cast_slice_mut(output))
    }

    /// Puts the plan's data on this rank's device. You can pass a reference to a
    /// [`Gpu`](crate::gpu::Gpu).
    #[cfg(feature = "cuda")]
    pub fn on(self, device: impl Into<DeviceOptions>) -> Draft<'a, K, D, Device> {
        Draft::of(self.draft.on(device))
    }
}

impl<'a, K: Transform, const D: usize, L: Location> Draft<'a, K, D, L> {
    pub(super) fn of(draft: DynDraft<'a>) -> Self {
        Self { draft, types: PhantomData }
    }

    /// Changes any of the options.
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.draft.options);
        self
    }

    #[cfg(feature = "cuda")]
    pub(super) fn dyn_mut(&mut self) -> &mut DynDraft<'a> {
        &mut self.draft
    }

    pub(super) fn into_dyn(self) -> DynDraft<'a> {
        self.draft
    }

    /// The current options.
    pub fn options(&self) -> &Options {
        &self.draft.options
    }

    /// Sets the part of physical data that this rank holds; by default [`Grid::brick`] or, where
    /// ranks share a single axis, a block that suits its factors. The bricks of all ranks must tile
    /// the grid; [`Brick::EMPTY`] holds nothing.
    pub fn input_brick(self, brick: Brick<D>) -> Self {
        self.with(|options| options.input = Some(brick.into()))
    }

    /// Sets the part of spectral data that this rank gets; by default [`Grid::brick`] of
    /// [`Draft::spectral_grid`], or a block as for physical data.
    pub fn output_brick(self, brick: Brick<D>) -> Self {
        self.with(|options| options.output = Some(brick.into()))
    }

    /// Copies the bricks and orders of axes of another plan's data, on both sides, and its padding
    /// and modes, so that spectra of both plans have the same layout.
    pub fn like(self, plan: &DynPlan) -> Self {
        self.with(|options| {
            let problem = plan.problem();
            // Strided layouts are even.
            let cyclic = |layout: &Layout| layout.is_strided().then(|| layout.strides());
            options.input_cyclic = cyclic(&problem.input);
            options.output_cyclic = cyclic(&problem.output);
            options.one_rank |= plan.recipe().problem().one_axis.is_none();
            options.input = (!problem.input.is_strided()).then(|| plan.input_brick());
            options.output = (!problem.output.is_strided()).then(|| plan.output_brick());
            options.input_order = Some(plan.input_order());
            options.output_order = Some(plan.output_order());
            (options.transposed_input, options.transposed_output) = (false, false);
            (options.zero_padded, options.modes) = (Some(problem.zero_padded), Some(problem.modes));
        })
    }

    /// Sets the scales of both directions by NumPy's names; [`Norm::Backward`] by default.
    pub fn norm(self, norm: Norm) -> Self {
        let [forward, inverse] = norm.scales();
        self.forward_scale(forward).inverse_scale(inverse)
    }

    options_table!(setters);

    /// Sets the kinds whose waves fulfil boundary conditions, one for each axis. If real data has a
    /// complex spectrum, the last periodic axis is of kind R2C.
    ///
    /// ```
    /// use thriffty::{Ends, Kind};
    /// thriffty::threads(2, |world| {
    ///     let draft = thriffty::r2c(&world, [8, 8, 6]);
    ///     let plan = draft.ends([Ends::Periodic, Ends::Periodic, Ends::Neumann]).build()?;
    ///     assert_eq!(plan.recipe().problem().kinds[..], [Kind::C2C, Kind::R2C, Kind::Dct2]);
    ///     Ok::<(), thriffty::Error>(())
    /// })?;
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    pub fn ends(self, ends: [Ends; D]) -> Self {
        self.kinds(ends.map(Ends::kind))
    }

    /// Calls this on every rank before each turn of [`Tuning::Measure`](crate::Tuning::Measure),
    /// unless ranks have several threads or the plan is of [this process alone](Draft::local).
    pub fn watch(self, news: impl Fn(Progress) + 'a) -> Self {
        Self::of(self.draft.watch(news))
    }

    /// The grid of spectral data: the axis of kind R2C has `n/2 + 1` points, of n modes.
    pub fn spectral_grid(&self) -> Grid<D> {
        self.draft.spectral_grid().typed()
    }

    /// The recipe that [`Draft::build`] would bind if each rank had one thread. Collective: every
    /// rank gets the same. With [`Tuning::Measure`](crate::Tuning::Measure) it measures.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Disagreement`] when the ranks have different options;
    /// [`Error::Geometry`] when the bricks do not tile the grids; [`Error::Argument`] or
    /// [`Error::TooLarge`].
    pub fn recipe(&self) -> Result<Recipe, Error> {
        self.draft.recipe()
    }

    /// Makes the plan. Collective; the same `Ok` or error on every rank.
    ///
    /// If the ranks of a host cannot share as much memory as the exchange `shared` needs, they
    /// exchange messages, with one warning.
    ///
    /// # Errors
    /// The errors of [`Draft::recipe`]; [`Error::OnRank`] when a rank lacks memory, or the
    /// transport or the driver fails. On a device also [`Error::Argument`] for least memory and for
    /// a transport that is not available.
    pub fn build(self) -> Result<Plan<K, D, L>, Error> {
        self.draft.build().map(Plan::of)
    }
}

impl<K: Transform, const D: usize, L: Location> fmt::Debug for Draft<'_, K, D, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.draft.fmt(f)
    }
}
