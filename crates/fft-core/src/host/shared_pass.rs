//! Local transforms along axes that are cut, where all ranks partition memory: lines are brought together from everybody's
//! memory, transformed in cache, and put back where they were. One pass over memory, in place, nothing sent. Where one of the
//! axes is that along which real data is half a spectrum, lines come from real data, or go there.

use std::borrow::BorrowMut;
use std::mem::take;
use std::ops::Range;
use std::time::Instant;

use super::processor::Processor;
use super::tiles::{Lines, TileFfts};
use crate::base::{Error, Real};
use crate::base::{Timings, timings::Time};
use crate::comm::SLOT_ALIGN;
use crate::comm::{Expose, LocalBuffers, NodeMemory, PeerMemory, Segment, WritePartition};
use crate::execute::{CallerArrays, OpBuffers};
use crate::geometry::Transfer;
use crate::geometry::exclusive::Exclusive;
use crate::lower::tiling::{Side, Tiling, in_boxes};
use crate::problem::Direction;

#[cfg(test)]
mod tests;

/// Transforms of boxes of one shape, each with its blocks.
type Ffts<F> = Vec<(F, Range<usize>)>;

/// Transforms along some axes of data that stays where it is.
pub(crate) struct SharedPass<T: Real, Dev: Processor<T>> {
    pass: Admission,
    tiles: Vec<Tile>,
    strips: Vec<Strip>,
    /// For each shape of tiles.
    ffts: Vec<Ffts<Dev::Fft>>,
    /// For each shape of strips, as they arrive and as they leave.
    arriving: Vec<Ffts<Dev::Fft>>,
    leaving: Vec<Ffts<Dev::Fft>>,
    /// What this rank has and others transform, from a whole brick to what it shows, and back.
    others: Vec<[Transfer; 2]>,
    /// Real numbers per element.
    width: usize,
    halving: Option<Halving>,
    /// Bytes of all segments.
    segments: usize,
    /// Whether what is exclusive is in the output.
    in_both: bool,
}

/// What comes from other memory than it goes to, as other numbers.
struct Halving {
    direction: Direction,
    /// From whose memory all strips are made, in turn.
    reads: Vec<Segment>,
    /// Real numbers per element there.
    width: usize,
    /// Real numbers at the beginning of a tile that are for what is read; what is written comes behind. Forward that is a strip of
    /// real data, inverse all of half a spectrum.
    before: usize,
}

/// Before and after the ranks have agreed on who touches what.
enum Admission {
    Asked(Option<WritePartition>),
    Given(usize),
}

/// A box of lines.
struct Tile {
    /// What it is made of, in order.
    strips: Range<usize>,
    /// Which transform it needs.
    fft: usize,
    /// Real numbers of this rank's brick, where a run of it is the whole tile and comes from there.
    run: Option<Range<usize>>,
}

/// A run of a tile, which arrives at once and leaves at once.
struct Strip {
    /// Which of the partition's segments it is made of, and which of what is read elsewhere.
    segments: Range<usize>,
    reads: Range<usize>,
    /// Which transforms it needs.
    fft: usize,
    /// Real numbers before it in what is read, and in what is written.
    read_at: usize,
    at: usize,
}

impl<T: Real, Dev: Processor<T>> SharedPass<T, Dev> {
    /// What this rank does.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn new(division: &Tiling<'_>, device: &mut Dev) -> Result<Self, Error> {
        let Tiling { rank, howmany, width, .. } = *division;
        let bytes = T::PRECISION.bytes();
        let (source, target) = division.sides();
        let layouts = [&*target.layout, &*target.work];
        let nothing = |side: &Side<'_>| Exclusive::nothing(&side.layout);
        let (all, all_read) = (nothing(&target), source.as_ref().map(nothing));
        let exclusive = division.exclusive.unwrap_or(&all);
        let mut partition =
            WritePartition::new(rank, layouts, exclusive, target.width * bytes, howmany);
        if let Some(source) = &source {
            partition = partition.reading(&source.layout, source.width * bytes, howmany);
        }
        let lengths = division.lengths(width * bytes);
        let order = division.order(lengths, width * bytes);
        let boxes = division.boxes(lengths);
        // Of this rank's own brick, none of which anybody has touched: transforms fetch them from where they are, unless in place.
        let runs = || boxes.iter().map(|tile| division.run(tile, order)).collect();
        let runs: Option<Vec<_>> =
            if division.first && partition.is_alone() { runs() } else { None };
        let cut = division.strips(lengths, order, width * bytes);
        let lines = |axes| Lines { rank, order, howmany, axes, cached: runs.is_none() };
        let mut ffts = [const { TileFfts::default }; 3].map(|none| none());
        let (mut tiles, mut strips, mut reads) = (Vec::new(), Vec::new(), Vec::new());
        let (mut most, mut before) = (0, 0);
        for (number, tile) in boxes.into_iter().enumerate() {
            let (first_strip, mut done) = (strips.len(), 0);
            for (strip_number, strip) in in_boxes(tile, order, cut.lengths).iter().enumerate() {
                let on = |side: &Side<'_>| division.on(side, strip);
                let reals = |side: &Side<'_>| on(side).points() * howmany * side.width;
                // What comes as a whole does so with the first, and what goes as a whole.
                let part = |whole: bool| {
                    if !whole { Some(strip) } else { (strip_number == 0).then_some(&tile) }
                };
                let (first, first_read) = (partition.segments().len(), reads.len());
                if let Some(part) = part(cut.leaving.is_empty()) {
                    partition.claim(
                        layouts,
                        exclusive,
                        &division.on(&target, part),
                        order,
                        howmany,
                    );
                }
                let source_part =
                    source.as_ref().zip(all_read.as_ref()).zip(part(cut.arriving.is_empty()));
                if let Some(((source, all), part)) = source_part {
                    let part = division.on(source, part);
                    reads.extend(Segment::of(rank, &source.layout, all, &part, order, howmany));
                }
                let [_, arriving, leaving] = &mut ffts;
                // Both see the same shapes, and number them alike.
                let fft = arriving.plan(lines(cut.arriving), strip, device)?;
                let same = leaving.plan(lines(cut.leaving), strip, device)?;
                debug_assert_eq!(fft, same);
                // Forward, strips are read to one place, each after the other, and written to their own; inverse, the other way round.
                let (read_at, at) = match division.real {
                    Some((Direction::Inverse, _)) => (done, 0),
                    _ => (0, done),
                };
                let (segments, reads) =
                    (first..partition.segments().len(), first_read..reads.len());
                strips.push(Strip { segments, reads, fft, read_at, at });
                done += strip.points() * howmany * width;
                most = most.max(at + reals(&target));
                before = before.max(source.as_ref().map_or(0, |source| read_at + reals(source)));
            }
            let fft = ffts[0].plan(lines(cut.whole), &tile, device)?;
            let run = runs.as_ref().map(|runs| runs[number].clone());
            tiles.push(Tile { strips: first_strip..strips.len(), fft, run });
        }
        // Both begin alike in a line of memory.
        let before = before.next_multiple_of(SLOT_ALIGN);
        device.reserve_tile(before + most, rank)?;
        let segments = partition.segments().iter().chain(&reads).map(Segment::bytes).sum();
        let halving = source.zip(division.real).map(|(side, (direction, _))| {
            let width = side.width;
            Halving { direction, reads, width, before }
        });
        let others = if halving.is_none() { division.others(exclusive) } else { Vec::new() };
        let (pass, in_both) = (Admission::Asked(Some(partition)), division.exclusive.is_some());
        let [ffts, arriving, leaving] = ffts.map(TileFfts::finish);
        Ok(Self {
            pass,
            tiles,
            strips,
            ffts,
            arriving,
            leaving,
            others,
            width,
            halving,
            segments,
            in_both,
        })
    }

    /// Whether what is exclusive is in the output all the while.
    pub(crate) fn in_both(&self) -> bool {
        self.in_both
    }

    /// Whether it goes to other memory than it comes from.
    pub(crate) fn is_out_of_place(&self) -> bool {
        self.halving.is_some()
    }

    /// Agrees with the other ranks on who touches what. Collective.
    ///
    /// # Errors
    /// [`Error::Disagreement`] on every rank.
    pub(crate) fn register(&mut self, node_memory: &mut dyn NodeMemory) -> Result<(), Error> {
        if let Admission::Asked(partition) = &mut self.pass {
            let partition = partition.take().expect("a partition is admitted once");
            self.pass = Admission::Given(node_memory.register(partition)?);
        }
        Ok(())
    }

    /// Transforms one buffer into another, or in place. Collective.
    ///
    /// Of the caller's arrays only what other ranks transform is copied to the buffer and back; what is
    /// exclusive stays there.
    ///
    /// # Errors
    /// [`Error::Left`] when a rank has gone.
    pub(crate) fn run(
        &mut self,
        node_memory: &mut dyn NodeMemory,
        device: &mut Dev,
        buffers: OpBuffers<'_, Dev::Memory>,
        timings: &mut Timings,
    ) -> Result<(), Error> {
        let OpBuffers { src, dst, caller } = buffers;
        let (partition, width) = (self.partition(), self.width);
        let Some(CallerArrays { input, mut output, copy_in, copy_out }) = caller else {
            let read = src.map(|src| Dev::bytes(src));
            let local = LocalBuffers::default();
            let show = Expose::Write { read, write: Dev::bytes_mut(dst), partition, local };
            return self.exposure_epoch(node_memory, device, show, None, timings);
        };
        if copy_in {
            let from = input.or(output.as_deref()).expect("data is taken from one of them");
            let parts = self.others.iter();
            timings.own.time(|| {
                parts.for_each(|[part, _]| device.copy_nontemporal(part, width, from, dst))
            });
        }
        let local = LocalBuffers {
            input: input.map(|input| Dev::bytes(input)),
            output: output.as_deref_mut().map(|output| Dev::bytes_mut(output)),
            copy_in,
            copy_out,
        };
        let show = Expose::Write { read: None, write: Dev::bytes_mut(dst), partition, local };
        let result = self.exposure_epoch(node_memory, device, show, input, timings);
        if let Some(output) = output.filter(|_| copy_out) {
            let parts = self.others.iter();
            timings.own.time(|| {
                parts.for_each(|[_, part]| device.copy_nontemporal(part, width, dst, output))
            });
        }
        result
    }

    fn partition(&self) -> usize {
        let Admission::Given(partition) = self.pass else { unreachable!("admitted when bound") };
        partition
    }

    fn exposure_epoch(
        &mut self,
        node_memory: &mut dyn NodeMemory,
        device: &mut Dev,
        show: Expose<'_>,
        input: Option<&Dev::Memory>,
        timings: &mut Timings,
    ) -> Result<(), Error> {
        let (start, busy) = (Instant::now(), timings.busy());
        let Self { tiles, strips, ffts, arriving, leaving, halving, .. } = &*self;
        let halving = halving.as_ref();
        let mut buffer = take(device.tile());
        let tile = Dev::bytes_mut(buffer.borrow_mut());
        let bytes = |reals: usize| reals * size_of::<T>();
        let (from, to) = tile.split_at_mut(bytes(halving.map_or(0, |halving| halving.before)));
        let result = node_memory.exposure_epoch(show, &mut |peers| {
            for Tile { strips: own, fft, run } in tiles {
                // Transformed on the way to the tile.
                let run = run.as_ref().zip(input);
                let run =
                    run.map(|(run, input)| &Dev::bytes(input)[bytes(run.start)..bytes(run.end)]);
                for number in own.clone().filter(|_| run.is_none()) {
                    let strip = &strips[number];
                    let on_arrival = &arriving[strip.fft];
                    // Of a tile that comes at once the next is far too much.
                    let fetches_ahead = !on_arrival.is_empty() && own.len() > 1;
                    let next = strips.get(number + 1).filter(|_| fetches_ahead);
                    let dst = &mut to[bytes(strip.at)..];
                    timings.shared.time(|| match halving {
                        None => {
                            strip.segments.clone().for_each(|segment| peers.fetch(segment, dst))
                        }
                        Some(halving) => {
                            let src = &mut from[bytes(strip.read_at)..];
                            halving.fetch(strip, peers, device, src);
                            next.inspect(|next| halving.prefetch(next, peers, device));
                        }
                    });
                    transform(on_arrival, halving.map(|_| &*from), dst, device, timings);
                }
                let transposed =
                    halving.is_none_or(|halving| halving.direction == Direction::Forward);
                let whole = if transposed { &mut *to } else { &mut *from };
                transform(&ffts[*fft], run, whole, device, timings);
                for strip in &strips[own.clone()] {
                    let src = halving.map(|_| &from[bytes(strip.read_at)..]);
                    let dst = &mut to[bytes(strip.at)..];
                    transform(&leaving[strip.fft], src, dst, device, timings);
                    let segments = strip.segments.clone();
                    timings.shared.time(|| segments.for_each(|segment| peers.store(segment, dst)));
                }
            }
            Ok(())
        });
        *device.tile() = buffer;
        timings.exchange += start.elapsed().saturating_sub(timings.busy() - busy);
        result
    }

    /// Bytes of memory held, beside the tile.
    pub(crate) fn memory(&self) -> usize {
        let lists = [size_of_val(&*self.tiles), size_of_val(&*self.strips)];
        lists.iter().sum::<usize>() + size_of_val(&*self.others) + self.segments
    }
}

impl Halving {
    /// Brings a strip to its place in what is read.
    fn fetch<T: Real, Dev: Processor<T>>(
        &self,
        strip: &Strip,
        peers: &dyn PeerMemory,
        device: &mut Dev,
        tile: &mut [u8],
    ) {
        for segment in &self.reads[strip.reads.clone()] {
            let src = Dev::memory(peers.shown(segment.owner()));
            device.copy(segment.transfer(), self.width, src, Dev::memory_mut(tile));
        }
    }

    /// Says that a strip comes next.
    fn prefetch<T: Real, Dev: Processor<T>>(
        &self,
        strip: &Strip,
        peers: &dyn PeerMemory,
        device: &mut Dev,
    ) {
        let element = self.width * size_of::<T>();
        for segment in &self.reads[strip.reads.clone()] {
            let shown = peers.shown(segment.owner());
            segment.transfer().runs(|first, _, len| {
                device.prefetch(&shown[first * element..][..len * element]);
            });
        }
    }
}

/// Transforms a box: `src`, or what is in `dst`, into `dst`.
fn transform<T: Real, Dev: Processor<T>>(
    ffts: &Ffts<Dev::Fft>,
    mut src: Option<&[u8]>,
    dst: &mut [u8],
    device: &mut Dev,
    timings: &mut Timings,
) {
    for (fft, blocks) in ffts {
        let (src, dst) = (src.take().map(Dev::memory), Dev::memory_mut(dst));
        timings.fft.time(|| device.fft(fft, blocks.clone(), src, dst));
    }
}
