//! The arrays of a rank, as its plan has them.

use std::sync::Arc;

use fft_core::{DynBrick, Layout, PerAxis, Problem};

use super::part::Sizes;

fn indices(layout: &Layout, rank: usize, axis: usize) -> impl Iterator<Item = usize> + '_ {
    layout.brick(rank).range(axis).map(move |position| layout.index(axis, position))
}

/// The arrays that a plan transforms on this rank: bricks, orders of axes, and sizes. A plan
/// derefs to them.
#[derive(Clone, Debug)]
pub struct RankArrays {
    problem: Arc<Problem>,
    rank: usize,
    pub(crate) sizes: Sizes,
}

impl RankArrays {
    pub(crate) fn new(problem: Problem, rank: usize) -> Self {
        let sizes = Sizes::of(&problem, rank);
        Self { problem: Arc::new(problem), rank, sizes }
    }

    /// The problem: what to transform, with the bricks of all ranks.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// This rank's part of physical data.
    pub fn input_brick(&self) -> DynBrick {
        self.problem.input.brick(self.rank)
    }

    /// This rank's part of spectral data.
    pub fn output_brick(&self) -> DynBrick {
        self.problem.output.brick(self.rank)
    }

    /// The order of axes in memory of physical data, slowest first.
    pub fn input_order(&self) -> PerAxis<usize> {
        self.problem.input.order()
    }

    /// The order of axes in memory of spectral data, slowest first.
    pub fn output_order(&self) -> PerAxis<usize> {
        self.problem.output.order()
    }

    /// The strides between adjacent points of physical data along each axis: 1, unless ranks share
    /// the transform of a single axis and its data is cyclic or transposed.
    pub fn input_strides(&self) -> PerAxis<usize> {
        self.problem.input.strides()
    }

    /// The strides between adjacent points of spectral data along each axis.
    pub fn output_strides(&self) -> PerAxis<usize> {
        self.problem.output.strides()
    }

    /// The global indices along an axis of this rank's physical data, in the order of memory.
    ///
    /// ```
    /// thriffty::threads(2, |world| {
    ///     let plan = thriffty::c2c(&world, [16]).input_cyclic([2]).build()?;
    ///     let rank = plan.comm().rank();
    ///     assert!(plan.input_indices(0).eq((rank..16).step_by(2)));
    ///     Ok::<(), thriffty::Error>(())
    /// })?;
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn input_indices(&self, axis: usize) -> impl Iterator<Item = usize> + '_ {
        indices(&self.problem.input, self.rank, axis)
    }

    /// The global indices along an axis of this rank's spectral data, in the order of memory.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn output_indices(&self, axis: usize) -> impl Iterator<Item = usize> + '_ {
        indices(&self.problem.output, self.rank, axis)
    }

    /// Points of physical data on this rank, all batches together.
    pub fn input_len(&self) -> usize {
        self.sizes.points[0]
    }

    /// Points of spectral data on this rank, all batches together.
    pub fn output_len(&self) -> usize {
        self.sizes.points[1]
    }

    /// Spectral points that an array must have room for to be transformed in place.
    pub fn in_place_len(&self) -> usize {
        self.sizes.in_place_points()
    }

    /// Bytes of physical data on this rank.
    pub fn input_bytes(&self) -> usize {
        self.sizes.bytes()[0]
    }

    /// Bytes of spectral data on this rank.
    pub fn output_bytes(&self) -> usize {
        self.sizes.bytes()[1]
    }

    /// Bytes that an array must have to be transformed in place.
    pub fn in_place_bytes(&self) -> usize {
        self.sizes.in_place_bytes()
    }
}
