//! A reshape as one rank carries it out, bound to a codec.

use std::ops::Range;
use std::time::Instant;

use crate::clock::Time;
use crate::codec::BadMessage;
use crate::depart::{Depart, Path};
use crate::moves::{Blocks, Chunk, Moves, Near};
use crate::{
    Brick, Clock, Codec, Commons, Device, Error, Exchange, Neighbours, Parcel, Pass, Port, Real,
    Show, Traffic, Transfer, Wire,
};

/// Bytes that are gathered, transformed and written back before the next are begun: they stay in the
/// second-level cache meanwhile.
const TILE_BYTES: usize = 1 << 19;
/// Bytes read side by side where data is contiguous: enough to use up what a page of memory costs to find.
const RUN_BYTES: Range<usize> = 64..512;

/// Everything one rank needs to move its data from one layout to another and, where it can be done on the
/// way, to transform it there.
pub(crate) struct Reshape<T: Real, Dev: Device<T>> {
    rank: usize,
    width: usize,
    codec: Box<dyn Codec<T>>,
    pub(crate) traffic: Traffic,
    /// From this rank's old brick into each outgoing message.
    gathers: Vec<Transfer>,
    depart: Option<Depart<T, Dev>>,
    arrive: Arrive<T, Dev>,
    visits: bool,
}

/// How data gets into the new brick.
enum Arrive<T: Real, Dev: Device<T>> {
    /// Each message as soon as it is there.
    Streaming { near: Vec<(usize, Transfer)>, scatters: Vec<Transfer> },
    /// All messages together, a tile at a time, which is transformed while it is in cache: one pass over
    /// memory instead of two.
    Fused { fft: Dev::Fft, tiles: Vec<Tile> },
}

/// A box of the new brick.
struct Tile {
    blocks: Blocks,
    /// By owner: memory that this rank can read, its own and that of others.
    near: Vec<(usize, Transfer)>,
    /// By number of message.
    scatters: Vec<(usize, Transfer)>,
}

impl<T: Real, Dev: Device<T>> Reshape<T, Dev> {
    /// A reshape with this number among all of a plan. With `visits`, ranks of the same host read each other's memory.
    pub(crate) fn new<const D: usize>(
        moves: &Moves<D>,
        wire: Wire,
        number: usize,
        visits: bool,
    ) -> Self {
        let codec = wire.codec::<T>();
        let bytes = |elements: usize| codec.bound(elements * moves.width);
        let all = moves.all();
        let of = |part| moves.scatter(part, &all).expect("messages are not empty");
        let gathers: Vec<_> = moves.sends.iter().map(|(_, part)| moves.gather(part)).collect();
        let scatters: Vec<_> = moves.recvs.iter().map(|(_, part)| of(part)).collect();
        let parcel = |peer, transfer: &Transfer, chunk| {
            let bytes = bytes(transfer.elements());
            Parcel { peer, bytes, chunk }
        };
        let sends = moves.sends.iter().zip(&moves.chunk_of).zip(&gathers);
        let recvs = moves.recvs.iter().zip(&moves.theirs).zip(&scatters);
        let traffic = Traffic {
            reshape: number,
            chunks: moves.most_chunks,
            sends: sends.map(|(((peer, _), chunk), of)| parcel(*peer, of, *chunk)).collect(),
            recvs: recvs.map(|(((peer, _), chunk), of)| parcel(*peer, of, *chunk)).collect(),
        };
        let arrive = Arrive::Streaming { near: taken(moves, &all), scatters };
        let (rank, width) = (moves.rank, moves.width);
        Self { rank, width, codec, traffic, gathers, depart: None, arrive, visits }
    }

    /// Does transforms along these axes of the old brick on the way. The moves must be chunked.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn depart<const D: usize>(
        &mut self,
        moves: &Moves<D>,
        axes: &[(usize, Pass)],
        device: &mut Dev,
    ) -> Result<(), Error> {
        let from = |((_, part), chunk): (&(usize, Brick<D>), &usize)| {
            moves.gather_from(&moves.chunks[*chunk], part)
        };
        self.gathers = moves.sends.iter().zip(&moves.chunk_of).map(from).collect();
        self.depart = Some(Depart::new(moves, axes, device)?);
        Ok(())
    }

    /// Whether a local transform can be done on the way: when messages can be read in any order.
    pub(crate) fn can_fuse(&self) -> bool {
        self.codec.random_access()
    }

    /// Does a local transform of so many blocks, in place, on the way.
    pub(crate) fn fuse<const D: usize>(&mut self, moves: &Moves<D>, blocks: usize, fft: Dev::Fft) {
        let element = moves.width * T::PRECISION.bytes();
        let departs = self.depart.is_some();
        let tile = |(chunk, blocks)| Tile {
            blocks,
            // What departs transformed is kept on departure.
            near: if departs { Vec::new() } else { taken(moves, &chunk) },
            scatters: (moves.recvs.iter().enumerate())
                .filter_map(|(n, (_, part))| Some((n, moves.scatter(part, &chunk)?)))
                .collect(),
        };
        let boxes = match moves.all().points() {
            0 => Vec::new(),
            _ => moves.boxes(
                blocks,
                RUN_BYTES.start / element..RUN_BYTES.end / element,
                TILE_BYTES / element,
            ),
        };
        self.arrive = Arrive::Fused { fft, tiles: boxes.into_iter().map(tile).collect() };
    }

    /// Bytes of memory held, beside tables for messages.
    pub(crate) fn memory(&self) -> usize {
        let depart = self.depart.as_ref().map_or(0, Depart::memory);
        match &self.arrive {
            Arrive::Streaming { .. } => depart,
            Arrive::Fused { tiles, .. } => {
                let parts = |tile: &Tile| {
                    let transfers = (tile.near.len() + tile.scatters.len()) * size_of::<Transfer>();
                    transfers + size_of_val(&*tile.blocks)
                };
                size_of_val(&**tiles) + tiles.iter().map(parts).sum::<usize>()
            }
        }
    }

    /// Whether the ranks of a host must be able to read the source.
    pub(crate) fn visits(&self) -> bool {
        self.visits
    }

    /// Moves the data. Collective.
    ///
    /// # Errors
    /// [`Error::Message`] for the first message that did not decode, once all have come; or the transport's.
    pub(crate) fn run(
        &mut self,
        ways: Ways<'_>,
        device: &mut Dev,
        src: &Dev::Memory,
        dst: &mut Dev::Memory,
        clock: &mut Clock,
    ) -> Result<(), Error> {
        let (start, busy) = (Instant::now(), clock.busy());
        let Ways { exchange, commons } = ways;
        let mut depart = self.depart.take();
        depart.iter_mut().for_each(Depart::begin);
        let reshape = &*self;
        let mut cross = |neighbours: Option<&dyn Neighbours>| {
            let (device, dst, clock) = (&mut *device, &mut *dst, &mut *clock);
            let (depart, damage) = (depart.as_mut(), Ok(()));
            let mut port =
                Crossing { reshape, depart, device, src, neighbours, dst, clock, damage };
            let sent = exchange.run(&reshape.traffic, &mut port);
            let damage = port.damage;
            clock.forwarded += exchange.forwarded();
            damage.and(sent)
        };
        let result = match commons {
            Some(commons) if self.visits => {
                let show = Show::Read(Dev::bytes(src));
                commons.visit(show, &mut |neighbours| cross(Some(neighbours)))
            }
            _ => cross(None),
        };
        self.depart = depart;
        clock.exchange += start.elapsed().saturating_sub(clock.busy() - busy);
        result
    }
}

/// What leads to other ranks.
pub(crate) struct Ways<'a> {
    pub(crate) exchange: &'a mut dyn Exchange,
    pub(crate) commons: &'a mut Option<Box<dyn Commons>>,
}

/// What is taken from memory that can be read, for a part of the new brick.
fn taken<const D: usize>(moves: &Moves<D>, wanted: &Chunk<D>) -> Vec<(usize, Transfer)> {
    let take = |near: &Near<D>| Some((near.owner, moves.take(near, wanted)?));
    moves.near.iter().filter_map(take).collect()
}

/// The port of a reshape between two pieces of memory.
struct Crossing<'a, T: Real, Dev: Device<T>> {
    reshape: &'a Reshape<T, Dev>,
    depart: Option<&'a mut Depart<T, Dev>>,
    device: &'a mut Dev,
    src: &'a Dev::Memory,
    neighbours: Option<&'a dyn Neighbours>,
    dst: &'a mut Dev::Memory,
    clock: &'a mut Clock,
    /// The first message that did not decode.
    damage: Result<(), Error>,
}

impl<T: Real, Dev: Device<T>> Crossing<'_, T, Dev> {
    fn copy_near(&mut self, near: &[(usize, Transfer)]) {
        let Reshape { rank, width, .. } = *self.reshape;
        for (owner, transfer) in near {
            let (time, src) = match self.neighbours {
                Some(neighbours) if *owner != rank => {
                    (&mut self.clock.shared, Dev::memory(neighbours.shown(*owner)))
                }
                _ => (&mut self.clock.own, self.src),
            };
            let (device, dst) = (&mut *self.device, &mut *self.dst);
            time.time(|| device.copy(transfer, width, src, dst));
        }
    }

    fn decode(&mut self, number: usize, message: &[u8], scatter: &Transfer) {
        let Reshape { codec, width, rank, traffic, .. } = self.reshape;
        let (device, dst) = (&mut *self.device, &mut *self.dst);
        let result = self
            .clock
            .unpack
            .time(|| device.unpack(codec.as_ref(), message, scatter, *width, dst))
            .map_err(|bad: BadMessage| bad.at(*rank, traffic.recvs[number].peer));
        if self.damage.is_ok() {
            self.damage = result;
        }
    }
}

impl<T: Real, Dev: Device<T>> Port for Crossing<'_, T, Dev> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let Reshape { codec, gathers, width, .. } = self.reshape;
        let gather = &gathers[number];
        let src = match &mut self.depart {
            None => self.src,
            Some(depart) => depart.chunk_for(
                number,
                Path {
                    width: *width,
                    device: self.device,
                    src: self.src,
                    dst: self.dst,
                    clock: self.clock,
                },
            ),
        };
        let device = &mut *self.device;
        let bytes = self
            .clock
            .pack
            .time(|| device.pack(codec.as_ref(), gather, *width, src, 0.0, message))
            .bytes;
        self.clock.sent += bytes as u64;
        self.clock.reals += (gather.elements() * width) as u64;
        bytes
    }

    fn own(&mut self) {
        if let Some(depart) = &mut self.depart {
            let Self { reshape, device, src, dst, clock, .. } = self;
            depart.rest(Path { width: reshape.width, device, src, dst, clock });
        } else if let Arrive::Streaming { near, .. } = &self.reshape.arrive {
            self.copy_near(near);
        }
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        let (codec, parcel) = (&self.reshape.codec, self.reshape.traffic.recvs[number]);
        if codec.random_access() && message.len() != parcel.bytes && self.damage.is_ok() {
            let bad = BadMessage::Length { found: message.len(), expected: parcel.bytes };
            self.damage = Err(bad.at(self.reshape.rank, parcel.peer));
        }
        match &self.reshape.arrive {
            Arrive::Streaming { scatters, .. } => {
                self.decode(number, message, &scatters[number]);
                true
            }
            Arrive::Fused { .. } => false,
        }
    }

    fn finish<'m>(&mut self, message: &dyn Fn(usize) -> &'m [u8]) {
        let Arrive::Fused { fft, tiles } = &self.reshape.arrive else { return };
        for tile in tiles {
            self.copy_near(&tile.near);
            for (number, scatter) in &tile.scatters {
                self.decode(*number, message(*number), scatter);
            }
            let (device, dst) = (&mut *self.device, &mut *self.dst);
            self.clock.fft.time(|| {
                for blocks in &tile.blocks {
                    device.fft(fft, blocks.clone(), None, dst);
                }
            });
        }
    }
}
