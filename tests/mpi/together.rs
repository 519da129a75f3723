//! Messages that are packed together, as on devices, without enough memory for all at once: between
//! MPI processes.

use std::ops::Range;

use fft_core::{Comm, MessageHandler, MessagePlan, MessageSpec, PackRequest};
use thriffty::Error;
use thriffty::mpi::MpiComm;
use thriffty::mpi::rsmpi::topology::SimpleCommunicator;
use thriffty::planning::Exchange;

use crate::common::message_buffers::letter;

/// The most bytes that one call of MPI sends. There is memory for the pieces of two messages.
const PIECE: usize = 64;
/// Bytes of a message.
const BYTES: usize = 7 * PIECE;

/// Counts the messages that it packs at once, and compares the received ones.
struct Desk<'a> {
    rank: usize,
    message_plan: &'a MessagePlan,
    packed: Vec<usize>,
    shown: Vec<usize>,
}

impl MessageHandler for Desk<'_> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let spec = &self.message_plan.sends[number];
        let letter = letter(self.rank, spec.peer, 0, spec);
        message[..letter.len()].copy_from_slice(&letter);
        letter.len()
    }

    fn together(&self) -> bool {
        true
    }

    fn pack_all<'m>(&mut self, requests: &mut dyn Iterator<Item = PackRequest<'m>>) {
        let before = self.packed.iter().sum::<usize>();
        let mut count = 0;
        for PackRequest { number, message, bytes } in requests {
            assert_eq!(number, before + count, "in order");
            bytes.set(self.pack(number, message));
            count += 1;
        }
        self.packed.push(count);
    }

    fn own(&mut self) {}

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        let spec = &self.message_plan.recvs[number];
        assert_eq!(message, letter(spec.peer, self.rank, 0, spec));
        self.shown.push(number);
        true
    }

    fn arrived_all<'m>(&mut self, numbers: Range<usize>, message: &dyn Fn(usize) -> &'m [u8]) {
        assert_eq!(numbers, 0..self.message_plan.recvs.len(), "all of the chunk");
        for number in numbers {
            self.arrived(number, message(number));
        }
    }

    fn finish<'m>(&mut self, _message: &dyn Fn(usize) -> &'m [u8]) {}
}

/// One message to each other rank, all of one chunk, sent as memory allows; a run takes no more
/// memory than was reserved.
pub(crate) fn all(_: &dyn Comm) -> Result<(), Error> {
    let world = MpiComm::of(&SimpleCommunicator::world())?.with_pieces_of(PIECE);
    let (rank, size) = (world.rank(), world.size());
    let others = |step: &dyn Fn(usize) -> usize| -> Vec<MessageSpec> {
        (1..size).map(|k| MessageSpec { peer: step(k) % size, bytes: BYTES, chunk: 0 }).collect()
    };
    let message_plan = MessagePlan {
        reshape: 0,
        chunks: 1,
        shorter: true,
        buffers_all: false,
        sends: others(&|k| rank + k),
        recvs: others(&|k| rank + size - k),
        buffers: None,
    };
    for exchange in [Exchange::P2p, Exchange::Pipelined, Exchange::Alltoallv] {
        let mut exchanger = fft_comm::exchanger(exchange, &world)?;
        exchanger.reserve(&message_plan)?;
        let memory = exchanger.memory();
        for _ in 0..3 {
            let mut desk =
                Desk { rank, message_plan: &message_plan, packed: vec![], shown: vec![] };
            exchanger.run(&message_plan, &mut desk)?;
            assert_eq!(desk.packed.iter().sum::<usize>(), size - 1, "{exchange}");
            // Later ones may be in the memory of messages that have come.
            assert!(desk.packed.first().is_none_or(|count| *count <= 2), "{:?}", desk.packed);
            desk.shown.sort_unstable();
            assert!(desk.shown.into_iter().eq(0..size - 1), "{exchange}");
            assert_eq!(exchanger.memory(), memory, "{exchange}: no more than was reserved");
        }
    }
    Ok(())
}
