//! Indices of a brick in the order of memory.

use fft_core::{Brick, Layout};

/// The global indices of a rank's points in the order of memory, over and over.
#[derive(Clone, Debug)]
pub(super) struct Indices<const D: usize> {
    layout: Layout,
    brick: Brick<D>,
    order: [usize; D],
    /// The position of the next point.
    next: [usize; D],
    /// Whether positions are indices.
    is_plain: bool,
}

impl<const D: usize> Indices<D> {
    pub(super) fn new(layout: &Layout, rank: usize) -> Self {
        let brick: Brick<D> = layout.brick(rank).typed();
        let is_plain = !layout.is_strided();
        let (layout, order) = (layout.clone(), layout.order().array());
        Self { layout, brick, order, next: brick.lo, is_plain }
    }

    /// The place of a point in memory; `None` if this rank does not have it.
    pub(super) fn place(&self, index: [usize; D]) -> Option<usize> {
        let position: [usize; D] =
            std::array::from_fn(|axis| self.layout.position(axis, index[axis]));
        let inside = |axis: usize| {
            index[axis] < self.layout.grid().len(axis)
                && self.brick.range(axis).contains(&position[axis])
        };
        (0..D).all(inside).then(|| {
            let step = |at, &axis: &usize| {
                at * self.brick.len(axis) + position[axis] - self.brick.lo[axis]
            };
            self.order.iter().fold(0, step)
        })
    }
}

impl<const D: usize> Iterator for Indices<D> {
    type Item = [usize; D];

    /// Never `None`: after the last index comes the first.
    #[inline]
    fn next(&mut self) -> Option<[usize; D]> {
        let here = self.next;
        for &axis in self.order.iter().rev() {
            self.next[axis] += 1;
            if self.next[axis] < self.brick.hi[axis] {
                break;
            }
            self.next[axis] = self.brick.lo[axis];
        }
        if self.is_plain {
            return Some(here);
        }
        Some(std::array::from_fn(|axis| self.layout.index(axis, here[axis])))
    }
}
