//! Complex transforms.

use pulp::Simd;

use super::ahead::Ahead;
use super::batch::GroupFft;
use super::kernel::Strides;
use super::stages::Stages;
use super::vector::{Pair, Real};

pub(crate) struct Complex<S: Simd, T: Real> {
    pub(crate) stages: Stages<S, T>,
    /// The inverse is the forward transform with its results in reverse order.
    pub(crate) inverse: bool,
}

impl<S: Simd, T: Real> GroupFft for Complex<S, T> {
    type S = S;
    type T = T;

    fn stages(&self) -> &Stages<S, T> {
        &self.stages
    }

    fn lens(&self) -> [usize; 2] {
        [self.stages.n; 2]
    }

    fn read(&self, src: &[T], at: Strides, work: &mut [Pair<S, T>], ahead: Option<Ahead>) {
        self.stages.first(src, at, work, ahead);
    }

    fn write(
        &self,
        scale: T,
        work: &mut [Pair<S, T>],
        dst: &mut [T],
        at: Strides,
        ahead: Option<Ahead>,
    ) {
        self.stages.between(1..self.stages.len() - 1, work, ahead);
        self.stages.multiply(work, scale);
        self.stages.last(work, dst, at, self.inverse, ahead);
    }
}
