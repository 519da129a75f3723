//! Ranks in each other's memory.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fft_comm::{ThreadComm, threads};
use fft_core::{Comm, Error, Expose, NodeMemory, SharesMemory};

fn node_memory(comm: &ThreadComm) -> Box<dyn NodeMemory> {
    comm.node_memory().expect("threads share memory").expect("there are several")
}

/// What a rank shows in a round: as many numbers as it has, none on rank 0 in every third round.
fn shown(rank: usize, round: usize) -> Vec<u8> {
    let len = if rank == 0 && round.is_multiple_of(3) { 0 } else { 10 + 7 * rank };
    (0..len).map(|i| (i + 31 * rank + 5 * round) as u8).collect()
}

#[test]
fn everyone_sees_what_everyone_shows_round_after_round() {
    for ranks in [2, 3, 4, 6] {
        threads(ranks, |comm| {
            let mut node_memory = node_memory(&comm);
            for round in 0..200 {
                let mine = shown(comm.rank(), round);
                let mut seen = 0;
                node_memory
                    .exposure_epoch(Expose::Read(&mine), &mut |peers| {
                        for peer in 0..ranks {
                            assert_eq!(peers.shown(peer), shown(peer, round), "{peer}");
                            seen += 1;
                        }
                        Ok(())
                    })
                    .expect("all are there");
                assert_eq!(seen, ranks);
            }
        });
    }
}

#[test]
fn one_rank_has_nobody_to_show_anything() {
    threads(1, |comm| assert!(comm.node_memory().expect("no failure").is_none()));
}

#[test]
fn what_the_work_returns_is_passed_on_after_all_have_left() {
    threads(3, |comm| {
        let mut node_memory = node_memory(&comm);
        let failure = Error::argument("test", comm.rank(), "none");
        let result = node_memory.exposure_epoch(Expose::Read(&[]), &mut |_| match comm.rank() {
            1 => Err(failure.clone()),
            _ => Ok(()),
        });
        assert_eq!(result.is_err(), comm.rank() == 1, "{result:?}");
        node_memory
            .exposure_epoch(Expose::Read(&[]), &mut |_| Ok(()))
            .expect("the next visit is well");
    });
}

#[test]
fn who_waits_for_a_rank_that_has_left_is_told_so() {
    for ranks in [2, 3, 4] {
        for leaver in [0, ranks - 1] {
            threads(ranks, |comm| {
                let mut node_memory = node_memory(&comm);
                node_memory
                    .exposure_epoch(Expose::Read(&[]), &mut |_| Ok(()))
                    .expect("all are there");
                if comm.rank() == leaver {
                    return;
                }
                for _ in 0..2 {
                    let mut worked = false;
                    let result = node_memory.exposure_epoch(Expose::Read(&[1]), &mut |_| {
                        worked = true;
                        Ok(())
                    });
                    assert_eq!(result, Err(Error::Left { gone: leaver }));
                    assert!(!worked, "nobody starts unless all do");
                }
            });
        }
    }
}

#[test]
fn a_panic_in_a_visit_ends_it_for_nobody_else() {
    threads(3, |comm| {
        let mut node_memory = node_memory(&comm);
        let mine = vec![comm.rank() as u8; 1000];
        let visit = catch_unwind(AssertUnwindSafe(|| {
            node_memory.exposure_epoch(Expose::Read(&mine), &mut |peers| {
                assert!(comm.rank() != 1, "a panic on purpose");
                // The one that panicked lends its memory until all are done.
                assert_eq!(peers.shown(1), [1; 1000]);
                Ok(())
            })
        }));
        assert_eq!(visit.is_err(), comm.rank() == 1);
    });
}
