//! Indices of a brick in the order of memory.

use fft_core::Brick;

/// The global indices of a brick's points in the order of memory, over and over.
#[derive(Clone, Debug)]
pub(super) struct Indices<const D: usize> {
    brick: Brick<D>,
    order: [usize; D],
    next: [usize; D],
}

impl<const D: usize> Indices<D> {
    pub(super) fn new(brick: Brick<D>, order: [usize; D]) -> Self {
        Self { brick, order, next: brick.lo }
    }

    /// The place of a point in memory; `None` if it is not in the brick.
    pub(super) fn position(&self, index: [usize; D]) -> Option<usize> {
        let inside = |axis: usize| self.brick.range(axis).contains(&index[axis]);
        (0..D).all(inside).then(|| {
            let step =
                |at, &axis: &usize| at * self.brick.len(axis) + index[axis] - self.brick.lo[axis];
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
        Some(here)
    }
}
