//! Ports that pack and read the messages of a chunk together, as those do that wait for a device:
//! over threads.

use std::ops::Range;

use fft_comm::{exchanger, threads};
use fft_core::{Comm, ErrorKind, Exchange, MessageHandler, MessagePlan, MessageSpec, PackRequest};

/// Chunks of the rank with most.
const CHUNKS: usize = 3;

/// The bytes of the message of a chunk, if there is one: uneven, some ranks with less chunks, some
/// pairs with none.
fn bytes(from: usize, to: usize, chunk: usize, chunks: usize) -> Option<usize> {
    let there = from != to
        && !(from + 2 * to + chunk).is_multiple_of(5)
        && chunk < chunks - from % 2 % chunks;
    there.then_some(1 + (from * 371 + to * 113 + chunk * 77) % 900)
}

fn message_plan(rank: usize, ranks: usize, chunks: usize, shorter: bool) -> MessagePlan {
    let side = |bytes: &dyn Fn(usize, usize) -> Option<usize>| -> Vec<MessageSpec> {
        let all =
            (0..chunks).flat_map(|chunk| (1..ranks).map(move |d| (chunk, (rank + d) % ranks)));
        let spec = |(chunk, peer)| Some(MessageSpec { peer, bytes: bytes(peer, chunk)?, chunk });
        all.filter_map(spec).collect()
    };
    MessagePlan {
        reshape: 0,
        chunks,
        shorter,
        buffers_all: false,
        sends: side(&|peer, chunk| bytes(rank, peer, chunk, chunks)),
        recvs: side(&|peer, chunk| bytes(peer, rank, chunk, chunks)),
        buffers: None,
    }
}

/// What a message says: of message_plan whose messages may be shorter, every third is.
fn text(from: usize, to: usize, spec: &MessageSpec, shorter: bool) -> Vec<u8> {
    let len =
        spec.bytes / if shorter && (from + to + spec.chunk).is_multiple_of(3) { 2 } else { 1 };
    (0..len).map(|i| (from * 7 + to * 3 + spec.chunk * 31 + i) as u8).collect()
}

/// The numbers of each chunk, in order.
fn chunks(specs: &[MessageSpec]) -> Vec<Vec<usize>> {
    let mut number = 0;
    let numbers = |chunk: &[MessageSpec]| {
        number += chunk.len();
        (number - chunk.len()..number).collect()
    };
    specs.chunk_by(|a, b| a.chunk == b.chunk).map(numbers).collect()
}

struct Desk<'a> {
    rank: usize,
    message_plan: &'a MessagePlan,
    packed: Vec<Vec<usize>>,
    shown: Vec<Vec<usize>>,
    /// Messages that were not what they must be.
    wrong: Vec<usize>,
}

impl MessageHandler for Desk<'_> {
    fn pack(&mut self, _number: usize, _message: &mut [u8]) -> usize {
        unreachable!("all of a chunk are packed together")
    }

    fn together(&self) -> bool {
        true
    }

    fn pack_all<'m>(&mut self, requests: &mut dyn Iterator<Item = PackRequest<'m>>) {
        // All are there before the first is written.
        let all: Vec<_> = requests.collect();
        self.packed.push(all.iter().map(|request| request.number).collect());
        for PackRequest { number, message, bytes } in all {
            let spec = &self.message_plan.sends[number];
            assert_eq!(message.len(), spec.bytes);
            let text = text(self.rank, spec.peer, spec, self.message_plan.shorter);
            message[..text.len()].copy_from_slice(&text);
            bytes.set(text.len());
        }
    }

    fn own(&mut self) {}

    fn arrived(&mut self, _number: usize, _message: &[u8]) -> bool {
        unreachable!("all of a chunk are shown together")
    }

    fn arrived_all<'m>(&mut self, numbers: Range<usize>, message: &dyn Fn(usize) -> &'m [u8]) {
        self.shown.push(numbers.clone().collect());
        let all: Vec<_> = numbers.map(|number| (number, message(number))).collect();
        for (number, message) in all {
            let spec = &self.message_plan.recvs[number];
            if message != text(spec.peer, self.rank, spec, self.message_plan.shorter) {
                self.wrong.push(number);
            }
        }
    }

    fn finish<'m>(&mut self, _message: &dyn Fn(usize) -> &'m [u8]) {}
}

#[test]
fn chunks_are_packed_and_shown_once_and_whole() {
    let ways = [
        (Exchange::P2p, CHUNKS, false),
        (Exchange::Pipelined, CHUNKS, true),
        (Exchange::Shared, 1, true),
        (Exchange::Alltoallv, 1, false),
        (Exchange::Alltoallv, 1, true),
    ];
    for ((exchange, most, shorter), ranks) in
        ways.into_iter().flat_map(|way| [2, 3, 6].map(|n| (way, n)))
    {
        threads(ranks, |comm| {
            let rank = comm.rank();
            let message_plan = message_plan(rank, ranks, most, shorter);
            let mut exchanger = exchanger(exchange, &comm).unwrap();
            exchanger.reserve(&message_plan).unwrap();
            let held = exchanger.memory();
            for _ in 0..10 {
                let (packed, shown, wrong) = (Vec::new(), Vec::new(), Vec::new());
                let mut desk = Desk { rank, message_plan: &message_plan, packed, shown, wrong };
                exchanger.run(&message_plan, &mut desk).unwrap();
                let Desk { mut packed, mut shown, wrong, .. } = desk;
                // A collective shows a chunk of none as well.
                packed.retain(|chunk| !chunk.is_empty());
                shown.retain(|chunk| !chunk.is_empty());
                let what = format!("{exchange}, rank {rank} of {ranks}");
                assert_eq!(packed, chunks(&message_plan.sends), "{what}");
                shown.sort();
                assert_eq!(shown, chunks(&message_plan.recvs), "{what}");
                assert_eq!(wrong, [0; 0], "{what}");
            }
            assert_eq!(exchanger.memory(), held, "it was reserved for");
        });
    }
}

/// A rank that leaves: the others see its messages empty, and all chunks.
#[test]
fn who_leaves_is_missed_and_not_waited_for() {
    threads(3, |comm| {
        let rank = comm.rank();
        let message_plan = message_plan(rank, 3, CHUNKS, false);
        let mut exchanger = exchanger(Exchange::Pipelined, &comm).unwrap();
        exchanger.reserve(&message_plan).unwrap();
        if rank == 1 {
            return;
        }
        let (packed, shown, wrong) = (Vec::new(), Vec::new(), Vec::new());
        let mut desk = Desk { rank, message_plan: &message_plan, packed, shown, wrong };
        let error = exchanger.run(&message_plan, &mut desk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
        let lost = (0..message_plan.recvs.len()).filter(|n| message_plan.recvs[*n].peer == 1);
        let lost: Vec<_> = lost.collect();
        desk.wrong.sort_unstable();
        assert_eq!(desk.wrong, lost);
        assert_eq!(desk.shown.len(), chunks(&message_plan.recvs).len());
    });
}
