//! Non-blocking messages between pairs.

use fft_core::{Comm, Error, Exchange, Flight, Port, Traffic};

/// All receives are posted first; each message leaves as soon as it is packed, own data is copied while
/// messages are under way, and each arrival is unpacked at once, in whatever order they come.
pub(crate) struct P2p {
    flight: Box<dyn Flight>,
}

impl P2p {
    pub(crate) fn new(comm: &dyn Comm) -> Result<Self, Error> {
        Ok(Self { flight: comm.flight()? })
    }
}

impl Exchange for P2p {
    fn reserve(&mut self, traffic: &Traffic) -> Result<(), Error> {
        let bytes =
            |parcels: &[fft_core::Parcel]| parcels.iter().map(|p| p.bytes).collect::<Vec<_>>();
        self.flight.reserve(&bytes(&traffic.sends), &bytes(&traffic.recvs))
    }

    fn run(&mut self, traffic: &Traffic, port: &mut dyn Port) -> Result<(), Error> {
        let flight = &mut self.flight;
        for parcel in &traffic.recvs {
            flight.expect(parcel.peer, parcel.bytes)?;
        }
        for (number, parcel) in traffic.sends.iter().enumerate() {
            let mut slot = flight.slot(parcel.bytes)?;
            let bytes = port.pack(number, slot.bytes_mut());
            slot.set_len(bytes);
            flight.send(parcel.peer, parcel.bytes, slot)?;
        }
        port.own();
        while let Some(arrival) = flight.arrival()? {
            port.unpack(arrival.number, arrival.message.bytes());
            flight.release(arrival);
        }
        flight.finish()
    }

    fn memory(&self) -> usize {
        self.flight.memory()
    }
}
