//! The CPU as a device: lines are gathered in caches, transformed and scattered.

use std::cmp::Reverse;
use std::ops::Range;

use bytemuck::Zeroable;
use fft_lines::LineCosts;

use crate::base::cache_sizes::{BLOCK_BYTES, FAR_BYTES, STAGE_BYTES};
use crate::base::{Error, Real};
use crate::codec::codec::copy;
use crate::comm::{SLOT_ALIGN, slot::Line};
use crate::geometry::Transfer;
use crate::host::cpu::line_fft::LinePlanner;
use crate::host::cpu::prefetch::PrefetchQueue;
use crate::host::cpu::{axis_pass::LinePass, workspace::Workspace};
use crate::problem::{Memory, TransportOptions};
use crate::recipe::{LocalFft, Pass};

/// The CPU device, one thread per rank.
pub struct Cpu<T: Real> {
    planner: LinePlanner<T>,
    /// Data in cache.
    tile: Vec<T>,
    /// A few lines, aligned to cache lines, and the scratch of their transforms.
    lines: Vec<Line>,
    scratch: Vec<T>,
    queue: PrefetchQueue,
    memory: Memory,
    reproducible: bool,
    large: bool,
    /// Whether a call fails, in tests.
    fault: Option<Box<dyn Fn(CpuCall) -> bool + Send>>,
}

/// A call that tests let fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuCall {
    /// Allocates a buffer.
    Buffer,
    /// Makes the tables of a transform.
    Tables,
    /// Transforms in place.
    InPlaceFft,
    /// Packs a message.
    Pack,
    /// Unpacks a message.
    Unpack,
}

impl<T: Real> Default for Cpu<T> {
    fn default() -> Self {
        Self::new(&TransportOptions::default(), &LineCosts::default())
    }
}

impl<T: Real> Cpu<T> {
    /// Whether a box is written past the caches: long runs of large data.
    fn is_streamed(&self, transfer: &Transfer, width: usize) -> bool {
        let bytes = |elements: usize| elements * width * size_of::<T>();
        self.large
            && bytes(transfer.elements()) > 2 * BLOCK_BYTES
            && bytes(transfer.run_len()) >= fft_stream::LONG_BYTES
    }

    /// Lines are transformed in the way that is cheapest by these costs. With [`Memory::Least`],
    /// fewer strided lines are transformed together. If results have to be reproducible, passes
    /// keep their order, and all lines of a length and kind have one algorithm.
    pub fn new(options: &TransportOptions, costs: &LineCosts) -> Self {
        let TransportOptions { memory, reproducible, .. } = *options;
        let [tile, scratch] = [const { Vec::new() }; 2];
        let planner = LinePlanner::new(costs, reproducible);
        let (lines, queue) = (Vec::new(), PrefetchQueue::default());
        let fault = None;
        Self { planner, tile, lines, scratch, queue, memory, reproducible, large: false, fault }
    }

    /// For tests: calls for buffers, tables and unpacking fail if `fault` returns `true`. It may
    /// panic at any call.
    pub fn failing(fault: impl Fn(CpuCall) -> bool + Send + 'static) -> Self {
        Self { fault: Some(Box::new(fault)), ..Self::default() }
    }

    pub(crate) fn fails(&self, call: CpuCall) -> bool {
        self.fault.as_ref().is_some_and(|fault| fault(call))
    }

    /// The passes in order. In a large uncached block the largest stride comes first, unless
    /// results have to be reproducible.
    fn ordered<'a>(&self, shape: &'a LocalFft) -> Vec<&'a Pass> {
        let mut passes: Vec<_> = shape.passes.iter().collect();
        let block = shape.block_before().max(shape.block_after()) * size_of::<T>();
        let has_twiddles = passes.iter().any(|pass| pass.twiddles.is_some());
        let may_move = self.memory == Memory::Ample && !self.reproducible && !has_twiddles;
        if may_move && !shape.cached && block >= FAR_BYTES {
            let kept = usize::from(passes[0].changes_len());
            passes[kept..].sort_by_key(|pass| Reverse(pass.inner));
        }
        passes
    }

    /// Sets the bytes of all ranks of this host. Large data may be written past the caches.
    pub(crate) fn data_of_host(&mut self, bytes: usize) {
        self.large = bytes >= fft_stream::LARGE_BYTES;
    }

    /// Zeros, or [`Error::Memory`], naming `rank`.
    pub(crate) fn buffer(&self, reals: usize, rank: usize) -> Result<Vec<T>, Error> {
        if self.fails(CpuCall::Buffer) {
            return Err(Error::Memory { rank, bytes: reals * size_of::<T>() });
        }
        zeroed(reals, rank)
    }

    /// Reserves this many real numbers in the tile, which holds all data in cache.
    pub(crate) fn reserve_tile(&mut self, reals: usize, rank: usize) -> Result<(), Error> {
        ensure(&mut self.tile, reals, rank)
    }

    /// The tile. Users take it out and put it back.
    pub(crate) fn tile(&mut self) -> &mut Vec<T> {
        &mut self.tile
    }

    /// Prepares a local transform: tables, scratch.
    ///
    /// # Errors
    /// [`Error::Memory`], naming `rank`.
    pub fn plan_fft(&mut self, shape: &LocalFft, rank: usize) -> Result<CpuFft<T>, Error> {
        if self.fails(CpuCall::Tables) {
            return Err(Error::Memory { rank, bytes: 1 });
        }
        // Lines of several blocks are transformed together if there is one pass.
        let blocks = if shape.passes.len() == 1 { shape.blocks } else { 1 };
        let mut passes = Vec::with_capacity(shape.passes.len());
        for (number, pass) in self.ordered(shape).into_iter().enumerate() {
            let cached = shape.cached || number > 0;
            let pass = LinePass::new(pass, blocks, cached, self.memory, &mut self.planner);
            ensure(&mut self.lines, pass.bytes_at_once().div_ceil(SLOT_ALIGN), rank)?;
            ensure(&mut self.scratch, pass.scratch_len(), rank)?;
            passes.push(pass);
        }
        let (before, after) = (shape.block_before(), shape.block_after());
        let at_a_time = match after * size_of::<T>() {
            1..=BLOCK_BYTES => (STAGE_BYTES / (after * size_of::<T>())).max(1),
            _ => 0,
        };
        // Single lines are written where they are transformed, so staging gains nothing.
        let ample = self.memory == Memory::Ample;
        let stays = shape.cached || shape.to_cache;
        let may = self.large && ample && !stays && passes.len() > 1;
        let staged = if may { at_a_time.min(shape.blocks) } else { 0 };
        ensure(&mut self.tile, staged * after, rank)?;
        Ok(CpuFft { before, after, passes, staged })
    }

    /// Bytes held for all transforms of a plan: the tile, scratch, tables. If plans of this process
    /// share tables, each counts its part of them.
    pub(crate) fn bytes_held(&self) -> usize {
        let all = [&self.tile, &self.scratch].map(|part| size_of_val(&**part));
        all.iter().sum::<usize>() + size_of_val(&*self.lines) + self.planner.table_bytes()
    }

    /// Transforms some of the blocks of `src` into `dst`, or of `dst` in place.
    pub fn fft(&mut self, fft: &CpuFft<T>, blocks: Range<usize>, src: Option<&[T]>, dst: &mut [T]) {
        if src.is_none() {
            self.fails(CpuCall::InPlaceFft);
        }
        let of = |blocks: Range<usize>, len: usize| blocks.start * len..blocks.end * len;
        self.queue.begin(fft.passes.iter().map(LinePass::reals).sum::<usize>() * blocks.len());
        let (lines, scratch) = (bytemuck::cast_slice_mut(&mut self.lines), &mut *self.scratch);
        let mut workspace = Workspace { lines, scratch, queue: &mut self.queue };
        let Some(src) = src.filter(|_| fft.staged > 0) else {
            let src = src.map(|src| &src[of(blocks.clone(), fft.before)]);
            fft.run(blocks.start, src, &mut dst[of(blocks, fft.after)], &mut workspace);
            return self.queue.end();
        };
        for first in blocks.clone().step_by(fft.staged) {
            let some = first..blocks.end.min(first + fft.staged);
            let (from, to) = (of(some.clone(), fft.before), of(some, fft.after));
            let tile = &mut self.tile[..to.len()];
            fft.run(first, Some(&src[from]), tile, &mut workspace);
            fft_stream::copy_past(
                bytemuck::cast_slice(tile),
                bytemuck::cast_slice_mut(&mut dst[to]),
            );
        }
        self.queue.end();
    }

    /// Requests memory that is read after the next transform, to be prefetched meanwhile.
    pub(crate) fn prefetch(&mut self, memory: &[u8]) {
        self.queue.add(memory);
    }

    /// Copies a box to memory that is not read again soon, of elements of `width` real numbers.
    pub(crate) fn copy_nontemporal(
        &mut self,
        transfer: &Transfer,
        width: usize,
        src: &[T],
        dst: &mut [T],
    ) {
        if !self.is_streamed(transfer, width) {
            return copy(transfer, width, src, dst);
        }
        transfer.runs(|from, to, len| {
            let [from, to] = [from, to].map(|first| width * first..width * (first + len));
            fft_stream::copy_past(
                bytemuck::cast_slice(&src[from]),
                bytemuck::cast_slice_mut(&mut dst[to]),
            );
        });
    }
}

/// A [`LocalFft`] with its tables.
pub struct CpuFft<T> {
    before: usize,
    after: usize,
    passes: Vec<LinePass<T>>,
    /// Number of blocks transformed together in the tile, then written past the caches; 0 for none.
    staged: usize,
}

pub(crate) fn zeroed<E: Zeroable>(len: usize, rank: usize) -> Result<Vec<E>, Error> {
    bytemuck::allocation::try_zeroed_vec(len)
        .map_err(|()| Error::Memory { rank, bytes: len.saturating_mul(size_of::<E>()) })
}

/// Makes room for this many elements, without keeping their contents.
fn ensure<E: Zeroable>(memory: &mut Vec<E>, len: usize, rank: usize) -> Result<(), Error> {
    if memory.len() < len {
        *memory = zeroed(len, rank)?;
    }
    Ok(())
}

impl<T: Real> CpuFft<T> {
    /// Transforms blocks, the first of which has this number.
    fn run(
        &self,
        first: usize,
        src: Option<&[T]>,
        dst: &mut [T],
        workspace: &mut Workspace<'_, T>,
    ) {
        if let [pass] = &self.passes[..]
            && pass.is_rows()
        {
            // Lines of several blocks are transformed like lines of one.
            return pass.run(first, src, dst, workspace);
        }
        for (number, dst) in dst.chunks_exact_mut(self.after.max(1)).enumerate() {
            let mut src = src.map(|src| &src[number * self.before..][..self.before]);
            for pass in &self.passes {
                pass.run(first + number, src.take(), dst, workspace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Direction, Kind};

    fn with(memory: Memory) -> TransportOptions {
        TransportOptions { memory, ..TransportOptions::default() }
    }

    #[test]
    fn columns_of_a_large_block_come_first_where_many_go_together() {
        let pass = |kind, outer, inner| Pass {
            kind,
            direction: Direction::Forward,
            n: 256,
            resized: None,
            complex_before: kind != Kind::R2C,
            complex_after: true,
            outer,
            inner,
            factor: 1.0,
            twiddles: None,
            strides: [1; 2],
        };
        let order = |memory, cached, passes: &[Pass]| -> Vec<usize> {
            let shape = LocalFft { blocks: 1, passes: passes.to_vec(), cached, to_cache: false };
            Cpu::<f64>::new(&with(memory), &LineCosts::default())
                .ordered(&shape)
                .iter()
                .map(|pass| pass.inner)
                .collect()
        };
        let rows_first = [pass(Kind::C2C, 256, 1), pass(Kind::C2C, 1, 256)];
        assert_eq!(order(Memory::Ample, false, &rows_first), [256, 1]);
        assert_eq!(order(Memory::Ample, true, &rows_first), [1, 256]);
        assert_eq!(order(Memory::Least, false, &rows_first), [1, 256]);
        let small = [pass(Kind::C2C, 32, 1), pass(Kind::C2C, 1, 32)];
        assert_eq!(order(Memory::Ample, false, &small), [1, 32]);
        let halved = [pass(Kind::R2C, 512, 1), pass(Kind::C2C, 2, 129), pass(Kind::C2C, 1, 258)];
        assert_eq!(order(Memory::Ample, false, &halved), [1, 258, 129]);
    }

    #[test]
    fn costs_choose_how_lines_are_transformed() {
        let run = |inner, change: fn(&mut fft_lines::Costs)| {
            let pass = Pass {
                kind: Kind::C2C,
                direction: Direction::Forward,
                n: 100,
                resized: None,
                complex_before: true,
                complex_after: true,
                outer: 20 / inner,
                inner,
                factor: 0.5,
                twiddles: None,
                strides: [1; 2],
            };
            let shape = LocalFft { blocks: 1, passes: vec![pass], cached: true, to_cache: true };
            let src: Vec<f64> = (0..4000).map(|i| (i * i % 101) as f64 - 50.0).collect();
            let (mut costs, mut dst) = (LineCosts::default(), vec![0.0; src.len()]);
            change(&mut costs.f64);
            let mut cpu = Cpu::new(&TransportOptions::default(), &costs);
            let fft = cpu.plan_fft(&shape, 0).unwrap();
            cpu.fft(&fft, 0..1, Some(&src), &mut dst);
            (fft.passes[0].is_one_by_one(), dst)
        };
        let check = |change, is_one_by_one: bool| {
            for inner in [1, 20] {
                let (found, dst) = run(inner, change);
                let has_batches = <f64 as fft_lines::Number>::time_radices().is_some();
                assert_eq!(found, is_one_by_one || !has_batches);
                let (_, expected) = run(inner, |_| {});
                assert!(dst.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-11));
            }
        };
        check(|costs| costs.longest = 99, true);
        check(|costs| costs.radices.retain(|(radix, _)| !radix.is_multiple_of(5)), true);
        check(|costs| costs.radices.retain(|(radix, _)| [2, 5].contains(radix)), false);
    }

    /// Some blocks of planes, past the caches and not; returns the number staged together.
    fn planes_past_the_caches(
        kind: Kind,
        [rows, n]: [usize; 2],
        blocks: usize,
        some: Range<usize>,
    ) -> usize {
        let pass = |kind, n, outer, inner| Pass {
            kind,
            direction: Direction::Forward,
            n,
            resized: None,
            complex_before: kind != Kind::R2C,
            complex_after: true,
            outer,
            inner,
            factor: 0.5,
            twiddles: None,
            strides: [1; 2],
        };
        let passes = vec![pass(kind, n, rows, 1), pass(Kind::C2C, rows, 1, kind.spectral_len(n))];
        let shape = LocalFft { blocks, passes, cached: false, to_cache: false };
        let src: Vec<f64> =
            (0..blocks * shape.block_before()).map(|i| (i * i % 101) as f64 - 50.0).collect();
        let transformed = |memory, bytes| {
            let mut cpu = Cpu::<f64>::new(&with(memory), &LineCosts::default());
            let mut dst = vec![0.0; blocks * shape.block_after()];
            cpu.data_of_host(bytes);
            let fft = cpu.plan_fft(&shape, 0).unwrap();
            cpu.fft(&fft, some.clone(), Some(&src), &mut dst);
            (dst, fft.staged)
        };
        let (near, none) = transformed(Memory::Ample, fft_stream::LARGE_BYTES - 1);
        let (past, staged) = transformed(Memory::Ample, fft_stream::LARGE_BYTES);
        assert_eq!((none, transformed(Memory::Least, fft_stream::LARGE_BYTES).1), (0, 0));
        assert!(near == past, "{kind:?} {rows}x{n}, {some:?} of {blocks}");
        staged
    }

    #[test]
    fn results_are_the_same_past_the_caches() {
        let bytes = |rows: usize, n: usize| 2 * size_of::<f64>() * rows * n;
        let several = STAGE_BYTES / bytes(48, 40);
        assert_eq!(planes_past_the_caches(Kind::C2C, [48, 40], 40, 0..40), several);
        assert_eq!(planes_past_the_caches(Kind::C2C, [48, 40], 40, 3..2 * several + 1), several);
        assert_eq!(planes_past_the_caches(Kind::C2C, [48, 40], 3, 1..3), 3);
        assert_eq!(planes_past_the_caches(Kind::C2C, [48, 40], 3, 2..2), 3);
        assert_eq!(planes_past_the_caches(Kind::C2C, [48, 40], 0, 0..0), 0);
        assert_eq!(
            planes_past_the_caches(Kind::R2C, [48, 40], 40, 1..40),
            STAGE_BYTES / bytes(48, 21)
        );
        assert_eq!(planes_past_the_caches(Kind::C2C, [200, 256], 3, 0..3), 1, "planes of 800 KiB");
        assert_eq!(planes_past_the_caches(Kind::C2C, [300, 256], 2, 0..2), 0, "planes of 1.2 MiB");
    }

    #[test]
    fn copies_are_the_same_past_the_caches() {
        use crate::geometry::DynBrick;
        use crate::geometry::Placed;
        let whole = DynBrick::new([0; 3], [3, 300, 256]);
        for (part, past) in [([0, 256], true), ([1, 255], false)] {
            let part = DynBrick { lo: [0, 7, part[0]].into(), hi: [3, 299, part[1]].into() };
            let placed = |brick| Placed::new(brick, [0, 1, 2], 1);
            let transfer = Transfer::new(&part, 0..1, &placed(whole), &placed(part));
            let src: Vec<f64> = (0..2 * whole.points()).map(|i| i as f64).collect();
            let mut expected = vec![0.0; 2 * part.points()];
            copy(&transfer, 2, &src, &mut expected);
            let (mut cpu, mut dst) = (Cpu::<f64>::default(), vec![0.0; expected.len()]);
            cpu.data_of_host(fft_stream::LARGE_BYTES);
            assert_eq!(cpu.is_streamed(&transfer, 2), past);
            cpu.copy_nontemporal(&transfer, 2, &src, &mut dst);
            assert!(dst == expected);
        }
    }
}
