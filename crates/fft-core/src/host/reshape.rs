//! A reshape as one rank carries it out, bound to a codec.

use std::ops::Range;
use std::time::Instant;

use super::fused_pack::{FusedPack, Path};
use super::processor::Processor;
use super::spill_buffers::{Read, Written, rest_mut};
use crate::base::cache_sizes::TILE_BYTES;
use crate::base::timings::Time;
use crate::base::{Error, Real, Timings};
use crate::codec::BadMessage;
use crate::codec::{Codec, Wire};
use crate::comm::{
    Exchange, Expose, MessageHandler, MessagePlan, MessageSpec, NodeMemory, PeerMemory,
};
use crate::geometry::{DynBrick, Transfer};
use crate::recipe::Pass;
use crate::recipe::norm_gain::{Gain, Loss};
use crate::redistribute::spill::BufferOffset;
use crate::redistribute::{Chunk, LocalRead, Redistribution, redistribution::Blocks};

/// Bytes read side by side where data is contiguous: enough to use up what a page of memory costs to find.
const RUN_BYTES: Range<usize> = 64..512;

/// Everything one rank needs to move its data from one layout to another and, where it can be done on the
/// way, to transform it there.
pub(crate) struct Reshape<T: Real, Dev: Processor<T>> {
    rank: usize,
    width: usize,
    /// For messages to and from ranks of this host, and of others.
    codecs: [Box<dyn Codec<T>>; 2],
    /// For every message out and in, whether it is the second.
    abroad: [Vec<bool>; 2],
    loss: Option<Loss>,
    /// Between neighbouring values on the wire.
    step: f64,
    /// The one for messages that would lose more than errors that are spread evenly, if that may not be.
    finer: Option<f64>,
    /// Of all that was encoded in this run.
    squared_error: f64,
    pub(crate) message_plan: MessagePlan,
    /// From this rank's old brick, by piece of memory, into each outgoing message.
    gathers: Vec<(usize, Transfer)>,
    depart: Option<FusedPack<T, Dev>>,
    arrive: Unpack<T, Dev>,
    visits: bool,
}

/// How data gets into the new brick.
enum Unpack<T: Real, Dev: Processor<T>> {
    /// Each message as soon as it is there.
    Streaming { local_reads: Vec<Taken>, scatters: Vec<(usize, Transfer)> },
    /// All messages together, a tile at a time, which is transformed while it is in cache: one pass over
    /// memory instead of two.
    Fused { ffts: Vec<FusedFft<Dev::Fft>>, tiles: Vec<Tile> },
}

/// A local transform of what arrives: one for each part of the new brick that is dense.
pub(crate) struct FusedFft<F> {
    pub(crate) fft: F,
    pub(crate) blocks: usize,
    /// Where the part is.
    pub(crate) spot: BufferOffset,
}

/// What is taken from memory that this rank can read, its own and that of others.
struct Taken {
    owner: usize,
    /// From which piece of memory, and to which.
    pieces: [usize; 2],
    transfer: Transfer,
}

/// A box of the new brick.
struct Tile {
    /// Which transform it needs.
    fft: usize,
    blocks: Blocks,
    local_reads: Vec<Taken>,
    /// By number of message, and piece of memory.
    scatters: Vec<(usize, usize, Transfer)>,
}

impl<T: Real, Dev: Processor<T>> Reshape<T, Dev> {
    /// A reshape with this number among all of a plan. With `visits`, ranks of the same host read each other's memory.
    pub(crate) fn new(
        redistribution: &Redistribution,
        means: Encoding<'_>,
        number: usize,
        visits: bool,
    ) -> Self {
        let Encoding { wire, bare, gain, buffers_all } = means;
        let codecs = [Wire::Raw.codec::<T>(), wire.codec::<T>()];
        let abroad =
            |ends: &[(usize, DynBrick)]| ends.iter().map(|(peer, _)| !bare(*peer)).collect();
        let abroad: [Vec<bool>; 2] = [abroad(&redistribution.sends), abroad(&redistribution.recvs)];
        let all = redistribution.all();
        let from = |part| (redistribution.source(part), redistribution.gather(part));
        let to = |part| {
            let scatter = redistribution.scatter(part, &all).expect("messages are not empty");
            (redistribution.destination(part), scatter)
        };
        let gathers: Vec<_> = redistribution.sends.iter().map(|(_, part)| from(part)).collect();
        let scatters: Vec<_> = redistribution.recvs.iter().map(|(_, part)| to(part)).collect();
        let spec = |peer, (_, transfer): &(usize, Transfer), chunk| {
            let codec = &codecs[usize::from(!bare(peer))];
            let (elements, width) = (transfer.elements(), redistribution.width);
            let bytes = codec.fixed(elements, width).unwrap_or(codec.bound(elements * width));
            MessageSpec { peer, bytes, chunk }
        };
        let sends = redistribution.sends.iter().zip(&redistribution.chunk_of).zip(&gathers);
        let recvs = redistribution.recvs.iter().zip(&redistribution.theirs).zip(&scatters);
        let message_plan = MessagePlan {
            reshape: number,
            chunks: redistribution.most_chunks,
            shorter: codecs[1].fixed(0, redistribution.width).is_none(),
            buffers_all,
            sends: sends.map(|(((peer, _), chunk), of)| spec(*peer, of, *chunk)).collect(),
            recvs: recvs.map(|(((peer, _), chunk), of)| spec(*peer, of, *chunk)).collect(),
            buffers: None,
        };
        let arrive = Unpack::Streaming { local_reads: taken(redistribution, &all), scatters };
        let (rank, width) = (redistribution.rank, redistribution.width);
        let lossy = gathers.iter().zip(&abroad[0]).filter(|(_, abroad)| **abroad);
        let reals: usize = lossy.map(|((_, gather), _)| gather.elements() * width).sum();
        let (reals, common) = (reals as f64, wire == Wire::Tolerance);
        let loss = wire.is_lossy().then_some(Loss { gain, reals, common });
        let (step, finer, squared_error) = (0.0, None, 0.0);
        let depart = None;
        Self {
            rank,
            width,
            codecs,
            abroad,
            loss,
            step,
            finer,
            squared_error,
            message_plan,
            gathers,
            depart,
            arrive,
            visits,
        }
    }

    /// What may be lost, if anything.
    pub(crate) fn loss(&self) -> Option<Loss> {
        self.loss
    }

    /// Sets the distance between neighbouring values on a wire that wants to be told, and the finer one for messages that
    /// would lose more than errors that are spread evenly over half of it to either side.
    pub(crate) fn set_step(&mut self, step: f64, finer: Option<f64>) {
        (self.step, self.finer) = (step, finer);
    }

    /// The sum of the squares of all errors that this rank made in the last run.
    pub(crate) fn squared_error(&self) -> f64 {
        self.squared_error
    }

    /// Does transforms along these axes of the old brick on the way. The redistribution must be chunked.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn depart(
        &mut self,
        redistribution: &Redistribution,
        axes: &[(usize, Pass)],
        device: &mut Dev,
    ) -> Result<(), Error> {
        let from = |((_, part), chunk): (&(usize, DynBrick), usize)| {
            (0, redistribution.gather_from(&redistribution.chunks[chunk], part))
        };
        self.gathers =
            redistribution.sends.iter().zip(redistribution.chunks_sent()).map(from).collect();
        self.depart = Some(FusedPack::new(redistribution, axes, device)?);
        Ok(())
    }

    /// Does local transforms, in place, on the way: one for each of these parts of the new brick.
    pub(crate) fn fuse(
        &mut self,
        redistribution: &Redistribution,
        parts: &[DynBrick],
        ffts: Vec<FusedFft<Dev::Fft>>,
    ) {
        let element = redistribution.width * T::PRECISION.bytes();
        let departs = self.depart.is_some();
        let tile = |fft: usize, (chunk, blocks): (Chunk, Blocks)| Tile {
            fft,
            blocks,
            // What departs transformed is kept on departure.
            local_reads: if departs { Vec::new() } else { taken(redistribution, &chunk) },
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
        self.arrive = Unpack::Fused { ffts, tiles };
    }

    /// Bytes of memory held, beside tables for messages.
    pub(crate) fn memory(&self) -> usize {
        let depart = self.depart.as_ref().map_or(0, FusedPack::memory);
        match &self.arrive {
            Unpack::Streaming { .. } => depart,
            Unpack::Fused { tiles, .. } => {
                let parts = |tile: &Tile| {
                    size_of_val(&*tile.local_reads)
                        + size_of_val(&*tile.scatters)
                        + size_of_val(&*tile.blocks)
                };
                depart + size_of_val(&**tiles) + tiles.iter().map(parts).sum::<usize>()
            }
        }
    }

    /// Whether the ranks of a host must be able to read the source.
    pub(crate) fn opens_epoch(&self) -> bool {
        self.visits
    }

    /// Redistribution the data. Collective.
    ///
    /// # Errors
    /// [`Error::Message`] for the first message that did not decode, once all have come; or the transport's.
    pub(crate) fn run(
        &mut self,
        ways: Ways<'_>,
        device: &mut Dev,
        src: Read<'_, Dev::Memory>,
        dst: Written<'_, Dev::Memory>,
        timings: &mut Timings,
    ) -> Result<(), Error> {
        let [first, second] = dst;
        let (start, busy) = (Instant::now(), timings.busy());
        let Ways { exchange, node_memory } = ways;
        let mut depart = self.depart.take();
        depart.iter_mut().for_each(|depart| depart.begin(device));
        let (reshape, mut squared_error) = (&*self, 0.0);
        let mut cross = |peers: Option<&dyn PeerMemory>| {
            let (device, timings) = (&mut *device, &mut *timings);
            let dst = [&mut *first, &mut *second];
            let (depart, damage) = (depart.as_mut(), Ok(()));
            let (lost, rounded) = (0.0, 0.0);
            let mut handler = ReshapeHandler {
                reshape,
                depart,
                device,
                src,
                peers,
                dst,
                timings,
                damage,
                lost,
                rounded,
            };
            let sent = exchange.run(&reshape.message_plan, &mut handler);
            let damage = handler.damage;
            squared_error = handler.lost;
            timings.forwarded += exchange.forwarded();
            damage.and(sent)
        };
        let result = match node_memory {
            Some(node_memory) if self.visits => {
                let (show, mut met) = (Expose::Read(Dev::bytes(src[0])), false);
                let visited = node_memory.exposure_epoch(show, &mut |peers| {
                    met = true;
                    cross(Some(peers))
                });
                // Ranks of other hosts wait for messages, whatever this host's have to show.
                if met { visited } else { visited.and(cross(None)) }
            }
            _ => cross(None),
        };
        depart.iter_mut().for_each(|depart| depart.end(device));
        self.depart = depart;
        self.squared_error = squared_error;
        timings.exchange += start.elapsed().saturating_sub(timings.busy() - busy);
        result
    }
}

/// How messages are to be represented.
pub(crate) struct Encoding<'a> {
    pub(crate) wire: Wire,
    /// Whether a peer's messages are raw all the same.
    pub(crate) bare: &'a dyn Fn(usize) -> bool,
    /// What errors are multiplied by on the way to the result.
    pub(crate) gain: Gain,
    /// Whether there is to be memory for all of them at once.
    pub(crate) buffers_all: bool,
}

/// What leads to other ranks.
pub(crate) struct Ways<'a> {
    pub(crate) exchange: &'a mut dyn Exchange,
    pub(crate) node_memory: &'a mut Option<Box<dyn NodeMemory>>,
}

/// What is taken from memory that can be read, for a part of the new brick.
fn taken(redistribution: &Redistribution, wanted: &Chunk) -> Vec<Taken> {
    let take = |local_reads: &LocalRead| {
        let (owner, transfer) = (local_reads.owner, redistribution.take(local_reads, wanted)?);
        // Others show one piece of memory.
        let from =
            if owner == redistribution.rank { redistribution.source(&local_reads.part) } else { 0 };
        Some(Taken {
            owner,
            pieces: [from, redistribution.destination(&local_reads.part)],
            transfer,
        })
    };
    redistribution.local_reads.iter().filter_map(take).collect()
}

/// The handler of a reshape between two pieces of memory.
struct ReshapeHandler<'a, T: Real, Dev: Processor<T>> {
    reshape: &'a Reshape<T, Dev>,
    depart: Option<&'a mut FusedPack<T, Dev>>,
    device: &'a mut Dev,
    src: Read<'a, Dev::Memory>,
    peers: Option<&'a dyn PeerMemory>,
    dst: Written<'a, Dev::Memory>,
    timings: &'a mut Timings,
    /// The first message that did not decode.
    damage: Result<(), Error>,
    /// The sum of the squares of encoding errors, and of how many real numbers.
    lost: f64,
    rounded: f64,
}

impl<T: Real, Dev: Processor<T>> ReshapeHandler<'_, T, Dev> {
    fn copy_near(&mut self, local_reads: &[Taken]) {
        let Reshape { rank, width, .. } = *self.reshape;
        for Taken { owner, pieces: [from, to], transfer } in local_reads {
            let (time, src) = match self.peers {
                _ if *owner == rank => (&mut self.timings.own, self.src[*from]),
                Some(peers) => (&mut self.timings.shared, Dev::memory(peers.shown(*owner))),
                // They could not meet.
                None => continue,
            };
            let (device, dst) = (&mut *self.device, &mut *self.dst[*to]);
            time.time(|| device.copy(transfer, width, src, dst));
        }
    }

    fn decode(&mut self, number: usize, message: &[u8], (to, scatter): (usize, &Transfer)) {
        let Reshape { codecs, abroad, width, rank, message_plan, .. } = self.reshape;
        let codec = &codecs[usize::from(abroad[1][number])];
        let (device, dst) = (&mut *self.device, &mut *self.dst[to]);
        let result = self
            .timings
            .unpack
            .time(|| device.unpack(codec.as_ref(), message, scatter, *width, dst))
            .map_err(|bad: BadMessage| bad.at(*rank, message_plan.recvs[number].peer));
        if self.damage.is_ok() {
            self.damage = result;
        }
    }
}

impl<T: Real, Dev: Processor<T>> MessageHandler for ReshapeHandler<'_, T, Dev> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let Reshape { codecs, abroad, gathers, width, step, finer, .. } = self.reshape;
        let codec = &codecs[usize::from(abroad[0][number])];
        let (from, gather) = &gathers[number];
        let src = match &mut self.depart {
            None => self.src[*from],
            Some(depart) => depart.chunk_for(
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
        let device = &mut *self.device;
        let reals = (gather.elements() * width) as f64;
        let mut pack = |step| device.pack(codec.as_ref(), gather, *width, src, step, message);
        self.rounded += if abroad[0][number] { reals } else { 0.0 };
        let room = Loss::room(self.rounded, *step) - self.lost;
        let packed = self.timings.pack.time(|| {
            let packed = pack(*step);
            // Numbers that are all alike are all wrong by the same.
            finer.filter(|_| packed.squared_error > room).map_or(packed, pack)
        });
        self.lost += packed.squared_error;
        self.timings.sent += packed.bytes as u64;
        self.timings.reals += (gather.elements() * width) as u64;
        packed.bytes
    }

    fn own(&mut self) {
        if let Some(depart) = &mut self.depart {
            let Self { reshape, device, src, dst, timings, .. } = self;
            depart.rest(Path { width: reshape.width, device, src: *src, dst, timings });
        } else if let Unpack::Streaming { local_reads, .. } = &self.reshape.arrive {
            self.copy_near(local_reads);
        }
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        let Reshape { codecs, abroad, message_plan, .. } = self.reshape;
        let (codec, spec) = (&codecs[usize::from(abroad[1][number])], message_plan.recvs[number]);
        if codec.random_access() && message.len() != spec.bytes && self.damage.is_ok() {
            let bad = BadMessage::Length { found: message.len(), expected: spec.bytes };
            self.damage = Err(bad.at(self.reshape.rank, spec.peer));
        }
        match &self.reshape.arrive {
            Unpack::Streaming { scatters, .. } => {
                let (to, scatter) = &scatters[number];
                self.decode(number, message, (*to, scatter));
                true
            }
            Unpack::Fused { .. } => false,
        }
    }

    fn finish<'m>(&mut self, message: &dyn Fn(usize) -> &'m [u8]) {
        let Unpack::Fused { ffts, tiles } = &self.reshape.arrive else { return };
        for tile in tiles {
            self.copy_near(&tile.local_reads);
            for (number, to, scatter) in &tile.scatters {
                self.decode(*number, message(*number), (*to, scatter));
            }
            let FusedFft { fft, spot, .. } = &ffts[tile.fft];
            let dst = rest_mut::<T, Dev>(self.dst[spot.piece], spot.first);
            let device = &mut *self.device;
            self.timings.fft.time(|| {
                for blocks in &tile.blocks {
                    device.fft(fft, blocks.clone(), None, dst);
                }
            });
        }
    }
}
