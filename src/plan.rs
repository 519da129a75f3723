//! A plan: a recipe bound to a communicator and buffers.

use std::marker::PhantomData;
use std::path::Path;

use bytemuck::{cast_slice, cast_slice_mut};
use fft_comm::tuner::Report;
use fft_core::{
    Algorithm, Brick, Comm, Complex, Direction, Element, Error, Grid, Real, Recipe, Timings,
    WireError, agree,
};

use crate::field::{Field, Physical, Spectral};
use crate::part::Part;
use crate::{C2c, Draft, DynPlan, R2c, R2r, Transform};

/// A distributed transform, ready to run any number of times in both directions.
///
/// Made by [`Plan::c2c`], [`Plan::r2c`] or [`Plan::r2r`], options, and [`Draft::build`]. Data is this rank's
/// brick of the grid, row-major unless ordered otherwise, one array after the other for batches. Forward uses
/// `exp(-2πi jk/n)` and is unscaled, inverse divides by the number of points, unless told otherwise.
/// Frequencies are in natural order: 0, 1, ..., -2, -1.
///
/// Executing is collective, allocates nothing, and returns the same `Ok` or error on every rank. Dropping a plan is
/// collective, too, where ranks are MPI processes: communicators and windows are freed by all of them together. `K` is
/// [`C2c`], [`R2c`] or [`R2r`]; `D` the number of axes.
pub struct Plan<K: Transform = R2c, const D: usize = 3> {
    plan: DynPlan,
    transform: PhantomData<fn() -> K>,
}

impl<T: Real, const D: usize> Plan<C2c<T>, D>
where
    Complex<T>: Element<Real = T>,
{
    /// Drafts a complex transform of the grid over the ranks of `comm`.
    pub fn c2c(comm: &dyn Comm, grid: Grid<D>) -> Draft<'_, C2c<T>, D> {
        Draft::new(comm, grid)
    }
}

impl<T: Real, const D: usize> Plan<R2c<T>, D>
where
    Complex<T>: Element<Real = T>,
{
    /// Drafts a transform of real data: the last axis is halved to its `n/2 + 1` non-negative frequencies.
    /// [`Draft::kinds`] chooses another.
    pub fn r2c(comm: &dyn Comm, grid: Grid<D>) -> Draft<'_, R2c<T>, D> {
        Draft::new(comm, grid)
    }
}

impl<T: Real, const D: usize> Plan<R2r<T>, D> {
    /// Drafts a cosine transform (II) along every axis. [`Draft::kinds`] chooses others.
    pub fn r2r(comm: &dyn Comm, grid: Grid<D>) -> Draft<'_, R2r<T>, D> {
        Draft::new(comm, grid)
    }
}

impl<K: Transform, const D: usize> Plan<K, D> {
    /// Binds a recipe made by [`Draft::recipe`] on the same communicator. Collective.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Disagreement`] when the ranks have different recipes; [`Error::OnRank`]
    /// when the recipe is not for these types, axes or ranks, a rank lacks memory, or the transport
    /// fails.
    pub fn bind(comm: &dyn Comm, recipe: Recipe) -> Result<Self, Error> {
        let axes = recipe.problem().kinds.len();
        let fits = match axes == D {
            true => Ok(()),
            false => Err(Error::argument("axes of the recipe", axes, D)),
        };
        agree(comm, fits)?;
        DynPlan::bind_typed(comm, recipe, (K::DYN, K::Real::PRECISION)).map(Self::of)
    }

    /// A plan that is known to be for these types and axes.
    pub(crate) fn of(plan: DynPlan) -> Self {
        Self { plan, transform: PhantomData }
    }

    /// The same plan without its types.
    pub fn into_dyn(self) -> DynPlan {
        self.plan
    }

    /// How it is done.
    pub fn recipe(&self) -> &Recipe {
        self.plan.recipe()
    }

    /// What the recipe was chosen from: what the model expects of each candidate and, with
    /// [`Tune::Measure`](crate::Tune::Measure), the times of those that were run. The same on all ranks.
    pub fn report(&self) -> &Report {
        self.plan.report()
    }

    /// Remembers what was measured, for [`Tune::Wisdom`](crate::Tune::Wisdom): adds it to this file, or replaces what the
    /// file has of the same transform on the same machine. The file is replaced as a whole; one that cannot be read is
    /// begun anew, with a warning. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::Argument`] when nothing was measured for this plan; [`Error::OnRank`] when the file cannot be
    /// written.
    pub fn save_wisdom(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.plan.save_wisdom(path)
    }

    /// The communicator, a duplicate of the one the plan was made with.
    pub fn comm(&self) -> &dyn Comm {
        self.plan.comm()
    }

    /// What the last transform lost on the wire, the same on all ranks; `None` when no wire loses anything, or none has
    /// run.
    pub fn wire_error(&self) -> Option<WireError> {
        self.plan.wire_error()
    }

    /// How messages travel: the recipe's exchange, but for [`Algorithm::Ring`] where ranks
    /// cannot put.
    pub fn exchange(&self) -> Algorithm {
        self.plan.exchange()
    }

    /// This rank's part of physical data.
    pub fn input_brick(&self) -> Brick<D> {
        self.plan.input_brick().typed()
    }

    /// This rank's part of spectral data.
    pub fn output_brick(&self) -> Brick<D> {
        self.plan.output_brick().typed()
    }

    /// Points of physical data on this rank, all batches together.
    pub fn input_len(&self) -> usize {
        self.plan.input_len()
    }

    /// Points of spectral data on this rank, all batches together.
    pub fn output_len(&self) -> usize {
        self.plan.output_len()
    }

    /// Spectral points that an array must have room for to be transformed in place.
    pub fn in_place_len(&self) -> usize {
        self.plan.in_place_len()
    }

    /// Bytes of memory that the plan holds beside input and output.
    pub fn memory(&self) -> usize {
        self.plan.memory()
    }

    /// Where time went since the last [`Plan::clear_timings`], on this rank.
    pub fn timings(&self) -> Timings {
        self.plan.timings()
    }

    /// Sets all times to zero.
    pub fn clear_timings(&mut self) {
        self.plan.clear_timings();
    }

    /// Transforms physical to spectral data. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] when a slice has the wrong length on any or, with [`Draft::shared_arrays`], is none
    /// that others see (nothing is sent then), a message is damaged, or the transport fails; [`Error::Left`] when another rank
    /// is a thread that ended, or a process that dropped its plan.
    pub fn forward_into(
        &mut self,
        input: &[K::Physical],
        output: &mut [K::Spectral],
    ) -> Result<(), Error> {
        self.plan.run(Direction::Forward, cast_slice(input), cast_slice_mut(output))
    }

    /// Transforms spectral to physical data. Collective. Of a spectrum that cannot come from real data, a
    /// real transform takes the part that can, as NumPy does.
    ///
    /// # Errors
    /// As [`Plan::forward_into`].
    pub fn inverse_into(
        &mut self,
        input: &[K::Spectral],
        output: &mut [K::Physical],
    ) -> Result<(), Error> {
        self.plan.run(Direction::Inverse, cast_slice(input), cast_slice_mut(output))
    }

    /// Transforms physical to spectral data in one array of [`Plan::in_place_len`] points: input and output
    /// both begin at its start, without padding. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward_into`].
    pub fn forward_in_place(&mut self, data: &mut [K::Spectral]) -> Result<(), Error> {
        self.plan.run_in_place(Direction::Forward, cast_slice_mut(data))
    }

    /// Transforms spectral to physical data in one array, as [`Plan::forward_in_place`]. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward_into`].
    pub fn inverse_in_place(&mut self, data: &mut [K::Spectral]) -> Result<(), Error> {
        self.plan.run_in_place(Direction::Inverse, cast_slice_mut(data))
    }

    /// What every transform begins with: `mine` where all ranks of the plan have `Ok`, otherwise on every rank the error of the
    /// lowest failing one. Collective, in the place of a transform: a rank that finds before it calls one that it cannot go on, as
    /// its arrays are none, says so here.
    ///
    /// # Errors
    /// [`Error::OnRank`] with that of the lowest failing rank; [`Error::Left`] as [`Plan::forward_into`].
    pub fn agree<R>(&mut self, mine: Result<R, Error>) -> Result<R, Error> {
        self.plan.agree(mine)
    }

    /// A field of zeros to be filled with physical data; with [`Draft::shared_arrays`] see [`Plan::shared_input`].
    ///
    /// # Panics
    /// If there is no memory for it.
    pub fn input(&self) -> Field<Physical, K, D> {
        Field::new(self.part(), self.plan.zeros())
    }

    /// A field of zeros to be filled with spectral data.
    ///
    /// # Panics
    /// If there is no memory for it.
    pub fn output(&self) -> Field<Spectral, K, D> {
        Field::new(self.part(), self.plan.zeros())
    }

    /// As [`Plan::input`], in memory that the ranks of a host share, as [`Draft::shared_arrays`] wants it. Collective.
    ///
    /// When the field is dropped, its memory is the plan's, for the next; [`Plan::memory`] does not count it. One that is
    /// left on any rank when the plan is dropped keeps all such memory of its host until the processes end, and the plan's
    /// own window with it. Processes may use it as long as MPI runs: afterwards to look at it panics.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] when one does not get the memory, or its host has too little to share.
    pub fn shared_input(&mut self) -> Result<Field<Physical, K, D>, Error> {
        Ok(Field::new(self.part(), self.plan.shared_zeros()?))
    }

    /// As [`Plan::output`], in memory that the ranks of a host share: see [`Plan::shared_input`]. Collective.
    ///
    /// # Errors
    /// As [`Plan::shared_input`].
    pub fn shared_output(&mut self) -> Result<Field<Spectral, K, D>, Error> {
        Ok(Field::new(self.part(), self.plan.shared_zeros()?))
    }

    fn part<S>(&self) -> Part<S> {
        Part::new(self.recipe().problem(), self.comm().rank())
    }

    /// Transforms a field; its storage is used again. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward_into`]; the field is lost then. Also when it was made by a plan with other bricks.
    pub fn forward(
        &mut self,
        field: Field<Physical, K, D>,
    ) -> Result<Field<Spectral, K, D>, Error> {
        self.owns(&field)?;
        field.transformed(|data| self.plan.run_checked(Direction::Forward, data))
    }

    /// Transforms a field back; its storage is used again. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward`].
    pub fn inverse(
        &mut self,
        field: Field<Spectral, K, D>,
    ) -> Result<Field<Physical, K, D>, Error> {
        self.owns(&field)?;
        field.transformed(|data| self.plan.run_checked(Direction::Inverse, data))
    }

    /// Agrees that a field fits this plan.
    fn owns<S>(&mut self, field: &Field<S, K, D>) -> Result<(), Error> {
        let fits = field.part().fits(self.recipe().problem(), self.comm().rank());
        let fits = fits.and_then(|()| self.plan.sees(field.bytes()));
        self.plan.agree(fits)
    }
}
