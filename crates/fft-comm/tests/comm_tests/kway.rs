//! The k-way exchange over threads: messages of any size between any ranks, ranks that leave,
//! bundles that lie.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use fft_comm::{ThreadComm, exchange, threads};
use fft_core::{
    Algorithm, Arrival, Comm, Error, ErrorKind, Exchange, Flight, MessageHandler, MessagePlan,
    MessageSpec, Part, Parts, Reduce, Slot,
};

const RANKS: [usize; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12];
const KS: [u8; 4] = [2, 3, 4, 255];

/// Patterns of messages: all to all, some pairs of uneven sizes with ranks that neither send nor
/// receive, one to all, all to one, none.
const RESHAPES: usize = 5;

/// The most bytes of a message, at least one where all send to all; `None` where there is none.
fn bound(reshape: usize, from: usize, to: usize) -> Option<usize> {
    let there = match reshape {
        0 => true,
        1 => (from + 2 * to) % 3 == 1 && from % 4 != 2 && to % 5 != 3,
        2 => from == 0,
        3 => to == 1,
        _ => false,
    };
    (from != to && there).then_some((from * 37 + to * 11) % 90 + usize::from(reshape == 0))
}

fn message_plan(rank: usize, ranks: usize, reshape: usize) -> MessagePlan {
    let spec =
        |peer, bytes: Option<usize>| bytes.map(|bytes| MessageSpec { peer, bytes, chunk: 0 });
    let after = || (1..ranks).map(|d| (rank + d) % ranks);
    let before = (1..ranks).map(|d| (rank + ranks - d) % ranks);
    MessagePlan {
        chunks: 1,
        shorter: false,
        buffers_all: false,
        reshape,
        sends: after().filter_map(|to| spec(to, bound(reshape, rank, to))).collect(),
        recvs: before.filter_map(|from| spec(from, bound(reshape, from, rank))).collect(),
        buffers: None,
    }
}

/// What a message says: as many bytes as its bound, or fewer.
fn text(round: usize, from: usize, to: usize, bound: usize) -> Vec<u8> {
    let fewer = (bound * (to + 1) / (from + to + 1)).max(bound.min(1));
    let len = if (round + from + to).is_multiple_of(3) { bound } else { fewer };
    (0..len).map(|i| (round * 31 + from * 7 + to * 3 + i) as u8).collect()
}

/// A rank's messages in one exchange; reads every other one when it comes, the others at the end.
struct Desk<'a> {
    rank: usize,
    round: usize,
    message_plan: &'a MessagePlan,
    packed: usize,
    owned: usize,
    /// What came of each message, by number.
    came: Vec<Option<Vec<u8>>>,
}

impl MessageHandler for Desk<'_> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        assert_eq!(self.owned, 0, "own data is copied when nothing is left to pack");
        let MessageSpec { peer, bytes, .. } = self.message_plan.sends[number];
        let text = text(self.round, self.rank, peer, bytes);
        message[..text.len()].copy_from_slice(&text);
        self.packed += 1;
        text.len()
    }

    fn own(&mut self) {
        self.owned += 1;
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        assert_eq!(message.as_ptr().align_offset(16), 0, "numbers of any type may begin here");
        assert_eq!(self.came[number].replace(message.to_vec()), None, "arrived twice");
        number.is_multiple_of(2)
    }

    fn finish<'m>(&mut self, message: &dyn Fn(usize) -> &'m [u8]) {
        for (number, came) in self.came.iter().enumerate().filter(|(n, _)| !n.is_multiple_of(2)) {
            assert_eq!(came.as_deref(), Some(message(number)), "it is still there at the end");
        }
    }
}

/// One exchange, and which messages were not what they must be.
fn run(
    exchange: &mut dyn Exchange,
    rank: usize,
    message_plan: &MessagePlan,
    round: usize,
) -> (Result<(), Error>, Vec<usize>) {
    let came = vec![None; message_plan.recvs.len()];
    let mut desk = Desk { rank, round, message_plan, packed: 0, owned: 0, came };
    let result = exchange.run(message_plan, &mut desk);
    assert_eq!((desk.packed, desk.owned), (message_plan.sends.len(), 1));
    let right = |(spec, came): &(&MessageSpec, &Option<Vec<u8>>)| {
        **came == Some(text(round, spec.peer, rank, spec.bytes))
    };
    let all = message_plan.recvs.iter().zip(&desk.came);
    (result, all.filter(|pair| !right(pair)).map(|(spec, _)| spec.peer).collect())
}

/// An exchange that all reshapes are reserved for.
fn reserved(comm: &dyn Comm, k: u8) -> Result<Box<dyn Exchange>, Error> {
    let mut exchange = exchange(Algorithm::KWay(k), comm)?;
    for reshape in 0..RESHAPES {
        exchange.reserve(&message_plan(comm.rank(), comm.size(), reshape))?;
    }
    Ok(exchange)
}

#[test]
fn every_message_arrives_whole() {
    for (ranks, k) in RANKS.into_iter().flat_map(|ranks| KS.map(|k| (ranks, k))) {
        threads(ranks, |comm| {
            let rank = comm.rank();
            let mut exchange = reserved(&comm, k).unwrap();
            let held = exchange.memory();
            for round in 0..20 {
                let message_plan =
                    message_plan(rank, ranks, (round * round + k as usize) % RESHAPES);
                let (result, wrong) = run(exchange.as_mut(), rank, &message_plan, round);
                assert_eq!((result, wrong), (Ok(()), vec![]), "rank {rank} of {ranks}, k = {k}");
            }
            assert_eq!(exchange.memory(), held, "the exchange was reserved for all of them");
        });
    }
}

#[test]
fn a_direct_exchange_forwards_headers_only() {
    threads(6, |comm| {
        let message_plan = message_plan(comm.rank(), 6, 0);
        for k in [6, 2] {
            let mut exchange = reserved(&comm, k).unwrap();
            run(exchange.as_mut(), comm.rank(), &message_plan, 0).0.unwrap();
            // At most 31 bytes for each: a header, and up to a multiple of its size.
            assert_eq!(exchange.forwarded() > 31 * 5, k == 2, "{} bytes", exchange.forwarded());
        }
    });
}

#[test]
fn two_reshapes_that_look_alike_to_a_rank_are_told_apart() {
    // Ranks 0 to 3 at distances 0, 1, 2, 3: with k = 2 the message from 0 to 3 goes through 1, who
    // in both reshapes has nothing of its own.
    threads(4, |comm| {
        let rank = comm.rank();
        let mut exchange = exchange(Algorithm::KWay(2), &comm).unwrap();
        let pair = |from: usize, to: usize, reshape| {
            let spec = |mine, peer| {
                if rank == mine { vec![MessageSpec { peer, bytes: 50, chunk: 0 }] } else { vec![] }
            };
            MessagePlan {
                reshape,
                chunks: 1,
                shorter: false,
                buffers_all: false,
                sends: spec(from, to),
                recvs: spec(to, from),
                buffers: None,
            }
        };
        let reshapes = [pair(0, 3, 0), pair(2, 0, 1), pair(0, 2, 2)];
        reshapes.iter().for_each(|message_plan| exchange.reserve(message_plan).unwrap());
        for round in 0..9 {
            let (result, wrong) = run(exchange.as_mut(), rank, &reshapes[round % 3], round);
            assert_eq!((result, wrong), (Ok(()), vec![]));
        }
    });
}

#[test]
fn what_cannot_be_is_an_error() {
    threads(3, |comm| {
        for k in [0, 1] {
            let error = exchange(Algorithm::KWay(k), &comm).map(drop).unwrap_err();
            assert!(error.to_string().contains(&format!("kway{k}")), "{error}");
        }
        let mut exchange = exchange(Algorithm::KWay(2), &comm).unwrap();
        let message_plan = message_plan(comm.rank(), 3, 0);
        let mut desk = Desk {
            rank: 0,
            round: 0,
            message_plan: &message_plan,
            packed: 0,
            owned: 0,
            came: vec![None; 2],
        };
        let error = exchange.run(&message_plan, &mut desk).unwrap_err();
        assert!(error.to_string().contains("reserved"), "{error}");
        // Rank 0 expects a message that rank 1 does not send.
        let mut odd = message_plan.clone();
        if comm.rank() == 1 {
            odd.sends.retain(|spec| spec.peer != 0);
        }
        let result = exchange.reserve(&odd);
        let expected = if comm.rank() == 0 { Err(ErrorKind::Argument) } else { Ok(()) };
        assert_eq!(result.map_err(|error| error.kind()), expected);
    });
}

#[test]
fn a_rank_that_leaves_is_an_error_where_its_messages_are_missed() {
    for ranks in [2, 3, 5, 8] {
        for k in KS {
            for gone in [0, ranks - 1] {
                let (told, all) = (AtomicUsize::new(0), message_plan(gone, ranks, 0).sends.len());
                threads(ranks, |comm| {
                    let rank = comm.rank();
                    let message_plan = message_plan(rank, ranks, 0);
                    let mut exchange = reserved(&comm, k).unwrap();
                    run(exchange.as_mut(), rank, &message_plan, 0).0.unwrap();
                    if rank == gone {
                        return;
                    }
                    let (result, wrong) = run(exchange.as_mut(), rank, &message_plan, 1);
                    assert!(wrong.contains(&gone), "rank {rank} of {ranks}, k = {k}");
                    // A neighbour notices; others get what the neighbour knows to be lost.
                    let kind = result.map_err(|error| error.kind()).unwrap_err();
                    assert!(matches!(kind, ErrorKind::Transport | ErrorKind::Message));
                    told.fetch_add(1, SeqCst);
                });
                assert_eq!(told.load(SeqCst), all);
            }
        }
    }
}

/// What is done to a bundle on its way.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Shorten(usize),
    Flip(usize),
}

thread_local! {
    /// What this rank, which is a thread, does to its bundles.
    static DAMAGE: Cell<Option<Damage>> = const { Cell::new(None) };
}

/// A communicator whose messages are damaged when they leave.
struct Liar(ThreadComm);

struct LyingFlight(Box<dyn Flight>);

impl Flight for LyingFlight {
    fn reserve(&mut self, sends: &[usize], recvs: &[usize]) -> Result<(), Error> {
        self.0.reserve(sends, recvs)
    }
    fn slot(&mut self, bytes: usize) -> Result<Slot, Error> {
        self.0.slot(bytes)
    }
    fn wait_until_in_flight(&mut self, most: usize) -> Result<bool, Error> {
        self.0.wait_until_in_flight(most)
    }
    fn post_recv(&mut self, from: usize, bytes: usize) -> Result<(), Error> {
        self.0.post_recv(from, bytes)
    }
    fn send(&mut self, to: usize, bound: usize, mut message: Slot) -> Result<(), Error> {
        match DAMAGE.get() {
            Some(Damage::Shorten(by)) => message.set_len(message.len().saturating_sub(by)),
            Some(Damage::Flip(bit)) => message.bytes_mut()[bit / 8] ^= 1 << (bit % 8),
            None => {}
        }
        self.0.send(to, bound, message)
    }
    fn test_any(&mut self) -> Result<Option<Arrival>, Error> {
        self.0.test_any()
    }
    fn wait_any(&mut self) -> Result<Option<Arrival>, Error> {
        self.0.wait_any()
    }
    fn recycle(&mut self, read: Arrival) {
        self.0.recycle(read);
    }
    fn wait_all(&mut self) -> Result<(), Error> {
        self.0.wait_all()
    }
    fn memory(&self) -> usize {
        self.0.memory()
    }
}

impl Comm for Liar {
    fn rank(&self) -> usize {
        self.0.rank()
    }
    fn size(&self) -> usize {
        self.0.size()
    }
    fn name(&self) -> &'static str {
        "liar"
    }
    fn barrier(&self) -> Result<(), Error> {
        self.0.barrier()
    }
    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error> {
        self.0.allgather(mine, all)
    }
    fn allreduce(&self, how: Reduce, values: &mut [f64]) -> Result<(), Error> {
        self.0.allreduce(how, values)
    }
    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<(), Error> {
        self.0.alltoallv(send, recv)
    }
    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<(), Error> {
        self.0.reserve_alltoallv(send, recv)
    }
    fn flight(&self) -> Result<Box<dyn Flight>, Error> {
        Ok(Box::new(LyingFlight(self.0.flight()?)))
    }
    fn dup(&self) -> Result<Box<dyn Comm>, Error> {
        self.0.dup()
    }
}

#[test]
fn a_bundle_that_lies_is_an_error_and_all_ranks_go_on() {
    let shorter = [1, 15, 16, 17, 40, 1000].map(Damage::Shorten);
    // The header of the first message: origin, destination, the lowest and the highest bits of the
    // length.
    let flipped = [0, 7, 31, 32, 40, 63, 71, 72, 100, 126, 127].map(Damage::Flip);
    for (ranks, k) in [(2, 2), (4, 2), (5, 3), (8, 2), (6, 255)] {
        for damage in shorter.into_iter().chain(flipped) {
            let complaints = AtomicUsize::new(0);
            threads(ranks, |comm| {
                let (rank, what) = (comm.rank(), format!("{damage:?}, {ranks} ranks, k = {k}"));
                let liar = Liar(comm);
                let mut exchange = reserved(&liar, k).unwrap();
                let message_plan = message_plan(rank, ranks, 0);
                DAMAGE.set((rank == 1).then_some(damage));
                let (result, wrong) = run(exchange.as_mut(), rank, &message_plan, 0);
                match result {
                    Ok(()) => assert_eq!(wrong, [], "{what}: rank {rank} noticed nothing"),
                    Err(Error::Header { rank: here, from, .. }) => {
                        assert_eq!((here, from), (rank, 1), "{what}");
                        complaints.fetch_add(1, SeqCst);
                    }
                    // What it knows to be lost, from who noticed.
                    Err(Error::Message { rank: here, from, found: 0, .. }) => {
                        assert_eq!(here, rank, "{what}");
                        assert!(wrong.contains(&from), "{what}");
                    }
                    Err(other) => panic!("{what}: {other}"),
                }
                DAMAGE.set(None);
                let (result, wrong) = run(exchange.as_mut(), rank, &message_plan, 1);
                assert_eq!((result, wrong), (Ok(()), vec![]), "{what}: the next exchange");
            });
            assert!(complaints.load(SeqCst) > 0, "{damage:?}, {ranks} ranks: nobody noticed");
        }
    }
}
