//! Non-blocking messages between pairs.

use std::sync::Arc;

use fft_core::{Algorithm, Arrival, Comm, Error, Exchange, Flight, Pins, Port, Traffic};

/// All receives are posted first; each message leaves as soon as it is packed, own data is copied while
/// messages are under way, and each arrival is unpacked at once, in whatever order they come. With messages in
/// chunks, this is the pipelined exchange.
pub(crate) struct P2p {
    algorithm: Algorithm,
    flight: Box<dyn Flight>,
    /// Messages that are not read on arrival, by number.
    kept: Vec<Option<Arrival>>,
}

impl P2p {
    pub(crate) fn new(algorithm: Algorithm, comm: &dyn Comm) -> Result<Self, Error> {
        Ok(Self { algorithm, flight: comm.flight()?, kept: Vec::new() })
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
        self.flight.pin(pins);
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
        match traffic.berths {
            Some(_) => self.flight.reserve_berths(&sends, &recvs),
            None => self.flight.reserve(&sends, &recvs),
        }
    }

    fn run(&mut self, traffic: &Traffic, port: &mut dyn Port) -> Result<(), Error> {
        let (flight, berths) = (&mut self.flight, &traffic.berths);
        for (number, parcel) in traffic.recvs.iter().enumerate() {
            match berths {
                Some(berths) => {
                    flight.expect_into(parcel.peer, berths.incoming(number, parcel.bytes))?
                }
                None => flight.expect(parcel.peer, parcel.bytes)?,
            }
        }
        for (number, parcel) in traffic.sends.iter().enumerate() {
            let mut slot = match berths {
                Some(berths) => berths.outgoing(number, parcel.bytes),
                None => flight.slot(parcel.bytes)?,
            };
            let bytes = port.pack(number, slot.bytes_mut());
            slot.set_len(bytes);
            flight.send(parcel.peer, parcel.bytes, slot)?;
            while let Some(arrival) = flight.poll()? {
                read(arrival, flight.as_mut(), port, &mut self.kept);
            }
        }
        port.own();
        while let Some(arrival) = flight.arrival()? {
            read(arrival, flight.as_mut(), port, &mut self.kept);
        }
        let kept = &self.kept;
        port.finish(&|number| match &kept[number] {
            Some(arrival) => arrival.message.bytes(),
            None => &[],
        });
        self.kept.iter_mut().filter_map(Option::take).for_each(|arrival| flight.release(arrival));
        flight.finish()
    }

    fn memory(&self) -> usize {
        self.flight.memory()
    }
}
