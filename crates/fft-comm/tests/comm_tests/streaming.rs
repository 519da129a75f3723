//! Messages in many chunks, a few of which are under way at once: over threads.

use std::cell::Cell;

use fft_comm::{exchanger, threads};
use fft_core::{Comm, Exchange, Exchanger, MessageHandler, MessagePlan, MessageSpec};

use crate::group::on_one_host;

const CHUNKS: usize = 100;

/// The bytes of the message of a chunk, if there is one: some ranks with fewer chunks, some pairs
/// with none.
fn bytes(from: usize, to: usize, chunk: usize) -> Option<usize> {
    let there =
        from != to && !(from + 2 * to + chunk).is_multiple_of(5) && chunk < CHUNKS - 7 * (from % 3);
    there.then_some(1 + (from * 371 + to * 113 + chunk * 77) % 900)
}

fn message_plan(rank: usize, ranks: usize, buffers_all: bool) -> MessagePlan {
    let side = |bytes: &dyn Fn(usize, usize) -> Option<usize>| -> Vec<MessageSpec> {
        let all =
            (0..CHUNKS).flat_map(|chunk| (1..ranks).map(move |d| (chunk, (rank + d) % ranks)));
        let spec = |(chunk, peer)| Some(MessageSpec { peer, bytes: bytes(peer, chunk)?, chunk });
        all.filter_map(spec).collect()
    };
    MessagePlan {
        reshape: 0,
        chunks: CHUNKS,
        shorter: false,
        buffers_all,
        sends: side(&|peer, chunk| bytes(rank, peer, chunk)),
        recvs: side(&|peer, chunk| bytes(peer, rank, chunk)),
        buffers: None,
    }
}

/// What every byte of a message says.
fn word(from: usize, to: usize, chunk: usize) -> u8 {
    (from * 7 + to * 3 + chunk * 31) as u8
}

/// Packs, and looks at what comes; a rank is late now and then.
struct Desk<'a> {
    rank: usize,
    message_plan: &'a MessagePlan,
    /// The chunk that was packed last, and how many messages of each have come.
    packed: usize,
    come: Vec<usize>,
    /// How far the others' chunks were ahead of that at most.
    ahead: &'a Cell<usize>,
    owned: usize,
}

impl MessageHandler for Desk<'_> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let MessageSpec { peer, chunk, .. } = self.message_plan.sends[number];
        assert!(chunk >= self.packed, "chunks are packed in order");
        self.packed = chunk;
        if (self.rank + chunk).is_multiple_of(11) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        message.fill(word(self.rank, peer, chunk));
        message.len()
    }

    fn own(&mut self) {
        self.owned += 1;
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        let MessageSpec { peer, bytes, chunk } = self.message_plan.recvs[number];
        assert_eq!(message.len(), bytes);
        assert!(message.iter().all(|byte| *byte == word(peer, self.rank, chunk)));
        self.come[number] += 1;
        self.ahead.set(self.ahead.get().max(chunk.saturating_sub(self.packed)));
        true
    }

    fn finish<'m>(&mut self, _message: &dyn Fn(usize) -> &'m [u8]) {
        assert_eq!(self.owned, 1);
    }
}

/// Runs a few times: bytes held, the same after each.
fn run(exchanger: &mut dyn Exchanger, rank: usize, message_plan: &MessagePlan) -> usize {
    exchanger.reserve(message_plan).unwrap();
    let (held, ahead) = (exchanger.memory(), Cell::new(0));
    for _ in 0..6 {
        let come = vec![0; message_plan.recvs.len()];
        let mut desk = Desk { rank, message_plan, packed: 0, come, ahead: &ahead, owned: 0 };
        exchanger.run(message_plan, &mut desk).unwrap();
        assert!(desk.come.iter().all(|times| *times == 1), "rank {rank}: {:?}", desk.come);
        assert_eq!(exchanger.memory(), held, "rank {rank}: it was reserved for");
    }
    // Those who have fewer chunks have packed their last.
    let fewer = 7 * (rank % 3);
    assert!(
        message_plan.buffers_all || ahead.get() <= 4 + fewer,
        "rank {rank}: {} ahead",
        ahead.get()
    );
    held
}

#[test]
fn a_few_chunks_are_under_way_in_memory_for_so_many() {
    for ranks in [2, 3, 5] {
        threads(ranks, |comm| {
            let rank = comm.rank();
            let [few, all] = [false, true].map(|buffers_all| {
                let mut exchanger = exchanger(Exchange::Pipelined, &comm).unwrap();
                run(exchanger.as_mut(), rank, &message_plan(rank, ranks, buffers_all))
            });
            assert!(4 * few < all, "rank {rank} of {ranks}: {few} of {all} bytes");
        });
    }
}

/// Rings take several messages before anybody reads them, so that only the wait for its own
/// receives keeps a rank from being far ahead of the others.
#[test]
fn a_group_has_memory_for_a_few_chunks() {
    for ranks in [2, 3] {
        on_one_host(ranks, |comm| {
            let mut exchanger = exchanger(Exchange::Pipelined, comm)?;
            run(exchanger.as_mut(), comm.rank(), &message_plan(comm.rank(), ranks, false));
            Ok(())
        });
    }
}

#[test]
fn a_collective_for_each_chunk_takes_memory_for_one() {
    for ranks in [2, 3, 5] {
        threads(ranks, |comm| {
            let (rank, mut exchanger) =
                (comm.rank(), exchanger(Exchange::Alltoallv, &comm).unwrap());
            let message_plan = message_plan(rank, ranks, false);
            let sides = [&message_plan.sends, &message_plan.recvs];
            let all: usize = sides.iter().flat_map(|side| side.iter()).map(|it| it.bytes).sum();
            let held = run(exchanger.as_mut(), rank, &message_plan);
            assert!(8 * held < all, "rank {rank} of {ranks}: {held} of {all} bytes");
        });
    }
}
