//! Non-blocking messages between pairs.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use fft_core::{
    Algorithm, Arrival, Blank, Comm, Error, Exchange, Flight, Parcel, Pins, Port, Slot, Traffic,
};

use super::slot;

/// All receives are posted first; each message leaves as soon as it is packed, own data is copied while
/// messages are under way, and each arrival is unpacked at once, in whatever order they come. With messages in
/// chunks, this is the pipelined exchange.
pub(crate) struct P2p {
    algorithm: Algorithm,
    rank: usize,
    /// A run has it meanwhile, and drops it in a panic: so others are told that nothing more comes from here, though this rank
    /// may wait for them yet, to have done with the memory that it shows.
    flight: Option<Box<dyn Flight>>,
    held: Held,
}

/// Messages that are neither packed nor read one by one.
#[derive(Default)]
struct Held {
    /// Of a chunk that is packed, before they are sent, and how long they are.
    packed: Vec<(Slot, Cell<usize>)>,
    /// Those that are not read on arrival, by number.
    kept: Vec<Option<Arrival>>,
}

impl P2p {
    pub(crate) fn new(algorithm: Algorithm, comm: &dyn Comm) -> Result<Self, Error> {
        let (rank, flight) = (comm.rank(), Some(comm.flight()?));
        Ok(Self { algorithm, rank, flight, held: Held::default() })
    }
}

/// The messages of a chunk, of which this is one.
fn chunk_of(parcels: &[Parcel], number: usize) -> Range<usize> {
    let chunk = parcels[number].chunk;
    let before = |behind: usize| parcels.partition_point(|other| other.chunk < behind);
    before(chunk)..before(chunk + 1)
}

/// Shows a message to the port, and keeps it if that has no use for it yet.
fn read(
    arrival: Arrival,
    traffic: &Traffic,
    flight: &mut dyn Flight,
    port: &mut dyn Port,
    kept: &mut [Option<Arrival>],
) {
    let (number, message) = (arrival.number, &arrival.message);
    if message.is_opaque() {
        port.landed(number, message.len());
        flight.release(arrival);
    } else if port.together() {
        kept[number] = Some(arrival);
        let chunk = chunk_of(&traffic.recvs, number);
        if kept[chunk.clone()].iter().all(Option::is_some) {
            let all = &*kept;
            port.arrived_all(chunk.clone(), &|number| bytes(&all[number]));
            let all = kept[chunk].iter_mut().filter_map(Option::take);
            all.for_each(|arrival| flight.release(arrival));
        }
    } else if port.arrived(number, message.bytes()) {
        flight.release(arrival);
    } else {
        kept[number] = Some(arrival);
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
        let Held { packed, kept } = &mut self.held;
        if kept.len() < traffic.recvs.len() {
            kept.resize_with(traffic.recvs.len(), || None);
        }
        packed.reserve(traffic.sends.len());
        let bytes = |parcels: &[Parcel]| parcels.iter().map(|p| p.bytes).collect::<Vec<_>>();
        let (sends, recvs) = (bytes(&traffic.sends), bytes(&traffic.recvs));
        let flight = self.flight.as_mut().ok_or_else(|| panicked(self.rank))?;
        match traffic.berths {
            Some(_) => flight.reserve_berths(&sends, &recvs),
            None => flight.reserve(&sends, &recvs),
        }
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
    Held { packed, kept }: &mut Held,
) -> Result<(), Error> {
    // A run that failed may have left some.
    packed.clear();
    kept.fill_with(|| None);
    let berths = &traffic.berths;
    for (number, parcel) in traffic.recvs.iter().enumerate() {
        match berths {
            Some(berths) => {
                flight.expect_into(parcel.peer, berths.incoming(number, parcel.bytes))?
            }
            None => flight.expect(parcel.peer, parcel.bytes)?,
        }
    }
    let (mut lacked, together) = (Ok(()), port.together());
    let sends = &traffic.sends;
    let mut number = 0;
    while number < sends.len() {
        // One, or as many of a chunk as there is memory for that is not under way.
        let first = number;
        loop {
            let parcel = &sends[number];
            let slot = match berths {
                Some(berths) => berths.outgoing(number, parcel.bytes),
                None => slot(flight, parcel.bytes, &mut lacked)?,
            };
            packed.push((slot, Cell::new(0)));
            number += 1;
            let next = sends.get(number).filter(|next| together && next.chunk == parcel.chunk);
            if !next.is_some_and(|next| berths.is_some() || flight.has_slot(next.bytes)) {
                break;
            }
        }
        let chunk = &sends[first..number];
        let all = chunk.iter().zip(&mut *packed).zip(first..);
        let room = all.filter(|((parcel, (slot, _)), _)| slot.len() == parcel.bytes);
        port.pack_all(&mut room.map(|((_, (slot, bytes)), number)| Blank {
            number,
            message: slot.bytes_mut(),
            bytes,
        }));
        for (parcel, (mut slot, bytes)) in chunk.iter().zip(packed.drain(..)) {
            slot.set_len(bytes.get());
            flight.send(parcel.peer, parcel.bytes, slot)?;
            while let Some(arrival) = flight.poll()? {
                read(arrival, traffic, flight, port, kept);
            }
        }
    }
    port.own();
    while let Some(arrival) = flight.arrival()? {
        read(arrival, traffic, flight, port, kept);
    }
    let all = &*kept;
    port.finish(&|number| bytes(&all[number]));
    kept.iter_mut().filter_map(Option::take).for_each(|arrival| flight.release(arrival));
    lacked.and(flight.finish())
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
