//! Non-blocking messages between pairs.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use fft_core::{
    Algorithm, Arrival, Blank, Comm, Error, Exchange, Flight, Parcel, Pins, Port, Slot, Traffic,
    agree,
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
fn chunk(parcels: &[Parcel], chunk: usize) -> Range<usize> {
    let before = |behind: usize| parcels.partition_point(|other| other.chunk < behind);
    before(chunk)..before(chunk + 1)
}

/// How many chunks a traffic is in, for whom it matters.
fn count(traffic: &Traffic) -> usize {
    if traffic.at_once || traffic.berths.is_some() { 1 } else { traffic.chunks.max(1) }
}

/// A run, without what is packed.
struct Run<'a> {
    traffic: &'a Traffic,
    flight: &'a mut dyn Flight,
    port: &'a mut dyn Port,
    kept: &'a mut [Option<Arrival>],
    missing: &'a mut [usize],
}

impl Run<'_> {
    /// Announces the messages of a chunk.
    fn post_recv(&mut self, chunk: usize) -> Result<(), Error> {
        let (recvs, all) = (&self.traffic.recvs, self.missing.len());
        let numbers = of_chunks(recvs, chunk..chunk + 1, all);
        self.missing[chunk] = numbers.len();
        for number in numbers {
            let Parcel { peer, bytes, .. } = recvs[number];
            match &self.traffic.berths {
                Some(berths) => self.flight.post_recv_into(peer, berths.incoming(number, bytes))?,
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
        let Traffic { sends, berths, .. } = self.traffic;
        let together = self.port.together();
        let mut number = numbers.start;
        while number < numbers.end {
            // One, or as many of a chunk as there is memory for that is not under way.
            let first = number;
            loop {
                let parcel = &sends[number];
                let slot = match berths {
                    Some(berths) => berths.outgoing(number, parcel.bytes),
                    None => slot(self.flight, parcel.bytes, lacked)?,
                };
                packed.push((slot, Cell::new(0)));
                number += 1;
                let next = sends.get(number).filter(|next| together && next.chunk == parcel.chunk);
                if !next.is_some_and(|next| berths.is_some() || self.flight.has_slot(next.bytes)) {
                    break;
                }
            }
            let chunk = &sends[first..number];
            let all = chunk.iter().zip(&mut *packed).zip(first..);
            let room = all.filter(|((parcel, (slot, _)), _)| slot.len() == parcel.bytes);
            self.port.pack_all(&mut room.map(|((_, (slot, bytes)), number)| Blank {
                number,
                message: slot.bytes_mut(),
                bytes,
            }));
            for (parcel, (mut slot, bytes)) in chunk.iter().zip(packed.drain(..)) {
                slot.set_len(bytes.get());
                self.flight.send(parcel.peer, parcel.bytes, slot)?;
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

    /// Shows a message to the port, and keeps it if that has no use for it yet.
    fn read(&mut self, arrival: Arrival) {
        let Self { traffic, flight, port, kept, missing } = self;
        let (number, message) = (arrival.number, &arrival.message);
        missing[traffic.recvs[number].chunk.min(missing.len() - 1)] -= 1;
        if message.is_opaque() {
            port.landed(number, message.len());
            flight.recycle(arrival);
        } else if port.together() {
            kept[number] = Some(arrival);
            let chunk = chunk(&traffic.recvs, traffic.recvs[number].chunk);
            if kept[chunk.clone()].iter().all(Option::is_some) {
                let all = &**kept;
                port.arrived_all(chunk.clone(), &|number| bytes(&all[number]));
                let all = kept[chunk].iter_mut().filter_map(Option::take);
                all.for_each(|arrival| flight.recycle(arrival));
            }
        } else if port.arrived(number, message.bytes()) {
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

    fn pin(&mut self, pins: Arc<dyn Pins>) {
        self.flight.iter_mut().for_each(|flight| flight.pin(pins.clone()));
    }

    fn takes_berths(&self) -> bool {
        true
    }

    fn reserve(&mut self, traffic: &Traffic) -> Result<(), Error> {
        let (Held { packed, kept, missing }, all) = (&mut self.held, count(traffic));
        if kept.len() < traffic.recvs.len() {
            kept.resize_with(traffic.recvs.len(), || None);
        }
        packed.reserve(traffic.sends.len());
        missing.resize(missing.len().max(all), 0);
        let bytes = |parcels: &[Parcel]| parcels.iter().map(|p| p.bytes).collect::<Vec<_>>();
        let (sends, recvs) = (bytes(&traffic.sends), bytes(&traffic.recvs));
        let flight = self.flight.as_mut().ok_or_else(|| panicked(self.rank))?;
        flight.reserve_message_buffers(&sends, &recvs)?;
        if all == 1 {
            let none = traffic.berths.is_some();
            return if none { Ok(()) } else { flight.reserve(&sends, &recvs) };
        }
        // One is as good as another, as they come back in any order.
        let any = |sizes: &[usize], parcels, chunks: Range<usize>| {
            let many = of_chunks(parcels, chunks, all).len();
            vec![sizes.iter().copied().max().unwrap_or(0); many]
        };
        (0..all).try_for_each(|first| {
            let out = any(&sends, &traffic.sends, first..all.min(first + LEAVING));
            let come = any(&recvs, &traffic.recvs, first..all.min(first + COMING));
            flight.reserve(&out, &come)
        })
    }

    fn run(&mut self, traffic: &Traffic, port: &mut dyn Port) -> Result<(), Error> {
        let mut flight = self.flight.take().ok_or_else(|| panicked(self.rank))?;
        let result = run(traffic, port, flight.as_mut(), &mut self.held);
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
    traffic: &Traffic,
    port: &mut dyn Port,
    flight: &mut dyn Flight,
    Held { packed, kept, missing }: &mut Held,
) -> Result<(), Error> {
    // A run that failed may have left some.
    packed.clear();
    kept.fill_with(|| None);
    let all = count(traffic);
    missing.resize(missing.len().max(all), 0);
    let mut run = Run { traffic, flight, port, kept, missing: &mut missing[..all] };
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
        run.wait_until_in_flight(of_chunks(&traffic.sends, first..chunk, all).len())?;
        run.send(of_chunks(&traffic.sends, chunk..chunk + 1, all), packed, &mut lacked)?;
    }
    run.port.own();
    while let Some(arrival) = run.flight.wait_any()? {
        run.read(arrival);
    }
    let Run { flight, port, kept, .. } = run;
    let all = &*kept;
    port.finish(&|number| bytes(&all[number]));
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

    impl Port for Panics {
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
            let mut run = || exchange.run(&Traffic::default(), &mut Panics);
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
