//! Lines whose points are not in order: those of a factor that a cyclic layout divides.

use crate::base::Real;
use crate::geometry::Stride;
use crate::recipe::Pass;

/// The order of a line's points in memory, before and after its transform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PointOrder {
    n: usize,
    /// Real numbers of a point.
    width: usize,
    /// The strides between adjacent points.
    strides: [usize; 2],
    before: Stride,
    after: Stride,
}

impl PointOrder {
    pub(crate) fn of(pass: &Pass) -> Self {
        let (n, strides) = (pass.n, pass.strides_in_order());
        let width = if pass.complex_before { 2 } else { 1 };
        let [before, after] = strides.map(|stride| Stride::new(n, stride));
        Self { n, width, strides, before, after }
    }

    /// Whether points are in order before and after.
    pub(crate) fn is_plain(&self) -> bool {
        self.strides == [1; 2]
    }

    /// The place of a point in memory, before the transform.
    pub(crate) fn before(&self, index: usize) -> usize {
        self.before.position(index)
    }

    /// The place of a point in memory, after the transform.
    pub(crate) fn after(&self, index: usize) -> usize {
        self.after.position(index)
    }

    /// Real numbers of scratch, for a line.
    pub(crate) fn scratch_len(&self) -> usize {
        if self.is_plain() { 0 } else { self.n * self.width }
    }

    /// Sorts the points of contiguous lines before they are transformed.
    pub(crate) fn sort_lines<T: Real>(&self, lines: &mut [T], scratch: &mut [T]) {
        if self.strides[0] != 1 {
            self.each_line(lines, scratch, |index| [self.before(index), index]);
        }
    }

    /// Moves the points of contiguous lines to their places after the transform.
    pub(crate) fn stride_lines<T: Real>(&self, lines: &mut [T], scratch: &mut [T]) {
        if self.strides[1] != 1 {
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
