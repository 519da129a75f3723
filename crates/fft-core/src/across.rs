//! Local transforms along axes that are cut, where all ranks share memory: lines are brought together from everybody's
//! memory, transformed in cache, and put back where they were. One pass over memory, in place, nothing sent. Where one of the
//! axes is that along which real data is half a spectrum, lines come from real data, or go there.

use std::borrow::{BorrowMut, Cow};
use std::cmp::Ordering::{Equal, Less};
use std::mem::take;
use std::ops::Range;
use std::time::Instant;

use crate::clock::{Clock, Time};
use crate::commons::{Commons, Ends, Piece, Share, Show};
use crate::device::Between;
use crate::local::BLOCK_BYTES;
use crate::moves::CHUNK_RUN_BYTES;
use crate::tiles::{Lines, TileFfts};
use crate::transfer::Placed;
use crate::{Brick, Direction, Error, Layout, Pass, Processor, Real, SLOT_ALIGN, Transfer};

/// Bytes of a tile, unless its lines are so long that it takes more to hold a few: a part of the second-level cache.
pub(crate) const TILE_BYTES: usize = BLOCK_BYTES / 2;
/// Bytes that are fetched side by side if tiles do not get too large: what it takes to make the most of a page of
/// memory that must be found.
const RUN_BYTES: usize = 2048;
/// Bytes side by side from which on lines are worth bringing to the tile one by one. With half as much it took as long as row by
/// row where they are written back, and a third longer where they are written elsewhere.
const STRAIGHT_BYTES: usize = 1024;
/// Bytes that are fetched side by side at least: a cache line.
pub(crate) const LINE_BYTES: usize = 64;

/// Transforms along some axes of data that stays where it is.
pub(crate) struct Across<T: Real, Dev: Processor<T>> {
    pass: Admission,
    tiles: Vec<Tile>,
    /// For each shape of tiles.
    ffts: Vec<Vec<(Dev::Fft, Range<usize>)>>,
    /// What this rank has and others transform.
    others: Vec<Transfer>,
    /// Real numbers per element.
    width: usize,
    halving: Option<Halving>,
}

/// What comes from other memory than it goes to, as other numbers.
struct Halving {
    direction: Direction,
    /// From whose memory all tiles are made, in turn.
    reads: Vec<Piece>,
    /// Real numbers per element there.
    width: usize,
}

/// Before and after the ranks have agreed on who touches what.
enum Admission {
    Asked(Option<Share>),
    Given(usize),
}

/// A box of lines.
struct Tile {
    /// Which of the share's pieces it is made of.
    pieces: Range<usize>,
    /// Which of what is read elsewhere it is made of, and real numbers that this takes before the tile as it is written.
    reads: Range<usize>,
    before: usize,
    /// Which transform it needs.
    fft: usize,
}

/// What a transform across ranks is made from.
pub(crate) struct Division<'a, const D: usize> {
    pub(crate) rank: usize,
    /// Where the data is, before and after.
    pub(crate) home: &'a Layout<D>,
    /// Who transforms what.
    pub(crate) work: &'a Layout<D>,
    pub(crate) howmany: usize,
    /// Real numbers per element.
    pub(crate) width: usize,
    /// The axes, each with its transform.
    pub(crate) axes: &'a [(usize, Pass)],
    /// Where real data is, of which `home` has half the spectrum: before or after, as the direction is.
    pub(crate) real: Option<(Direction, &'a Layout<D>)>,
}

/// Who has what and who works on what, where it is read or where it is written.
struct Side<'a, const D: usize> {
    layout: Cow<'a, Layout<D>>,
    work: Cow<'a, Layout<D>>,
    /// Real numbers per element.
    width: usize,
}

/// Bytes of the smallest box that is whole along some axes and holds so many bytes side by side.
fn tile_bytes<const D: usize>(
    layout: &Layout<D>,
    axes: &[usize],
    element: usize,
    side: usize,
) -> usize {
    let neighbours = match axes.contains(&layout.order()[D - 1]) {
        true => element,
        false => element.max(side),
    };
    axes.iter().map(|axis| layout.grid().len(*axis)).product::<usize>() * neighbours
}

/// Whether boxes that are whole along some axes fit into cache. `element` is in bytes, of all batches.
pub(crate) fn together<const D: usize>(layout: &Layout<D>, axes: &[usize], element: usize) -> bool {
    tile_bytes(layout, axes, element, LINE_BYTES) <= BLOCK_BYTES
}

/// Of axes that are transformed one after the other, the last ones, as many as fit into cache together in a chunk: the same
/// on all ranks. `element` is in bytes, of all batches, and so is `most`, of a tile.
pub(crate) fn tiled<const D: usize>(
    layout: &Layout<D>,
    since: &[usize],
    element: usize,
    most: usize,
) -> Vec<usize> {
    let fits = |first: &usize| {
        tile_bytes(layout, &since[*first..], element, CHUNK_RUN_BYTES) <= most.min(BLOCK_BYTES)
    };
    let first = (0..since.len()).find(fits).unwrap_or(since.len().saturating_sub(1));
    since[first..].to_vec()
}

impl<const D: usize> Division<'_, D> {
    /// The axes in groups whose transforms can be done on one tile in cache.
    pub(crate) fn parts(&self, real_bytes: usize) -> impl Iterator<Item = &[(usize, Pass)]> {
        let axes: Vec<_> = self.axes.iter().map(|(axis, _)| *axis).collect();
        let element = self.width * real_bytes * self.howmany;
        let together = together(self.home, &axes, element);
        self.axes.chunks(if together { self.axes.len().max(1) } else { 1 })
    }

    /// The box of real data of which this box of `home` is half the spectrum, or all.
    fn real_box(&self, tile: &Brick<D>, real: &Layout<D>) -> Brick<D> {
        let halved = self.axes.iter().find(|(_, pass)| pass.changes_len());
        let (axis, _) = halved.expect("one axis is halved where there is real data");
        if tile.is_empty() { *tile } else { tile.with_range(*axis, 0..real.grid().len(*axis)) }
    }

    /// Where it is read, if elsewhere than where it is written, and where that is.
    fn sides(&self) -> (Option<Side<'_, D>>, Side<'_, D>) {
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

    /// Whether lines along this axis are transformed.
    fn whole(&self, axis: usize) -> bool {
        self.axes.iter().any(|(other, _)| *other == axis)
    }

    /// The lengths of boxes that hold whole lines along the axes that are transformed, and long runs of memory.
    fn lengths(&self, element: usize) -> [usize; D] {
        let (brick, order) = (self.work.brick(self.rank), self.home.order());
        let mut step: [usize; D] =
            std::array::from_fn(|axis| if self.whole(axis) { brick.len(axis) } else { 1 });
        // Inner axes first: they make runs longer.
        for (place, &axis) in order.iter().enumerate().rev() {
            if self.whole(axis) || brick.is_empty() {
                continue;
            }
            let bytes = step.iter().product::<usize>() * self.howmany * element;
            let (least, most) = match place == D - 1 {
                true => (LINE_BYTES / element, RUN_BYTES / element),
                false => (1, brick.len(axis)),
            };
            let wanted = (TILE_BYTES / bytes).min(most).max(least).max(1);
            // In equal parts, as a short one would come in short runs: nearly as wanted, and hardly larger than a tile.
            let near = (brick.len(axis) + wanted / 2) / wanted;
            let fits = (TILE_BYTES + TILE_BYTES / 8) / bytes;
            let parts = near.max(brick.len(axis).div_ceil(fits.max(wanted)));
            step[axis] = brick.len(axis).div_ceil(parts);
        }
        step
    }

    /// The order of axes in tiles. Lines along one axis that lie apart come straight to one piece of the tile each, where as much
    /// is side by side as makes that worth while; otherwise tiles are as memory is.
    fn order(&self, lengths: [usize; D], element: usize) -> [usize; D] {
        let mut order = self.home.order();
        let [(axis, _)] = self.axes else { return order };
        let neighbours = order[D - 1];
        if *axis != neighbours
            && self.real.is_none()
            && lengths[neighbours] * element >= STRAIGHT_BYTES
        {
            let place = order.iter().position(|other| other == axis);
            order[place.expect("the order has every axis")..].rotate_left(1);
        }
        order
    }

    /// This rank's brick in boxes of such lengths.
    fn boxes(&self, step: [usize; D]) -> Vec<Brick<D>> {
        let brick = self.work.brick(self.rank);
        if brick.is_empty() {
            return Vec::new();
        }
        let mut boxes = vec![brick];
        for axis in self.home.order() {
            let cut = |whole: Brick<D>| {
                let range = whole.range(axis);
                let ends = move |lo: usize| lo..range.end.min(lo + step[axis]);
                whole
                    .range(axis)
                    .step_by(step[axis])
                    .map(move |lo| whole.with_range(axis, ends(lo)))
            };
            boxes = boxes.into_iter().flat_map(cut).collect();
        }
        boxes
    }
}

impl<T: Real, Dev: Processor<T>> Across<T, Dev> {
    /// What this rank does.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn new<const D: usize>(
        division: &Division<'_, D>,
        device: &mut Dev,
    ) -> Result<Self, Error> {
        let Division { rank, home, work, howmany, width, .. } = *division;
        let bytes = T::PRECISION.bytes();
        let (source, target) = division.sides();
        let mut share =
            Share::new(rank, &target.layout, &target.work, target.width * bytes, howmany);
        if let Some(source) = &source {
            share = share.reading(&source.layout, source.width * bytes, howmany);
        }
        let lengths = division.lengths(width * bytes);
        let order = division.order(lengths, width * bytes);
        let lines = Lines { rank, order, howmany, axes: division.axes };
        let mut ffts = TileFfts::default();
        let (mut tiles, mut reads, mut most) = (Vec::new(), Vec::new(), 0);
        for tile in division.boxes(lengths) {
            let on = |side: &Side<'_, D>| match division.real {
                Some((_, real)) if side.width == 1 => division.real_box(&tile, real),
                _ => tile,
            };
            let reals = |side: &Side<'_, D>| on(side).points() * howmany * side.width;
            let (first, first_read) = (share.pieces().len(), reads.len());
            share.claim(&target.layout, &target.work, &on(&target), order, howmany);
            let before = source.as_ref().map_or(0, |source| {
                reads.extend(Piece::of(&source.layout, &on(source), order, howmany));
                // Both begin alike in a line of memory.
                reals(source).next_multiple_of(SLOT_ALIGN)
            });
            let fft = ffts.plan(lines, &tile, device)?;
            let (pieces, reads) = (first..share.pieces().len(), first_read..reads.len());
            tiles.push(Tile { pieces, reads, before, fft });
            most = most.max(before + reals(&target));
        }
        device.reserve_tile(most, rank)?;
        let halving = source.zip(division.real);
        let halving =
            halving.map(|(side, (direction, _))| Halving { direction, reads, width: side.width });
        let brick = home.brick(rank);
        let placed = Placed { brick, order: home.order(), howmany };
        let mut others = Vec::new();
        work.meet(&brick, |other, common| {
            if other != rank && halving.is_none() {
                others.push(Transfer::new(&common, 0..howmany, &placed, &placed));
            }
        });
        let pass = Admission::Asked(Some(share));
        Ok(Self { pass, tiles, ffts: ffts.finish(), others, width, halving })
    }

    /// Whether it goes to other memory than it comes from.
    pub(crate) fn moves(&self) -> bool {
        self.halving.is_some()
    }

    /// Agrees with the other ranks on who touches what. Collective.
    ///
    /// # Errors
    /// [`Error::Disagreement`] on every rank.
    pub(crate) fn admit(&mut self, commons: &mut dyn Commons) -> Result<(), Error> {
        if let Admission::Asked(share) = &mut self.pass {
            let share = share.take().expect("a share is admitted once");
            self.pass = Admission::Given(commons.admit(share)?);
        }
        Ok(())
    }

    /// Transforms what is in `src`, or in `dst`, into `dst`. Collective.
    ///
    /// # Errors
    /// [`Error::Left`] when a rank has gone.
    pub(crate) fn run(
        &mut self,
        commons: &mut dyn Commons,
        device: &mut Dev,
        src: Option<&Dev::Memory>,
        dst: &mut Dev::Memory,
        clock: &mut Clock,
    ) -> Result<(), Error> {
        let (read, share) = (src.map(|src| Dev::bytes(src)), self.share());
        let write = Dev::bytes_mut(dst);
        self.visit(
            commons,
            device,
            Show::Write { read, write, share, ends: Ends::default() },
            clock,
        )
    }

    /// Transforms in place, but for what this rank has at the ends: that is copied only as far as others transform it.
    /// Collective.
    ///
    /// # Errors
    /// [`Error::Left`] when a rank has gone.
    pub(crate) fn run_between(
        &mut self,
        commons: &mut dyn Commons,
        device: &mut Dev,
        between: Between<'_, Dev::Memory>,
        clock: &mut Clock,
    ) -> Result<(), Error> {
        let Between { input, work, mut output } = between;
        let (share, width) = (self.share(), self.width);
        if let Some(input) = input {
            let parts = self.others.iter();
            clock.own.time(|| parts.for_each(|part| device.carry(part, width, input, work)));
        }
        let ends = Ends {
            input: input.map(|input| Dev::bytes(input)),
            output: output.as_deref_mut().map(|output| Dev::bytes_mut(output)),
        };
        let show = Show::Write { read: None, write: Dev::bytes_mut(work), share, ends };
        let result = self.visit(commons, device, show, clock);
        if let Some(output) = output {
            let parts = self.others.iter();
            clock.own.time(|| parts.for_each(|part| device.carry(part, width, work, output)));
        }
        result
    }

    fn share(&self) -> usize {
        let Admission::Given(share) = self.pass else { unreachable!("admitted when bound") };
        share
    }

    fn visit(
        &mut self,
        commons: &mut dyn Commons,
        device: &mut Dev,
        show: Show<'_>,
        clock: &mut Clock,
    ) -> Result<(), Error> {
        let (start, busy) = (Instant::now(), clock.busy());
        let Self { tiles, ffts, halving, .. } = self;
        let mut buffer = take(device.tile());
        let tile = Dev::bytes_mut(buffer.borrow_mut());
        let result = commons.visit(show, &mut |neighbours| {
            for Tile { pieces, reads, before, fft } in &*tiles {
                let (from, to) = tile.split_at_mut(before * size_of::<T>());
                clock.shared.time(|| match &*halving {
                    None => pieces.clone().for_each(|piece| neighbours.fetch(piece, to)),
                    Some(Halving { reads: all, width, .. }) => {
                        for piece in &all[reads.clone()] {
                            let src = Dev::memory(neighbours.shown(piece.owner()));
                            device.copy(piece.transfer(), *width, src, Dev::memory_mut(from));
                        }
                    }
                });
                let ffts = &ffts[*fft];
                // Which of them takes it from one place to the other.
                let turn = halving.as_ref().map_or(0, |halving| match halving.direction {
                    Direction::Forward => 0,
                    Direction::Inverse => ffts.len() - 1,
                });
                for (number, (fft, blocks)) in ffts.iter().enumerate() {
                    let (src, dst) = match (number.cmp(&turn), &*halving) {
                        (Equal, Some(_)) => (Some(Dev::memory(from)), &mut *to),
                        (Less, _) => (None, &mut *from),
                        _ => (None, &mut *to),
                    };
                    let dst = Dev::memory_mut(dst);
                    clock.fft.time(|| device.fft(fft, blocks.clone(), src, dst));
                }
                clock.shared.time(|| {
                    pieces.clone().for_each(|piece| neighbours.store(piece, to));
                });
            }
            Ok(())
        });
        *device.tile() = buffer;
        clock.exchange += start.elapsed().saturating_sub(clock.busy() - busy);
        result
    }

    /// Bytes of memory held, beside the tile.
    pub(crate) fn memory(&self) -> usize {
        let reads = self.halving.as_ref().map_or(0, |halving| halving.reads.len());
        let pieces = self.tiles.iter().map(|tile| tile.pieces.len()).sum::<usize>() + reads;
        size_of_val(&*self.tiles) + size_of_val(&*self.others) + pieces * size_of::<Piece>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grid, Kind, ProcGrid};

    fn pass(kind: Kind, n: usize) -> Pass {
        let complex_before = kind != Kind::R2C;
        Pass {
            kind,
            direction: Direction::Forward,
            n,
            complex_before,
            complex_after: true,
            outer: 1,
            inner: 1,
            factor: 1.0,
        }
    }

    /// What one rank does of complex double precision along some axes, of a grid cut into such bricks.
    fn of_rank_0<R>(
        shape: [usize; 3],
        cuts: [usize; 3],
        axes: &[usize],
        then: impl FnOnce(&Division<'_, 3>) -> R,
    ) -> R {
        let grid = Grid::new(shape).unwrap();
        let ranks = cuts.iter().product();
        let even = |cuts| Layout::even(grid, ProcGrid::new(cuts), ranks);
        let axes: Vec<_> = axes.iter().map(|&axis| (axis, pass(Kind::C2C, shape[axis]))).collect();
        let (home, work) = (even([ranks, 1, 1]), even(cuts));
        let (howmany, width) = (1, 2);
        then(&Division {
            rank: 0,
            home: &home,
            work: &work,
            howmany,
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

    #[test]
    fn order_with_real_data_is_that_of_memory() {
        let grid = Grid::new([64, 8, 65]).unwrap();
        let half = Layout::even(grid, ProcGrid::new([1, 2, 1]), 2);
        let real = Layout::even(Grid::new([64, 8, 128]).unwrap(), ProcGrid::new([1, 2, 1]), 2);
        let axes = [(0, pass(Kind::C2C, 64))];
        let division = |real| Division {
            rank: 0,
            home: &half,
            work: &half,
            howmany: 1,
            width: 2,
            axes: &axes,
            real,
        };
        let lengths = [64, 1, 65];
        assert_eq!(division(None).order(lengths, ELEMENT), [1, 2, 0]);
        let real = Some((Direction::Forward, &real));
        assert_eq!(division(real).order(lengths, ELEMENT), [0, 1, 2]);
    }

    #[test]
    fn tiles_are_hardly_larger_than_wanted_and_hold_whole_lines() {
        let lengths = |shape, cuts, axes: &[usize]| {
            of_rank_0(shape, cuts, axes, |it| (it.lengths(ELEMENT), it.work.brick(0)))
        };
        // One line of memory is fetched whatever it takes.
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
        // A brick that is a little wider than a run is not cut.
        assert_eq!(lengths([256, 256, 129], [1, 2, 1], &[0]).0, [256, 1, 129]);
        assert_eq!(lengths([64; 3], [1, 1, 6], &[0, 1]).0, [64, 64, 5]);
    }
}
