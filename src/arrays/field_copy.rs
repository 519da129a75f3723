//! Copies between a program's arrays and the fields of a plan.

use std::fmt;
use std::marker::PhantomData;

use fft_core::{Error, Layout, ParallelCopy, PerAxis};

use super::{GridData, Subarray, copy};
use crate::field::{Field, Part, Physical, R2c, Side, Spectral, Transform};
use crate::plan::Plan;

/// Loads fields of a plan from local arrays, and stores them there.
///
/// The arrays of all ranks together have each point of the grid once; a rank may have several or
/// none. With [`Draft::transposed_input`](crate::Draft::transposed_input) and
/// [`Draft::transposed_output`](crate::Draft::transposed_output) data goes straight between the
/// arrays and the bricks where transforms begin and end: the copy is the plan's first or last
/// reshape. Otherwise, arrays with the plan's own bricks are copied without messages.
///
/// The arrays of a batch are [`Subarray::distance`] apart. Messages are exact, whatever the plan's
/// tolerance.
pub struct FieldCopy<S: Side, K: Transform = R2c, const D: usize = 3> {
    part: Part<S>,
    load: ParallelCopy,
    store: ParallelCopy,
    types: PhantomData<fn() -> K>,
}

impl<K: Transform, const D: usize> FieldCopy<Physical, K, D> {
    /// Plans copies of physical data of a plan. Collective.
    ///
    /// # Errors
    /// Those of [`copy`].
    pub fn input(plan: &Plan<K, D>, arrays: &[Subarray]) -> Result<Self, Error> {
        Self::new(plan, arrays)
    }
}

impl<K: Transform, const D: usize> FieldCopy<Spectral, K, D> {
    /// Plans copies of spectral data of a plan. Collective.
    ///
    /// # Errors
    /// Those of [`copy`].
    pub fn output(plan: &Plan<K, D>, arrays: &[Subarray]) -> Result<Self, Error> {
        Self::new(plan, arrays)
    }
}

impl<S: Side, K: Transform, const D: usize> FieldCopy<S, K, D> {
    fn new(plan: &Plan<K, D>, arrays: &[Subarray]) -> Result<Self, Error> {
        let (comm, problem) = (plan.comm(), plan.recipe().problem());
        let (layout, howmany) = (S::layout(problem), problem.howmany);
        let data = GridData::of::<S::Element<K>>(layout.grid()).howmany(howmany);
        let own = [whole(layout, comm.rank())];
        let load = copy(comm, data, arrays, &own)?;
        let store = copy(comm, data, &own, arrays)?;
        Ok(Self { part: Part::new(problem, comm.rank()), load, store, types: PhantomData })
    }

    /// Copies from the arrays to a field. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] for another number of arrays, for arrays that are too
    /// short, for a field of another plan or with an error, and when the transport fails. The field
    /// is then undefined.
    pub fn load(
        &mut self,
        arrays: &[&[S::Element<K>]],
        field: &mut Field<S, K, D>,
    ) -> Result<(), Error> {
        let mine = self.fits(field);
        self.load.run_after(mine, arrays, &mut [field.as_mut_slice()])
    }

    /// Copies from a field to the arrays. Points around their bricks stay as they are. Collective.
    ///
    /// # Errors
    /// As [`FieldCopy::load`]; the arrays are then undefined.
    pub fn store(
        &mut self,
        field: &Field<S, K, D>,
        arrays: &mut [&mut [S::Element<K>]],
    ) -> Result<(), Error> {
        let mine = self.fits(field);
        self.store.run_after(mine, &[field.as_slice()], arrays)
    }

    /// Bytes that this rank sends to load a field, and to store one.
    pub fn bytes_sent(&self) -> [usize; 2] {
        [self.load.bytes_sent(), self.store.bytes_sent()]
    }

    fn fits(&self, field: &Field<S, K, D>) -> Result<(), Error> {
        let (_, made) = field.dyn_array();
        field.part().fits(self.part.problem(), self.part.rank()).and(made)
    }
}

/// A rank's brick of a layout, as fields have it.
fn whole(layout: &Layout, rank: usize) -> Subarray {
    let brick = layout.brick(rank);
    let start = PerAxis::splat(brick.axes(), 0);
    Subarray::placed(brick, start, brick.shape(), layout.order())
}

impl<S: Side, K: Transform, const D: usize> fmt::Debug for FieldCopy<S, K, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [load, store] = self.bytes_sent();
        f.debug_struct("FieldCopy")
            .field("state", &S::NAME)
            .field("bytes sent to load", &load)
            .field("bytes sent to store", &store)
            .finish_non_exhaustive()
    }
}
