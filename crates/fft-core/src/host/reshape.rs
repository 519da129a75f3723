//! A reshape of one rank, bound to codecs and transforms.

mod codecs;
mod handler;

use std::ops::Range;
use std::time::Instant;

use self::codecs::{Encoded, MessageCodecs};
use self::handler::ReshapeRun;
use super::cpu::{Cpu, CpuFft};
use super::fused_pack::FusedPack;
use super::spill_buffers::{Read, Written};
use crate::base::cache_sizes::TILE_BYTES;
use crate::base::{Error, Real};
use crate::codec::Wire;
use crate::comm::{Exchanger, Expose, MessagePlan, MessageSpec, NodeMemory};
use crate::execute::Recorder;
use crate::geometry::{DynBrick, Transfer};
use crate::problem::Gain;
use crate::recipe::Pass;
use crate::recipe::norm_gain::Loss;
use crate::redistribute::spill::BufferOffset;
use crate::redistribute::{Chunk, LocalRead, Redistribution, redistribution::Blocks};

/// Adjacent bytes of reads from contiguous data, enough to amortize page lookups.
const RUN_BYTES: Range<usize> = 64..512;

/// The transfers of one rank's data, with transforms fused into packing or unpacking.
pub(crate) struct Reshape<T: Real> {
    rank: usize,
    width: usize,
    codecs: MessageCodecs<T>,
    loss: Option<Loss>,
    /// Squared errors of all messages encoded in the last run.
    squared_error: f64,
    pub(crate) message_plan: MessagePlan,
    /// The source buffer of each message to be sent, and its transfer.
    gathers: Vec<(usize, Transfer)>,
    fused_pack: Option<FusedPack<T>>,
    unpack: Unpack<T>,
    exposes: bool,
}

/// How data gets into the new brick.
enum Unpack<T: Real> {
    /// Each message is unpacked on arrival.
    Streaming { local_reads: Vec<LocalCopy>, scatters: Vec<(usize, Transfer)> },
    /// All messages are unpacked together into tiles, each transformed in cache: one pass.
    Fused { ffts: Vec<FusedFft<T>>, tiles: Vec<Tile> },
}

/// A local transform fused into unpacking, one for each dense part of the new brick.
pub(crate) struct FusedFft<T: Real> {
    pub(crate) fft: CpuFft<T>,
    pub(crate) blocks: usize,
    pub(crate) offset: BufferOffset,
}

/// A copy from local memory, this rank's or a peer's.
struct LocalCopy {
    owner: usize,
    pieces: [usize; 2],
    transfer: Transfer,
}

struct Tile {
    fft: usize,
    blocks: Blocks,
    local_reads: Vec<LocalCopy>,
    /// Number of the message, and destination buffer.
    scatters: Vec<(usize, usize, Transfer)>,
}

impl<T: Real> Reshape<T> {
    /// A reshape with this number in its plan. If it `exposes`, ranks of a host share memory.
    pub(crate) fn new(
        redistribution: &Redistribution,
        encoding: Encoding<'_>,
        number: usize,
        exposes: bool,
    ) -> Self {
        let Encoding { wire, is_raw, gain, buffers_all } = encoding;
        let width = redistribution.width;
        let (sends, recvs) = (&redistribution.sends, &redistribution.recvs);
        let codecs = MessageCodecs::new(
            wire,
            width,
            is_raw,
            [&mut sends.iter().map(|(peer, _)| *peer), &mut recvs.iter().map(|(peer, _)| *peer)],
        );
        let all = redistribution.all();
        let from = |part| (redistribution.source(part), redistribution.gather(part));
        let to = |part| {
            let scatter = redistribution.scatter(part, &all).expect("messages are not empty");
            (redistribution.destination(part), scatter)
        };
        let gathers: Vec<_> = sends.iter().map(|(_, part)| from(part)).collect();
        let scatters: Vec<_> = recvs.iter().map(|(_, part)| to(part)).collect();
        let message_plan = MessagePlan {
            reshape: number,
            chunks: redistribution.most_chunks,
            shorter: codecs.are_shorter(),
            buffers_all,
            sends: specs(sends, &redistribution.chunk_of, |number| {
                codecs.bytes_sent(number, gathers[number].1.elements())
            }),
            recvs: specs(recvs, &redistribution.theirs, |number| {
                codecs.bytes_received(number, scatters[number].1.elements())
            }),
            buffers: None,
        };
        let local_reads = local_copies(redistribution, &all);
        let encoded = (0..gathers.len()).filter(|number| !codecs.sends_raw(*number));
        let reals: usize = encoded.map(|number| gathers[number].1.elements() * width).sum();
        let (reals, common) = (reals as f64, wire == Wire::Tolerance);
        let loss = wire.is_lossy().then_some(Loss { gain, reals, common });
        Self {
            rank: redistribution.rank,
            width,
            codecs,
            loss,
            squared_error: 0.0,
            message_plan,
            gathers,
            fused_pack: None,
            unpack: Unpack::Streaming { local_reads, scatters },
            exposes,
        }
    }

    pub(crate) fn loss(&self) -> Option<Loss> {
        self.loss
    }

    /// Sets the quantization step, and a finer one for messages of larger error.
    pub(crate) fn set_step(&mut self, step: f64, finer: Option<f64>) {
        self.codecs.set_step(step, finer);
    }

    pub(crate) fn squared_error(&self) -> f64 {
        self.squared_error
    }

    /// Fuses transforms along these axes into packing. The redistribution must be chunked.
    pub(crate) fn fuse_pack(
        &mut self,
        redistribution: &Redistribution,
        axes: &[(usize, Pass)],
        device: &mut Cpu<T>,
    ) -> Result<(), Error> {
        let from = |((_, part), chunk): (&(usize, DynBrick), usize)| {
            (0, redistribution.gather_from(&redistribution.chunks[chunk], part))
        };
        self.gathers =
            redistribution.sends.iter().zip(redistribution.chunks_sent()).map(from).collect();
        self.fused_pack = Some(FusedPack::new(redistribution, axes, device)?);
        Ok(())
    }

    /// Fuses in-place transforms of these parts of the new brick into unpacking.
    pub(crate) fn fuse_unpack(
        &mut self,
        redistribution: &Redistribution,
        parts: &[DynBrick],
        ffts: Vec<FusedFft<T>>,
    ) {
        let element = redistribution.width * T::PRECISION.bytes();
        let packs_fused = self.fused_pack.is_some();
        let tile = |fft: usize, (chunk, blocks): (Chunk, Blocks)| Tile {
            fft,
            blocks,
            // Fused packing has copied this rank's own part already.
            local_reads: if packs_fused {
                Vec::new()
            } else {
                local_copies(redistribution, &chunk)
            },
            scatters: (redistribution.recvs.iter().enumerate())
                .filter_map(|(n, (_, part))| {
                    let scatter = redistribution.scatter(part, &chunk)?;
                    Some((n, redistribution.destination(part), scatter))
                })
                .collect(),
        };
        let mut tiles = Vec::new();
        for (number, (part, fft)) in parts.iter().zip(&ffts).enumerate() {
            if !part.is_empty() {
                let run = RUN_BYTES.start / element..RUN_BYTES.end / element;
                let boxes = redistribution.boxes(*part, fft.blocks, run, TILE_BYTES / element);
                tiles.extend(boxes.into_iter().map(|boxed| tile(number, boxed)));
            }
        }
        tiles.shrink_to_fit();
        self.unpack = Unpack::Fused { ffts, tiles };
    }

    /// Bytes of codecs and of lists of messages, chunks and tiles.
    pub(crate) fn memory(&self) -> usize {
        let fused_pack = self.fused_pack.as_ref().map_or(0, FusedPack::memory);
        let messages = self.message_plan.list_bytes() + size_of_val(&*self.gathers);
        let packs = self.codecs.memory() + fused_pack + messages;
        match &self.unpack {
            Unpack::Streaming { local_reads, scatters } => {
                packs + size_of_val(&**local_reads) + size_of_val(&**scatters)
            }
            Unpack::Fused { tiles, .. } => {
                let parts = |tile: &Tile| {
                    size_of_val(&*tile.local_reads)
                        + size_of_val(&*tile.scatters)
                        + size_of_val(&*tile.blocks)
                };
                packs + size_of_val(&**tiles) + tiles.iter().map(parts).sum::<usize>()
            }
        }
    }

    /// Moves the data. Collective.
    pub(crate) fn run(
        &mut self,
        transports: Transports<'_>,
        device: &mut Cpu<T>,
        src: Read<'_, T>,
        dst: Written<'_, T>,
        timings: &mut Recorder,
    ) -> Result<(), Error> {
        let (start, busy) = (Instant::now(), timings.busy());
        let Transports { exchange, node_memory } = transports;
        let mut fused_pack = self.fused_pack.take();
        fused_pack.iter_mut().for_each(|fused_pack| fused_pack.begin(device));
        let mut run = ReshapeRun {
            reshape: self,
            fused_pack: fused_pack.as_mut(),
            device: &mut *device,
            src,
            dst,
            timings: &mut *timings,
            damage: Ok(()),
            encoded: Encoded::default(),
        };
        let result = match node_memory {
            Some(node_memory) if self.exposes => {
                let (expose, mut opened) = (Expose::Read(bytemuck::cast_slice(src[0])), false);
                let epoch = node_memory.exposure_epoch(expose, &mut |peers| {
                    opened = true;
                    run.exchange(exchange, Some(peers))
                });
                // Ranks of other hosts wait for messages, even if the epoch failed.
                if opened { epoch } else { epoch.and(run.exchange(exchange, None)) }
            }
            _ => run.exchange(exchange, None),
        };
        let squared_error = run.encoded.squared_error;
        fused_pack.iter_mut().for_each(|fused_pack| fused_pack.end(device));
        (self.fused_pack, self.squared_error) = (fused_pack, squared_error);
        let waited = start.elapsed().saturating_sub(timings.busy() - busy);
        timings.exchange += waited;
        result
    }
}

pub(crate) struct Encoding<'a> {
    pub(crate) wire: Wire,
    /// Whether a peer's messages are raw in any case.
    pub(crate) is_raw: &'a dyn Fn(usize) -> bool,
    pub(crate) gain: Gain,
    /// Whether all messages are buffered at once.
    pub(crate) buffers_all: bool,
}

pub(crate) struct Transports<'a> {
    pub(crate) exchange: &'a mut dyn Exchanger,
    pub(crate) node_memory: &'a mut Option<Box<dyn NodeMemory>>,
}

/// The messages with these boxes, in these chunks. `bytes` is the maximum size of each.
fn specs(
    boxes: &[(usize, DynBrick)],
    chunks: &[usize],
    bytes: impl Fn(usize) -> usize,
) -> Vec<MessageSpec> {
    let spec = |(number, ((peer, _), chunk)): (usize, (&(usize, DynBrick), &usize))| MessageSpec {
        peer: *peer,
        bytes: bytes(number),
        chunk: *chunk,
    };
    boxes.iter().zip(chunks).enumerate().map(spec).collect()
}

/// The copies from local memory into a part of the new brick.
fn local_copies(redistribution: &Redistribution, wanted: &Chunk) -> Vec<LocalCopy> {
    let take = |read: &LocalRead| {
        let (owner, transfer) = (read.owner, redistribution.take(read, wanted)?);
        // Peers expose one buffer.
        let from = if owner == redistribution.rank { redistribution.source(&read.part) } else { 0 };
        Some(LocalCopy { owner, pieces: [from, redistribution.destination(&read.part)], transfer })
    };
    let mut copies: Vec<_> = redistribution.local_reads.iter().filter_map(take).collect();
    copies.shrink_to_fit();
    copies
}
