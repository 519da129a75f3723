//! Plans of one process in the making.

use std::marker::PhantomData;

use bytemuck::{cast_slice, cast_slice_mut};
use fft_core::{Brick, Comm, Direction, Error, Kind, Norm, Real, check_axes};

use super::dyn_local_draft::DynLocalDraft;
use super::local_plan::LocalPlan;
use crate::field::{C2c, R2c, R2r, Transform};
use crate::options::{Options, options_table, setters};

/// Drafts a transform of complex data in double precision.
pub fn c2c<const D: usize>(shape: [usize; D]) -> LocalDraft<C2c, D> {
    const { check_axes(D) };
    LocalPlan::draft(shape)
}

/// Drafts a transform of real data to half a spectrum, in double precision: the last axis has
/// `n/2 + 1` frequencies.
///
/// ```
/// let mut plan = thriffty::local::r2c([4, 6]).build()?;
/// let mut spectrum = vec![Default::default(); plan.output_len()];
/// plan.forward(&[1.0; 24], &mut spectrum)?;
/// assert_eq!((spectrum.len(), spectrum[0].re), (16, 24.0));
/// # Ok::<(), thriffty::Error>(())
/// ```
pub fn r2c<const D: usize>(shape: [usize; D]) -> LocalDraft<R2c, D> {
    const { check_axes(D) };
    LocalPlan::draft(shape)
}

/// Drafts cosine and sine transforms of real data, one kind for each axis, in double precision.
pub fn r2r<const D: usize>(shape: [usize; D], kinds: [Kind; D]) -> LocalDraft<R2r, D> {
    const { check_axes(D) };
    LocalPlan::draft(shape).kinds(kinds)
}

/// A plan of one process in the making: options, nothing checked. [`LocalDraft::build`] makes the
/// plan. [`LocalDraft::forward`] and [`LocalDraft::inverse`] transform at once.
#[derive(Clone, Debug)]
#[must_use = "a draft does nothing until it is built"]
pub struct LocalDraft<K, const D: usize> {
    draft: DynLocalDraft,
    types: PhantomData<fn() -> K>,
}

impl<K: Transform, const D: usize> LocalPlan<K, D> {
    /// Drafts the transform that `K` names, in its precision, with the usual kinds.
    ///
    /// ```
    /// use thriffty::{C2c, local::LocalPlan};
    /// let plan = LocalPlan::<C2c<f32>, 1>::draft([100]).build()?;
    /// assert_eq!((plan.input_bytes(), plan.threads()), (800, 1));
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there are not 1 to 4 axes.
    pub fn draft(shape: [usize; D]) -> LocalDraft<K, D> {
        let draft = DynLocalDraft::new(shape, K::DYN, K::Real::PRECISION);
        LocalDraft { draft, types: PhantomData }
    }
}

impl<K: Transform, const D: usize> LocalDraft<K, D> {
    /// Changes any of the options. Shared arrays have no effect.
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.draft.options);
        self
    }

    /// Uses at most this number of threads; [`default_threads`](super::default_threads) if you do
    /// not choose it. An array is cut along its slowest axis, so that one axis has one thread, and
    /// more threads than points have no work.
    pub fn threads(mut self, threads: usize) -> Self {
        self.draft.threads = Some(threads);
        self
    }

    /// Sets the scales of both directions by NumPy's names; [`Norm::Backward`] by default.
    pub fn norm(self, norm: Norm) -> Self {
        let [forward, inverse] = norm.scales();
        self.forward_scale(forward).inverse_scale(inverse)
    }

    options_table!(setters);

    /// Makes the plan.
    ///
    /// # Errors
    /// Those of [`DynLocalDraft::build`].
    pub fn build(self) -> Result<LocalPlan<K, D>, Error> {
        self.draft.build().map(LocalPlan::of)
    }

    /// Transforms physical to spectral data, by a plan that later calls with an equal draft use
    /// again. Several threads may do this at the same time: see [`DynLocalDraft::run`].
    ///
    /// ```
    /// use thriffty::{Complex, local};
    /// let mut spectrum = [Complex::default(); 3];
    /// local::c2c([3]).forward(&[Complex::new(1.0, 0.0); 3], &mut spectrum)?;
    /// assert_eq!(spectrum[0].re, 3.0);
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`DynLocalDraft::run`].
    pub fn forward(&self, input: &[K::Physical], output: &mut [K::Spectral]) -> Result<(), Error> {
        self.draft.run(Direction::Forward, cast_slice(input), cast_slice_mut(output))
    }

    /// Transforms spectral to physical data, as [`LocalDraft::forward`].
    ///
    /// # Errors
    /// Those of [`DynLocalDraft::run`].
    pub fn inverse(&self, input: &[K::Spectral], output: &mut [K::Physical]) -> Result<(), Error> {
        self.draft.run(Direction::Inverse, cast_slice(input), cast_slice_mut(output))
    }

    /// This process's brick of physical data, where [there are others](LocalDraft::build_over).
    pub fn input_brick(self, brick: Brick<D>) -> Self {
        self.with(|options| options.input = Some(brick.into()))
    }

    /// This process's brick of spectral data.
    pub fn output_brick(self, brick: Brick<D>) -> Self {
        self.with(|options| options.output = Some(brick.into()))
    }

    /// Makes the plan of this process among those of a communicator: arrays are this process's
    /// bricks. There are as many threads as asked for; on one process fewer for short axes.
    /// Collective, as are later transforms, which are made on this thread.
    ///
    /// # Errors
    /// Those of [`DynLocalDraft::build_over`].
    pub fn build_over(self, comm: &dyn Comm) -> Result<LocalPlan<K, D>, Error> {
        self.draft.build_over(comm).map(LocalPlan::of)
    }
}
