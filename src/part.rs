//! Which part of a problem's data a rank has.

use std::marker::PhantomData;
use std::sync::Arc;

use fft_core::{DynBrick, Error, Layout, Problem};

use crate::Side;

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

    #[cfg(feature = "cuda")]
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// Whether a plan for this problem can transform it.
    pub(crate) fn fits(&self, problem: &Problem, rank: usize) -> Result<(), Error> {
        let fits = self.rank == rank
            && self.problem.howmany == problem.howmany
            && self.problem.kinds == problem.kinds
            && self.problem.input == problem.input
            && self.problem.output == problem.output;
        match fits {
            true => Ok(()),
            false => Err(Error::argument("field", "one of another plan", "one made by this plan")),
        }
    }

    /// The same rank's part on the other side.
    pub(crate) fn across<R>(self) -> Part<R> {
        Part { problem: self.problem, rank: self.rank, side: PhantomData }
    }
}

impl<S: Side> Part<S> {
    pub(crate) fn layout(&self) -> &Layout {
        S::layout(&self.problem)
    }

    pub(crate) fn brick(&self) -> DynBrick {
        self.layout().brick(self.rank)
    }

    /// Points of all batches.
    pub(crate) fn points(&self) -> usize {
        self.brick().points() * self.problem.howmany
    }
}
