//! Tilings: the work and the tile sizes of each rank in a shared pass.
//!
//! ```text
//! take this rank's brick of `work`, whose lines along the transformed axes are whole
//! lengths: whole along transformed axes
//!     from the innermost other axis outwards: extend while a tile fits into cache,
//!         at most one run along the contiguous axis; then divide the axis evenly
//! order: as in memory; the transformed axis goes last if it is the only one
//!     and its lines come in long enough runs
//! strips, for a real transform along rows: cut a tile into runs that fit into nearer cache;
//!     transform each strip as it is read (forward) or written (inverse), the rest as a whole
//! sides: real data and its half spectrum differ in layout, work and width
//! ```

use std::borrow::Cow;
use std::ops::Range;

use crate::base::cache_sizes::{LINE_BYTES, RUN_BYTES, STRAIGHT_BYTES, STRIP_BYTES, TILE_BYTES};
use crate::geometry::Placed;
use crate::geometry::exclusive::Exclusive;
use crate::geometry::{DynBrick, Layout, PerAxis, Transfer};
use crate::problem::Direction;
use crate::recipe::Pass;

/// The transforms of a tile: the first ones by strip on reading, or the last ones on writing. The
/// others apply to the whole tile. The next strip is prefetched meanwhile.
pub(crate) struct Strips<'a> {
    pub(crate) on_read: &'a [(usize, Pass)],
    pub(crate) whole: &'a [(usize, Pass)],
    pub(crate) on_write: &'a [(usize, Pass)],
    /// The lengths of strips, each a contiguous run of a tile.
    pub(crate) lengths: PerAxis<usize>,
}

/// The input of a shared pass.
pub(crate) struct Tiling<'a> {
    pub(crate) rank: usize,
    /// The distribution of data, before and after.
    pub(crate) home: &'a Layout,
    pub(crate) work: &'a Layout,
    /// Data that no other rank touches in this and all adjacent shared passes.
    pub(crate) exclusive: Option<&'a Exclusive>,
    pub(crate) first: bool,
    pub(crate) batch: usize,
    pub(crate) width: usize,
    /// The axes and their transforms.
    pub(crate) axes: &'a [(usize, Pass)],
    /// The layout of real data, whose half spectrum is in `home`: before or after, by direction.
    pub(crate) real: Option<(Direction, &'a Layout)>,
}

/// Data and work on the read side or the write side.
pub(crate) struct Side<'a> {
    pub(crate) layout: Cow<'a, Layout>,
    pub(crate) work: Cow<'a, Layout>,
    pub(crate) width: usize,
}

impl Tiling<'_> {
    /// A box of `home` on the read or write side.
    pub(crate) fn on(&self, side: &Side<'_>, part: &DynBrick) -> DynBrick {
        match self.real {
            Some((_, real)) if side.width == 1 => self.real_box(part, real),
            _ => *part,
        }
    }

    /// The box of real data whose spectrum this box of `home` is.
    fn real_box(&self, tile: &DynBrick, real: &Layout) -> DynBrick {
        let halved = self.axes.iter().find(|(_, pass)| pass.changes_len());
        let (axis, _) = halved.expect("one axis is halved where there is real data");
        if tile.is_empty() { *tile } else { tile.with_range(*axis, 0..real.grid().len(*axis)) }
    }

    /// The read side, if it differs, and the write side.
    pub(crate) fn sides(&self) -> (Option<Side<'_>>, Side<'_>) {
        let half = || Side {
            layout: Cow::Borrowed(self.home),
            work: Cow::Borrowed(self.work),
            width: self.width,
        };
        let Some((direction, real)) = self.real else { return (None, half()) };
        let bricks = self.work.bricks().iter().map(|brick| self.real_box(brick, real)).collect();
        let work = Layout::new(real.grid(), bricks, self.work.ranks())
            .and_then(|work| work.ordered(real.order()))
            .expect("whole lines of a tiling are one");
        let all = Side { layout: Cow::Borrowed(real), work: Cow::Owned(work), width: 1 };
        match direction {
            Direction::Forward => (Some(all), half()),
            Direction::Inverse => (Some(half()), all),
        }
    }

    fn whole(&self, axis: usize) -> bool {
        self.axes.iter().any(|(other, _)| *other == axis)
    }

    /// The lengths of tiles, with whole lines along the transformed axes and long runs of memory.
    pub(crate) fn lengths(&self, element: usize) -> PerAxis<usize> {
        let (brick, order) = (self.work.brick(self.rank), self.home.order());
        let mut step =
            PerAxis::from_fn(
                order.len(),
                |axis| if self.whole(axis) { brick.len(axis) } else { 1 },
            );
        // Inner axes first: they make runs longer.
        for (place, &axis) in order.iter().enumerate().rev() {
            if self.whole(axis) || brick.is_empty() {
                continue;
            }
            let bytes = step.iter().product::<usize>() * self.batch * element;
            let (least, most) = if place + 1 == order.len() {
                (LINE_BYTES / element, RUN_BYTES / element)
            } else {
                (1, brick.len(axis))
            };
            let wanted = (TILE_BYTES / bytes).min(most).max(least).max(1);
            // Equal parts, because a short one would have short runs.
            let near = (brick.len(axis) + wanted / 2) / wanted;
            let fits = (TILE_BYTES + TILE_BYTES / 8) / bytes;
            let parts = near.max(brick.len(axis).div_ceil(fits.max(wanted)));
            step[axis] = brick.len(axis).div_ceil(parts);
        }
        step
    }

    /// The order of axes in tiles. Strided lines become contiguous if enough are adjacent.
    pub(crate) fn order(&self, lengths: PerAxis<usize>, element: usize) -> PerAxis<usize> {
        let mut order = self.home.order();
        let [(axis, _)] = self.axes else { return order };
        let peers = order.contiguous();
        if *axis != peers && self.real.is_none() && lengths[peers] * element >= STRAIGHT_BYTES {
            let place = order.iter().position(|other| other == axis);
            order[place.expect("the order has every axis")..].rotate_left(1);
        }
        order
    }

    /// The strips of tiles with this order of axes and these lengths. `element` is in bytes.
    pub(crate) fn strips(
        &self,
        lengths: PerAxis<usize>,
        order: PerAxis<usize>,
        element: usize,
    ) -> Strips<'_> {
        let Some((direction, _)) = self.real else {
            return Strips { on_read: &[], whole: self.axes, on_write: &[], lengths };
        };
        let (forward, row) = (direction == Direction::Forward, order.contiguous());
        let (on_read, rest) = self.axes.split_at(usize::from(forward));
        let (whole, on_write) = rest.split_at(rest.len() - usize::from(!forward));
        let mut strip = lengths;
        // Rows of several batches are not adjacent.
        if self.batch == 1 && on_read.iter().chain(on_write).all(|(axis, _)| *axis == row) {
            let mut bytes = element * lengths[row];
            for &axis in order[..order.len() - 1].iter().rev() {
                strip[axis] = (STRIP_BYTES / bytes.max(1)).clamp(1, lengths[axis].max(1));
                bytes *= lengths[axis];
            }
        }
        Strips { on_read, whole, on_write, lengths: strip }
    }

    pub(crate) fn boxes(&self, step: PerAxis<usize>) -> Vec<DynBrick> {
        in_boxes(self.work.brick(self.rank), self.home.order(), step)
    }

    /// The range of a box in this rank's brick, in real numbers, if contiguous there.
    pub(crate) fn run(&self, tile: &DynBrick, order: PerAxis<usize>) -> Option<Range<usize>> {
        let batch = self.batch;
        let placed = |brick, order| Placed { brick, order, batch };
        let from = placed(self.home.brick(self.rank), self.home.order());
        let transfer = Transfer::new(tile, 0..batch, &from, &placed(*tile, order));
        let (first, points) = (transfer.source().offset, transfer.elements());
        (transfer.run_len() == points).then(|| first * self.width..(first + points) * self.width)
    }

    /// Transfers of data that other ranks transform: to the exposed part, and back.
    pub(crate) fn others(&self, exclusive: &Exclusive) -> Vec<[Transfer; 2]> {
        let (brick, batch) = (self.home.brick(self.rank), self.batch);
        let placed = |brick| Placed { brick, order: self.home.order(), batch };
        let mut others = Vec::new();
        self.work.intersections(&brick, |other, common| {
            let theirs = exclusive.public(self.rank).iter().filter(|_| other != self.rank);
            for (dense, before) in theirs {
                let part = common.intersect(dense);
                let transfer =
                    |from, to| Transfer::new(&part, 0..batch, &placed(from), &placed(to));
                let before = before * batch;
                if !part.is_empty() {
                    let there = transfer(brick, *dense).behind(0, before);
                    others.push([there, transfer(*dense, brick).behind(before, 0)]);
                }
            }
        });
        others
    }
}

/// The boxes of these lengths of a brick, in memory order.
pub(crate) fn in_boxes(
    brick: DynBrick,
    order: PerAxis<usize>,
    step: PerAxis<usize>,
) -> Vec<DynBrick> {
    if brick.is_empty() {
        return Vec::new();
    }
    let mut boxes = vec![brick];
    for axis in order {
        let cut = |whole: DynBrick| {
            let range = whole.range(axis);
            let ends = move |lo: usize| lo..range.end.min(lo + step[axis]);
            whole.range(axis).step_by(step[axis]).map(move |lo| whole.with_range(axis, ends(lo)))
        };
        boxes = boxes.into_iter().flat_map(cut).collect();
    }
    boxes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{DynGrid, ProcGrid};
    use crate::problem::Kind;

    fn pass(kind: Kind, n: usize) -> Pass {
        let complex_before = kind != Kind::R2C;
        Pass {
            kind,
            direction: Direction::Forward,
            n,
            resized: None,
            complex_before,
            complex_after: true,
            outer: 1,
            inner: 1,
            factor: 1.0,
            twiddles: None,
            strides: [1; 2],
        }
    }

    /// A tiling of complex double precision data, on rank 0.
    fn of_rank_0<R>(
        shape: [usize; 3],
        cuts: [usize; 3],
        axes: &[usize],
        then: impl FnOnce(&Tiling<'_>) -> R,
    ) -> R {
        let grid = DynGrid::new(shape).unwrap();
        let ranks = cuts.iter().product();
        let even = |cuts| Layout::even(grid, ProcGrid::new(cuts), ranks);
        let axes: Vec<_> = axes.iter().map(|&axis| (axis, pass(Kind::C2C, shape[axis]))).collect();
        let (home, work) = (even([ranks, 1, 1]), even(cuts));
        let (batch, width) = (1, 2);
        then(&Tiling {
            rank: 0,
            home: &home,
            work: &work,
            exclusive: None,
            first: false,
            batch,
            width,
            axes: &axes,
            real: None,
        })
    }

    const ELEMENT: usize = 16;

    #[test]
    fn lines_come_straight_where_enough_is_side_by_side() {
        let order = |shape, cuts, axes: &[usize]| {
            of_rank_0(shape, cuts, axes, |it| it.order(it.lengths(ELEMENT), ELEMENT))
        };
        let least = STRAIGHT_BYTES / ELEMENT;
        assert_eq!(order([64, 8, least], [1, 2, 1], &[0]), [1, 2, 0]);
        assert_eq!(order([64, 8, least], [1, 1, 2], &[0]), [0, 1, 2], "in the half of it");
        assert_eq!(order([8, 64, least], [2, 1, 1], &[1]), [0, 2, 1]);
        assert_eq!(order([8, 8, 2 * least], [2, 1, 1], &[2]), [0, 1, 2], "rows");
        assert_eq!(order([16, 16, least], [1, 1, 1], &[0, 1]), [0, 1, 2], "planes");
    }

    /// A tiling of half spectra along these axes. The third axis is halved.
    fn of_halves<R>(
        direction: Direction,
        n: [usize; 2],
        axes: &[usize],
        batch: usize,
        then: impl FnOnce(&Tiling<'_>) -> R,
    ) -> R {
        let layout = |row| {
            let grid = DynGrid::new([n[0], 8, row]).unwrap();
            Layout::even(grid, ProcGrid::new([1, 2, 1]), 2)
        };
        let (half, real) = (layout(n[1] / 2 + 1), layout(n[1]));
        let kind = |axis| if axis == 2 { Kind::R2C } else { Kind::C2C };
        let axes: Vec<_> = axes.iter().map(|&axis| (axis, pass(kind(axis), n[1]))).collect();
        then(&Tiling {
            rank: 0,
            home: &half,
            work: &half,
            exclusive: None,
            first: false,
            batch,
            width: 2,
            axes: &axes,
            real: Some((direction, &real)),
        })
    }

    #[test]
    fn order_with_real_data_is_that_of_memory() {
        of_halves(Direction::Forward, [64, 128], &[0], 1, |it| {
            let lengths = [64, 1, 65];
            assert_eq!(it.order(lengths.into(), ELEMENT), [0, 1, 2]);
            assert_eq!(Tiling { real: None, ..*it }.order(lengths.into(), ELEMENT), [1, 2, 0]);
        });
    }

    #[test]
    fn half_a_spectrum_is_made_on_the_way_to_a_tile_or_from_it() {
        let (lengths, lines) = ([64, 1, 65], STRIP_BYTES / (65 * ELEMENT));
        for (direction, axes, expected) in
            [(Direction::Forward, [2, 0], [1, 1, 0]), (Direction::Inverse, [0, 2], [0, 1, 1])]
        {
            let of = |axes: &[usize], order, batch| {
                of_halves(direction, [64, 128], axes, batch, |it| {
                    let cut = it.strips(lengths.into(), order, ELEMENT * batch);
                    ([cut.on_read, cut.whole, cut.on_write].map(<[_]>::len), cut.lengths.array())
                })
            };
            let memory = [0, 1, 2];
            assert_eq!(of(&axes, memory.into(), 1), (expected, [lines, 1, 65]));
            assert_eq!(of(&axes, [2, 1, 0].into(), 1), (expected, lengths), "lines are not rows");
            assert_eq!(of(&axes, memory.into(), 2), (expected, lengths), "batches");
            let alone = [expected[0], 0, expected[2]];
            assert_eq!(of(&[2], memory.into(), 1), (alone, [lines, 1, 65]));
        }
        let complex = of_rank_0([64; 3], [1, 2, 1], &[2, 0], |it| {
            let cut = it.strips([64, 2, 64].into(), [0, 1, 2].into(), ELEMENT);
            ([cut.on_read, cut.whole, cut.on_write].map(<[_]>::len), cut.lengths.array())
        });
        assert_eq!(complex, ([0, 2, 0], [64, 2, 64]));
    }

    #[test]
    fn strips_are_runs_of_a_tile() {
        for lengths in [[3, 5, 7], [40, 1, 9], [1, 64, 300], [5, 7, 3000], [2, 300, 2]] {
            let tile = DynBrick::new([0; 3], lengths);
            let order = [1, 0, 2];
            let cut = of_halves(Direction::Forward, [8, 8], &[2], 1, |it| {
                it.strips(lengths.into(), order.into(), ELEMENT).lengths
            });
            let mut at = 0;
            for strip in in_boxes(tile, order.into(), cut) {
                let placed = |brick| Placed::new(brick, order, 1);
                let transfer = Transfer::new(&strip, 0..1, &placed(tile), &placed(strip));
                assert_eq!((transfer.source().offset, transfer.run_len()), (at, strip.points()));
                at += strip.points();
            }
            assert_eq!(at, tile.points());
        }
    }

    #[test]
    fn tiles_are_hardly_larger_than_wanted_and_hold_whole_lines() {
        let lengths = |shape, cuts, axes: &[usize]| {
            of_rank_0(shape, cuts, axes, |it| (it.lengths(ELEMENT), it.work.brick(0)))
        };
        // One cache line is read in any case.
        let least = |whole: usize| (whole * LINE_BYTES).max(TILE_BYTES + TILE_BYTES / 8);
        for n in [3, 16, 31, 64, 100, 129, 256, 300, 513, 4096] {
            for (axes, whole) in [(&[0][..], n), (&[0, 1][..], 20 * n)] {
                let (found, brick) = lengths([n, 20, 150], [1, 1, 2], axes);
                let bytes = ELEMENT * found.iter().product::<usize>();
                assert!(bytes <= least(whole), "{found:?}");
                assert!(axes.iter().all(|&axis| found[axis] == brick.len(axis)), "{found:?}");
                assert!((0..3).all(|axis| (1..=brick.len(axis)).contains(&found[axis])));
            }
        }
        assert_eq!(lengths([256; 3], [1, 2, 1], &[0]).0, [256, 1, 128]);
        // A brick slightly wider than a run is not cut.
        assert_eq!(lengths([256, 256, 129], [1, 2, 1], &[0]).0, [256, 1, 129]);
        assert_eq!(lengths([64; 3], [1, 1, 6], &[0, 1]).0, [64, 64, 5]);
    }
}
