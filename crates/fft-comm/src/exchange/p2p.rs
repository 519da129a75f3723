//! Non-blocking messages between pairs.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use fft_core::{
    Algorithm, Arrival, Comm, Error, Exchange, Flight, MessageHandler, MessagePlan, MessageSpec,
    PackRequest, PinnedMemory, Slot, agree,
};

use super::{of_chunks, slot};

/// All receives are posted first; each message leaves as soon as it is packed, own data is copied while
/// messages are under way, and each arrival is unpacked at once, in whatever order they come. With messages in
/// chunks, this is the pipelined exchange.
///
/// Unless there is to be memory for all messages at once, those of a few chunks are under way at a time, in the memory of those
/// before them. A rank is never that many chunks ahead of another: before it packs one, it waits for all of the one
/// in whose place that goes.
pub(crate) struct P2p {
    algorithm: Algorithm,
    rank: usize,
    /// A run has it meanwhile, and drops it in a panic: so others are told that nothing more comes from here, though this rank
    /// may wait for them yet, to have done with the memory that it shows.
    flight: Option<Box<dyn Flight>>,
    held: Held,
}

/// Chunks that may be on their way here at once, where there is not to be memory for all: others go ahead while one is transformed
/// and packed here.
const COMING: usize = 4;
/// Chunks that may be on their way from here, with that which is packed. The network takes them one after the other.
const LEAVING: usize = 3;

/// Messages that are neither packed nor read one by one.
#[derive(Default)]
struct Held {
    /// Of a chunk that is packed, before they are sent, and how long they are.
    packed: Vec<(Slot, Cell<usize>)>,
    /// Those that are not read on arrival, by number.
    kept: Vec<Option<Arrival>>,
    /// How many of each chunk have not come.
    missing: Vec<usize>,
}

impl P2p {
    /// Collective.
    pub(crate) fn new(algorithm: Algorithm, comm: &dyn Comm) -> Result<Self, Error> {
        let flight = Some(agree(comm, comm.flight())?);
        Ok(Self { algorithm, rank: comm.rank(), flight, held: Held::default() })
    }
}

/// The messages of a chunk.
fn chunk(specs: &[MessageSpec], chunk: usize) -> Range<usize> {
    let before = |behind: usize| specs.partition_point(|other| other.chunk < behind);
    before(chunk)..before(chunk + 1)
}

/// How many chunks a message_plan is in, for whom it matters.
fn count(message_plan: &MessagePlan) -> usize {
    if message_plan.buffers_all || message_plan.buffers.is_some() {
        1
    } else {
        message_plan.chunks.max(1)
    }
}

/// A run, without what is packed.
struct Run<'a> {
    message_plan: &'a MessagePlan,
    flight: &'a mut dyn Flight,
    handler: &'a mut dyn MessageHandler,
    kept: &'a mut [Option<Arrival>],
    missing: &'a mut [usize],
}

impl Run<'_> {
    /// Announces the messages of a chunk.
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

    /// Packs these messages and sends them, and reads what has come meanwhile.
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
            // One, or as many of a chunk as there is memory for that is not under way.
            let first = number;
            loop {
                let spec = &sends[number];
                let slot = match buffers {
                    Some(buffers) => buffers.outgoing(number, spec.bytes),
                    None => slot(self.flight, spec.bytes, lacked)?,
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

    /// Takes what comes until all messages of a chunk have.
    fn receive(&mut self, chunk: usize) -> Result<(), Error> {
        while self.missing[chunk] > 0 {
            match self.flight.wait_any()? {
                Some(arrival) => self.read(arrival),
                None => break,
            }
        }
        Ok(())
    }

    /// Takes what comes until no more than so many messages are on their way from here.
    fn wait_until_in_flight(&mut self, most: usize) -> Result<(), Error> {
        while !self.flight.wait_until_in_flight(most)? {
            if let Some(arrival) = self.flight.test_any()? {
                self.read(arrival);
            }
        }
        Ok(())
    }

    /// Shows a message to the handler, and keeps it if that has no use for it yet.
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

impl Exchange for P2p {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.flight.iter_mut().for_each(|flight| flight.pin(pins.clone()));
    }

    fn takes_berths(&self) -> bool {
        true
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
        // One is as good as another, as they come back in any order.
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

/// Who comes again after a panic.
fn panicked(rank: usize) -> Error {
    Error::Transport { rank, call: "an exchange", text: "a panic has ended it".to_owned() }
}

/// One exchange.
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
            let mut exchange = P2p::new(Algorithm::P2p, &comm).expect("an exchange");
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
