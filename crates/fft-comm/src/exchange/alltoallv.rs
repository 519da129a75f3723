//! One collective for all messages.

use std::cell::Cell;
use std::sync::Arc;

use fft_core::{
    Algorithm, Comm, Error, Exchange, MessageBuffers, MessageHandler, MessagePlan, MessageSpec,
    PackRequest, Parts, PinnedMemory, SLOT_ALIGN, Slot, agree,
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
    pins: Option<Arc<dyn PinnedMemory>>,
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
    fn room(specs: &[MessageSpec]) -> usize {
        specs.iter().map(|spec| spec.bytes.next_multiple_of(SLOT_ALIGN)).sum()
    }

    fn reserve(
        &mut self,
        bytes: usize,
        rank: usize,
        pins: Option<&dyn PinnedMemory>,
    ) -> Result<(), Error> {
        if self.buffer.capacity() < bytes {
            self.buffer = Slot::new_pinned(bytes, rank, pins)?;
        }
        Ok(())
    }

    /// Lays the messages out one after the other.
    fn place(&mut self, specs: &[MessageSpec]) {
        self.buffer.set_len(Self::room(specs));
        self.parts.fill((0, 0));
        let mut first = 0;
        for spec in specs {
            self.parts[spec.peer] = (first, spec.bytes);
            first += spec.bytes.next_multiple_of(SLOT_ALIGN);
        }
    }

    /// Finds the messages in their buffers.
    fn find(&mut self, specs: &[MessageSpec], places: &[usize]) {
        self.parts.fill((0, 0));
        for (spec, place) in specs.iter().zip(places) {
            self.parts[spec.peer] = (*place, spec.bytes);
        }
    }
}

impl Exchange for Alltoallv {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Alltoallv
    }

    fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.pairs.pin(pins.clone());
        self.pins = Some(pins);
    }

    fn takes_berths(&self) -> bool {
        true
    }

    fn reserve(&mut self, message_plan: &MessagePlan) -> Result<(), Error> {
        if message_plan.shorter {
            return self.pairs.reserve(message_plan);
        }
        if let Some(buffers) = &message_plan.buffers {
            self.send.find(&message_plan.sends, &buffers.places[0]);
            self.recv.find(&message_plan.recvs, &buffers.places[1]);
            return self.comm.reserve_alltoallv(&self.send.parts, &self.recv.parts);
        }
        let (comm, pins) = (self.comm.as_ref(), self.pins.as_deref());
        let (rank, all) = (comm.rank(), message_plan.chunks.max(1));
        for chunk in 0..all {
            let sends = &message_plan.sends[of_chunks(&message_plan.sends, chunk..chunk + 1, all)];
            let recvs = &message_plan.recvs[of_chunks(&message_plan.recvs, chunk..chunk + 1, all)];
            self.send.reserve(Side::room(sends), rank, pins)?;
            self.recv.reserve(Side::room(recvs), rank, pins)?;
            self.send.place(sends);
            self.recv.place(recvs);
            comm.reserve_alltoallv(&self.send.parts, &self.recv.parts)?;
        }
        Ok(())
    }

    fn run(
        &mut self,
        message_plan: &MessagePlan,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error> {
        let Self { comm, send, recv, pairs, .. } = self;
        if message_plan.shorter {
            return pairs.run(message_plan, handler);
        }
        if let Some(MessageBuffers { memory: [out, come], places }) = &message_plan.buffers {
            send.find(&message_plan.sends, &places[0]);
            recv.find(&message_plan.recvs, &places[1]);
            for number in 0..message_plan.sends.len() {
                handler.pack(number, &mut []);
            }
            handler.own();
            comm.alltoallv_device(
                Parts { bytes: out, parts: &send.parts },
                Parts { bytes: come, parts: &recv.parts },
            )?;
            for (number, spec) in message_plan.recvs.iter().enumerate() {
                handler.landed(number, spec.bytes);
            }
            handler.finish(&|_| &[]);
            return Ok(());
        }
        let all = message_plan.chunks.max(1);
        let mut result = Ok(());
        for chunk in 0..all {
            let of = |specs| of_chunks(specs, chunk..chunk + 1, all);
            let (sends, recvs, last) =
                (of(&message_plan.sends), of(&message_plan.recvs), chunk + 1 == all);
            send.place(&message_plan.sends[sends.clone()]);
            recv.place(&message_plan.recvs[recvs.clone()]);
            let (mut free, known) = (send.buffer.bytes_mut(), Cell::new(0));
            handler.pack_all(&mut sends.map(|number| {
                let bytes = message_plan.sends[number].bytes;
                let room = bytes.next_multiple_of(SLOT_ALIGN);
                let (message, rest) = std::mem::take(&mut free).split_at_mut(room);
                free = rest;
                PackRequest { number, message: &mut message[..bytes], bytes: &known }
            }));
            if last {
                handler.own();
            }
            let done = comm.alltoallv(
                Parts { bytes: send.buffer.bytes(), parts: &send.parts },
                Parts { bytes: recv.buffer.bytes_mut(), parts: &recv.parts },
            );
            // The others come for the rest.
            result = result.and(done.clone());
            let message = |number: usize| {
                let (first, bytes) = recv.parts[message_plan.recvs[number].peer];
                &recv.buffer.bytes()[first..first + bytes]
            };
            if done.is_ok() {
                handler.arrived_all(recvs, &message);
            }
            if last && result.is_ok() {
                // Of several chunks none is kept.
                handler.finish(&message);
            }
        }
        result
    }

    fn memory(&self) -> usize {
        self.send.buffer.capacity() + self.recv.buffer.capacity() + self.pairs.memory()
    }
}
