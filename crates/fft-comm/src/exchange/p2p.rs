//! Non-blocking messages between pairs.

use std::sync::Arc;

use fft_core::{Algorithm, Arrival, Comm, Error, Exchange, Flight, Pins, Port, Traffic};

use super::slot;

/// All receives are posted first; each message leaves as soon as it is packed, own data is copied while
/// messages are under way, and each arrival is unpacked at once, in whatever order they come. With messages in
/// chunks, this is the pipelined exchange.
pub(crate) struct P2p {
    algorithm: Algorithm,
    /// A run has it meanwhile, and drops it in a panic: so others are told that nothing more comes from here, though this rank
    /// may wait for them yet, to have done with the memory that it shows.
    flight: Option<Box<dyn Flight>>,
    /// Messages that are not read on arrival, by number.
    kept: Vec<Option<Arrival>>,
}

impl P2p {
    pub(crate) fn new(algorithm: Algorithm, comm: &dyn Comm) -> Result<Self, Error> {
        Ok(Self { algorithm, flight: Some(comm.flight()?), kept: Vec::new() })
    }
}

/// Shows a message to the port, and keeps it if that has no use for it yet.
fn read(
    arrival: Arrival,
    flight: &mut dyn Flight,
    port: &mut dyn Port,
    kept: &mut [Option<Arrival>],
) {
    let (number, message) = (arrival.number, &arrival.message);
    if message.is_opaque() {
        port.landed(number, message.len());
        flight.release(arrival);
    } else if port.arrived(number, message.bytes()) {
        flight.release(arrival);
    } else {
        kept[number] = Some(arrival);
    }
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
        if self.kept.len() < traffic.recvs.len() {
            self.kept.resize_with(traffic.recvs.len(), || None);
        }
        let bytes =
            |parcels: &[fft_core::Parcel]| parcels.iter().map(|p| p.bytes).collect::<Vec<_>>();
        let (sends, recvs) = (bytes(&traffic.sends), bytes(&traffic.recvs));
        let flight = self.flight.as_mut().ok_or_else(panicked)?;
        match traffic.berths {
            Some(_) => flight.reserve_berths(&sends, &recvs),
            None => flight.reserve(&sends, &recvs),
        }
    }

    fn run(&mut self, traffic: &Traffic, port: &mut dyn Port) -> Result<(), Error> {
        let mut flight = self.flight.take().ok_or_else(panicked)?;
        let result = run(traffic, port, flight.as_mut(), &mut self.kept);
        self.flight = Some(flight);
        result
    }

    fn memory(&self) -> usize {
        self.flight.as_ref().map_or(0, |flight| flight.memory())
    }
}

/// Who comes again after a panic.
fn panicked() -> Error {
    Error::argument("exchange", "one that a panic has ended", "another")
}

/// One exchange.
fn run(
    traffic: &Traffic,
    port: &mut dyn Port,
    flight: &mut dyn Flight,
    kept: &mut [Option<Arrival>],
) -> Result<(), Error> {
    let berths = &traffic.berths;
    for (number, parcel) in traffic.recvs.iter().enumerate() {
        match berths {
            Some(berths) => {
                flight.expect_into(parcel.peer, berths.incoming(number, parcel.bytes))?
            }
            None => flight.expect(parcel.peer, parcel.bytes)?,
        }
    }
    let mut lacked = Ok(());
    for (number, parcel) in traffic.sends.iter().enumerate() {
        let mut slot = match berths {
            Some(berths) => berths.outgoing(number, parcel.bytes),
            None => slot(flight, parcel.bytes, &mut lacked)?,
        };
        if slot.len() == parcel.bytes {
            let bytes = port.pack(number, slot.bytes_mut());
            slot.set_len(bytes);
        }
        flight.send(parcel.peer, parcel.bytes, slot)?;
        while let Some(arrival) = flight.poll()? {
            read(arrival, flight, port, kept);
        }
    }
    port.own();
    while let Some(arrival) = flight.arrival()? {
        read(arrival, flight, port, kept);
    }
    let all = &*kept;
    port.finish(&|number| match &all[number] {
        Some(arrival) => arrival.message.bytes(),
        None => &[],
    });
    kept.iter_mut().filter_map(Option::take).for_each(|arrival| flight.release(arrival));
    lacked.and(flight.finish())
}
