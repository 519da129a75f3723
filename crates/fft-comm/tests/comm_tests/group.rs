//! The communicator of a group whose processes are one: its ranks are threads.

use fft_comm::group::{GroupComm, GroupError, ProcessGroup};
use fft_comm::{ThreadComm, threads};
use fft_core::{Comm, Error, Parts, Reduce, SLOT_ALIGN, Slot};

/// The collectives of threads.
struct OfThreads {
    comm: ThreadComm,
    host: String,
}

impl ProcessGroup for OfThreads {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), GroupError> {
        Ok(self.comm.allgather(mine, all)?)
    }

    fn alltoallv(
        &self,
        send: Parts<'_, &[u8]>,
        recv: Parts<'_, &mut [u8]>,
    ) -> Result<(), GroupError> {
        Ok(self.comm.alltoallv(send, recv)?)
    }

    fn host(&self) -> String {
        self.host.clone()
    }
}

/// Runs a check on a group of one host.
pub(crate) fn on_one_host(ranks: usize, check: impl Fn(&GroupComm) -> Result<(), Error> + Sync) {
    let found =
        threads(ranks, |comm| check(&GroupComm::new(OfThreads { comm, host: "one".into() })?));
    found.into_iter().for_each(|result| result.expect("the group works"));
}

/// Runs a check on groups of one host, and of two.
fn on_groups(ranks: usize, check: impl Fn(&GroupComm) -> Result<(), Error> + Sync) {
    for hosts in [1, 2] {
        let found = threads(ranks, |comm| {
            let host = format!("host {}", comm.rank() % hosts);
            check(&GroupComm::new(OfThreads { comm, host })?)
        });
        found.into_iter().for_each(|result| result.expect("the group works"));
    }
}

#[test]
fn all_gather_what_each_has_however_long() {
    for ranks in [1, 2, 3, 5] {
        on_groups(ranks, |comm| {
            for len in [0, 1, 7, 8191, 8192, 8193, 50_000] {
                let of = |rank: usize| (0..len).map(move |i| (i * 7 + rank) as u8);
                let mine: Vec<u8> = of(comm.rank()).collect();
                let mut all = vec![0; len * ranks];
                comm.allgather(&mine, &mut all)?;
                assert!(all.iter().copied().eq((0..ranks).flat_map(of)), "{len} bytes");
            }
            comm.barrier()
        });
    }
}

#[test]
fn reductions_are_in_the_order_of_ranks() {
    for ranks in [1, 2, 3, 5] {
        on_groups(ranks, |comm| {
            let of = |rank: usize, i: usize| 0.1 * (rank + 1) as f64 - i as f64;
            for len in [0, 1, 1023, 1024, 1025, 5000] {
                for how in [Reduce::Min, Reduce::Max, Reduce::Sum] {
                    let mut values: Vec<f64> = (0..len).map(|i| of(comm.rank(), i)).collect();
                    comm.allreduce(how, &mut values)?;
                    for (i, value) in values.iter().enumerate() {
                        let expected = match how {
                            Reduce::Min => of(0, i),
                            Reduce::Max => of(ranks - 1, i),
                            Reduce::Sum => (0..ranks).map(|rank| of(rank, i)).sum(),
                        };
                        assert_eq!(*value, expected, "{how:?} of {len}");
                    }
                }
            }
            Ok(())
        });
    }
}

/// Bytes of the message from one rank to another: none, less than a ring has, and more.
fn bytes(from: usize, to: usize) -> usize {
    [0, 1000, 300_000][(from + 2 * to) % 3] + from
}

fn contents(from: usize, to: usize) -> impl Iterator<Item = u8> {
    (0..bytes(from, to)).map(move |i| (i * 13 + from * 5 + to) as u8)
}

#[test]
fn messages_arrive_whole_and_in_order() {
    for ranks in [2, 3, 5] {
        let found = threads(ranks, |comm| {
            let comm = GroupComm::new(OfThreads { comm, host: "one".into() })?;
            let (rank, mut flight) = (comm.rank(), comm.flight(None)?);
            let others: Vec<usize> = (0..ranks).filter(|other| *other != rank).collect();
            for turn in 0..3 {
                // A byte of room is left over.
                for _ in 0..2 {
                    for &from in &others {
                        flight.post_recv(from, bytes(from, rank) + 1)?;
                    }
                }
                for _ in 0..2 {
                    for &to in &others {
                        let mut slot = flight.slot(bytes(rank, to))?;
                        slot.bytes_mut()
                            .iter_mut()
                            .zip(contents(rank, to))
                            .for_each(|(b, c)| *b = c);
                        flight.send(to, bytes(rank, to) + 1, slot)?;
                    }
                }
                let mut arrived = vec![false; 2 * others.len()];
                while let Some(arrival) = flight.wait_any()? {
                    let from = others[arrival.number % others.len()];
                    let found = arrival.message.bytes().iter().copied();
                    assert!(found.eq(contents(from, rank)), "turn {turn}: {from} to {rank}");
                    assert!(!std::mem::replace(&mut arrived[arrival.number], true));
                    flight.recycle(arrival);
                }
                assert!(arrived.iter().all(|arrived| *arrived));
                flight.wait_all()?;
            }
            Ok::<_, Error>(())
        });
        found.into_iter().for_each(|result| result.expect("messages arrive"));
    }
}

#[test]
fn a_message_that_is_too_long_is_an_error_of_its_receiver_alone() {
    let found = threads(2, |comm| {
        let comm = GroupComm::new(OfThreads { comm, host: "one".into() })?;
        let mut flight = comm.flight(None)?;
        for len in [1, 2_000_000, 1] {
            if comm.rank() == 0 {
                let slot = flight.slot(len)?;
                flight.send(1, 1, slot)?;
                flight.wait_all()?;
            } else {
                flight.post_recv(0, 1)?;
                let found = flight.wait_any()?.expect("one was posted").message.len();
                let too_long = Error::Message { rank: 1, from: 0, found: len, expected: 1 };
                assert_eq!(found, if len == 1 { 1 } else { 0 });
                assert_eq!(flight.wait_all(), if len == 1 { Ok(()) } else { Err(too_long) });
            }
        }
        Ok::<_, Error>(())
    });
    found.into_iter().for_each(|result| result.expect("the group works"));
}

#[test]
fn a_rank_that_leaves_is_an_error_of_all_others_again_and_again() {
    let found = threads(4, |comm| {
        let comm = GroupComm::new(OfThreads { comm, host: "one".into() })?;
        let rank = comm.rank();
        let mut flight = comm.flight(None)?;
        let other = comm.dup()?;
        if rank == 2 {
            return Ok(());
        }
        let left = Error::Left { gone: 2 };
        flight.post_recv(2, 8)?;
        assert!(flight.wait_any()?.expect("one was posted").message.is_empty());
        assert_eq!(flight.wait_all(), Err(left.clone()));
        for _ in 0..2 {
            assert_eq!(comm.barrier(), Err(left.clone()));
            assert_eq!(comm.allreduce(Reduce::Sum, &mut [1.0]), Err(left.clone()));
            assert_eq!(other.dup().map(drop), Err(left.clone()));
            assert_eq!(other.node_memory().map(drop), Err(left.clone()));
        }
        Ok::<_, Error>(())
    });
    found.into_iter().for_each(|result| result.expect("the others notice"));
}

#[test]
fn different_lengths_are_an_error_and_leave_the_group_in_order() {
    let found = threads(2, |comm| {
        let comm = GroupComm::new(OfThreads { comm, host: "one".into() })?;
        let len = 1 + comm.rank();
        let error = comm.allgather(&vec![0; len], &mut vec![0; 2 * len]).unwrap_err();
        assert!(matches!(error, Error::Message { .. }), "{error}");
        comm.barrier()
    });
    found.into_iter().for_each(|result| result.expect("the group works"));
}

/// A group whose call of `allgather` fails on one rank, and is not called again.
#[test]
fn what_fails_in_the_group_fails_in_every_later_call() {
    struct Failing(std::cell::Cell<usize>);

    impl ProcessGroup for Failing {
        fn rank(&self) -> usize {
            0
        }

        fn size(&self) -> usize {
            2
        }

        fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), GroupError> {
            let calls = self.0.replace(self.0.get() + 1);
            if calls == FAILS {
                return Err("refused".into());
            }
            assert!(calls < FAILS, "it is not called again");
            // The other rank says the same, as rank 1 and from another host.
            let (first, second) = all.split_at_mut(mine.len());
            first.copy_from_slice(mine);
            second.copy_from_slice(mine);
            if calls == 0 {
                second[0] ^= 1;
                second[size_of::<u64>()] ^= 1;
            }
            Ok(())
        }

        fn alltoallv(
            &self,
            _: Parts<'_, &[u8]>,
            _: Parts<'_, &mut [u8]>,
        ) -> Result<(), GroupError> {
            panic!("it is not called")
        }
    }

    /// Ranks and hosts, whether they are in order, the memory of each in two steps, whether it is
    /// shared, and a barrier.
    const FAILS: usize = 6;
    let comm = GroupComm::new(Failing(std::cell::Cell::new(0))).expect("a group of two hosts");
    comm.barrier().expect("one more call succeeds");
    let text = "refused".to_string();
    let failed = Error::Transport { rank: 0, call: "allgather", text };
    assert_eq!(comm.barrier(), Err(failed.clone()));
    let (send, mut recv) = (Slot::new(SLOT_ALIGN, 0).unwrap(), Slot::new(SLOT_ALIGN, 0).unwrap());
    let parts = [(0, 0), (0, 0)];
    let send = Parts { bytes: send.bytes(), parts: &parts };
    let recv = Parts { bytes: recv.bytes_mut(), parts: &parts };
    assert_eq!(comm.alltoallv(send, recv), Err(failed));
}
