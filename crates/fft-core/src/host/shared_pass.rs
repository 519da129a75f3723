//! Shared passes: local transforms along axes that are cut over ranks with shared memory.
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

use std::mem::take;
use std::ops::Range;
use std::time::Instant;

use bytemuck::{cast_slice, cast_slice_mut};

use super::cpu::Cpu;
use super::tiles::{Ffts, Lines, TileFfts};
use crate::base::{Error, Real};
use crate::base::{Timings, timings::Time};
use crate::codec::codec::copy;
use crate::comm::SLOT_ALIGN;
use crate::comm::{Expose, LocalBuffers, NodeMemory, PeerMemory, Segment, WritePartition};
use crate::execute::{OpBuffers, Window};
use crate::geometry::exclusive::Exclusive;
use crate::geometry::{DynBrick, PerAxis, Transfer};
use crate::lower::tiling::{Side, Strips, Tiling, in_boxes};
use crate::problem::Direction;
use crate::recipe::Pass;

#[cfg(test)]
mod tests;

pub(crate) struct SharedPass<T: Real> {
    pass: Registration,
    tables: Tables<T>,
    /// Transfers of data that other ranks transform: to the exposed part, and back.
    others: Vec<[Transfer; 2]>,
    width: usize,
    halving: Option<Halving>,
    segments: usize,
}

struct Tables<T: Real> {
    tiles: Vec<Tile>,
    strips: Vec<Strip>,
    ffts: Vec<Ffts<T>>,
    /// The transforms of each shape of strips, on reading and on writing.
    on_read: Vec<Ffts<T>>,
    on_write: Vec<Ffts<T>>,
}

/// The source of an out-of-place pass, which is not the data that is written.
struct Halving {
    direction: Direction,
    /// The segments of all strips, in order.
    reads: Vec<Segment>,
    width: usize,
    /// Real numbers of the tile for the source; the destination follows.
    before: usize,
}

/// The partition of memory before and after registration.
enum Registration {
    Pending(Option<WritePartition>),
    Done(usize),
}

/// A box of lines.
struct Tile {
    strips: Range<usize>,
    fft: usize,
    /// The range of the whole tile in this rank's brick, if contiguous and read from there.
    run: Option<Range<usize>>,
}

/// A run of a tile, read at once and written at once.
struct Strip {
    /// Its segments in the partition and in the source.
    segments: Range<usize>,
    reads: Range<usize>,
    fft: usize,
    /// Real numbers before it in the source and in the destination.
    read_at: usize,
    at: usize,
}

impl<T: Real> SharedPass<T> {
    pub(crate) fn new(tiling: &Tiling<'_>, device: &mut Cpu<T>) -> Result<Self, Error> {
        let Tiling { rank, batch, width, .. } = *tiling;
        let bytes = T::PRECISION.bytes();
        let (source, target) = tiling.sides();
        let nothing = |side: &Side<'_>| Exclusive::nothing(&side.layout);
        let (all, all_read) = (nothing(&target), source.as_ref().map(nothing));
        let exclusive = tiling.exclusive.unwrap_or(&all);
        let layouts = [&*target.layout, &*target.work];
        let mut partition =
            WritePartition::new(rank, layouts, exclusive, target.width * bytes, batch);
        if let Some(source) = &source {
            partition = partition.reading(&source.layout, source.width * bytes, batch);
        }
        let lengths = tiling.lengths(width * bytes);
        let order = tiling.order(lengths, width * bytes);
        let boxes = tiling.boxes(lengths);
        // Contiguous tiles of this rank's untouched brick are transformed from the input.
        let runs = || boxes.iter().map(|tile| tiling.run(tile, order)).collect();
        let runs: Option<Vec<_>> = if tiling.first && partition.is_alone() { runs() } else { None };
        let cut = tiling.strips(lengths, order, width * bytes);
        let (cached, planned) = (runs.is_none(), Planned::default());
        let (from, to) = (source.as_ref().zip(all_read.as_ref()), (&target, exclusive));
        let mut planner =
            Planner { tiling, source: from, target: to, cut, order, cached, partition, planned };
        for (number, tile) in boxes.iter().enumerate() {
            planner.tile(tile, runs.as_ref().map(|runs| runs[number].clone()), device)?;
        }
        let Planner { mut partition, mut planned, .. } = planner;
        partition.shrink();
        planned.shrink();
        let Planned { tiles, strips, reads, source_reals, target_reals, .. } = planned;
        // Both parts have the same offset in a cache line.
        let before = source_reals.next_multiple_of(SLOT_ALIGN);
        device.reserve_tile(before + target_reals, rank)?;
        let segments = partition.segments().iter().chain(&reads).map(Segment::bytes).sum();
        let others = if source.is_none() { tiling.others(exclusive) } else { Vec::new() };
        let halving = source.zip(tiling.real).map(|(side, (direction, _))| {
            let width = side.width;
            Halving { direction, reads, width, before }
        });
        let pass = Registration::Pending(Some(partition));
        let tables = Tables {
            tiles,
            strips,
            ffts: planned.ffts_of_tiles.plans,
            on_read: planned.ffts_on_read.plans,
            on_write: planned.ffts_on_write.plans,
        };
        Ok(Self { pass, tables, others, width, halving, segments })
    }

    /// Registers the partition with the other ranks. Collective.
    pub(crate) fn register(&mut self, node_memory: &mut dyn NodeMemory) -> Result<(), Error> {
        if let Registration::Pending(partition) = &mut self.pass {
            let partition = partition.take().expect("a partition is admitted once");
            self.pass = Registration::Done(node_memory.register(partition)?);
        }
        Ok(())
    }

    /// Transforms one buffer into another, or in place, or through a window. Collective.
    pub(crate) fn run(
        &mut self,
        node_memory: &mut dyn NodeMemory,
        device: &mut Cpu<T>,
        buffers: OpBuffers<'_, [T]>,
        timings: &mut Timings,
    ) -> Result<(), Error> {
        let OpBuffers { src, dst, window, .. } = buffers;
        let (partition, width) = (self.partition(), self.width);
        let Some(Window { memory, copies_in, copies_out }) = window else {
            let read = src.map(cast_slice);
            let local = LocalBuffers::default();
            let expose = Expose::Write { read, write: cast_slice_mut(dst), partition, local };
            return self.exposure_epoch(node_memory, device, expose, None, timings);
        };
        if copies_in {
            let from = src.unwrap_or(dst);
            let parts = self.others.iter();
            timings.own.time(|| {
                parts.for_each(|[part, _]| device.copy_nontemporal(part, width, from, memory))
            });
        }
        let local = LocalBuffers {
            input: src.map(cast_slice),
            output: Some(cast_slice_mut(dst)),
            copy_in: copies_in,
            copy_out: copies_out,
        };
        let write = cast_slice_mut(memory);
        let expose = Expose::Write { read: None, write, partition, local };
        let result = self.exposure_epoch(node_memory, device, expose, src, timings);
        if copies_out {
            let parts = self.others.iter();
            timings.own.time(|| {
                parts.for_each(|[_, part]| device.copy_nontemporal(part, width, memory, dst))
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
        device: &mut Cpu<T>,
        expose: Expose<'_>,
        input: Option<&[T]>,
        timings: &mut Timings,
    ) -> Result<(), Error> {
        let (start, busy) = (Instant::now(), timings.busy());
        let Self { tables, halving, .. } = &*self;
        let halving = halving.as_ref();
        let mut buffer = take(device.tile());
        let tile = cast_slice_mut(&mut buffer);
        let before = halving.map_or(0, |halving| halving.before) * size_of::<T>();
        let (from, to) = tile.split_at_mut(before);
        let result = node_memory.exposure_epoch(expose, &mut |peers| {
            let (from, to) = (&mut *from, &mut *to);
            let (device, timings) = (&mut *device, &mut *timings);
            let mut run = Run { tables, halving, peers, device, timings, from, to };
            tables.tiles.iter().for_each(|tile| run.tile(tile, input));
            Ok(())
        });
        *device.tile() = buffer;
        timings.exchange += start.elapsed().saturating_sub(timings.busy() - busy);
        result
    }

    /// Bytes of memory held besides the tile.
    pub(crate) fn memory(&self) -> usize {
        let Tables { tiles, strips, .. } = &self.tables;
        size_of_val(&**tiles) + size_of_val(&**strips) + size_of_val(&*self.others) + self.segments
    }
}

/// The tiles of a pass while it is planned.
struct Planner<'a, T: Real> {
    tiling: &'a Tiling<'a>,
    source: Option<(&'a Side<'a>, &'a Exclusive)>,
    target: (&'a Side<'a>, &'a Exclusive),
    cut: Strips<'a>,
    order: PerAxis<usize>,
    /// Whether tiles are in cache before their transforms.
    cached: bool,
    partition: WritePartition,
    planned: Planned<T>,
}

#[derive(Default)]
struct Planned<T: Real> {
    tiles: Vec<Tile>,
    strips: Vec<Strip>,
    reads: Vec<Segment>,
    ffts_of_tiles: TileFfts<T>,
    /// The transforms of strips as they are read, and as they are written.
    ffts_on_read: TileFfts<T>,
    ffts_on_write: TileFfts<T>,
    /// Real numbers of the source and destination parts of the tile.
    source_reals: usize,
    target_reals: usize,
}

impl<T: Real> Planned<T> {
    /// Shrinks the lists, which are as long as the data and are held by the plan.
    fn shrink(&mut self) {
        self.tiles.shrink_to_fit();
        self.strips.shrink_to_fit();
        self.reads.shrink_to_fit();
    }
}

impl<T: Real> Planner<'_, T> {
    fn lines<'b>(&self, axes: &'b [(usize, Pass)]) -> Lines<'b> {
        let Tiling { rank, batch, .. } = *self.tiling;
        Lines { rank, order: self.order, batch, axes, cached: self.cached }
    }

    /// Adds a tile; `run` is its range in this rank's brick, if it is read from there.
    fn tile(
        &mut self,
        tile: &DynBrick,
        run: Option<Range<usize>>,
        device: &mut Cpu<T>,
    ) -> Result<(), Error> {
        let (first, mut done) = (self.planned.strips.len(), 0);
        for strip in &in_boxes(*tile, self.order, self.cut.lengths) {
            self.strip(tile, strip, self.planned.strips.len() == first, done, device)?;
            done += strip.points() * self.tiling.batch * self.tiling.width;
        }
        let lines = self.lines(self.cut.whole);
        let fft = self.planned.ffts_of_tiles.plan(lines, tile, device)?;
        self.planned.tiles.push(Tile { strips: first..self.planned.strips.len(), fft, run });
        Ok(())
    }

    /// Adds a strip, behind `done` real numbers of its tile.
    fn strip(
        &mut self,
        tile: &DynBrick,
        strip: &DynBrick,
        is_first: bool,
        done: usize,
        device: &mut Cpu<T>,
    ) -> Result<(), Error> {
        let Self { tiling, order, .. } = *self;
        let Tiling { rank, batch, .. } = *tiling;
        let reals = |side: &Side<'_>| tiling.on(side, strip).points() * batch * side.width;
        // A tile that is read or written as a whole belongs to its first strip.
        let part = |whole: bool| if whole { is_first.then_some(tile) } else { Some(strip) };
        let (first, first_read) = (self.partition.segments().len(), self.planned.reads.len());
        let (target, exclusive) = self.target;
        if let Some(part) = part(self.cut.on_write.is_empty()) {
            let (layouts, part) = ([&*target.layout, &*target.work], tiling.on(target, part));
            self.partition.claim(layouts, exclusive, &part, order, batch);
        }
        if let Some(((source, all), part)) = self.source.zip(part(self.cut.on_read.is_empty())) {
            let part = tiling.on(source, part);
            let reads = Segment::of(rank, &source.layout, all, &part, order, batch);
            self.planned.reads.extend(reads);
        }
        let [read, write] = [self.cut.on_read, self.cut.on_write].map(|axes| self.lines(axes));
        // Both see the same shapes in the same order.
        let fft = self.planned.ffts_on_read.plan(read, strip, device)?;
        let same = self.planned.ffts_on_write.plan(write, strip, device)?;
        debug_assert_eq!(fft, same);
        // Forward, all strips are read to one place and written to their own; inverse, vice versa.
        let (read_at, at) = match tiling.real {
            Some((Direction::Inverse, _)) => (done, 0),
            _ => (0, done),
        };
        let (segments, reads) =
            (first..self.partition.segments().len(), first_read..self.planned.reads.len());
        self.planned.strips.push(Strip { segments, reads, fft, read_at, at });
        self.planned.target_reals = self.planned.target_reals.max(at + reals(target));
        let source_reals = self.source.map_or(0, |(source, _)| read_at + reals(source));
        self.planned.source_reals = self.planned.source_reals.max(source_reals);
        Ok(())
    }
}

/// One execution of a pass on this rank.
struct Run<'a, T: Real> {
    tables: &'a Tables<T>,
    halving: Option<&'a Halving>,
    peers: &'a mut dyn PeerMemory,
    device: &'a mut Cpu<T>,
    timings: &'a mut Timings,
    /// The source and destination parts of the tile.
    from: &'a mut [u8],
    to: &'a mut [u8],
}

impl<T: Real> Run<'_, T> {
    /// Reads, transforms and writes a tile.
    fn tile(&mut self, tile: &Tile, input: Option<&[T]>) {
        let bytes = |reals: usize| reals * size_of::<T>();
        let Tile { strips, fft, run } = tile;
        // Transformed on the way to the tile.
        let run = run.as_ref().zip(input);
        let run = run.map(|(run, input)| &cast_slice(input)[bytes(run.start)..bytes(run.end)]);
        if run.is_none() {
            strips.clone().for_each(|number| self.read(number, strips.len() > 1));
        }
        let Self { tables, halving, peers, device, timings, from, to, .. } = self;
        let is_forward = halving.is_none_or(|halving| halving.direction == Direction::Forward);
        let whole = if is_forward { &mut **to } else { &mut **from };
        transform(&tables.ffts[*fft], run, whole, *device, timings);
        for strip in &tables.strips[strips.clone()] {
            let src = halving.map(|_| &from[bytes(strip.read_at)..]);
            let dst = &mut to[bytes(strip.at)..];
            transform(&tables.on_write[strip.fft], src, dst, *device, timings);
            let segments = strip.segments.clone();
            timings.shared.time(|| segments.for_each(|segment| peers.store(segment, dst)));
        }
    }

    /// Reads a strip into the tile and transforms it if that is fused with reading.
    fn read(&mut self, number: usize, has_others: bool) {
        let Self { tables, halving, peers, device, timings, from, to, .. } = self;
        let strip = &tables.strips[number];
        let ffts = &tables.on_read[strip.fft];
        // The next tile as a whole would be too large to prefetch.
        let prefetches = !ffts.is_empty() && has_others;
        let next = tables.strips.get(number + 1).filter(|_| prefetches);
        let dst = &mut to[strip.at * size_of::<T>()..];
        timings.shared.time(|| match halving {
            None => strip.segments.clone().for_each(|segment| peers.fetch(segment, dst)),
            Some(halving) => {
                let src = &mut from[strip.read_at * size_of::<T>()..];
                halving.fetch(strip, &**peers, cast_slice_mut::<_, T>(src));
                next.inspect(|next| halving.prefetch(next, &**peers, *device));
            }
        });
        transform(ffts, halving.map(|_| &**from), dst, *device, timings);
    }
}

impl Halving {
    /// Reads a strip into the source part of the tile.
    fn fetch<T: Real>(&self, strip: &Strip, peers: &dyn PeerMemory, tile: &mut [T]) {
        for segment in &self.reads[strip.reads.clone()] {
            let src = cast_slice(peers.shown(segment.owner()));
            copy(segment.transfer(), self.width, src, tile);
        }
    }

    /// Requests the prefetch of the next strip.
    fn prefetch<T: Real>(&self, strip: &Strip, peers: &dyn PeerMemory, device: &mut Cpu<T>) {
        let element = self.width * size_of::<T>();
        for segment in &self.reads[strip.reads.clone()] {
            let shown = peers.shown(segment.owner());
            segment.transfer().runs(|first, _, len| {
                device.prefetch(&shown[first * element..][..len * element]);
            });
        }
    }
}

/// Transforms a box from `src`, or from `dst` itself, into `dst`.
fn transform<T: Real>(
    ffts: &Ffts<T>,
    mut src: Option<&[u8]>,
    dst: &mut [u8],
    device: &mut Cpu<T>,
    timings: &mut Timings,
) {
    for (fft, blocks) in ffts {
        let (src, dst) = (src.take().map(cast_slice), cast_slice_mut(dst));
        timings.fft.time(|| device.fft(fft, blocks.clone(), src, dst));
    }
}
