//! The exchange of hosts over threads: messages of any size between any ranks, in chunks, hosts
//! with any number of ranks, ranks that leave, bundles that are cut off.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use fft_comm::{exchanger, threads_on};
use fft_core::{Comm, Error, Exchange, Exchanger, MessagePlan, MessageSpec};

use crate::tiling::Rng;

use super::desk::{RESHAPES, message_plan, run};
use super::liar::{DAMAGE, Damage, Liar};

const HOSTS: [&[usize]; 9] = [
    &[0, 0],
    &[0, 0, 0],
    &[0, 0, 1],
    &[0, 1, 0, 1],
    &[0, 0, 0, 1, 1],
    &[0, 1, 1, 2, 2, 2],
    &[0, 0, 1, 1, 2, 2, 3, 3],
    &[2, 1, 0, 2, 1, 0, 2],
    &[0, 0, 0, 0, 1, 2, 3],
];

/// The messages of a reshape and of the next one, as two chunks.
fn in_chunks(rank: usize, ranks: usize, reshape: usize) -> MessagePlan {
    let next = message_plan(rank, ranks, (reshape + 1) % RESHAPES);
    let mut all = message_plan(rank, ranks, reshape);
    let later = |spec: &MessageSpec| MessageSpec { chunk: 1, ..*spec };
    all.sends.extend(next.sends.iter().map(later));
    all.recvs.extend(next.recvs.iter().map(later));
    MessagePlan { chunks: 2, shorter: true, ..all }
}

/// An exchange that all reshapes are reserved for.
fn reserved(comm: &dyn Comm) -> Result<Box<dyn Exchanger>, Error> {
    let mut exchanger = exchanger(Exchange::Hosts, comm)?;
    for reshape in 0..RESHAPES {
        exchanger.reserve(&in_chunks(comm.rank(), comm.size(), reshape))?;
    }
    Ok(exchanger)
}

#[test]
fn every_message_arrives_whole() {
    for hosts in HOSTS {
        let ranks = hosts.len();
        threads_on(hosts, |comm| {
            let rank = comm.rank();
            let mut exchanger = reserved(&comm).unwrap();
            assert_eq!(exchanger.exchange(), Exchange::Hosts);
            let held = exchanger.memory();
            for round in 0..40 {
                let message_plan = in_chunks(rank, ranks, (round * round) % RESHAPES);
                let (result, wrong) = run(exchanger.as_mut(), rank, &message_plan, round);
                assert_eq!((result, wrong), (Ok(()), vec![]), "rank {rank} of {hosts:?}");
            }
            assert_eq!(exchanger.memory(), held, "the exchange was reserved for all of them");
        });
    }
}

/// Cases of random hosts and messages.
const CASES: u64 = 200;

/// Some messages of up to three chunks between some ranks, of any size, as this rank sees them.
fn random(rank: usize, ranks: usize, seed: u64) -> MessagePlan {
    let chunks = 1 + Rng(seed).below(3);
    let spec = |from: usize, to: usize, chunk: usize, peer: usize| {
        let mut rng = Rng(seed ^ ((from * ranks + to) * 3 + chunk) as u64);
        let (is_there, most) = (from != to && rng.below(3) > 0, [1, 40, 700][rng.below(3)]);
        is_there.then(|| MessageSpec { peer, bytes: rng.below(most), chunk })
    };
    let all = || (0..chunks).flat_map(|chunk| (0..ranks).map(move |peer| (chunk, peer)));
    MessagePlan {
        chunks,
        shorter: true,
        buffers_all: true,
        sends: all().filter_map(|(chunk, to)| spec(rank, to, chunk, to)).collect(),
        recvs: all().filter_map(|(chunk, from)| spec(from, rank, chunk, from)).collect(),
        ..MessagePlan::default()
    }
}

#[test]
fn any_messages_between_any_hosts_arrive() {
    for seed in 0..CASES {
        let mut rng = Rng(seed);
        let (ranks, count) = (1 + rng.below(7), 1 + rng.below(4));
        let hosts: Vec<_> = (0..ranks).map(|_| rng.below(count)).collect();
        threads_on(&hosts, |comm| {
            let rank = comm.rank();
            let message_plan = random(rank, ranks, seed);
            let mut exchanger = exchanger(Exchange::Hosts, &comm).unwrap();
            exchanger.reserve(&message_plan).unwrap();
            for round in 0..3 {
                let (result, wrong) = run(exchanger.as_mut(), rank, &message_plan, round);
                assert_eq!(
                    (result, wrong),
                    (Ok(()), vec![]),
                    "case {seed}, rank {rank}, {hosts:?}"
                );
            }
        });
    }
}

#[test]
fn one_rank_on_each_host_sends_by_itself() {
    threads_on(&[0, 1, 2], |comm| {
        let exchanger = exchanger(Exchange::Hosts, &comm).unwrap();
        assert_eq!(exchanger.exchange(), Exchange::Pipelined);
    });
}

#[test]
fn what_was_not_reserved_is_an_error() {
    threads_on(&[0, 0, 1], |comm| {
        let mut exchanger = exchanger(Exchange::Hosts, &comm).unwrap();
        let message_plan = MessagePlan { reshape: 7, ..MessagePlan::default() };
        let (rank, came) = (comm.rank(), Vec::new());
        let desk = super::desk::Desk {
            rank,
            round: 0,
            message_plan: &message_plan,
            packed: 0,
            owned: 0,
            came,
        };
        let error = exchanger.run(&message_plan, &mut { desk }).unwrap_err();
        assert!(error.to_string().contains("reserved"), "{error}");
    });
}

#[test]
fn a_rank_that_leaves_is_an_error_where_its_messages_are_missed() {
    for hosts in HOSTS {
        for gone in [0, hosts.len() - 1] {
            let (ranks, told) = (hosts.len(), AtomicUsize::new(0));
            threads_on(hosts, |comm| {
                let rank = comm.rank();
                let message_plan = in_chunks(rank, ranks, 0);
                let mut exchanger = reserved(&comm).unwrap();
                run(exchanger.as_mut(), rank, &message_plan, 0).0.unwrap();
                if rank == gone {
                    return;
                }
                let (result, wrong) = run(exchanger.as_mut(), rank, &message_plan, 1);
                assert!(wrong.contains(&gone), "rank {rank} of {hosts:?}");
                let error = result.unwrap_err();
                let is_lost = matches!(error, Error::Left { .. } | Error::Message { found: 0, .. });
                assert!(is_lost, "{error}");
                told.fetch_add(1, SeqCst);
            });
            assert_eq!(told.load(SeqCst), ranks - 1);
        }
    }
}

#[test]
fn a_bundle_that_is_cut_off_is_an_error_and_all_ranks_go_on() {
    for hosts in [&[0, 0, 1, 1][..], &[0, 0, 1], &[0, 1, 1, 2, 2, 2]] {
        for by in [1, 15, 16, 40, 10_000] {
            let (ranks, complaints) = (hosts.len(), AtomicUsize::new(0));
            threads_on(hosts, |comm| {
                let (rank, liar) = (comm.rank(), Liar(comm));
                let mut exchanger = reserved(&liar).unwrap();
                let message_plan = in_chunks(rank, ranks, 0);
                DAMAGE.set((hosts[rank] == 0).then_some(Damage::Shorten(by)));
                let (result, wrong) = run(exchanger.as_mut(), rank, &message_plan, 0);
                match result {
                    Ok(()) => assert_eq!(wrong, [], "{hosts:?}: rank {rank} noticed nothing"),
                    Err(
                        Error::Header { rank: here, from, .. }
                        | Error::Message { rank: here, from, found: 0, .. },
                    ) => {
                        assert_eq!((here, hosts[from]), (rank, 0), "{hosts:?}");
                        complaints.fetch_add(1, SeqCst);
                    }
                    Err(other) => panic!("{hosts:?}: {other}"),
                }
                DAMAGE.set(None);
                let (result, wrong) = run(exchanger.as_mut(), rank, &message_plan, 1);
                assert_eq!((result, wrong), (Ok(()), vec![]), "{hosts:?}: the next exchange");
            });
            // At the end there may be as many bytes that no message has.
            let noticed = complaints.load(SeqCst) > 0 || by < 16;
            assert!(noticed, "{hosts:?}, {by} bytes: nobody noticed");
        }
    }
}
