//! Lines whose points are not in order: those of a factor that a cyclic layout divides.

use crate::base::Real;
use crate::recipe::Pass;

/// The order of a line's points in memory, before and after its transform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PointOrder {
    n: usize,
    /// Real numbers of a point.
    width: usize,
    /// The strides between the indices of adjacent points.
    before: usize,
    after: usize,
}

impl PointOrder {
    pub(crate) fn of(pass: &Pass) -> Self {
        let [before, after] = pass.strides_in_order();
        let width = if pass.complex_before { 2 } else { 1 };
        Self { n: pass.n, width, before, after }
    }

    /// Whether points are in order before and after.
    pub(crate) fn is_plain(&self) -> bool {
        self.before == 1 && self.after == 1
    }

    /// The place of a point in memory, before the transform.
    pub(crate) fn before(&self, index: usize) -> usize {
        index / self.before + self.n / self.before * (index % self.before)
    }

    /// The place of a point in memory, after the transform.
    pub(crate) fn after(&self, index: usize) -> usize {
        index / self.after + self.n / self.after * (index % self.after)
    }

    /// Real numbers of scratch, for a line.
    pub(crate) fn scratch_len(&self) -> usize {
        if self.is_plain() { 0 } else { self.n * self.width }
    }

    /// Sorts the points of contiguous lines before they are transformed.
    pub(crate) fn sort_lines<T: Real>(&self, lines: &mut [T], scratch: &mut [T]) {
        if self.before != 1 {
            self.each_line(lines, scratch, |index| [self.before(index), index]);
        }
    }

    /// Moves the points of contiguous lines to their places after the transform.
    pub(crate) fn stride_lines<T: Real>(&self, lines: &mut [T], scratch: &mut [T]) {
        if self.after != 1 {
            self.each_line(lines, scratch, |index| [index, self.after(index)]);
        }
    }

    /// Moves the points of each line from one place to another.
    fn each_line<T: Real>(
        &self,
        lines: &mut [T],
        scratch: &mut [T],
        places: impl Fn(usize) -> [usize; 2],
    ) {
        let width = self.width;
        let scratch = &mut scratch[..self.n * width];
        for line in lines.chunks_exact_mut(self.n * width) {
            for [from, to] in (0..self.n).map(&places) {
                scratch[to * width..][..width].copy_from_slice(&line[from * width..][..width]);
            }
            line.copy_from_slice(scratch);
        }
    }
}
