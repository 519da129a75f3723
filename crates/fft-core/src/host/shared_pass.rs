//! Shared passes: local transforms along axes that are cut over ranks which share memory.
//!
//! ```text
//! when bound:
//!     cut this rank's work into tiles, and tiles into strips    (tiling.rs)
//!     list the segments of all ranks' memory in each strip, and register the partition
//! in a run, within one exposure epoch, for each tile:
//!     for each strip: fetch its segments into the tile; transform it, if fused with reading
//!     transform the whole tile along the other axes
//!     for each strip: transform it, if fused with writing; store it to its segments
//! ```
//!
//! This is one pass over memory, in place and without messages. A real transform makes it out of
//! place: real data is read or written instead of its half spectrum.

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

/// In-place transforms along some axes.
pub(crate) struct SharedPass<T: Real, Dev: Processor<T>> {
    pass: Registration,
    tiles: Vec<Tile>,
    strips: Vec<Strip>,
    /// The transforms of each shape of tiles.
    ffts: Vec<Ffts<Dev::Fft>>,
    /// The transforms of each shape of strips, on reading and on writing.
    on_read: Vec<Ffts<Dev::Fft>>,
    on_write: Vec<Ffts<Dev::Fft>>,
    /// Transfers of data that other ranks transform: from the whole brick to the exposed part, and
    /// back.
    others: Vec<[Transfer; 2]>,
    /// Real numbers per element.
    width: usize,
    halving: Option<Halving>,
    /// Bytes of all segments.
    segments: usize,
    /// Whether exclusive data is in the output.
    in_both: bool,
}

/// The source of an out-of-place pass: other data than is written.
struct Halving {
    direction: Direction,
    /// The segments of all strips, in order.
    reads: Vec<Segment>,
    /// Real numbers per element there.
    width: usize,
    /// Real numbers of the tile reserved for the source: forward a strip of real data, inverse a
    /// whole half spectrum. The destination follows.
    before: usize,
}

/// The partition of memory before and after registration.
enum Registration {
    Pending(Option<WritePartition>),
    Done(usize),
}

/// A box of lines.
struct Tile {
    /// Its strips, in order.
    strips: Range<usize>,
    /// The index of its transform.
    fft: usize,
    /// The range of the whole tile in this rank's brick, if contiguous and read from there.
    run: Option<Range<usize>>,
}

/// A run of a tile, read at once and written at once.
struct Strip {
    /// Its segments in the partition and in the source.
    segments: Range<usize>,
    reads: Range<usize>,
    /// The index of its transforms.
    fft: usize,
    /// Real numbers before it in the source and in the destination.
    read_at: usize,
    at: usize,
}

impl<T: Real, Dev: Processor<T>> SharedPass<T, Dev> {
    /// Plans the tiles of this rank.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn new(tiling: &Tiling<'_>, device: &mut Dev) -> Result<Self, Error> {
        let Tiling { rank, howmany, width, .. } = *tiling;
        let bytes = T::PRECISION.bytes();
        let (source, target) = tiling.sides();
        let layouts = [&*target.layout, &*target.work];
        let nothing = |side: &Side<'_>| Exclusive::nothing(&side.layout);
        let (all, all_read) = (nothing(&target), source.as_ref().map(nothing));
        let exclusive = tiling.exclusive.unwrap_or(&all);
        let mut partition =
            WritePartition::new(rank, layouts, exclusive, target.width * bytes, howmany);
        if let Some(source) = &source {
            partition = partition.reading(&source.layout, source.width * bytes, howmany);
        }
        let lengths = tiling.lengths(width * bytes);
        let order = tiling.order(lengths, width * bytes);
        let boxes = tiling.boxes(lengths);
        // Contiguous tiles of this rank's own untouched brick are transformed from the input
        // directly.
        let runs = || boxes.iter().map(|tile| tiling.run(tile, order)).collect();
        let runs: Option<Vec<_>> = if tiling.first && partition.is_alone() { runs() } else { None };
        let cut = tiling.strips(lengths, order, width * bytes);
        let lines = |axes| Lines { rank, order, howmany, axes, cached: runs.is_none() };
        let mut ffts = [const { TileFfts::default }; 3].map(|none| none());
        let (mut tiles, mut strips, mut reads) = (Vec::new(), Vec::new(), Vec::new());
        let (mut most, mut before) = (0, 0);
        for (number, tile) in boxes.into_iter().enumerate() {
            let (first_strip, mut done) = (strips.len(), 0);
            for (strip_number, strip) in in_boxes(tile, order, cut.lengths).iter().enumerate() {
                let on = |side: &Side<'_>| tiling.on(side, strip);
                let reals = |side: &Side<'_>| on(side).points() * howmany * side.width;
                // A tile that is read or written as a whole belongs to its first strip.
                let part = |whole: bool| {
                    if !whole { Some(strip) } else { (strip_number == 0).then_some(&tile) }
                };
                let (first, first_read) = (partition.segments().len(), reads.len());
                if let Some(part) = part(cut.on_write.is_empty()) {
                    partition.claim(layouts, exclusive, &tiling.on(&target, part), order, howmany);
                }
                let source_part =
                    source.as_ref().zip(all_read.as_ref()).zip(part(cut.on_read.is_empty()));
                if let Some(((source, all), part)) = source_part {
                    let part = tiling.on(source, part);
                    reads.extend(Segment::of(rank, &source.layout, all, &part, order, howmany));
                }
                let [_, on_read, on_write] = &mut ffts;
                // Both see the same shapes in the same order.
                let fft = on_read.plan(lines(cut.on_read), strip, device)?;
                let same = on_write.plan(lines(cut.on_write), strip, device)?;
                debug_assert_eq!(fft, same);
                // Forward, all strips are read to one place and written to their own; inverse, vice
                // versa.
                let (read_at, at) = match tiling.real {
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
        // Both parts begin alike in a cache line.
        let before = before.next_multiple_of(SLOT_ALIGN);
        device.reserve_tile(before + most, rank)?;
        let segments = partition.segments().iter().chain(&reads).map(Segment::bytes).sum();
        let halving = source.zip(tiling.real).map(|(side, (direction, _))| {
            let width = side.width;
            Halving { direction, reads, width, before }
        });
        let others = if halving.is_none() { tiling.others(exclusive) } else { Vec::new() };
        let (pass, in_both) = (Registration::Pending(Some(partition)), tiling.exclusive.is_some());
        let [ffts, on_read, on_write] = ffts.map(TileFfts::finish);
        Ok(Self {
            pass,
            tiles,
            strips,
            ffts,
            on_read,
            on_write,
            others,
            width,
            halving,
            segments,
            in_both,
        })
    }

    /// Whether exclusive data stays in the output throughout.
    pub(crate) fn in_both(&self) -> bool {
        self.in_both
    }

    /// Whether source and destination differ.
    pub(crate) fn is_out_of_place(&self) -> bool {
        self.halving.is_some()
    }

    /// Registers the partition with the other ranks. Collective.
    ///
    /// # Errors
    /// [`Error::Disagreement`] on every rank.
    pub(crate) fn register(&mut self, node_memory: &mut dyn NodeMemory) -> Result<(), Error> {
        if let Registration::Pending(partition) = &mut self.pass {
            let partition = partition.take().expect("a partition is admitted once");
            self.pass = Registration::Done(node_memory.register(partition)?);
        }
        Ok(())
    }

    /// Transforms one buffer into another, or in place. Collective.
    ///
    /// Of the caller's arrays, only data that other ranks transform is copied to the buffer and
    /// back.
    ///
    /// # Errors
    /// [`Error::Left`] if a rank has left.
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
            let expose = Expose::Write { read, write: Dev::bytes_mut(dst), partition, local };
            return self.exposure_epoch(node_memory, device, expose, None, timings);
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
        let expose = Expose::Write { read: None, write: Dev::bytes_mut(dst), partition, local };
        let result = self.exposure_epoch(node_memory, device, expose, input, timings);
        if let Some(output) = output.filter(|_| copy_out) {
            let parts = self.others.iter();
            timings.own.time(|| {
                parts.for_each(|[_, part]| device.copy_nontemporal(part, width, dst, output))
            });
        }
        result
    }

    fn partition(&self) -> usize {
        let Registration::Done(partition) = self.pass else { unreachable!("admitted when bound") };
        partition
    }

    fn exposure_epoch(
        &mut self,
        node_memory: &mut dyn NodeMemory,
        device: &mut Dev,
        expose: Expose<'_>,
        input: Option<&Dev::Memory>,
        timings: &mut Timings,
    ) -> Result<(), Error> {
        let (start, busy) = (Instant::now(), timings.busy());
        let Self { tiles, strips, ffts, on_read, on_write, halving, .. } = &*self;
        let halving = halving.as_ref();
        let mut buffer = take(device.tile());
        let tile = Dev::bytes_mut(buffer.borrow_mut());
        let bytes = |reals: usize| reals * size_of::<T>();
        let (from, to) = tile.split_at_mut(bytes(halving.map_or(0, |halving| halving.before)));
        let result = node_memory.exposure_epoch(expose, &mut |peers| {
            for Tile { strips: own, fft, run } in tiles {
                // Transformed on the way to the tile.
                let run = run.as_ref().zip(input);
                let run =
                    run.map(|(run, input)| &Dev::bytes(input)[bytes(run.start)..bytes(run.end)]);
                for number in own.clone().filter(|_| run.is_none()) {
                    let strip = &strips[number];
                    let read_ffts = &on_read[strip.fft];
                    // The next tile as a whole would be too large to prefetch.
                    let fetches_ahead = !read_ffts.is_empty() && own.len() > 1;
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
                    transform(read_ffts, halving.map(|_| &*from), dst, device, timings);
                }
                let transposed =
                    halving.is_none_or(|halving| halving.direction == Direction::Forward);
                let whole = if transposed { &mut *to } else { &mut *from };
                transform(&ffts[*fft], run, whole, device, timings);
                for strip in &strips[own.clone()] {
                    let src = halving.map(|_| &from[bytes(strip.read_at)..]);
                    let dst = &mut to[bytes(strip.at)..];
                    transform(&on_write[strip.fft], src, dst, device, timings);
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

    /// Bytes of memory held besides the tile.
    pub(crate) fn memory(&self) -> usize {
        let lists = [size_of_val(&*self.tiles), size_of_val(&*self.strips)];
        lists.iter().sum::<usize>() + size_of_val(&*self.others) + self.segments
    }
}

impl Halving {
    /// Reads a strip into the source part of the tile.
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

    /// Requests the prefetch of the next strip.
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
