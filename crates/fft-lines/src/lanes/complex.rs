//! Complex transforms.

use pulp::Simd;

use super::ahead::Ahead;
use super::batch::GroupFft;
use super::kernel::Strides;
use super::stages::Stages;
use super::vector::{Pair, Real};

pub(crate) struct Complex<S: Simd, T: Real> {
    pub(crate) stages: Stages<S, T>,
    /// The inverse is the forward transform with real and imaginary parts exchanged before and
    /// after.
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

    fn read(
        &self,
        src: &[T],
        at: Strides,
        work: &mut [Pair<S, T>],
        groups: usize,
        ahead: Option<Ahead>,
    ) {
        self.stages.first(src, self.stages.distance(at), work, self.inverse, groups, ahead);
    }

    fn write(
        &self,
        scale: T,
        work: &mut [Pair<S, T>],
        dst: &mut [T],
        at: Strides,
        groups: usize,
        ahead: Option<Ahead>,
    ) {
        let work = &mut work[..groups * self.stages.work_len()];
        self.stages.between(1..self.stages.len() - 1, work, ahead);
        self.stages.multiply(work, scale);
        let distance = self.stages.distance(at);
        self.stages.last(work, dst, distance, self.inverse, groups, ahead);
    }
}
