//! Threads as ranks: what collectives and messages mean, many times over, so that races show.

use fft_comm::{ThreadComm, threads};
use fft_core::{Comm, Error, ErrorKind, Flight, Link, Parts, Reduce, SLOT_ALIGN, assert_same};

const RANKS: [usize; 5] = [1, 2, 3, 4, 6];

/// Rounds of every check: each is a chance for ranks to come in another order.
const ROUNDS: usize = 200;

fn on_all_ranks(body: impl Fn(&ThreadComm) -> Result<(), Error> + Sync) {
    for ranks in RANKS {
        for result in threads(ranks, |comm| body(&comm)) {
            result.unwrap_or_else(|error| panic!("{ranks} ranks: {error}"));
        }
    }
}

/// A number that only this round, sender and receiver have.
fn stamp(round: usize, from: usize, to: usize) -> u8 {
    (round * 31 + from * 7 + to * 3 + 1) as u8
}

#[test]
fn ranks_are_numbered() {
    for ranks in RANKS {
        let found = threads(ranks, |comm| {
            assert_eq!(
                (comm.size(), comm.name(), comm.link(comm.rank())),
                (ranks, "threads", Link::Own)
            );
            comm.rank()
        });
        assert_eq!(found, (0..ranks).collect::<Vec<_>>());
    }
}

#[test]
fn allgather_is_in_order_of_ranks() {
    on_all_ranks(|comm| {
        for round in 0..ROUNDS {
            let bytes = round % 5;
            let mut all = vec![0; bytes * comm.size()];
            comm.allgather(&vec![stamp(round, comm.rank(), 0); bytes], &mut all)?;
            let expected: Vec<u8> =
                (0..comm.size()).flat_map(|rank| vec![stamp(round, rank, 0); bytes]).collect();
            assert_eq!(all, expected);
        }
        Ok(())
    });
}

#[test]
fn the_first_value_of_the_lowest_rank_that_differs_is_named() {
    let values = |rank: usize| {
        let [grid, kinds] = [["4x4", "c2c"], ["4x4", "r2c"], ["8x8", "dct2"]][rank.min(2)];
        [("grid", grid.to_owned()), ("kinds", kinds.to_owned())]
    };
    on_all_ranks(|comm| {
        assert_same(comm, &values(1))?;
        assert_same(comm, &[])?;
        let Err(error) = assert_same(comm, &values(comm.rank())) else {
            assert_eq!(comm.size(), 1);
            return Ok(());
        };
        let text = "the ranks disagree on the kinds: rank 0 has c2c, rank 1 has r2c";
        assert_eq!(error.to_string(), text);
        Ok(())
    });
}

#[test]
fn allreduce_gives_every_rank_the_same() {
    on_all_ranks(|comm| {
        let (rank, size) = (comm.rank() as f64, comm.size() as f64);
        for round in 0..ROUNDS {
            // More values than travel at once, so that pieces are joined.
            let n = [1, 3, 32, 33, 100][round % 5];
            let mine: Vec<f64> = (0..n).map(|i| rank + (i * round) as f64).collect();
            for (how, of_rank) in [
                (Reduce::Min, 0.0),
                (Reduce::Max, size - 1.0),
                // The mean of 0, 1, ..., size - 1; times size below.
                (Reduce::Sum, (size - 1.0) / 2.0),
            ] {
                let mut values = mine.clone();
                comm.allreduce(how, &mut values)?;
                let times = if how == Reduce::Sum { size } else { 1.0 };
                for (i, value) in values.iter().enumerate() {
                    assert_eq!(*value, times * (of_rank + (i * round) as f64), "{how:?}");
                }
            }
        }
        Ok(())
    });
}

#[test]
fn sums_are_bitwise_equal_on_all_ranks() {
    on_all_ranks(|comm| {
        for round in 0..ROUNDS {
            let mut value = [0.1 * (comm.rank() + round) as f64];
            comm.allreduce(Reduce::Sum, &mut value)?;
            let mut all = vec![0; 8 * comm.size()];
            comm.allgather(&value[0].to_ne_bytes(), &mut all)?;
            assert!(all.chunks(8).all(|bits| bits == value[0].to_ne_bytes()));
        }
        Ok(())
    });
}

#[test]
fn nobody_passes_a_barrier_before_all_have_come() {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    for ranks in RANKS {
        let came = AtomicUsize::new(0);
        threads(ranks, |comm| {
            for round in 1..=ROUNDS {
                came.fetch_add(1, SeqCst);
                comm.barrier().unwrap();
                assert!(came.load(SeqCst) >= round * ranks, "round {round}");
                comm.barrier().unwrap();
            }
        });
    }
}

/// Bytes that go from one rank to another: none at all for some pairs, unequal for others.
fn bytes(round: usize, from: usize, to: usize) -> usize {
    (round * 13 + from * 5 + to * 11) % 7 * 40
}

/// Parts of these lengths, one after the other.
fn parts(lens: impl Iterator<Item = usize>) -> (Vec<(usize, usize)>, usize) {
    let mut end = 0;
    let place = |bytes: usize| {
        let first = end;
        end += bytes.next_multiple_of(SLOT_ALIGN);
        (first, bytes)
    };
    let parts = lens.map(place).collect();
    (parts, end)
}

#[test]
fn alltoallv_brings_every_part_to_its_rank() {
    on_all_ranks(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        for round in 0..ROUNDS {
            let (send_parts, send_end) = parts((0..size).map(|to| bytes(round, rank, to)));
            let (recv_parts, recv_end) = parts((0..size).map(|from| bytes(round, from, rank)));
            let (mut send, mut recv) = (vec![0; send_end], vec![0; recv_end]);
            for (to, &(first, n)) in send_parts.iter().enumerate() {
                send[first..first + n].fill(stamp(round, rank, to));
            }
            comm.alltoallv(
                Parts { bytes: &send, parts: &send_parts },
                Parts { bytes: &mut recv, parts: &recv_parts },
            )?;
            for (from, &(first, n)) in recv_parts.iter().enumerate() {
                assert_eq!(recv[first..first + n], vec![stamp(round, from, rank); n]);
            }
        }
        Ok(())
    });
}

#[test]
fn alltoallv_reports_a_part_of_another_length() {
    let found = threads(2, |comm| {
        let (mine, theirs) =
            ([(0, 64), (64, 64)], [(0, 64), (64, if comm.rank() == 0 { 32 } else { 64 })]);
        let mut recv = [0; 128];
        comm.alltoallv(
            Parts { bytes: &[1; 128], parts: &mine },
            Parts { bytes: &mut recv, parts: &theirs },
        )
    });
    assert_eq!(found[0], Err(Error::Message { rank: 0, from: 1, found: 64, expected: 32 }));
    assert_eq!(found[1], Ok(()));
}

#[test]
fn split_orders_by_key_and_then_by_rank() {
    on_all_ranks(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        for round in 0..ROUNDS / 4 {
            let (color, key) = ((rank + round) % 3 * 1000, rank / 2 * (round % 2));
            let part = comm.split(color, key)?;
            let mut members: Vec<_> = (0..size)
                .filter(|r| (r + round) % 3 * 1000 == color)
                .map(|r| (r / 2 * (round % 2), r))
                .collect();
            members.sort_unstable();
            let place = members.iter().position(|(_, r)| *r == rank);
            assert_eq!((Some(part.rank()), part.size()), (place, members.len()));
            let mut all = vec![0; part.size()];
            part.allgather(&[rank as u8], &mut all)?;
            assert_eq!(all, members.iter().map(|(_, r)| *r as u8).collect::<Vec<_>>());
        }
        Ok(())
    });
}

#[test]
fn a_duplicate_is_a_communicator_of_its_own() {
    on_all_ranks(|comm| {
        for round in 0..ROUNDS / 4 {
            let copy = comm.dup()?;
            assert_eq!((copy.rank(), copy.size()), (comm.rank(), comm.size()));
            // Ranks may be in collectives of both at the same time.
            let (mut a, mut b) = ([round as f64], [1.0]);
            comm.allreduce(Reduce::Max, &mut a)?;
            copy.allreduce(Reduce::Sum, &mut b)?;
            assert_eq!((a[0], b[0]), (round as f64, comm.size() as f64));
        }
        Ok(())
    });
}

/// One exchange in which every rank sends two messages to every other.
fn exchange(flight: &mut dyn Flight, rank: usize, size: usize, round: usize) -> Result<(), Error> {
    let peers: Vec<usize> = (1..size).map(|k| (rank + k) % size).collect();
    for &from in &peers {
        for second in 0..2 {
            flight.post_recv(from, 300 + bytes(round + second, from, rank))?;
        }
    }
    for &to in &peers {
        for second in 0..2 {
            let n = bytes(round + second, rank, to);
            let mut slot = flight.slot(300 + n)?;
            slot.set_len(n);
            slot.bytes_mut().fill(stamp(round + second, rank, to));
            flight.send(to, 300 + n, slot)?;
        }
    }
    let mut came = vec![false; 2 * peers.len()];
    while let Some(arrival) = flight.wait_any()? {
        let (from, second) = (peers[arrival.number / 2], arrival.number % 2);
        assert!(!came[arrival.number], "announcement {} answered twice", arrival.number);
        // The first of two messages between a pair arrives first.
        assert!(second == 0 || came[arrival.number - 1], "messages overtook each other");
        came[arrival.number] = true;
        let n = bytes(round + second, from, rank);
        assert_eq!(arrival.message.bytes(), vec![stamp(round + second, from, rank); n]);
        flight.recycle(arrival);
    }
    assert!(came.iter().all(|came| *came));
    flight.wait_all()
}

#[test]
fn a_flight_brings_every_message_once_and_in_order() {
    on_all_ranks(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let (mut a, mut b) = (comm.flight(None)?, comm.flight(None)?);
        for round in 0..ROUNDS {
            exchange(a.as_mut(), rank, size, round)?;
            // Another flight between the same ranks, which may still be in the one before.
            exchange(b.as_mut(), rank, size, round + 1)?;
        }
        Ok(())
    });
}

#[test]
fn a_flight_reuses_its_memory() {
    on_all_ranks(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let mut flight = comm.flight(None)?;
        for round in 0..7 {
            exchange(flight.as_mut(), rank, size, round)?;
        }
        let held = flight.memory();
        assert_eq!(held > 0, size > 1, "slots are made for messages");
        for round in 0..ROUNDS {
            exchange(flight.as_mut(), rank, size, round)?;
        }
        assert_eq!(flight.memory(), held, "the sizes of messages come again every 7 rounds");
        Ok(())
    });
}

#[test]
fn a_message_of_a_rank_that_left_comes_empty_and_the_end_tells() {
    for ranks in [2, 3, 4, 6] {
        let gone = ranks / 2;
        let found = threads(ranks, |comm| {
            let (rank, mut flight) = (comm.rank(), comm.flight(None).unwrap());
            if rank == gone {
                return None;
            }
            let others: Vec<usize> = (0..ranks).filter(|other| *other != rank).collect();
            others.iter().for_each(|&from| flight.post_recv(from, 10).unwrap());
            for &to in &others {
                let slot = flight.slot(10).unwrap();
                flight.send(to, 10, slot).unwrap();
            }
            let mut lens = vec![None; others.len()];
            while let Some(arrival) = flight.wait_any().unwrap() {
                assert_eq!(lens[arrival.number].replace(arrival.message.len()), None);
                flight.recycle(arrival);
            }
            let expected = others.iter().map(|&from| Some(if from == gone { 0 } else { 10 }));
            assert!(lens.into_iter().eq(expected), "rank {rank} of {ranks}");
            let end = flight.wait_all();
            assert_eq!(flight.wait_all(), Ok(()), "it is told once");
            let barrier = comm.barrier();
            // A rank may report another one that it had noticed before.
            assert_eq!(barrier.as_ref().map_err(Error::kind), Err(ErrorKind::Transport));
            Some(end)
        });
        for (rank, answer) in found.into_iter().enumerate() {
            let told = Err(Error::Left { gone });
            assert_eq!(answer, (rank != gone).then_some(told), "{ranks} ranks");
        }
    }
}

#[test]
#[should_panic(expected = "a panic on purpose")]
fn a_panic_comes_out_when_all_ranks_have_ended() {
    threads(3, |comm| {
        assert!(comm.rank() != 1, "a panic on purpose");
        assert!(comm.barrier().is_err());
    });
}

#[test]
#[should_panic(expected = "at least one rank")]
fn no_ranks_are_refused() {
    threads(0, |_| ());
}

#[test]
fn many_more_ranks_than_cores() {
    let sums = threads(64, |comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let half = comm.split(rank % 2, 0).unwrap();
        let mut value = [rank as f64];
        for _ in 0..10 {
            comm.barrier().unwrap();
            let mut sum = [1.0];
            half.allreduce(Reduce::Sum, &mut sum).unwrap();
            assert_eq!(sum, [32.0]);
        }
        let mut flight = comm.flight(None).unwrap();
        for round in 0..3 {
            exchange(flight.as_mut(), rank, size, round).unwrap();
        }
        comm.allreduce(Reduce::Sum, &mut value).unwrap();
        value[0]
    });
    assert_eq!(sums, [2016.0; 64]);
}
