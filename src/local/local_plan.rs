//! A plan of one process with types.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use bytemuck::{cast_slice, cast_slice_mut};
use fft_core::{Direction, Error};

use crate::field::{R2c, Transform};
use crate::plan::DynPlan;

/// A transform of whole arrays by a team of threads, ready to run any number of times in both
/// directions.
///
/// Made by [`c2c`](super::c2c), [`r2c`](super::r2c) or [`r2r`](super::r2r). Arrays are row-major,
/// one after the other for batches. Scales and order of frequencies are those of
/// [`Plan`](crate::Plan). Plans share the threads of the process, which park between calls and end
/// with the last plan that needs them.
pub struct LocalPlan<K: Transform = R2c, const D: usize = 3> {
    plan: DynPlan,
    types: PhantomData<fn() -> K>,
}

impl<K: Transform, const D: usize> LocalPlan<K, D> {
    pub(super) fn of(plan: DynPlan) -> Self {
        Self { plan, types: PhantomData }
    }

    /// Transforms physical to spectral data.
    ///
    /// # Errors
    /// Those of [`DynPlan::run`].
    pub fn forward(
        &mut self,
        input: &[K::Physical],
        output: &mut [K::Spectral],
    ) -> Result<(), Error> {
        self.plan.run(Direction::Forward, cast_slice(input), cast_slice_mut(output))
    }

    /// Transforms spectral to physical data. Of a spectrum that cannot come from real data, a real
    /// transform takes the part that can, as NumPy does.
    ///
    /// # Errors
    /// Those of [`DynPlan::run`].
    pub fn inverse(
        &mut self,
        input: &[K::Spectral],
        output: &mut [K::Physical],
    ) -> Result<(), Error> {
        self.plan.run(Direction::Inverse, cast_slice(input), cast_slice_mut(output))
    }

    /// Transforms physical to spectral data in one array of as many spectral points as the longer
    /// of both needs: both begin at its start. Half spectra take a copy of the input.
    ///
    /// # Errors
    /// Those of [`DynPlan::run_in_place`].
    pub fn forward_in_place(&mut self, data: &mut [K::Spectral]) -> Result<(), Error> {
        self.plan.run_in_place(Direction::Forward, cast_slice_mut(data))
    }

    /// Transforms spectral to physical data in one array, as [`LocalPlan::forward_in_place`].
    ///
    /// # Errors
    /// Those of [`DynPlan::run_in_place`].
    pub fn inverse_in_place(&mut self, data: &mut [K::Spectral]) -> Result<(), Error> {
        self.plan.run_in_place(Direction::Inverse, cast_slice_mut(data))
    }
}

impl<K: Transform, const D: usize> Deref for LocalPlan<K, D> {
    type Target = DynPlan;

    fn deref(&self) -> &DynPlan {
        &self.plan
    }
}

impl<K: Transform, const D: usize> fmt::Debug for LocalPlan<K, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.fmt(f)
    }
}
