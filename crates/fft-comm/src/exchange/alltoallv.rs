//! One collective for all messages.

use std::cell::Cell;
use std::sync::Arc;

use fft_core::{
    Algorithm, Berths, Blank, Comm, Error, Exchange, Parcel, Parts, Pins, Port, SLOT_ALIGN, Slot,
    Traffic, agree,
};

use super::of_chunks;
use super::p2p::P2p;

/// Packs every message of a chunk, exchanges them all in one call, unpacks every message. The collective must know the size of every
/// message at both ends. Where that depends on the data, messages go between pairs instead, all receives posted at once with room for
/// the longest: what a collective would do, too, but for another one that tells all sizes before.
pub(crate) struct Alltoallv {
    comm: Box<dyn Comm>,
    send: Side,
    recv: Side,
    pairs: P2p,
    pins: Option<Arc<dyn Pins>>,
}

/// The outgoing or the incoming half: a buffer and where each rank's message is in it.
struct Side {
    buffer: Slot,
    parts: Vec<(usize, usize)>,
}

impl Alltoallv {
    /// Collective.
    pub(crate) fn new(comm: &dyn Comm) -> Result<Self, Error> {
        let side = || -> Result<Side, Error> {
            Ok(Side { buffer: Slot::new(0, comm.rank())?, parts: vec![(0, 0); comm.size()] })
        };
        let [send, recv] = agree(comm, side().and_then(|one| Ok([one, side()?])))?;
        let pairs = P2p::new(Algorithm::Alltoallv, comm)?;
        Ok(Self { comm: agree(comm, comm.dup())?, send, recv, pairs, pins: None })
    }
}

impl Side {
    /// Bytes that these messages take, each starting where numbers of any type may.
    fn room(parcels: &[Parcel]) -> usize {
        parcels.iter().map(|parcel| parcel.bytes.next_multiple_of(SLOT_ALIGN)).sum()
    }

    fn reserve(&mut self, bytes: usize, rank: usize, pins: Option<&dyn Pins>) -> Result<(), Error> {
        if self.buffer.capacity() < bytes {
            let buffer = Slot::new(bytes, rank)?;
            self.buffer = match pins {
                Some(pins) => buffer.pinned(pins),
                None => buffer,
            };
        }
        Ok(())
    }

    /// Lays the messages out one after the other.
    fn place(&mut self, parcels: &[Parcel]) {
        self.buffer.set_len(Self::room(parcels));
        self.parts.fill((0, 0));
        let mut first = 0;
        for parcel in parcels {
            self.parts[parcel.peer] = (first, parcel.bytes);
            first += parcel.bytes.next_multiple_of(SLOT_ALIGN);
        }
    }

    /// Finds the messages in their berths.
    fn find(&mut self, parcels: &[Parcel], places: &[usize]) {
        self.parts.fill((0, 0));
        for (parcel, place) in parcels.iter().zip(places) {
            self.parts[parcel.peer] = (*place, parcel.bytes);
        }
    }
}

impl Exchange for Alltoallv {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Alltoallv
    }

    fn pin(&mut self, pins: Arc<dyn Pins>) {
        self.pairs.pin(pins.clone());
        self.pins = Some(pins);
    }

    fn takes_berths(&self) -> bool {
        true
    }

    fn reserve(&mut self, traffic: &Traffic) -> Result<(), Error> {
        if traffic.shorter {
            return self.pairs.reserve(traffic);
        }
        if let Some(berths) = &traffic.berths {
            self.send.find(&traffic.sends, &berths.places[0]);
            self.recv.find(&traffic.recvs, &berths.places[1]);
            return self.comm.reserve_alltoallv(&self.send.parts, &self.recv.parts);
        }
        let (comm, pins) = (self.comm.as_ref(), self.pins.as_deref());
        let (rank, all) = (comm.rank(), traffic.chunks.max(1));
        for chunk in 0..all {
            let sends = &traffic.sends[of_chunks(&traffic.sends, chunk..chunk + 1, all)];
            let recvs = &traffic.recvs[of_chunks(&traffic.recvs, chunk..chunk + 1, all)];
            self.send.reserve(Side::room(sends), rank, pins)?;
            self.recv.reserve(Side::room(recvs), rank, pins)?;
            self.send.place(sends);
            self.recv.place(recvs);
            comm.reserve_alltoallv(&self.send.parts, &self.recv.parts)?;
        }
        Ok(())
    }

    fn run(&mut self, traffic: &Traffic, port: &mut dyn Port) -> Result<(), Error> {
        let Self { comm, send, recv, pairs, .. } = self;
        if traffic.shorter {
            return pairs.run(traffic, port);
        }
        if let Some(Berths { memory: [out, come], places }) = &traffic.berths {
            send.find(&traffic.sends, &places[0]);
            recv.find(&traffic.recvs, &places[1]);
            for number in 0..traffic.sends.len() {
                port.pack(number, &mut []);
            }
            port.own();
            comm.alltoallv_opaque(
                Parts { bytes: out, parts: &send.parts },
                Parts { bytes: come, parts: &recv.parts },
            )?;
            for (number, parcel) in traffic.recvs.iter().enumerate() {
                port.landed(number, parcel.bytes);
            }
            port.finish(&|_| &[]);
            return Ok(());
        }
        let all = traffic.chunks.max(1);
        let mut result = Ok(());
        for chunk in 0..all {
            let of = |parcels| of_chunks(parcels, chunk..chunk + 1, all);
            let (sends, recvs, last) = (of(&traffic.sends), of(&traffic.recvs), chunk + 1 == all);
            send.place(&traffic.sends[sends.clone()]);
            recv.place(&traffic.recvs[recvs.clone()]);
            let (mut free, known) = (send.buffer.bytes_mut(), Cell::new(0));
            port.pack_all(&mut sends.map(|number| {
                let bytes = traffic.sends[number].bytes;
                let room = bytes.next_multiple_of(SLOT_ALIGN);
                let (message, rest) = std::mem::take(&mut free).split_at_mut(room);
                free = rest;
                Blank { number, message: &mut message[..bytes], bytes: &known }
            }));
            if last {
                port.own();
            }
            let done = comm.alltoallv(
                Parts { bytes: send.buffer.bytes(), parts: &send.parts },
                Parts { bytes: recv.buffer.bytes_mut(), parts: &recv.parts },
            );
            // The others come for the rest.
            result = result.and(done.clone());
            let message = |number: usize| {
                let (first, bytes) = recv.parts[traffic.recvs[number].peer];
                &recv.buffer.bytes()[first..first + bytes]
            };
            if done.is_ok() {
                port.arrived_all(recvs, &message);
            }
            if last && result.is_ok() {
                // Of several chunks none is kept.
                port.finish(&message);
            }
        }
        result
    }

    fn memory(&self) -> usize {
        self.send.buffer.capacity() + self.recv.buffer.capacity() + self.pairs.memory()
    }
}
