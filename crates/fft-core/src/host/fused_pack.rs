//! Fused packing: a chunk of the old brick is transformed in cache and packed from there.
//!
//! ```text
//! for each message to be sent, in order of chunks:
//!     until its chunk has been transformed:
//!         copy the next chunk of the old brick into the tile
//!         transform the tile along each axis, in place
//!         copy this rank's own part of it into the new brick
//!     encode the message from the tile        (reshape.rs)
//!     earlier messages are in flight meanwhile
//! after the last message: transform the remaining chunks, which only hold own parts
//! ```

use std::mem::take;

use super::cpu::Cpu;
use super::spill_buffers::{Read, Written};
use super::tiles::{Ffts, Lines, TileFfts};
use crate::base::{Error, Real};
use crate::base::{Timings, timings::Time};
use crate::codec::codec::copy;
use crate::geometry::Transfer;
use crate::recipe::Pass;
use crate::redistribute::Redistribution;

/// The chunks of a brick, and the tile of the current one.
pub(crate) struct FusedPack<T: Real> {
    chunks: Vec<Load>,
    ffts: Vec<Ffts<T>>,
    tile: Vec<T>,
    chunk_of: Vec<usize>,
    /// Number of chunks transformed in this run.
    done: usize,
}

struct Load {
    from: usize,
    load: Transfer,
    fft: usize,
    /// This rank's own parts, by destination buffer.
    own: Vec<(usize, Transfer)>,
}

impl<T: Real> FusedPack<T> {
    pub(crate) fn new(
        redistribution: &Redistribution,
        axes: &[(usize, Pass)],
        device: &mut Cpu<T>,
    ) -> Result<Self, Error> {
        let (rank, batch) = (redistribution.rank, redistribution.batch());
        let lines = Lines { rank, order: redistribution.order(), batch, axes, cached: true };
        let mut ffts = TileFfts::default();
        let (mut chunks, mut most) = (Vec::new(), 0);
        for chunk in redistribution.chunks.iter().filter(|chunk| !chunk.is_empty()) {
            let fft = ffts.plan(lines, chunk, device)?;
            let (from, load, own) = (
                redistribution.source(chunk),
                redistribution.load(chunk),
                redistribution.keep_from(chunk),
            );
            chunks.push(Load { from, load, fft, own });
            most = most.max(chunk.points());
        }
        chunks.shrink_to_fit();
        device.reserve_tile(most * batch * redistribution.width, rank)?;
        let chunk_of = redistribution.chunks_sent().collect();
        Ok(Self { chunks, ffts: ffts.plans, tile: Vec::new(), chunk_of, done: 0 })
    }

    pub(crate) fn begin(&mut self, device: &mut Cpu<T>) {
        self.done = 0;
        self.tile = take(device.tile());
    }

    pub(crate) fn end(&mut self, device: &mut Cpu<T>) {
        *device.tile() = take(&mut self.tile);
    }

    pub(crate) fn chunk_for(&mut self, message: usize, path: Path<'_, '_, T>) -> &[T] {
        self.up_to(self.chunk_of[message] + 1, path);
        assert_eq!(self.done, self.chunk_of[message] + 1, "messages are packed in their order");
        &self.tile
    }

    pub(crate) fn rest(&mut self, path: Path<'_, '_, T>) {
        self.up_to(self.chunks.len(), path);
    }

    fn up_to(&mut self, end: usize, path: Path<'_, '_, T>) {
        let Path { width, device, src, dst, timings } = path;
        let tile = &mut self.tile[..];
        for chunk in &self.chunks[self.done.min(end)..end] {
            timings.own.time(|| copy(&chunk.load, width, src[chunk.from], tile));
            for (fft, blocks) in &self.ffts[chunk.fft] {
                timings.fft.time(|| device.fft(fft, blocks.clone(), None, tile));
            }
            for (to, own) in &chunk.own {
                timings.own.time(|| device.copy_nontemporal(own, width, tile, dst[*to]));
            }
        }
        self.done = self.done.max(end);
    }

    /// Bytes held besides the tile.
    pub(crate) fn memory(&self) -> usize {
        let own = |chunk: &Load| size_of_val(&*chunk.own);
        size_of_val(&*self.chunks)
            + self.chunks.iter().map(own).sum::<usize>()
            + size_of_val(&*self.chunk_of)
    }
}

pub(crate) struct Path<'a, 'b, T: Real> {
    pub(crate) width: usize,
    pub(crate) device: &'a mut Cpu<T>,
    pub(crate) src: Read<'a, T>,
    pub(crate) dst: &'a mut Written<'b, T>,
    pub(crate) timings: &'a mut Timings,
}
