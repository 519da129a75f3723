//! The k-way exchange over threads: messages of any size between any ranks, ranks that leave,
//! bundles that lie.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use fft_comm::{exchanger, threads};
use fft_core::{Comm, Error, ErrorKind, Exchange, Exchanger, MessagePlan, MessageSpec};

use super::desk::{Desk, RESHAPES, message_plan, run};
use super::liar::{DAMAGE, Damage, Liar};

const RANKS: [usize; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12];
const KS: [u8; 4] = [2, 3, 4, 255];

/// An exchange that all reshapes are reserved for.
fn reserved(comm: &dyn Comm, k: u8) -> Result<Box<dyn Exchanger>, Error> {
    let mut exchanger = exchanger(Exchange::KWay(k), comm)?;
    for reshape in 0..RESHAPES {
        exchanger.reserve(&message_plan(comm.rank(), comm.size(), reshape))?;
    }
    Ok(exchanger)
}

#[test]
fn every_message_arrives_whole() {
    for (ranks, k) in RANKS.into_iter().flat_map(|ranks| KS.map(|k| (ranks, k))) {
        threads(ranks, |comm| {
            let rank = comm.rank();
            let mut exchanger = reserved(&comm, k).unwrap();
            let held = exchanger.memory();
            for round in 0..20 {
                let message_plan =
                    message_plan(rank, ranks, (round * round + k as usize) % RESHAPES);
                let (result, wrong) = run(exchanger.as_mut(), rank, &message_plan, round);
                assert_eq!((result, wrong), (Ok(()), vec![]), "rank {rank} of {ranks}, k = {k}");
            }
            assert_eq!(exchanger.memory(), held, "the exchange was reserved for all of them");
        });
    }
}

#[test]
fn a_direct_exchange_forwards_headers_only() {
    threads(6, |comm| {
        let message_plan = message_plan(comm.rank(), 6, 0);
        for k in [6, 2] {
            let mut exchanger = reserved(&comm, k).unwrap();
            run(exchanger.as_mut(), comm.rank(), &message_plan, 0).0.unwrap();
            // At most 31 bytes for each: a header, and up to a multiple of its size.
            assert_eq!(exchanger.forwarded() > 31 * 5, k == 2, "{} bytes", exchanger.forwarded());
        }
    });
}

#[test]
fn two_reshapes_that_look_alike_to_a_rank_are_told_apart() {
    // Ranks 0 to 3 at distances 0, 1, 2, 3: with k = 2 the message from 0 to 3 goes through 1, who
    // in both reshapes has nothing of its own.
    threads(4, |comm| {
        let rank = comm.rank();
        let mut exchanger = exchanger(Exchange::KWay(2), &comm).unwrap();
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
        reshapes.iter().for_each(|message_plan| exchanger.reserve(message_plan).unwrap());
        for round in 0..9 {
            let (result, wrong) = run(exchanger.as_mut(), rank, &reshapes[round % 3], round);
            assert_eq!((result, wrong), (Ok(()), vec![]));
        }
    });
}

#[test]
fn what_cannot_be_is_an_error() {
    threads(3, |comm| {
        for k in [0, 1] {
            let error = exchanger(Exchange::KWay(k), &comm).map(drop).unwrap_err();
            assert!(error.to_string().contains(&format!("kway{k}")), "{error}");
        }
        let mut exchanger = exchanger(Exchange::KWay(2), &comm).unwrap();
        let message_plan = message_plan(comm.rank(), 3, 0);
        let mut desk = Desk {
            rank: 0,
            round: 0,
            message_plan: &message_plan,
            packed: 0,
            owned: 0,
            came: vec![None; 2],
        };
        let error = exchanger.run(&message_plan, &mut desk).unwrap_err();
        assert!(error.to_string().contains("reserved"), "{error}");
        // Rank 0 expects a message that rank 1 does not send.
        let mut odd = message_plan.clone();
        if comm.rank() == 1 {
            odd.sends.retain(|spec| spec.peer != 0);
        }
        let result = exchanger.reserve(&odd);
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
                    let mut exchanger = reserved(&comm, k).unwrap();
                    run(exchanger.as_mut(), rank, &message_plan, 0).0.unwrap();
                    if rank == gone {
                        return;
                    }
                    let (result, wrong) = run(exchanger.as_mut(), rank, &message_plan, 1);
                    assert!(wrong.contains(&gone), "rank {rank} of {ranks}, k = {k}");
                    // A neighbour notices; the others learn from the neighbour which messages are
                    // lost.
                    let kind = result.map_err(|error| error.kind()).unwrap_err();
                    assert!(matches!(kind, ErrorKind::Transport | ErrorKind::Message));
                    told.fetch_add(1, SeqCst);
                });
                assert_eq!(told.load(SeqCst), all);
            }
        }
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
                let mut exchanger = reserved(&liar, k).unwrap();
                let message_plan = message_plan(rank, ranks, 0);
                DAMAGE.set((rank == 1).then_some(damage));
                let (result, wrong) = run(exchanger.as_mut(), rank, &message_plan, 0);
                match result {
                    Ok(()) => assert_eq!(wrong, [], "{what}: rank {rank} noticed nothing"),
                    Err(Error::Header { rank: here, from, .. }) => {
                        assert_eq!((here, from), (rank, 1), "{what}");
                        complaints.fetch_add(1, SeqCst);
                    }
                    // The messages that are lost, as reported by the rank that noticed.
                    Err(Error::Message { rank: here, from, found: 0, .. }) => {
                        assert_eq!(here, rank, "{what}");
                        assert!(wrong.contains(&from), "{what}");
                    }
                    Err(other) => panic!("{what}: {other}"),
                }
                DAMAGE.set(None);
                let (result, wrong) = run(exchanger.as_mut(), rank, &message_plan, 1);
                assert_eq!((result, wrong), (Ok(()), vec![]), "{what}: the next exchange");
            });
            assert!(complaints.load(SeqCst) > 0, "{damage:?}, {ranks} ranks: nobody noticed");
        }
    }
}
