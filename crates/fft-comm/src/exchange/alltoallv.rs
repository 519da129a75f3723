//! One collective for all messages.

use fft_core::{Algorithm, Comm, Error, Exchange, Parcel, Parts, Port, SLOT_ALIGN, Slot, Traffic};

/// Packs every message, exchanges them all in one call, unpacks every message. The collective must know the size of every
/// message at both ends; where that depends on the data, one of 8 bytes each tells it before: with every wire but raw, as
/// numbers that are not finite go raw in all of them.
pub(crate) struct Alltoallv {
    comm: Box<dyn Comm>,
    send: Side,
    recv: Side,
    /// Sizes of messages.
    tell: Side,
    hear: Side,
}

/// The outgoing or the incoming half: a buffer and where each rank's message is in it.
struct Side {
    buffer: Slot,
    parts: Vec<(usize, usize)>,
}

impl Alltoallv {
    pub(crate) fn new(comm: &dyn Comm) -> Result<Self, Error> {
        let side = || -> Result<Side, Error> {
            Ok(Side { buffer: Slot::new(0, comm.rank())?, parts: vec![(0, 0); comm.size()] })
        };
        let [send, recv, tell, hear] = [side()?, side()?, side()?, side()?];
        Ok(Self { comm: comm.dup()?, send, recv, tell, hear })
    }
}

impl Side {
    /// Bytes that these messages take, each starting where numbers of any type may.
    fn room(parcels: &[Parcel]) -> usize {
        parcels.iter().map(|parcel| parcel.bytes.next_multiple_of(SLOT_ALIGN)).sum()
    }

    fn reserve(&mut self, bytes: usize, rank: usize) -> Result<(), Error> {
        if self.buffer.capacity() < bytes {
            self.buffer = Slot::new(bytes, rank)?;
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

    /// A number for every message, a line apart.
    fn place_sizes(&mut self, parcels: &[Parcel]) {
        self.buffer.set_len(parcels.len() * SLOT_ALIGN);
        self.parts.fill((0, 0));
        for (number, parcel) in parcels.iter().enumerate() {
            self.parts[parcel.peer] = (number * SLOT_ALIGN, size_of::<u64>());
        }
    }

    fn size(&mut self, number: usize) -> &mut [u8; 8] {
        let line = &mut self.buffer.bytes_mut()[number * SLOT_ALIGN..];
        line.first_chunk_mut().expect("a line has 64 bytes")
    }
}

impl Exchange for Alltoallv {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Alltoallv
    }

    fn reserve(&mut self, traffic: &Traffic) -> Result<(), Error> {
        self.send.reserve(Side::room(&traffic.sends), self.comm.rank())?;
        self.recv.reserve(Side::room(&traffic.recvs), self.comm.rank())?;
        if traffic.shorter {
            self.tell.reserve(traffic.sends.len() * SLOT_ALIGN, self.comm.rank())?;
            self.hear.reserve(traffic.recvs.len() * SLOT_ALIGN, self.comm.rank())?;
        }
        self.send.place(&traffic.sends);
        self.recv.place(&traffic.recvs);
        self.comm.reserve_alltoallv(&self.send.parts, &self.recv.parts)
    }

    fn run(&mut self, traffic: &Traffic, port: &mut dyn Port) -> Result<(), Error> {
        let Self { comm, send, recv, tell, hear } = self;
        send.place(&traffic.sends);
        recv.place(&traffic.recvs);
        for (number, parcel) in traffic.sends.iter().enumerate() {
            let (first, room) = send.parts[parcel.peer];
            let bytes = port.pack(number, &mut send.buffer.bytes_mut()[first..first + room]);
            send.parts[parcel.peer].1 = bytes;
        }
        port.own();
        if traffic.shorter {
            tell.place_sizes(&traffic.sends);
            hear.place_sizes(&traffic.recvs);
            for (number, parcel) in traffic.sends.iter().enumerate() {
                *tell.size(number) = (send.parts[parcel.peer].1 as u64).to_ne_bytes();
            }
            comm.alltoallv(
                Parts { bytes: tell.buffer.bytes(), parts: &tell.parts },
                Parts { bytes: hear.buffer.bytes_mut(), parts: &hear.parts },
            )?;
            for (number, parcel) in traffic.recvs.iter().enumerate() {
                let bytes = u64::from_ne_bytes(*hear.size(number)) as usize;
                // One that claims more than there is room for is received as far as there is.
                recv.parts[parcel.peer].1 = bytes.min(parcel.bytes);
            }
        }
        comm.alltoallv(
            Parts { bytes: send.buffer.bytes(), parts: &send.parts },
            Parts { bytes: recv.buffer.bytes_mut(), parts: &recv.parts },
        )?;
        let message = |number: usize| {
            let (first, bytes) = recv.parts[traffic.recvs[number].peer];
            &recv.buffer.bytes()[first..first + bytes]
        };
        for number in 0..traffic.recvs.len() {
            port.arrived(number, message(number));
        }
        port.finish(&message);
        Ok(())
    }

    fn memory(&self) -> usize {
        [&self.send, &self.recv, &self.tell, &self.hear]
            .map(|side| side.buffer.capacity())
            .iter()
            .sum()
    }
}
