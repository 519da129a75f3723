//! A reshape as one rank carries it out: which boxes go where.

use std::time::Instant;

use crate::clock::Time;
use crate::codec::BadMessage;
use crate::recipe::Node;
use crate::transfer::Placed;
use crate::{Clock, Codec, Device, Error, Exchange, Parcel, Port, Real, Traffic, Transfer, Wire};

/// Everything one rank needs to move its data from one layout to another.
pub(crate) struct Reshape<T> {
    rank: usize,
    width: usize,
    codec: Box<dyn Codec<T>>,
    own: Option<Transfer>,
    /// From this rank's old brick into each outgoing message.
    gathers: Vec<Transfer>,
    /// From each incoming message into this rank's new brick.
    scatters: Vec<Transfer>,
    pub(crate) traffic: Traffic,
}

impl<T: Real> Reshape<T> {
    /// The part of `rank` in the reshape from one node to the next. A message holds the points that the
    /// sender has and the receiver gets, in the order of the receiver's memory. Costs
    /// O(log P + messages) once the layouts are indexed.
    pub(crate) fn new<const D: usize>(
        rank: usize,
        from: &Node<D>,
        to: &Node<D>,
        howmany: usize,
        wire: Wire,
    ) -> Self {
        let codec = wire.codec::<T>();
        let (width, ranks) = (from.width(), from.layout.ranks());
        let place = |node: &Node<D>, brick| Placed { brick, order: node.layout.order(), howmany };
        let (before, after) = (from.layout.brick(rank), to.layout.brick(rank));
        let (src, dst) = (place(from, before), place(to, after));

        let mut sends = Vec::new();
        to.layout.meet(&before, |peer, common| sends.push((peer, common)));
        let mut recvs = Vec::new();
        from.layout.meet(&after, |peer, common| recvs.push((peer, common)));
        let kept = sends.iter().find(|(peer, _)| *peer == rank).map(|(_, common)| *common);
        let rotate = |list: &mut Vec<_>, sign: bool| {
            list.retain(|(peer, _)| *peer != rank);
            list.sort_unstable_by_key(|(peer, _): &(usize, _)| match sign {
                true => (peer + ranks - rank) % ranks,
                false => (rank + ranks - peer) % ranks,
            });
        };
        rotate(&mut sends, true);
        rotate(&mut recvs, false);

        // A message is a brick of its own: the common points, dense, in the receiver's order.
        let parcel = |(peer, gather): (usize, &Transfer)| Parcel {
            peer,
            bytes: codec.bound(gather.elements() * width),
        };
        let gathers: Vec<_> =
            sends.iter().map(|(_, part)| Transfer::new(part, &src, &place(to, *part))).collect();
        let scatters: Vec<_> =
            recvs.iter().map(|(_, part)| Transfer::new(part, &place(to, *part), &dst)).collect();
        let peers = |list: &[(usize, _)]| list.iter().map(|(peer, _)| *peer).collect::<Vec<_>>();
        let traffic = Traffic {
            sends: peers(&sends).into_iter().zip(&gathers).map(parcel).collect(),
            recvs: peers(&recvs).into_iter().zip(&scatters).map(parcel).collect(),
        };
        let own = kept.map(|part| Transfer::new(&part, &src, &dst));
        Self { rank, width, codec, own, gathers, scatters, traffic }
    }

    /// Moves the data. Collective.
    ///
    /// # Errors
    /// [`Error::Message`] for the first message that did not decode, once all have come; or the transport's.
    pub(crate) fn run<Dev: Device<T>>(
        &self,
        exchange: &mut dyn Exchange,
        device: &mut Dev,
        src: &Dev::Memory,
        dst: &mut Dev::Memory,
        clock: &mut Clock,
    ) -> Result<(), Error> {
        let (start, busy) = (Instant::now(), clock.busy());
        let mut port = Crossing { reshape: self, device, src, dst, clock, damage: Ok(()) };
        let sent = exchange.run(&self.traffic, &mut port);
        let damage = port.damage;
        clock.exchange += start.elapsed().saturating_sub(clock.busy() - busy);
        damage.and(sent)
    }
}

/// The port of a reshape between two pieces of memory.
struct Crossing<'a, T: Real, Dev: Device<T>> {
    reshape: &'a Reshape<T>,
    device: &'a mut Dev,
    src: &'a Dev::Memory,
    dst: &'a mut Dev::Memory,
    clock: &'a mut Clock,
    /// The first message that did not decode.
    damage: Result<(), Error>,
}

impl<T: Real, Dev: Device<T>> Port for Crossing<'_, T, Dev> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let Reshape { codec, gathers, width, .. } = self.reshape;
        let gather = &gathers[number];
        let (device, src) = (&mut *self.device, self.src);
        let bytes =
            self.clock.pack.time(|| device.pack(codec.as_ref(), gather, *width, src, message));
        self.clock.sent += bytes as u64;
        self.clock.reals += (gather.elements() * width) as u64;
        bytes
    }

    fn unpack(&mut self, number: usize, message: &[u8]) {
        let Reshape { codec, scatters, width, rank, traffic, .. } = self.reshape;
        let scatter = &scatters[number];
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

    fn own(&mut self) {
        let Reshape { own, width, .. } = self.reshape;
        if let Some(own) = own {
            let (device, src, dst) = (&mut *self.device, self.src, &mut *self.dst);
            self.clock.own.time(|| device.copy(own, *width, src, dst));
        }
    }
}
