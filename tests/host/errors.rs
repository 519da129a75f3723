//! Errors are collective: a failure on one rank is the same error on all of them, and nobody waits
//! forever for a rank that has left.

use std::sync::{Barrier, Mutex};

use crate::common::faulty::{Fault, Switch};
use crate::common::injected::{self, Setup, Who, bind, bind_with, transform_of_ones};
use crate::common::{HOSTS, failures, unequal};
use crate::watch::within_patience;
use thriffty::planning::{Exchange, Memory};
use thriffty::{C2c, Comm, Error, ErrorKind, Grid, Plan, ThreadComm};

/// Alone, no rank can disagree with another.
const RANKS: [usize; 4] = [2, 3, 4, 6];

fn on_all_ranks(name: &'static str, body: fn(&dyn Comm) -> Result<(), Error>) {
    for ranks in RANKS {
        within_patience(name, move || thriffty::threads(ranks, |comm| body(&comm)))
            .unwrap_or_else(|error| panic!("{name}, {ranks} ranks: {error}"));
    }
}

/// On one host, and on several.
fn on_all_hosts(name: &'static str, body: fn(&dyn Comm) -> Result<(), Error>) {
    on_all_ranks(name, body);
    for hosts in HOSTS {
        for found in within_patience(name, move || fft_comm::threads_on(hosts, |comm| body(&comm)))
        {
            found.unwrap_or_else(|error| panic!("{name}, hosts {hosts:?}: {error}"));
        }
    }
}

#[test]
fn bad_bricks() {
    on_all_ranks("bad bricks", failures::bricks);
}

#[test]
fn wrong_lengths() {
    on_all_ranks("wrong lengths", failures::lengths);
}

#[test]
fn different_options() {
    on_all_ranks("different options", failures::options);
}

#[test]
fn nonsense() {
    on_all_ranks("nonsense", failures::nonsense);
}

type Answer = Result<(), Error>;

/// The result of every rank, `None` if it panicked.
fn answers(
    name: &'static str,
    ranks: usize,
    body: impl Fn(ThreadComm) -> Answer + Send + Sync + 'static,
) -> Vec<Option<Answer>> {
    answers_on(name, &[0; 6][..ranks], body)
}

/// The same on these hosts.
fn answers_on(
    name: &'static str,
    hosts: &'static [usize],
    body: impl Fn(ThreadComm) -> Answer + Send + Sync + 'static,
) -> Vec<Option<Answer>> {
    within_patience(name, move || {
        let answers = Mutex::new(vec![None; hosts.len()]);
        let run = || {
            fft_comm::threads_on(hosts, |comm| {
                let (rank, answer) = (comm.rank(), body(comm));
                answers.lock().unwrap()[rank] = Some(answer);
            })
        };
        // The panic of a rank comes out here, after all ranks have ended.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        answers.into_inner().unwrap()
    })
}

/// When a rank goes away, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    ReturnsBeforeBuild,
    PanicsBeforeBuild,
    ReturnsBeforeRun,
    PanicsBeforeRun,
}

#[test]
fn a_rank_that_leaves_is_a_transport_error_for_all_others() {
    use Exit::*;
    for ranks in RANKS {
        for culprit in [0, ranks - 1] {
            for exit in [ReturnsBeforeBuild, PanicsBeforeBuild, ReturnsBeforeRun, PanicsBeforeRun] {
                for exchange in Exchange::ALL {
                    let found = answers("leaving", ranks, move |comm| {
                        leave(&comm, (comm.rank() == culprit).then_some(exit), exchange)
                    });
                    for (rank, answer) in found.iter().enumerate() {
                        let what = format!("rank {rank} of {ranks} when {culprit} {exit:?}");
                        match answer {
                            None => assert!(rank == culprit, "{what}: panicked"),
                            Some(Ok(())) => assert!(rank == culprit, "{what}: no error"),
                            Some(Err(Error::Left { gone })) => {
                                assert_eq!(*gone, culprit, "{what}");
                            }
                            Some(Err(error)) => panic!("{what}: {error:?}"),
                        }
                    }
                }
            }
        }
    }
}

fn leave(comm: &dyn Comm, exit: Option<Exit>, exchange: Exchange) -> Answer {
    match exit {
        Some(Exit::ReturnsBeforeBuild) => return Ok(()),
        Some(Exit::PanicsBeforeBuild) => panic!("a panic on purpose"),
        _ => {}
    }
    let mut plan = Plan::<C2c, 2>::c2c(comm, Grid::new([8, 9])?).exchange(exchange).build()?;
    let mut data = vec![Default::default(); plan.in_place_len()];
    plan.forward_in_place(&mut data)?;
    match exit {
        Some(Exit::ReturnsBeforeRun) => Ok(()),
        Some(Exit::PanicsBeforeRun) => panic!("a panic on purpose"),
        _ => plan.inverse_in_place(&mut data),
    }
}

/// Every rank must have got the same error, of this rank and kind.
fn assert_on_rank(found: &[Option<Answer>], culprit: usize, kind: ErrorKind, what: &str) -> String {
    let first = found[0].clone().unwrap_or_else(|| panic!("{what}: rank 0 panicked"));
    for (rank, answer) in found.iter().enumerate() {
        assert_eq!(answer.as_ref(), Some(&first), "{what}: rank {rank} (left) and rank 0 (right)");
    }
    match first {
        Err(Error::OnRank { rank, kind: found, message }) if (rank, found) == (culprit, kind) => {
            message
        }
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn memory_that_one_rank_lacks_is_an_error_for_all() {
    on_all_hosts("no memory", injected::memory);
}

#[test]
fn memory_that_one_rank_cannot_share_is_an_error_for_all() {
    on_all_hosts("nothing to share", injected::shared);
}

#[test]
fn an_exchange_that_one_rank_cannot_make_is_an_error_for_all() {
    for ranks in RANKS {
        for culprit in [0, ranks - 1] {
            let found = answers("no exchange", ranks, move |comm| {
                let make = |exchange, comm: &dyn Comm| {
                    let made = fft_comm::exchanger(exchange, comm)?;
                    if comm.rank() == culprit {
                        Err(Error::Memory { rank: culprit, bytes: 12 })
                    } else {
                        Ok(made)
                    }
                };
                let setup = Setup::new(Exchange::P2p, Memory::Ample);
                bind_with(&comm, &Switch::new(Fault::Nothing), setup, &make).map(drop)
            });
            let what = format!("factory on {culprit} of {ranks}");
            let message = assert_on_rank(&found, culprit, ErrorKind::Memory, &what);
            assert_eq!(message, format!("rank {culprit} could not allocate 12 bytes"));
        }
    }
}

#[test]
fn a_damaged_message_is_an_error_for_all_and_the_next_run_works() {
    on_all_hosts("damage", injected::damage);
}

#[test]
fn a_message_of_another_size_is_an_error_for_all_and_the_next_run_is_the_same() {
    on_all_ranks("sizes", injected::sizes);
}

#[test]
fn a_message_that_ranks_disagree_about_is_an_error_for_all_when_the_plan_is_made() {
    on_all_ranks("unequal messages", unequal::messages);
}

#[test]
fn ranks_that_have_other_recipes_are_an_error_for_all_when_the_plan_is_made() {
    on_all_ranks("unequal recipes", unequal::recipes);
}

/// Whether a rank reaches the place where it should panic.
fn panics(how: Fault, setup: Setup, culprit: usize, hosts: &[usize]) -> bool {
    let shares = setup.exchange == Exchange::Shared;
    match (how, setup.who) {
        (_, Who::Next) if shares => false,
        (Fault::PanicEarly, Who::Next) => culprit == 0,
        (_, Who::Next) => culprit + 1 == hosts.len(),
        // If all share memory, there are no messages.
        (Fault::PanicEarly, _) => !shares || hosts.iter().any(|host| *host != hosts[0]),
        _ => true,
    }
}

/// One rank panics in an exchange, and others miss the ranks that miss it. All get the error from
/// the transform in which it panics, while all plans are alive, because dropping a plan would cause
/// one, too.
#[test]
fn a_rank_that_panics_in_an_exchange_is_a_transport_error_for_all_others_at_once() {
    let several = [&[0, 1, 1][..], &[0, 0, 1, 1], &[0, 1, 0, 1], &[0, 0, 2, 2, 2, 1]];
    for hosts in RANKS.map(|ranks| &[0; 6][..ranks]).into_iter().chain(several) {
        let ranks = hosts.len();
        let rows = (ranks == 4 || ranks == 6).then_some(Who::Rows);
        let who = [Who::Everyone, Who::Next].into_iter().chain(rows);
        let setups = who.flat_map(|who| Setup::all().map(move |setup| Setup { who, ..setup }));
        for (setup, how) in setups.flat_map(|s| [(s, Fault::Panic), (s, Fault::PanicEarly)]) {
            for culprit in [0, ranks - 1].into_iter().filter(|at| panics(how, setup, *at, hosts)) {
                let told = Barrier::new(ranks - 1);
                let found = answers_on("panic in an exchange", hosts, move |comm| {
                    let fault = Switch::new(Fault::Nothing);
                    let mut bound = bind(&comm, &fault, setup)?;
                    if comm.rank() == culprit {
                        fault.set(how);
                    }
                    let answer = transform_of_ones(&mut bound, setup);
                    if comm.rank() != culprit {
                        told.wait();
                    }
                    answer
                });
                for (rank, answer) in found.iter().enumerate() {
                    let what = format!("{setup:?}, {hosts:?}, {how:?} on {culprit}: rank {rank}");
                    match answer {
                        None => assert_eq!(rank, culprit, "{what} panicked"),
                        Some(Err(Error::Left { gone })) => {
                            assert_eq!(*gone, culprit, "{what}");
                        }
                        Some(other) => panic!("{what}: {other:?}"),
                    }
                }
            }
        }
    }
}
