//! A plan with types.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use bytemuck::{cast_slice, cast_slice_mut};
use fft_core::{Brick, Comm, Direction, Error, Real, Recipe, agree};

use super::dyn_plan::{DynPlan, types_of};
use crate::field::{DynArray, Field, Host, Location, Part, Physical, R2c, Spectral, Transform};
use crate::spectral::Domain;

/// A distributed transform, ready to run any number of times in both directions.
///
/// Made by [`c2c`](crate::c2c), [`r2c`](crate::r2c) or [`r2r`](crate::r2r), options, and
/// [`Draft::build`](crate::Draft::build). `K` is [`C2c`](crate::C2c), [`R2c`] or
/// [`R2r`](crate::R2r); `D` is the number of axes. A plan is a [`DynPlan`] with types, and has its
/// methods for recipes, timings and errors, too.
///
/// Data is this rank's brick of the grid, row-major by default, one array after the other for
/// batches. Forward uses `exp(-2πi jk/n)` and is unscaled, inverse divides by the number of points,
/// unless you set [other scales](crate::Draft::forward_scale). Frequencies are in natural order: 0,
/// 1, ..., -2, -1.
///
/// Executing is collective and returns the same `Ok` or error on every rank. It allocates nothing,
/// unless ranks have [several threads](crate::Draft::threads) or the plan is
/// [traced](crate::Draft::trace).
/// Dropping a plan is collective for MPI processes: they free communicators and windows together.
///
/// A draft cannot be executed, and a transformed field cannot be transformed again: `docs/types.md`
/// shows the compiler's errors.
pub struct Plan<K: Transform = R2c, const D: usize = 3, L: Location = Host> {
    plan: DynPlan,
    types: PhantomData<fn() -> (K, L)>,
}

impl<K: Transform, const D: usize> Plan<K, D> {
    /// Binds a recipe made by [`Draft::recipe`](crate::Draft::recipe) on the same communicator.
    /// Collective.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Disagreement`] when the ranks have different recipes;
    /// [`Error::OnRank`] when the recipe is for other types, axes or ranks, a rank lacks memory, or
    /// the transport fails.
    pub fn bind(comm: &dyn Comm, recipe: Recipe) -> Result<Self, Error> {
        let axes = recipe.problem().as_given().kinds.len();
        let fits = if axes != D {
            Err(Error::argument("axes of the recipe", axes, D))
        } else if types_of(recipe.problem()) != (K::DYN, K::Real::PRECISION) {
            Err(Error::argument("recipe for this plan's types", &recipe, "another"))
        } else {
            Ok(())
        };
        agree(comm, fits)?;
        DynPlan::bind(comm, recipe).map(Self::of)
    }

    /// Transforms physical to spectral data. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] when a slice of any rank has the wrong length or, with
    /// [`Draft::shared_arrays`](crate::Draft::shared_arrays), is not shared (nothing is sent then),
    /// a message is damaged, or the transport fails; [`Error::Left`] when another rank is a thread
    /// that ended, or a process that dropped its plan.
    pub fn forward_into(
        &mut self,
        input: &[K::Physical],
        output: &mut [K::Spectral],
    ) -> Result<(), Error> {
        self.plan.run(Direction::Forward, cast_slice(input), cast_slice_mut(output))
    }

    /// Transforms spectral to physical data. Collective. If a spectrum cannot come from real data,
    /// a real transform uses only the part that can, as NumPy does.
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

    /// Transforms physical to spectral data in one array of
    /// [`in_place_len`](crate::planning::RankArrays::in_place_len) points: input
    /// and output both begin at its start, without padding. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward_into`].
    pub fn forward_in_place(&mut self, data: &mut [K::Spectral]) -> Result<(), Error> {
        self.plan.run_in_place(Direction::Forward, cast_slice_mut(data))
    }

    /// Transforms spectral to physical data in one array, as [`Plan::forward_in_place`].
    /// Collective.
    ///
    /// # Errors
    /// As [`Plan::forward_into`].
    pub fn inverse_in_place(&mut self, data: &mut [K::Spectral]) -> Result<(), Error> {
        self.plan.run_in_place(Direction::Inverse, cast_slice_mut(data))
    }
}

impl<K: Transform, const D: usize, L: Location> Plan<K, D, L> {
    /// A plan that was made for these types, axes and location.
    pub(super) fn of(plan: DynPlan) -> Self {
        Self { plan, types: PhantomData }
    }

    /// The same without types, to be run.
    #[cfg(feature = "cuda")]
    pub(super) fn dyn_mut(&mut self) -> &mut DynPlan {
        &mut self.plan
    }

    /// This rank's part of physical data.
    pub fn input_brick(&self) -> Brick<D> {
        self.plan.input_brick().typed()
    }

    /// This rank's part of spectral data.
    pub fn output_brick(&self) -> Brick<D> {
        self.plan.output_brick().typed()
    }

    /// The domain under this plan's spectrum, a box with these lengths. Not collective, but if
    /// ranks divide the axis of tridiagonal systems, its operators [are](Domain).
    ///
    /// # Errors
    /// As [`DynPlan::domain`].
    pub fn domain(&self, lengths: [f64; D]) -> Result<Domain, Error> {
        self.plan.domain(lengths)
    }

    /// Sets all times to zero.
    pub fn clear_timings(&mut self) {
        self.plan.clear_timings();
    }

    /// As [`DynPlan::agree`]. Collective.
    ///
    /// # Errors
    /// As [`DynPlan::agree`].
    pub fn agree<R>(&mut self, mine: Result<R, Error>) -> Result<R, Error> {
        self.plan.agree(mine)
    }

    /// A field of zeros to be filled with physical data.
    ///
    /// # Panics
    /// If the host has no memory for it. On a device, the error stays in the field.
    pub fn input(&self) -> Field<Physical, K, D, L> {
        self.zeros()
    }

    /// A field of zeros to be filled with spectral data.
    ///
    /// # Panics
    /// As [`Plan::input`].
    pub fn output(&self) -> Field<Spectral, K, D, L> {
        self.zeros()
    }

    /// As [`Plan::input`], in memory that the ranks of a host share, as
    /// [`Draft::shared_arrays`](crate::Draft::shared_arrays) needs it. Collective.
    ///
    /// When the field is dropped, the plan keeps its memory for the next one, which
    /// [`DynPlan::workspace_bytes`] does not count. A field that outlives its plan on any rank
    /// keeps all such memory of its host until the processes end. MPI processes may use it until
    /// MPI is finalized: later accesses panic.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] when one does not get the memory, its host has too little
    /// to share, or a device cannot map another's.
    pub fn shared_input(&mut self) -> Result<Field<Physical, K, D, L>, Error> {
        Ok(Field::new(self.part(), self.plan.shared_zeros()?))
    }

    /// As [`Plan::output`], in memory that the ranks of a host share: see [`Plan::shared_input`].
    /// Collective.
    ///
    /// # Errors
    /// As [`Plan::shared_input`].
    pub fn shared_output(&mut self) -> Result<Field<Spectral, K, D, L>, Error> {
        Ok(Field::new(self.part(), self.plan.shared_zeros()?))
    }

    /// Transforms a field; its storage is used again. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward_into`]; the field is then lost. Also the error of an earlier operation on
    /// the field, and an error if a plan with other bricks, or on another device, made it.
    pub fn forward(
        &mut self,
        field: Field<Physical, K, D, L>,
    ) -> Result<Field<Spectral, K, D, L>, Error> {
        self.transform(Direction::Forward, field)
    }

    /// Transforms a field back; its storage is used again. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward`].
    pub fn inverse(
        &mut self,
        field: Field<Spectral, K, D, L>,
    ) -> Result<Field<Physical, K, D, L>, Error> {
        self.transform(Direction::Inverse, field)
    }

    fn transform<A, B>(
        &mut self,
        direction: Direction,
        field: Field<A, K, D, L>,
    ) -> Result<Field<B, K, D, L>, Error> {
        let (part, mut data, made) = field.into_parts();
        let fits = self.fits(&part).and(made);
        self.plan.run_array(direction, fits, &mut data)?;
        Ok(Field::new(part.across(), data))
    }

    /// Checks that a field is for this plan's problem and rank.
    pub(super) fn fits<S>(&self, part: &Part<S>) -> Result<(), Error> {
        part.fits(self.plan.problem(), self.comm().rank())
    }

    pub(super) fn part<S>(&self) -> Part<S> {
        Part::new(self.plan.problem(), self.comm().rank())
    }

    pub(super) fn zeros<S>(&self) -> Field<S, K, D, L> {
        match self.plan.zeros() {
            Ok(data) => Field::new(self.part(), data),
            Err(error) if L::ON_HOST => panic!("{error}"),
            Err(error) => {
                let mut field = Field::new(self.part(), DynArray::empty());
                field.record_error(Err(error));
                field
            }
        }
    }
}

/// The methods of a plan that do not depend on its types.
impl<K: Transform, const D: usize, L: Location> Deref for Plan<K, D, L> {
    type Target = DynPlan;

    fn deref(&self) -> &DynPlan {
        &self.plan
    }
}

impl<K: Transform, const D: usize, L: Location> fmt::Debug for Plan<K, D, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.fmt(f)
    }
}
