//! Non-blocking messages between pairs, in chunks. The pipeline:
//!
//! 1. Post receives for the first COMING chunks.
//! 2. Per chunk: wait until chunk - COMING has arrived, and post receives into its memory.
//! 3. Wait until chunk - LEAVING has been sent.
//! 4. Pack the messages of this chunk, and send each as soon as it is packed.
//! 5. After each send, unpack every message that has arrived.
//! 6. After the last chunk, copy this rank's own data.
//! 7. Receive and unpack the remaining messages in the order they arrive.
//! 8. Give messages that were kept to the handler, and wait for the remaining sends.
//!
//! If the plan needs memory for all messages at once, they count as one chunk.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use fft_core::{
    Arrival, Comm, DeviceComm, Error, Exchange, Exchanger, Flight, MessageHandler, MessagePlan,
    MessageSpec, PackRequest, PinnedMemory, Slot, agree,
};

use super::messages::{of_chunks, panicked, slot_or_empty};

/// All receives are posted first. Each message leaves as soon as it is packed, and each arrival is
/// unpacked at once, in any order. With messages in chunks this is the pipelined exchange.
///
/// At most a few chunks are under way at a time, unless there must be memory for all messages at
/// once. A rank is never further ahead of another: before it packs a chunk, it waits for the one
/// whose memory that chunk takes.
pub(crate) struct P2p {
    exchange: Exchange,
    rank: usize,
    /// `run` takes it, so a panic drops it, which tells the peers not to expect further messages,
    /// even while this rank still waits to exit an exposure epoch.
    flight: Option<Box<dyn Flight>>,
    /// Whether messages may be in memory of devices, if the communicator reaches it.
    takes_buffers: bool,
    held: Held,
}

/// Chunks that may be under way to this rank: other ranks go ahead while this one transforms and
/// packs.
const COMING: usize = 4;
/// Chunks that may be under way from this rank, including the one being packed. The network sends
/// them in order.
const LEAVING: usize = 3;

#[derive(Default)]
struct Held {
    /// Packed messages of a chunk, and their lengths.
    packed: Vec<(Slot, Cell<usize>)>,
    /// Messages that were not read on arrival, by number.
    kept: Vec<Option<Arrival>>,
    /// The number of messages of each chunk that have not arrived.
    missing: Vec<usize>,
}

impl P2p {
    pub(crate) fn new(exchange: Exchange, comm: &dyn Comm) -> Result<Self, Error> {
        let flight = Some(agree(comm, comm.flight(None))?);
        let takes_buffers = comm.device().is_none_or(DeviceComm::has_flights);
        Ok(Self { exchange, rank: comm.rank(), flight, takes_buffers, held: Held::default() })
    }
}

fn chunk(specs: &[MessageSpec], chunk: usize) -> Range<usize> {
    let before = |behind: usize| specs.partition_point(|other| other.chunk < behind);
    before(chunk)..before(chunk + 1)
}

/// The number of chunks that are kept apart.
fn count(message_plan: &MessagePlan) -> usize {
    if message_plan.buffers_all || message_plan.buffers.is_some() {
        1
    } else {
        message_plan.chunks.max(1)
    }
}

struct Run<'a> {
    message_plan: &'a MessagePlan,
    flight: &'a mut dyn Flight,
    handler: &'a mut dyn MessageHandler,
    kept: &'a mut [Option<Arrival>],
    missing: &'a mut [usize],
}

impl Run<'_> {
    fn post_recv(&mut self, chunk: usize) -> Result<(), Error> {
        let (recvs, all) = (&self.message_plan.recvs, self.missing.len());
        let numbers = of_chunks(recvs, chunk..chunk + 1, all);
        self.missing[chunk] = numbers.len();
        for number in numbers {
            let MessageSpec { peer, bytes, .. } = recvs[number];
            match &self.message_plan.buffers {
                Some(buffers) => {
                    self.flight.post_recv_into(peer, buffers.incoming(number, bytes))?
                }
                None => self.flight.post_recv(peer, bytes)?,
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        numbers: Range<usize>,
        packed: &mut Vec<(Slot, Cell<usize>)>,
        lacked: &mut Result<(), Error>,
    ) -> Result<(), Error> {
        let MessagePlan { sends, buffers, .. } = self.message_plan;
        let together = self.handler.together();
        let mut number = numbers.start;
        while number < numbers.end {
            // One message, or as many of a chunk as there are free slots.
            let first = number;
            loop {
                let spec = &sends[number];
                let slot = match buffers {
                    Some(buffers) => buffers.outgoing(number, spec.bytes),
                    None => slot_or_empty(self.flight, spec.bytes, lacked)?,
                };
                packed.push((slot, Cell::new(0)));
                number += 1;
                let next = sends.get(number).filter(|next| together && next.chunk == spec.chunk);
                if !next.is_some_and(|next| buffers.is_some() || self.flight.has_slot(next.bytes)) {
                    break;
                }
            }
            let chunk = &sends[first..number];
            let all = chunk.iter().zip(&mut *packed).zip(first..);
            let room = all.filter(|((spec, (slot, _)), _)| slot.len() == spec.bytes);
            self.handler.pack_all(&mut room.map(|((_, (slot, bytes)), number)| PackRequest {
                number,
                message: slot.bytes_mut(),
                bytes,
            }));
            for (spec, (mut slot, bytes)) in chunk.iter().zip(packed.drain(..)) {
                slot.set_len(bytes.get());
                self.flight.send(spec.peer, spec.bytes, slot)?;
                while let Some(arrival) = self.flight.test_any()? {
                    self.read(arrival);
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, chunk: usize) -> Result<(), Error> {
        while self.missing[chunk] > 0 {
            match self.flight.wait_any()? {
                Some(arrival) => self.read(arrival),
                None => break,
            }
        }
        Ok(())
    }

    /// Receives until at most `most` messages of this rank are under way.
    fn wait_until_in_flight(&mut self, most: usize) -> Result<(), Error> {
        while !self.flight.wait_until_in_flight(most)? {
            if let Some(arrival) = self.flight.test_any()? {
                self.read(arrival);
            }
        }
        Ok(())
    }

    /// Shows a message to the handler, and keeps it if the handler does not read it yet.
    fn read(&mut self, arrival: Arrival) {
        let Self { message_plan, flight, handler, kept, missing } = self;
        let (number, message) = (arrival.number, &arrival.message);
        missing[message_plan.recvs[number].chunk.min(missing.len() - 1)] -= 1;
        if message.is_opaque() {
            handler.landed(number, message.len());
            flight.recycle(arrival);
        } else if handler.together() {
            kept[number] = Some(arrival);
            let chunk = chunk(&message_plan.recvs, message_plan.recvs[number].chunk);
            if kept[chunk.clone()].iter().all(Option::is_some) {
                let all = &**kept;
                handler.arrived_all(chunk.clone(), &|number| bytes(&all[number]));
                let all = kept[chunk].iter_mut().filter_map(Option::take);
                all.for_each(|arrival| flight.recycle(arrival));
            }
        } else if handler.arrived(number, message.bytes()) {
            flight.recycle(arrival);
        } else {
            assert!(missing.len() == 1, "there is memory for messages that are kept");
            kept[number] = Some(arrival);
        }
    }
}

fn bytes(kept: &Option<Arrival>) -> &[u8] {
    kept.as_ref().map_or(&[], |arrival| arrival.message.bytes())
}

impl Exchanger for P2p {
    fn exchange(&self) -> Exchange {
        self.exchange
    }

    fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.flight.iter_mut().for_each(|flight| flight.pin(pins.clone()));
    }

    fn takes_message_buffers(&self, _message_plan: &MessagePlan) -> bool {
        self.takes_buffers
    }

    fn reserve(&mut self, message_plan: &MessagePlan) -> Result<(), Error> {
        let (Held { packed, kept, missing }, all) = (&mut self.held, count(message_plan));
        if kept.len() < message_plan.recvs.len() {
            kept.resize_with(message_plan.recvs.len(), || None);
        }
        packed.reserve(message_plan.sends.len());
        missing.resize(missing.len().max(all), 0);
        let bytes = |specs: &[MessageSpec]| specs.iter().map(|p| p.bytes).collect::<Vec<_>>();
        let (sends, recvs) = (bytes(&message_plan.sends), bytes(&message_plan.recvs));
        let flight = self.flight.as_mut().ok_or_else(|| panicked(self.rank))?;
        flight.reserve_message_buffers(&sends, &recvs)?;
        if all == 1 {
            let none = message_plan.buffers.is_some();
            return if none { Ok(()) } else { flight.reserve(&sends, &recvs) };
        }
        // All slots have the largest size, because they come back in any order.
        let any = |sizes: &[usize], specs, chunks: Range<usize>| {
            let many = of_chunks(specs, chunks, all).len();
            vec![sizes.iter().copied().max().unwrap_or(0); many]
        };
        (0..all).try_for_each(|first| {
            let out = any(&sends, &message_plan.sends, first..all.min(first + LEAVING));
            let come = any(&recvs, &message_plan.recvs, first..all.min(first + COMING));
            flight.reserve(&out, &come)
        })
    }

    fn run(
        &mut self,
        message_plan: &MessagePlan,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error> {
        let mut flight = self.flight.take().ok_or_else(|| panicked(self.rank))?;
        let result = run(message_plan, handler, flight.as_mut(), &mut self.held);
        self.flight = Some(flight);
        result
    }

    fn memory(&self) -> usize {
        self.flight.as_ref().map_or(0, |flight| flight.memory())
    }
}

fn run(
    message_plan: &MessagePlan,
    handler: &mut dyn MessageHandler,
    flight: &mut dyn Flight,
    Held { packed, kept, missing }: &mut Held,
) -> Result<(), Error> {
    // A run that failed may have left some.
    packed.clear();
    kept.fill_with(|| None);
    let all = count(message_plan);
    missing.resize(missing.len().max(all), 0);
    let mut run = Run { message_plan, flight, handler, kept, missing: &mut missing[..all] };
    for chunk in 0..all.min(COMING) {
        run.post_recv(chunk)?;
    }
    let mut lacked = Ok(());
    for chunk in 0..all {
        if let Some(before) = chunk.checked_sub(COMING) {
            run.receive(before)?;
            run.post_recv(chunk)?;
        }
        let first = (chunk + 1).saturating_sub(LEAVING);
        run.wait_until_in_flight(of_chunks(&message_plan.sends, first..chunk, all).len())?;
        run.send(of_chunks(&message_plan.sends, chunk..chunk + 1, all), packed, &mut lacked)?;
    }
    run.handler.own();
    while let Some(arrival) = run.flight.wait_any()? {
        run.read(arrival);
    }
    let Run { flight, handler, kept, .. } = run;
    let all = &*kept;
    handler.finish(&|number| bytes(&all[number]));
    kept.iter_mut().filter_map(Option::take).for_each(|arrival| flight.recycle(arrival));
    lacked.and(flight.wait_all())
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use fft_core::ErrorKind;

    use super::*;

    /// Panics when nothing is left to pack.
    struct Panics;

    impl MessageHandler for Panics {
        fn pack(&mut self, _number: usize, _message: &mut [u8]) -> usize {
            0
        }

        fn own(&mut self) {
            panic!("on purpose");
        }

        fn arrived(&mut self, _number: usize, _message: &[u8]) -> bool {
            true
        }

        fn finish<'m>(&mut self, _message: &dyn Fn(usize) -> &'m [u8]) {}
    }

    #[test]
    fn an_exchange_that_a_panic_has_ended_says_whose_it_is() {
        let errors = crate::threads(3, |comm| {
            let mut exchange = P2p::new(Exchange::P2p, &comm).expect("an exchange");
            let mut run = || exchange.run(&MessagePlan::default(), &mut Panics);
            catch_unwind(AssertUnwindSafe(&mut run)).expect_err("a panic");
            run().expect_err("an error")
        });
        for (rank, error) in errors.into_iter().enumerate() {
            assert_eq!(error.kind(), ErrorKind::Transport);
            assert_eq!(
                error.to_string(),
                format!("an exchange failed on rank {rank}: a panic has ended it")
            );
        }
    }
}
