//! A reshape of one rank, bound to a codec.

use std::ops::Range;
use std::time::Instant;

use super::cpu::{Cpu, CpuCall, CpuFft};
use super::fused_pack::{FusedPack, Path};
use super::spill_buffers::{Read, Written};
use crate::base::cache_sizes::TILE_BYTES;
use crate::base::timings::Time;
use crate::base::{Error, Real, Timings};
use crate::codec::{BadMessage, Codec, Wire, codec::copy};
use crate::comm::{
    Exchanger, Expose, MessageHandler, MessagePlan, MessageSpec, NodeMemory, PeerMemory,
};
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
    /// The codecs of messages within this host and to other hosts.
    codecs: [Box<dyn Codec<T>>; 2],
    /// For every message sent and received, whether the second codec applies.
    encoded: [Vec<bool>; 2],
    loss: Option<Loss>,
    step: f64,
    /// The step for messages whose error exceeds that of a uniform distribution, if any.
    finer: Option<f64>,
    /// Squared errors of all messages encoded in this run.
    squared_error: f64,
    pub(crate) message_plan: MessagePlan,
    /// The source buffer of each message to be sent, and its transfer.
    gathers: Vec<(usize, Transfer)>,
    fused_pack: Option<FusedPack<T>>,
    unpack: Unpack<T>,
    exposes: bool,
}

/// The way that data gets into the new brick.
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
        let Encoding { wire, is_raw, gain, .. } = encoding;
        let codecs = [Wire::Raw.codec::<T>(), wire.codec::<T>()];
        let encoded =
            |ends: &[(usize, DynBrick)]| ends.iter().map(|(peer, _)| !is_raw(*peer)).collect();
        let encoded: [Vec<bool>; 2] =
            [encoded(&redistribution.sends), encoded(&redistribution.recvs)];
        let all = redistribution.all();
        let from = |part| (redistribution.source(part), redistribution.gather(part));
        let to = |part| {
            let scatter = redistribution.scatter(part, &all).expect("messages are not empty");
            (redistribution.destination(part), scatter)
        };
        let gathers: Vec<_> = redistribution.sends.iter().map(|(_, part)| from(part)).collect();
        let scatters: Vec<_> = redistribution.recvs.iter().map(|(_, part)| to(part)).collect();
        let message_plan =
            message_plan(redistribution, &encoding, &codecs, number, [&gathers[..], &scatters[..]]);
        let width = redistribution.width;
        let local_reads = local_copies(redistribution, &all);
        let lossy = gathers.iter().zip(&encoded[0]).filter(|(_, encoded)| **encoded);
        let reals: usize = lossy.map(|((_, gather), _)| gather.elements() * width).sum();
        let (reals, common) = (reals as f64, wire == Wire::Tolerance);
        let loss = wire.is_lossy().then_some(Loss { gain, reals, common });
        Self {
            rank: redistribution.rank,
            width,
            codecs,
            encoded,
            loss,
            step: 0.0,
            finer: None,
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
        (self.step, self.finer) = (step, finer);
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
        let codecs: usize = self.codecs.iter().map(|codec| codec.memory()).sum();
        let fused_pack = self.fused_pack.as_ref().map_or(0, FusedPack::memory);
        let messages = self.message_plan.list_bytes() + size_of_val(&*self.gathers);
        let packs = codecs + fused_pack + messages;
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
        timings: &mut Timings,
    ) -> Result<(), Error> {
        let [first, second] = dst;
        let (start, busy) = (Instant::now(), timings.busy());
        let Transports { exchange, node_memory } = transports;
        let mut fused_pack = self.fused_pack.take();
        fused_pack.iter_mut().for_each(|fused_pack| fused_pack.begin(device));
        let (reshape, mut squared_error) = (&*self, 0.0);
        let mut exchange_all = |peers: Option<&dyn PeerMemory>| {
            let handler = ReshapeHandler {
                reshape,
                fused_pack: fused_pack.as_mut(),
                device: &mut *device,
                src,
                peers,
                dst: [&mut *first, &mut *second],
                timings: &mut *timings,
                damage: Ok(()),
                lost: 0.0,
                rounded: 0.0,
            };
            let (result, lost) = handler.run(&mut *exchange);
            squared_error = lost;
            result
        };
        let result = match node_memory {
            Some(node_memory) if self.exposes => {
                let (expose, mut opened) = (Expose::Read(bytemuck::cast_slice(src[0])), false);
                let epoch = node_memory.exposure_epoch(expose, &mut |peers| {
                    opened = true;
                    exchange_all(Some(peers))
                });
                // Ranks of other hosts wait for messages, even if the epoch failed.
                if opened { epoch } else { epoch.and(exchange_all(None)) }
            }
            _ => exchange_all(None),
        };
        fused_pack.iter_mut().for_each(|fused_pack| fused_pack.end(device));
        self.fused_pack = fused_pack;
        self.squared_error = squared_error;
        timings.exchange += start.elapsed().saturating_sub(timings.busy() - busy);
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

/// The messages of a reshape with this number, one for each of these gathers and scatters.
fn message_plan<T: Real>(
    redistribution: &Redistribution,
    encoding: &Encoding<'_>,
    codecs: &[Box<dyn Codec<T>>; 2],
    number: usize,
    [gathers, scatters]: [&[(usize, Transfer)]; 2],
) -> MessagePlan {
    let width = redistribution.width;
    let spec = |peer, chunk, transfer: &Transfer| {
        let codec = &codecs[usize::from(!(encoding.is_raw)(peer))];
        let elements = transfer.elements();
        let bytes = codec.fixed(elements, width).unwrap_or(codec.bound(elements * width));
        MessageSpec { peer, bytes, chunk }
    };
    let specs = |boxes: &[(usize, DynBrick)], chunks: &[usize], transfers: &[(usize, Transfer)]| {
        let messages = boxes.iter().zip(chunks).zip(transfers);
        messages.map(|(((peer, _), chunk), (_, it))| spec(*peer, *chunk, it)).collect()
    };
    MessagePlan {
        reshape: number,
        chunks: redistribution.most_chunks,
        shorter: codecs[1].fixed(0, width).is_none(),
        buffers_all: encoding.buffers_all,
        sends: specs(&redistribution.sends, &redistribution.chunk_of, gathers),
        recvs: specs(&redistribution.recvs, &redistribution.theirs, scatters),
        buffers: None,
    }
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

struct ReshapeHandler<'a, T: Real> {
    reshape: &'a Reshape<T>,
    fused_pack: Option<&'a mut FusedPack<T>>,
    device: &'a mut Cpu<T>,
    src: Read<'a, T>,
    peers: Option<&'a dyn PeerMemory>,
    dst: Written<'a, T>,
    timings: &'a mut Timings,
    damage: Result<(), Error>,
    /// The sum of squared encoding errors, and the number of real numbers encoded.
    lost: f64,
    rounded: f64,
}

impl<T: Real> ReshapeHandler<'_, T> {
    /// Runs the exchange. Returns its result and the sum of squared errors.
    fn run(mut self, exchange: &mut dyn Exchanger) -> (Result<(), Error>, f64) {
        let message_plan = &self.reshape.message_plan;
        let sent = exchange.run(message_plan, &mut self);
        self.timings.forwarded += exchange.forwarded();
        (self.damage.and(sent), self.lost)
    }

    fn copy_near(&mut self, local_reads: &[LocalCopy]) {
        let Reshape { rank, width, .. } = *self.reshape;
        for LocalCopy { owner, pieces: [from, to], transfer } in local_reads {
            let (time, src) = match self.peers {
                _ if *owner == rank => (&mut self.timings.own, self.src[*from]),
                Some(peers) => {
                    (&mut self.timings.shared, bytemuck::cast_slice(peers.shown(*owner)))
                }
                // The exposure epoch has failed.
                None => continue,
            };
            let dst = &mut *self.dst[*to];
            time.time(|| copy(transfer, width, src, dst));
        }
    }

    fn decode(&mut self, number: usize, message: &[u8], (to, scatter): (usize, &Transfer)) {
        let Reshape { codecs, encoded, width, rank, message_plan, .. } = self.reshape;
        let codec = &codecs[usize::from(encoded[1][number])];
        let dst = &mut *self.dst[to];
        let result = self.timings.unpack.time(|| match self.device.fails(CpuCall::Unpack) {
            true => Err(BadMessage::Length { found: 0, expected: message.len() }),
            false => codec.unpack(message, scatter, *width, dst),
        });
        let result = result.map_err(|bad| bad.at(*rank, message_plan.recvs[number].peer));
        if self.damage.is_ok() {
            self.damage = result;
        }
    }
}

impl<T: Real> MessageHandler for ReshapeHandler<'_, T> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let Reshape { codecs, encoded, gathers, width, step, finer, .. } = self.reshape;
        let codec = &codecs[usize::from(encoded[0][number])];
        let (from, gather) = &gathers[number];
        let src = match &mut self.fused_pack {
            None => self.src[*from],
            Some(fused_pack) => fused_pack.chunk_for(
                number,
                Path {
                    width: *width,
                    device: self.device,
                    src: self.src,
                    dst: &mut self.dst,
                    timings: self.timings,
                },
            ),
        };
        self.device.fails(CpuCall::Pack);
        let reals = (gather.elements() * width) as f64;
        let mut pack = |step| codec.pack(src, gather, *width, step, message);
        self.rounded += if encoded[0][number] { reals } else { 0.0 };
        let room = Loss::room(self.rounded, *step) - self.lost;
        let packed = self.timings.pack.time(|| {
            let packed = pack(*step);
            // Equal numbers all have the same error.
            finer.filter(|_| packed.squared_error > room).map_or(packed, pack)
        });
        self.lost += packed.squared_error;
        self.timings.sent += packed.bytes as u64;
        self.timings.reals += (gather.elements() * width) as u64;
        packed.bytes
    }

    fn own(&mut self) {
        if let Some(fused_pack) = &mut self.fused_pack {
            let Self { reshape, device, src, dst, timings, .. } = self;
            fused_pack.rest(Path { width: reshape.width, device, src: *src, dst, timings });
        } else if let Unpack::Streaming { local_reads, .. } = &self.reshape.unpack {
            self.copy_near(local_reads);
        }
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        let Reshape { codecs, encoded, message_plan, .. } = self.reshape;
        let (codec, spec) = (&codecs[usize::from(encoded[1][number])], message_plan.recvs[number]);
        if codec.random_access() && message.len() != spec.bytes && self.damage.is_ok() {
            let bad = BadMessage::Length { found: message.len(), expected: spec.bytes };
            self.damage = Err(bad.at(self.reshape.rank, spec.peer));
        }
        match &self.reshape.unpack {
            Unpack::Streaming { scatters, .. } => {
                let (to, scatter) = &scatters[number];
                self.decode(number, message, (*to, scatter));
                true
            }
            Unpack::Fused { .. } => false,
        }
    }

    fn finish<'m>(&mut self, message: &dyn Fn(usize) -> &'m [u8]) {
        let Unpack::Fused { ffts, tiles } = &self.reshape.unpack else { return };
        for tile in tiles {
            self.copy_near(&tile.local_reads);
            for (number, to, scatter) in &tile.scatters {
                self.decode(*number, message(*number), (*to, scatter));
            }
            let FusedFft { fft, offset, .. } = &ffts[tile.fft];
            let dst = &mut self.dst[offset.piece][offset.first..];
            let device = &mut *self.device;
            self.timings.fft.time(|| {
                for blocks in &tile.blocks {
                    device.fft(fft, blocks.clone(), None, dst);
                }
            });
        }
    }
}
