//! Local transforms along axes that are cut, where all ranks share memory: lines are brought together from everybody's
//! memory, transformed in cache, and put back where they were. One pass over memory, in place, nothing sent. Where one of the
//! axes is that along which real data is half a spectrum, lines come from real data, or go there.

use std::borrow::BorrowMut;
use std::cmp::Ordering::{Equal, Less};
use std::mem::take;
use std::ops::Range;
use std::time::Instant;

use crate::clock::{Clock, Time};
use crate::commons::{Commons, Ends, Piece, Share, Show};
use crate::device::Between;
use crate::division::{Division, Side};
use crate::private::Private;
use crate::tiles::{Lines, TileFfts};
use crate::{Direction, Error, Processor, Real, SLOT_ALIGN, Transfer};

/// Transforms along some axes of data that stays where it is.
pub(crate) struct Across<T: Real, Dev: Processor<T>> {
    pass: Admission,
    tiles: Vec<Tile>,
    /// For each shape of tiles.
    ffts: Vec<Vec<(Dev::Fft, Range<usize>)>>,
    /// What this rank has and others transform, from a whole brick to what it shows, and back.
    others: Vec<[Transfer; 2]>,
    /// Real numbers per element.
    width: usize,
    halving: Option<Halving>,
    /// Whether what is private is in the output.
    in_both: bool,
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
    /// Real numbers of this rank's brick, where a run of it is the whole tile and comes from there.
    run: Option<Range<usize>>,
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
        let Division { rank, howmany, width, .. } = *division;
        let bytes = T::PRECISION.bytes();
        let (source, target) = division.sides();
        let layouts = [&*target.layout, &*target.work];
        let nothing = |side: &Side<'_, D>| Private::nothing(&side.layout);
        let (all, all_read) = (nothing(&target), source.as_ref().map(nothing));
        let private = division.private.unwrap_or(&all);
        let mut share = Share::new(rank, layouts, private, target.width * bytes, howmany);
        if let Some(source) = &source {
            share = share.reading(&source.layout, source.width * bytes, howmany);
        }
        let lengths = division.lengths(width * bytes);
        let order = division.order(lengths, width * bytes);
        let boxes = division.boxes(lengths);
        // Of this rank's own brick, none of which anybody has touched: transforms fetch them from where they are, unless in place.
        let runs = || boxes.iter().map(|tile| division.run(tile, order)).collect();
        let runs: Option<Vec<_>> = if division.first && share.is_alone() { runs() } else { None };
        let lines = Lines { rank, order, howmany, axes: division.axes, cached: runs.is_none() };
        let mut ffts = TileFfts::default();
        let (mut tiles, mut reads, mut most) = (Vec::new(), Vec::new(), 0);
        for (number, tile) in boxes.into_iter().enumerate() {
            let on = |side: &Side<'_, D>| match division.real {
                Some((_, real)) if side.width == 1 => division.real_box(&tile, real),
                _ => tile,
            };
            let reals = |side: &Side<'_, D>| on(side).points() * howmany * side.width;
            let (first, first_read) = (share.pieces().len(), reads.len());
            share.claim(layouts, private, &on(&target), order, howmany);
            let before = source.as_ref().zip(all_read.as_ref()).map_or(0, |(source, all)| {
                let tile = on(source);
                reads.extend(Piece::of(rank, &source.layout, all, &tile, order, howmany));
                // Both begin alike in a line of memory.
                reals(source).next_multiple_of(SLOT_ALIGN)
            });
            let fft = ffts.plan(lines, &tile, device)?;
            let (pieces, reads) = (first..share.pieces().len(), first_read..reads.len());
            let run = runs.as_ref().map(|runs| runs[number].clone());
            tiles.push(Tile { pieces, reads, before, fft, run });
            most = most.max(before + reals(&target));
        }
        device.reserve_tile(most, rank)?;
        let halving = source.zip(division.real);
        let halving =
            halving.map(|(side, (direction, _))| Halving { direction, reads, width: side.width });
        let others = if halving.is_none() { division.others(private) } else { Vec::new() };
        let (pass, in_both) = (Admission::Asked(Some(share)), division.private.is_some());
        Ok(Self { pass, tiles, ffts: ffts.finish(), others, width, halving, in_both })
    }

    /// Whether what is private is in the output all the while.
    pub(crate) fn in_both(&self) -> bool {
        self.in_both
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
        let show = Show::Write { read, write, share, ends: Ends::default() };
        self.visit(commons, device, show, None, clock)
    }

    /// Transforms in place, but for what this rank has at the ends, which is copied only as far as others transform it, and what is
    /// private. Collective.
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
        let Between { input, work, mut output, takes, brings } = between;
        let (share, width) = (self.share(), self.width);
        if takes {
            let from = input.or(output.as_deref()).expect("data is taken from one of them");
            let parts = self.others.iter();
            clock.own.time(|| parts.for_each(|[part, _]| device.carry(part, width, from, work)));
        }
        let ends = Ends {
            input: input.map(|input| Dev::bytes(input)),
            output: output.as_deref_mut().map(|output| Dev::bytes_mut(output)),
            takes,
            brings,
        };
        let show = Show::Write { read: None, write: Dev::bytes_mut(work), share, ends };
        let result = self.visit(commons, device, show, input, clock);
        if let Some(output) = output.filter(|_| brings) {
            let parts = self.others.iter();
            clock.own.time(|| parts.for_each(|[_, part]| device.carry(part, width, work, output)));
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
        input: Option<&Dev::Memory>,
        clock: &mut Clock,
    ) -> Result<(), Error> {
        let (start, busy) = (Instant::now(), clock.busy());
        let Self { tiles, ffts, halving, .. } = self;
        let mut buffer = take(device.tile());
        let tile = Dev::bytes_mut(buffer.borrow_mut());
        let result = commons.visit(show, &mut |neighbours| {
            for Tile { pieces, reads, before, fft, run } in &*tiles {
                let (from, to) = tile.split_at_mut(before * size_of::<T>());
                // Transformed on the way to the tile.
                let mut run = run.as_ref().zip(input).map(|(run, input)| {
                    let bytes = run.start * size_of::<T>()..run.end * size_of::<T>();
                    Dev::memory(&Dev::bytes(input)[bytes])
                });
                clock.shared.time(|| match &*halving {
                    None if run.is_some() => {}
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
                        _ => (run.take(), &mut *to),
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
