//! Copies of a box from one array to another with any permutation of axes.
//!
//! Packing, unpacking and local copies are made of them.

use std::ops::Range;

use super::brick::DynBrick;
use super::per_axis::{MAX_AXES, PerAxis};
use crate::base::cache_sizes::COLUMNS_BYTES;

/// Axes of a box in memory: up to 4 of the grid, and one of batches.
pub const DIMS: usize = 5;

/// Up to this number of bytes, a loop over the elements of a run is faster than a call of `memcpy`.
pub(crate) const SHORT_RUN_BYTES: usize = 64;

/// A strided copy between boxes of the same shape.
///
/// Axes that are contiguous on both sides are merged, so that rows and planes are long runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    shape: [usize; DIMS],
    from: View,
    to: View,
}

/// The place of a box's elements in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Index of the first element.
    pub offset: usize,
    /// Distance of neighbours along each axis; 0 along axes of length 1.
    pub stride: [usize; DIMS],
}

/// A brick in memory, `batch` times one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The brick.
    pub brick: DynBrick,
    /// The order of axes, the contiguous one last.
    pub order: PerAxis<usize>,
    /// The number of copies.
    pub batch: usize,
}

/// Rows of the source that are columns of the destination.
///
/// Element `(row, column)` goes from `from + row * jump + column` to `to + column * pitch + row`. A
/// run that is contiguous on both sides is one row with a pitch of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panel {
    /// The first element in the source.
    pub from: usize,
    /// The first element in the destination.
    pub to: usize,
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// The distance of rows in the source.
    pub jump: usize,
    /// The distance of columns in the destination.
    pub pitch: usize,
}

impl Placed {
    /// A placed brick.
    pub fn new(brick: impl Into<DynBrick>, order: impl Into<PerAxis<usize>>, batch: usize) -> Self {
        Self { brick: brick.into(), order: order.into(), batch }
    }

    /// The elements of `part` from a batch on: batches first, then axes as in `order`.
    pub(crate) fn view(&self, part: &DynBrick, item: usize, order: PerAxis<usize>) -> View {
        let mut stride_of = [0; MAX_AXES];
        let mut stride = 1;
        for &axis in self.order.iter().rev() {
            stride_of[axis] = stride;
            stride *= self.brick.len(axis);
        }
        let mut view = View { offset: item * stride, stride: [0; DIMS] };
        let first_axis = DIMS - order.len();
        view.stride[first_axis - 1] = stride;
        for (place, &axis) in order.iter().enumerate() {
            view.stride[first_axis + place] = stride_of[axis];
            // An empty part may be anywhere.
            if !part.is_empty() {
                view.offset += (part.lo[axis] - self.brick.lo[axis]) * stride_of[axis];
            }
        }
        view
    }
}

impl Transfer {
    /// Copies batches of `part` between two placed bricks, with axes in the order of the
    /// destination.
    ///
    /// # Panics
    /// Unless both bricks contain the part.
    pub fn new(part: &DynBrick, batches: Range<usize>, from: &Placed, to: &Placed) -> Self {
        Self::ordered(part, batches, [from, to], to.order)
    }

    /// As [`Transfer::new`], with axes in the order of the source.
    ///
    /// # Panics
    /// As [`Transfer::new`].
    pub fn as_read(part: &DynBrick, batches: Range<usize>, from: &Placed, to: &Placed) -> Self {
        Self::ordered(part, batches, [from, to], from.order)
    }

    fn ordered(
        part: &DynBrick,
        batches: Range<usize>,
        sides: [&Placed; 2],
        order: PerAxis<usize>,
    ) -> Self {
        for placed in sides {
            let has = placed.brick.intersect(part).points() == part.points();
            assert!(has, "{part} is not inside {}", placed.brick);
        }
        let mut shape = [1; DIMS];
        let first_axis = DIMS - order.len();
        shape[first_axis - 1] = batches.len();
        for (place, &axis) in order.iter().enumerate() {
            shape[first_axis + place] = part.len(axis);
        }
        Self::between(shape, sides.map(|placed| placed.view(part, batches.start, order)))
    }

    /// Copies a box of this shape from one place to another.
    pub(crate) fn between(shape: [usize; DIMS], [from, to]: [View; 2]) -> Self {
        Self { shape, from, to }.merged()
    }

    /// The same copy with the arrays shifted by `from` and `to` elements.
    pub fn behind(mut self, from: usize, to: usize) -> Self {
        self.from.offset += from;
        self.to.offset += to;
        self
    }

    /// A copy of the first elements of an array.
    pub fn run_of(elements: usize) -> Self {
        let brick = DynBrick::new([0], [elements]);
        let placed = Placed::new(brick, [0], 1);
        Self::new(&brick, 0..1, &placed, &placed)
    }

    /// The lengths of the merged axes; leading ones are 1.
    pub fn shape(&self) -> [usize; DIMS] {
        self.shape
    }

    /// The box in the source.
    pub fn source(&self) -> View {
        self.from
    }

    /// The box in the destination.
    pub fn destination(&self) -> View {
        self.to
    }

    /// The least length of the source.
    pub fn reach(&self) -> usize {
        self.end(&self.from)
    }

    /// The least length of the destination.
    pub fn span(&self) -> usize {
        self.end(&self.to)
    }

    fn end(&self, view: &View) -> usize {
        let steps = self.shape.iter().zip(view.stride);
        view.offset + steps.map(|(n, s)| n.saturating_sub(1) * s).sum::<usize>() + 1
    }

    /// All indices in the destination.
    #[cfg(test)]
    pub(crate) fn places(&self) -> Vec<usize> {
        let mut places = Vec::new();
        self.each(&[0u8], &mut [0u8], [DIMS; 2], |_, _, _, to| places.push(to));
        places
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Drops axes of length 1, and joins neighbours that are contiguous on both sides.
    fn merged(self) -> Self {
        let mut merged = Self {
            shape: [1; DIMS],
            from: View { stride: [0; DIMS], ..self.from },
            to: View { stride: [0; DIMS], ..self.to },
        };
        let mut last = DIMS;
        for dim in (0..DIMS).rev().filter(|&dim| self.shape[dim] != 1) {
            let joins = last < DIMS
                && self.from.stride[dim] == merged.from.stride[last] * merged.shape[last]
                && self.to.stride[dim] == merged.to.stride[last] * merged.shape[last];
            if joins {
                merged.shape[last] *= self.shape[dim];
                continue;
            }
            last -= 1;
            merged.shape[last] = self.shape[dim];
            merged.from.stride[last] = self.from.stride[dim];
            merged.to.stride[last] = self.to.stride[dim];
        }
        merged
    }

    /// Copies the box.
    ///
    /// # Panics
    /// If it reaches outside the arrays.
    pub fn run<E: Copy>(&self, src: &[E], dst: &mut [E]) {
        if self.elements() == 0 {
            return;
        }
        match self.units() {
            [Some(read), Some(write)] if read == write => self.rows(read, src, dst),
            [Some(read), Some(write)] => match COLUMNS_BYTES / size_of::<E>() {
                8 => self.tiles::<E, 8>(read, write, src, dst),
                16 => self.tiles::<E, 16>(read, write, src, dst),
                _ => self.tiles::<E, 32>(read, write, src, dst),
            },
            _ => self.elements_one_by_one(src, dst),
        }
    }

    /// The contiguous axes of the source and of the destination.
    fn units(&self) -> [Option<usize>; 2] {
        [self.from, self.to]
            .map(|view| (0..DIMS).rev().find(|&dim| self.shape[dim] > 1 && view.stride[dim] == 1))
    }

    /// Calls `panel` for disjoint parts, within [`Transfer::reach`] and [`Transfer::span`].
    pub fn panels(&self, mut panel: impl FnMut(Panel)) {
        let [read, write] = self.units();
        if read == write || self.elements() == 0 {
            return self.runs(|from, to, columns| {
                panel(Panel { from, to, rows: 1, columns, jump: 0, pitch: 1 });
            });
        }
        // A side without a contiguous axis has one row or one column.
        let (columns, pitch) = read.map_or((1, 1), |dim| (self.shape[dim], self.to.stride[dim]));
        let (rows, jump) = write.map_or((1, 0), |dim| (self.shape[dim], self.from.stride[dim]));
        let skip = [read, write].map(|dim| dim.unwrap_or(DIMS));
        self.each(&[(); 0], &mut [], skip, |_, _, from, to| {
            panel(Panel { from, to, rows, columns, jump, pitch });
        });
    }

    /// The axis that is contiguous on both sides.
    fn run_axis(&self) -> Option<usize> {
        let both =
            |d: &usize| self.shape[*d] > 1 && self.from.stride[*d] == 1 && self.to.stride[*d] == 1;
        (0..DIMS).rev().find(both)
    }

    pub(crate) fn run_len(&self) -> usize {
        self.run_axis().map_or(1, |axis| self.shape[axis])
    }

    /// Calls `run(from, to, len)` for disjoint runs within [`Transfer::reach`] and `span`.
    pub fn runs(&self, mut run: impl FnMut(usize, usize, usize)) {
        if self.elements() == 0 {
            return;
        }
        let (axis, len) = self.run_axis().map_or((DIMS, 1), |axis| (axis, self.shape[axis]));
        let (rows, n) = self.longest_but(axis);
        let (read, write) = (self.from.stride[rows], self.to.stride[rows]);
        self.each(&[(); 0], &mut [], [axis, rows], |_, _, from, to| {
            (0..n).for_each(|row| run(from + row * read, to + row * write, len));
        });
    }

    /// Gathers elements of the box, in the order of its axes.
    ///
    /// # Panics
    /// If an array is too short, or `part` ends behind the box.
    pub fn gather<E: Copy>(&self, part: Range<usize>, src: &[E], dense: &mut [E]) {
        self.boxes(part, |inner, stride, from, _, dense_at| {
            let from = View { offset: from, ..self.from };
            let to = View { offset: dense_at, stride };
            Self { shape: inner, from, to }.run(src, dense);
        });
    }

    /// Scatters a dense sequence to elements of the box.
    ///
    /// # Panics
    /// As [`Transfer::gather`].
    pub fn scatter<E: Copy>(&self, part: Range<usize>, dense: &[E], dst: &mut [E]) {
        self.boxes(part, |inner, stride, _, to, dense_at| {
            let from = View { offset: dense_at, stride };
            let to = View { offset: to, ..self.to };
            Self { shape: inner, from, to }.run(dense, dst);
        });
    }

    /// Where the elements `part` begin in the source, if they are contiguous there.
    pub(crate) fn source_run(&self, part: &Range<usize>) -> Option<usize> {
        self.run_in(&self.from, part)
    }

    /// Where the elements `part` begin in the destination, if they are contiguous there.
    pub(crate) fn destination_run(&self, part: &Range<usize>) -> Option<usize> {
        self.run_in(&self.to, part)
    }

    fn run_in(&self, view: &View, part: &Range<usize>) -> Option<usize> {
        let row = self.shape[DIMS - 1];
        let within = view.stride[DIMS - 1] == 1 && part.end <= part.start / row * row + row;
        within.then(|| {
            let (mut at, mut rest) = (view.offset, part.start);
            for dim in (0..DIMS).rev() {
                at += rest % self.shape[dim] * view.stride[dim];
                rest /= self.shape[dim];
            }
            at
        })
    }

    /// Cuts a range of elements into boxes, at most two per axis. `visit` gets shape, strides of a
    /// dense box, and the beginnings in source, destination and range.
    fn boxes(
        &self,
        part: Range<usize>,
        mut visit: impl FnMut([usize; DIMS], [usize; DIMS], usize, usize, usize),
    ) {
        assert!(part.end <= self.elements(), "{part:?} of {} elements", self.elements());
        let mut stride = [1; DIMS];
        for dim in (0..DIMS - 1).rev() {
            stride[dim] = stride[dim + 1] * self.shape[dim + 1];
        }
        let mut at = part.start;
        while at < part.end {
            // The outermost axis along which whole rows begin here and fit.
            let fits = |d: &usize| at.is_multiple_of(stride[*d]) && at + stride[*d] <= part.end;
            let axis = (0..DIMS).find(fits).expect("a single element always fits");
            let index = |d: usize| at / stride[d] % self.shape[d];
            let rows = ((part.end - at) / stride[axis]).min(self.shape[axis] - index(axis));
            let inner = std::array::from_fn(|d| match d.cmp(&axis) {
                std::cmp::Ordering::Less => 1,
                std::cmp::Ordering::Equal => rows,
                std::cmp::Ordering::Greater => self.shape[d],
            });
            let offset = |view: &View| {
                view.offset + (0..DIMS).map(|d| index(d) * view.stride[d]).sum::<usize>()
            };
            visit(inner, stride, offset(&self.from), offset(&self.to), at - part.start);
            at += rows * stride[axis];
        }
    }

    /// Copies runs: both sides are contiguous along one axis.
    fn rows<E: Copy>(&self, axis: usize, src: &[E], dst: &mut [E]) {
        let n = self.shape[axis];
        let (rows, count) = self.longest_but(axis);
        let (jump, pitch) = (self.from.stride[rows], self.to.stride[rows]);
        self.each(src, dst, [axis, rows], |src, dst, from, to| {
            for row in 0..count {
                let (from, to) =
                    (&src[from + row * jump..][..n], &mut dst[to + row * pitch..][..n]);
                if n * size_of::<E>() <= SHORT_RUN_BYTES {
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from)
                } else {
                    to.copy_from_slice(from)
                }
            }
        });
    }

    /// Copies between arrays, one of which has no contiguous axis.
    fn elements_one_by_one<E: Copy>(&self, src: &[E], dst: &mut [E]) {
        let (axis, count) = self.longest_but(DIMS);
        let (jump, pitch) = (self.from.stride[axis], self.to.stride[axis]);
        self.each(src, dst, [axis, DIMS], |src, dst, from, to| {
            (0..count).for_each(|i| dst[to + i * pitch] = src[from + i * jump]);
        });
    }

    /// The longest axis other than `axis`, for inner loops, and its length.
    fn longest_but(&self, axis: usize) -> (usize, usize) {
        let others = (0..DIMS).filter(|dim| *dim != axis);
        let longest = others.max_by_key(|dim| self.shape[*dim]).expect("there are several axes");
        (longest, self.shape[longest])
    }

    /// Transposes: `read` is contiguous in the source, `write` in the destination.
    fn tiles<E: Copy, const WIDE: usize>(
        &self,
        read: usize,
        write: usize,
        src: &[E],
        dst: &mut [E],
    ) {
        let (columns, rows) = (self.shape[read], self.shape[write]);
        let (jump, pitch) = (self.from.stride[write], self.to.stride[read]);
        self.each(src, dst, [read, write], |src, dst, from, to| {
            let whole = columns / WIDE * WIDE;
            for first in (0..whole).step_by(WIDE) {
                let lines = lines_of::<E, WIDE>(&mut dst[to + first * pitch..], pitch, rows);
                for row in 0..rows {
                    let line: &[E; WIDE] =
                        src[from + first + row * jump..].first_chunk().expect("inside the box");
                    for column in 0..WIDE {
                        lines[column][row] = line[column];
                    }
                }
            }
            for column in whole..columns {
                let line = &mut dst[to + column * pitch..][..rows];
                for (row, element) in line.iter_mut().enumerate() {
                    *element = src[from + column + row * jump];
                }
            }
        });
    }

    /// Calls `inner` with the offsets of every index along the axes outside `skip`.
    #[inline(always)]
    fn each<E>(
        &self,
        src: &[E],
        dst: &mut [E],
        skip: [usize; 2],
        mut inner: impl FnMut(&[E], &mut [E], usize, usize),
    ) {
        let n: [usize; DIMS] =
            std::array::from_fn(|d| if skip.contains(&d) { 1 } else { self.shape[d] });
        let mut i = [0; DIMS];
        loop {
            let at = |view: &View| {
                view.offset + i.iter().zip(view.stride).map(|(i, s)| i * s).sum::<usize>()
            };
            inner(src, dst, at(&self.from), at(&self.to));
            let Some(dim) = (0..DIMS).rev().find(|&d| i[d] + 1 < n[d]) else { return };
            i[dim] += 1;
            i[dim + 1..].fill(0);
        }
    }
}

/// The first `len` elements of `LINES` lines that start `pitch` apart, as equal slices.
pub(crate) fn lines_of<E, const LINES: usize>(
    array: &mut [E],
    pitch: usize,
    len: usize,
) -> [&mut [E]; LINES] {
    let mut rest = array;
    std::array::from_fn(|line| {
        let end = if line + 1 < LINES { pitch } else { len };
        let (this, tail) = std::mem::take(&mut rest).split_at_mut(end);
        rest = tail;
        &mut this[..len]
    })
}

#[cfg(test)]
mod tests;
