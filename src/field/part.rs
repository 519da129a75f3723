//! The part of a problem's data that a rank has, on one side of the transform, and where it is.

use std::marker::PhantomData;
use std::sync::Arc;

use fft_core::{DynBrick, Element, Error, Layout, Problem};

use super::transform::Transform;

/// The state of a field before the forward transform.
#[derive(Clone, Copy, Debug)]
pub enum Physical {}

/// The state of a field after it.
#[derive(Clone, Copy, Debug)]
pub enum Spectral {}

/// [`Physical`] or [`Spectral`].
pub trait Side: sealed::Sealed {
    /// One point of a field in this state.
    type Element<K: Transform>: Element<Real = K::Real>;
    /// The name of the state.
    #[doc(hidden)]
    const NAME: &'static str;
    /// The layout of such a field.
    #[doc(hidden)]
    fn layout(problem: &Problem) -> &Layout;
}

/// Data in memory of the host.
#[derive(Clone, Copy, Debug)]
pub enum Host {}

/// Data on a CUDA device.
#[derive(Clone, Copy, Debug)]
pub enum Device {}

/// [`Host`] or [`Device`]: where a plan's data is.
pub trait Location: sealed::Sealed {
    /// Whether it is the host.
    #[doc(hidden)]
    const ON_HOST: bool;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Physical {}
    impl Sealed for super::Spectral {}
    impl Sealed for super::Host {}
    impl Sealed for super::Device {}
}

impl Side for Physical {
    type Element<K: Transform> = K::Physical;
    const NAME: &'static str = "physical";
    fn layout(problem: &Problem) -> &Layout {
        &problem.input
    }
}

impl Side for Spectral {
    type Element<K: Transform> = K::Spectral;
    const NAME: &'static str = "spectral";
    fn layout(problem: &Problem) -> &Layout {
        &problem.output
    }
}

impl Location for Host {
    const ON_HOST: bool = true;
}

impl Location for Device {
    const ON_HOST: bool = false;
}

/// How large a rank's arrays are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Points of physical and of spectral data, all batches together.
    pub(crate) points: [usize; 2],
    /// Bytes of a point of each.
    pub(crate) point_bytes: [usize; 2],
}

impl Sizes {
    pub(crate) fn of(problem: &Problem, rank: usize) -> Self {
        Self {
            points: [&problem.input, &problem.output]
                .map(|layout| layout.brick(rank).points() * problem.batch),
            point_bytes: problem.widths().map(|width| width * problem.precision.bytes()),
        }
    }

    /// Bytes of physical and of spectral data.
    pub(crate) fn bytes(&self) -> [usize; 2] {
        [0, 1].map(|side| self.points[side] * self.point_bytes[side])
    }

    /// Spectral points that an array must have room for to be transformed in place.
    pub(crate) fn in_place_points(&self) -> usize {
        self.points[1].max(self.bytes()[0].div_ceil(self.point_bytes[1]))
    }

    pub(crate) fn in_place_bytes(&self) -> usize {
        self.in_place_points() * self.point_bytes[1]
    }
}

/// A rank's part on the side of the transform that `S` names.
pub(crate) struct Part<S> {
    problem: Arc<Problem>,
    rank: usize,
    side: PhantomData<S>,
}

impl<S> Clone for Part<S> {
    fn clone(&self) -> Self {
        Self { problem: self.problem.clone(), rank: self.rank, side: PhantomData }
    }
}

impl<S> Part<S> {
    pub(crate) fn new(problem: &Problem, rank: usize) -> Self {
        Self { problem: Arc::new(problem.clone()), rank, side: PhantomData }
    }

    pub(crate) fn problem(&self) -> &Problem {
        &self.problem
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn sizes(&self) -> Sizes {
        Sizes::of(&self.problem, self.rank)
    }

    /// Checks that a plan for this problem can transform it.
    pub(crate) fn fits(&self, problem: &Problem, rank: usize) -> Result<(), Error> {
        let fits = self.rank == rank
            && self.problem.batch == problem.batch
            && self.problem.kinds == problem.kinds
            && self.problem.zero_padded == problem.zero_padded
            && self.problem.modes == problem.modes
            && self.problem.input == problem.input
            && self.problem.output == problem.output;
        if fits {
            Ok(())
        } else {
            Err(Error::argument("field", "one of another plan", "one made by this plan"))
        }
    }

    /// The same rank's part on the other side.
    pub(crate) fn across<R>(self) -> Part<R> {
        Part { problem: self.problem, rank: self.rank, side: PhantomData }
    }
}

impl<S: Side> Part<S> {
    /// Checks that a field of another part has the same points in the same places.
    pub(crate) fn has_points_of(&self, other: &Self) -> Result<(), Error> {
        let same = self.rank == other.rank
            && self.problem.batch == other.problem.batch
            && self.layout() == other.layout();
        let found = "one of another layout";
        same.then_some(()).ok_or_else(|| {
            Error::argument("field", found, "one with the same grid, bricks and order of axes")
        })
    }

    pub(crate) fn layout(&self) -> &Layout {
        S::layout(&self.problem)
    }

    pub(crate) fn brick(&self) -> DynBrick {
        self.layout().brick(self.rank)
    }

    /// Points of all arrays of a batch.
    pub(crate) fn points(&self) -> usize {
        self.brick().points() * self.problem.batch
    }
}
