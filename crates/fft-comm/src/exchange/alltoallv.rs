//! `MPI_Alltoallv`.

use std::cell::Cell;
use std::sync::Arc;

use fft_core::{
    Comm, Error, Exchange, Exchanger, MessageBuffers, MessageHandler, MessagePlan, MessageSpec,
    PackRequest, Parts, PinnedMemory, SLOT_ALIGN, Slot, agree,
};

use super::messages::of_chunks;
use super::p2p::P2p;

/// Packs all messages of a chunk, exchanges them in one call, and unpacks them. The collective
/// needs the size of every message at both ends. If sizes depend on the data, messages are sent
/// between pairs, with receives posted for the largest size; on a communicator without messages
/// between pairs, another call exchanges the sizes first.
pub(crate) struct Alltoallv {
    comm: Box<dyn Comm>,
    send: Side,
    recv: Side,
    pairs: Option<P2p>,
    sizes: Sizes,
    pins: Option<Arc<dyn PinnedMemory>>,
    /// Bytes that the communicator holds.
    held: usize,
}

/// The send or the receive buffer, and the part of each rank in it.
struct Side {
    buffer: Slot,
    parts: Vec<(usize, usize)>,
}

/// The sizes of the messages of a chunk.
struct Sizes {
    /// Sizes of the messages that this rank has packed, in order.
    packed: Vec<Cell<usize>>,
    send: Side,
    recv: Side,
}

impl Sizes {
    /// Places a size of each message.
    fn place(side: &mut Side, specs: &[MessageSpec]) {
        side.parts.fill((0, 0));
        for spec in specs {
            side.parts[spec.peer] = (spec.peer * SLOT_ALIGN, size_of::<u64>());
        }
    }

    /// Sets the sizes of the messages to be received. Collective.
    fn exchange(
        &mut self,
        comm: &dyn Comm,
        [sends, recvs]: [&[MessageSpec]; 2],
        messages: &mut Side,
    ) -> Result<(), Error> {
        let Self { packed, send, recv } = self;
        Self::place(send, sends);
        Self::place(recv, recvs);
        for (spec, bytes) in sends.iter().zip(&*packed) {
            let word = (bytes.get() as u64).to_ne_bytes();
            send.buffer.bytes_mut()[spec.peer * SLOT_ALIGN..][..word.len()].copy_from_slice(&word);
        }
        comm.alltoallv(
            Parts { bytes: send.buffer.bytes(), parts: &send.parts },
            Parts { bytes: recv.buffer.bytes_mut(), parts: &recv.parts },
        )?;
        for spec in recvs {
            let (words, _) = recv.buffer.bytes()[spec.peer * SLOT_ALIGN..].as_chunks::<8>();
            messages.parts[spec.peer].1 = spec.bytes.min(u64::from_ne_bytes(words[0]) as usize);
        }
        Ok(())
    }
}

impl Alltoallv {
    pub(crate) fn new(comm: &dyn Comm) -> Result<Self, Error> {
        let side = |bytes: usize| -> Result<Side, Error> {
            Ok(Side { buffer: Slot::new(bytes, comm.rank())?, parts: vec![(0, 0); comm.size()] })
        };
        let words = if comm.has_messages() { 0 } else { comm.size() * SLOT_ALIGN };
        let sides = || Ok([side(0)?, side(0)?, side(words)?, side(words)?]);
        let [send, recv, out, come] = agree(comm, sides())?;
        let sizes = Sizes { packed: Vec::new(), send: out, recv: come };
        let pairs =
            if comm.has_messages() { Some(P2p::new(Exchange::Alltoallv, comm)?) } else { None };
        Ok(Self { comm: agree(comm, comm.dup())?, send, recv, pairs, sizes, pins: None, held: 0 })
    }

    /// The messages between pairs, if these messages are sent that way.
    fn pairs(&mut self, message_plan: &MessagePlan) -> Option<&mut P2p> {
        if message_plan.shorter { self.pairs.as_mut() } else { None }
    }
}

impl Side {
    /// Bytes that these messages take, each aligned for numbers of any type.
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

    fn place(&mut self, specs: &[MessageSpec]) {
        self.buffer.set_len(Self::room(specs));
        self.parts.fill((0, 0));
        let mut first = 0;
        for spec in specs {
            self.parts[spec.peer] = (first, spec.bytes);
            first += spec.bytes.next_multiple_of(SLOT_ALIGN);
        }
    }

    /// Takes the places of messages in their device buffers.
    fn find(&mut self, specs: &[MessageSpec], places: &[usize]) {
        self.parts.fill((0, 0));
        for (spec, place) in specs.iter().zip(places) {
            self.parts[spec.peer] = (*place, spec.bytes);
        }
    }
}

impl Alltoallv {
    fn run_on_device(
        &mut self,
        message_plan: &MessagePlan,
        buffers: &MessageBuffers,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error> {
        let MessageBuffers { memory: [out, come], places } = buffers;
        self.send.find(&message_plan.sends, &places[0]);
        self.recv.find(&message_plan.recvs, &places[1]);
        for number in 0..message_plan.sends.len() {
            handler.pack(number, &mut []);
        }
        handler.own();
        let device = self.comm.device().expect("messages have buffers where there is a device");
        device.alltoallv(
            Parts { bytes: out, parts: &self.send.parts },
            Parts { bytes: come, parts: &self.recv.parts },
        )?;
        for (number, spec) in message_plan.recvs.iter().enumerate() {
            handler.landed(number, spec.bytes);
        }
        handler.finish(&|_| &[]);
        Ok(())
    }

    /// Packs, exchanges and unpacks the messages of a chunk. The last chunk also finishes, unless
    /// an earlier one failed.
    fn run_chunk(
        &mut self,
        message_plan: &MessagePlan,
        chunk: usize,
        handler: &mut dyn MessageHandler,
        well: bool,
    ) -> Result<(), Error> {
        let Self { comm, send, recv, sizes, .. } = self;
        let all = message_plan.chunks.max(1);
        let last = chunk + 1 == all;
        let of = |specs| of_chunks(specs, chunk..chunk + 1, all);
        let (sends, recvs) = (of(&message_plan.sends), of(&message_plan.recvs));
        send.place(&message_plan.sends[sends.clone()]);
        recv.place(&message_plan.recvs[recvs.clone()]);
        sizes.packed.clear();
        sizes.packed.resize(sends.len(), Cell::new(0));
        let mut free = send.buffer.bytes_mut();
        handler.pack_all(&mut sends.clone().zip(&sizes.packed).map(|(number, packed)| {
            let bytes = message_plan.sends[number].bytes;
            let room = bytes.next_multiple_of(SLOT_ALIGN);
            let (message, rest) = std::mem::take(&mut free).split_at_mut(room);
            free = rest;
            PackRequest { number, message: &mut message[..bytes], bytes: packed }
        }));
        if last {
            handler.own();
        }
        if message_plan.shorter {
            for (number, packed) in sends.clone().zip(&sizes.packed) {
                send.parts[message_plan.sends[number].peer].1 = packed.get();
            }
            let specs = [&message_plan.sends[sends], &message_plan.recvs[recvs.clone()]];
            sizes.exchange(comm.as_ref(), specs, recv)?;
        }
        comm.alltoallv(
            Parts { bytes: send.buffer.bytes(), parts: &send.parts },
            Parts { bytes: recv.buffer.bytes_mut(), parts: &recv.parts },
        )?;
        let message = |number: usize| {
            let (first, bytes) = recv.parts[message_plan.recvs[number].peer];
            &recv.buffer.bytes()[first..first + bytes]
        };
        handler.arrived_all(recvs, &message);
        if last && well {
            // If there are several chunks, no message is kept.
            handler.finish(&message);
        }
        Ok(())
    }
}

impl Exchanger for Alltoallv {
    fn exchange(&self) -> Exchange {
        Exchange::Alltoallv
    }

    fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.pairs.iter_mut().for_each(|pairs| pairs.pin(pins.clone()));
        self.pins = Some(pins);
    }

    fn takes_message_buffers(&self, message_plan: &MessagePlan) -> bool {
        // Messages of unknown length go between pairs.
        let pairs = self.pairs.as_ref();
        !message_plan.shorter || pairs.is_some_and(|it| it.takes_message_buffers(message_plan))
    }

    fn reserve(&mut self, message_plan: &MessagePlan) -> Result<(), Error> {
        if let Some(pairs) = self.pairs(message_plan) {
            return pairs.reserve(message_plan);
        }
        if let Some(buffers) = &message_plan.buffers {
            self.send.find(&message_plan.sends, &buffers.places[0]);
            self.recv.find(&message_plan.recvs, &buffers.places[1]);
            let device = self.comm.device().expect("messages have buffers where there is a device");
            return device.reserve_device_alltoallv(&self.send.parts, &self.recv.parts);
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
            self.held = comm.reserve_alltoallv(&self.send.parts, &self.recv.parts)?;
            self.sizes.packed.reserve(sends.len());
        }
        Ok(())
    }

    fn run(
        &mut self,
        message_plan: &MessagePlan,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error> {
        if let Some(pairs) = self.pairs(message_plan) {
            return pairs.run(message_plan, handler);
        }
        if let Some(buffers) = &message_plan.buffers {
            return self.run_on_device(message_plan, buffers, handler);
        }
        let mut result = Ok(());
        for chunk in 0..message_plan.chunks.max(1) {
            // Also after an error, because the others take part for the remaining chunks.
            let done = self.run_chunk(message_plan, chunk, handler, result.is_ok());
            result = result.and(done);
        }
        result
    }

    fn memory(&self) -> usize {
        let own = self.send.buffer.capacity() + self.recv.buffer.capacity();
        own + self.held + self.pairs.as_ref().map_or(0, P2p::memory)
    }
}
