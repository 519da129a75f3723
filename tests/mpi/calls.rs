//! What plans take of MPI and give back, and what they do when a call fails on one rank: calls are
//! counted, and made to fail, on their way into the library, by its own interface for that (names
//! that begin with `PMPI_`).
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::as_rank;
use crate::common::data::C64;
use crate::common::{failures, injected, job, plans};
use thriffty::mpi::MpiComm;
use thriffty::mpi::rsmpi::ffi::{self, MPI_Aint, MPI_Comm, MPI_Datatype, MPI_Info, MPI_Win};
use thriffty::planning::Exchange;
use thriffty::{C2c, Comm, Error, ErrorKind, Grid, Plan, SharesMemory, Tolerance, Tuning};

/// The things that are made and freed, as numbers in the arrays below.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Thing {
    Comm,
    Window,
    Type,
}

const THINGS: [Thing; 3] = [Thing::Comm, Thing::Window, Thing::Type];

/// How many there are, and how many have been made.
static HELD: [AtomicIsize; 3] = [const { AtomicIsize::new(0) }; 3];
static MADE: [AtomicIsize; 3] = [const { AtomicIsize::new(0) }; 3];

/// How many calls that make something succeed before one fails.
static UNTIL: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The library's answer to a call that makes something. A call that is to fail does so after the
/// library has done its part on all ranks.
fn made(thing: Thing, code: c_int) -> c_int {
    let until = UNTIL.load(Relaxed);
    UNTIL.store(until.saturating_sub(usize::from(until < usize::MAX)), Relaxed);
    if until == 0 {
        UNTIL.store(usize::MAX, Relaxed);
        return ffi::MPI_ERR_OTHER as c_int;
    }
    HELD[thing as usize].fetch_add(1, Relaxed);
    MADE[thing as usize].fetch_add(1, Relaxed);
    code
}

fn freed(thing: Thing, code: c_int) -> c_int {
    HELD[thing as usize].fetch_sub(1, Relaxed);
    code
}

/// Functions of MPI that the library calls instead of MPI's.
macro_rules! instead {
    ($($did:ident $thing:ident: $name:ident = $real:ident($($arg:ident: $type:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            // SAFETY: what the caller vouches for is passed on to the function it means.
            $did(Thing::$thing, unsafe { ffi::$real($($arg),*) })
        }
    )*};
}

instead! {
    made Comm: MPI_Comm_dup = PMPI_Comm_dup(comm: MPI_Comm, new: *mut MPI_Comm);
    made Comm: MPI_Comm_split =
        PMPI_Comm_split(comm: MPI_Comm, color: c_int, key: c_int, new: *mut MPI_Comm);
    made Comm: MPI_Comm_split_type = PMPI_Comm_split_type(
        comm: MPI_Comm, kind: c_int, key: c_int, info: MPI_Info, new: *mut MPI_Comm
    );
    freed Comm: MPI_Comm_free = PMPI_Comm_free(comm: *mut MPI_Comm);
    made Window: MPI_Win_create = PMPI_Win_create(
        base: *mut c_void, size: MPI_Aint, unit: c_int, info: MPI_Info, comm: MPI_Comm, new: *mut MPI_Win
    );
    made Window: MPI_Win_allocate = PMPI_Win_allocate(
        size: MPI_Aint, unit: c_int, info: MPI_Info, comm: MPI_Comm, base: *mut c_void, new: *mut MPI_Win
    );
    made Window: MPI_Win_allocate_shared = PMPI_Win_allocate_shared(
        size: MPI_Aint, unit: c_int, info: MPI_Info, comm: MPI_Comm, base: *mut c_void, new: *mut MPI_Win
    );
    freed Window: MPI_Win_free = PMPI_Win_free(window: *mut MPI_Win);
    made Type: MPI_Type_contiguous =
        PMPI_Type_contiguous(n: c_int, of: MPI_Datatype, new: *mut MPI_Datatype);
    freed Type: MPI_Type_free = PMPI_Type_free(of: *mut MPI_Datatype);
}

#[test]
fn plans_free_all_that_they_make() {
    for ranks in [1, 3] {
        job::must_succeed(ranks, "calls::freed_body");
    }
}

#[test]
#[ignore = "started under mpirun by another test"]
fn freed_body() {
    checked(|world| {
        let grid = Grid::new([12, 10, 8])?;
        let held = || {
            // Communicators of failure detectors are freed when all ranks have learned that the
            // plan is gone.
            thriffty::mpi::complete_calls();
            THINGS.map(|thing| HELD[thing as usize].load(Relaxed))
        };
        let draft = |exchange| Plan::<C2c, 3>::c2c(world, grid).exchange(exchange);
        let (before, several) = (held(), world.size() > 1);
        for (exchange, memory) in plans::everything() {
            let made = THINGS.map(|thing| MADE[thing as usize].load(Relaxed));
            let mut windows = false;
            for _ in 0..3 {
                let mut plan = draft(exchange).memory(memory).build()?;
                windows = matches!(plan.exchange(), Exchange::Shared | Exchange::Ring(_));
                let mut data = vec![C64::default(); plan.in_place_len()];
                plan.forward_in_place(&mut data)?;
                plan.inverse_in_place(&mut data)?;
            }
            let what = format!("{exchange}, {memory:?}");
            assert_eq!(held(), before, "{what}: {THINGS:?} (left now, right before)");
            // Make sure that things were made at all.
            for (thing, made) in THINGS.into_iter().zip(made) {
                let more = MADE[thing as usize].load(Relaxed) - made;
                let least = if thing == Thing::Window && !(windows && several) { 0 } else { 3 };
                assert!(more >= least, "{what}: {more} of {thing:?} were made");
            }
        }
        // Fields in shared memory: the plan makes three and uses two again.
        let windows = || MADE[Thing::Window as usize].load(Relaxed);
        for _ in 0..3 {
            let mut plan = draft(Exchange::Shared).shared_arrays(true).build()?;
            let made = windows();
            let (input, output) = (plan.shared_input()?, plan.shared_output()?);
            drop(output);
            drop(plan.forward(input)?);
            let fields = [plan.shared_input()?, plan.shared_input()?, plan.shared_input()?];
            assert_eq!(windows() - made, if several { 3 } else { 0 });
            drop(fields);
        }
        assert_eq!(held(), before, "shared arrays: {THINGS:?} (left now, right before)");
        // Plans that are made to be measured, and plans for which one rank lacks something.
        let tuning = Tuning::Measure { budget: Duration::from_millis(200) };
        drop(Plan::<C2c, 3>::c2c(world, grid).tuning(tuning.clone()).build()?);
        drop(Plan::<C2c, 3>::c2c(world, grid).tuning(tuning).shared_arrays(true).build()?);
        drop(
            draft(Exchange::P2p)
                .ignore_shared_memory(true)
                .tolerance(Tolerance::relative(1e-3)?)
                .build()?,
        );
        if several {
            injected::memory(world)?;
            failures::bricks(world)?;
        }
        assert_eq!(held(), before, "{THINGS:?} (left now, right before)");
        Ok(())
    });
}

#[test]
fn a_call_that_fails_on_one_rank_is_an_error_for_all() {
    for exchange in ["shared", "ring", "pipelined", "alltoallv", "kway2"] {
        if let Some(status) = job::run_told(3, "calls::failing_body", exchange) {
            assert!(status.success(), "{exchange}: {status}");
        }
    }
}

/// One call after the other, among all that make something for a plan, fails on one rank.
#[test]
#[ignore = "started under mpirun by another test"]
fn failing_body() {
    checked(|world| {
        let exchange: Exchange = job::told().parse()?;
        for culprit in failures::culprits(world) {
            for number in 0.. {
                if world.rank() == culprit {
                    UNTIL.store(number, Relaxed);
                }
                let grid = Grid::new([12, 10, 8])?;
                // A new communicator each time, for which no trial has been made yet.
                let built = world.split(0, world.rank()).and_then(|comm| {
                    let draft = Plan::<C2c, 3>::c2c(&comm, grid).exchange(exchange);
                    let mut plan = draft.shared_arrays(true).build()?;
                    plan.shared_input()?;
                    let alone = (0..world.size()).any(|rank| comm.host(rank) != world.host(rank));
                    Ok(alone || plan.exchange() != exchange)
                });
                let mut reached = [f64::from(UNTIL.swap(usize::MAX, Relaxed) == usize::MAX)];
                world.allreduce(thriffty::planning::Reduce::Min, &mut reached)?;
                if reached == [0.0] {
                    assert!(number > 2, "{exchange}: only {number} calls");
                    built?;
                    break;
                }
                let what = format!("{exchange}: call {number} on {culprit}");
                // The plan works without the missing resource: by messages, and without shared
                // memory.
                if built == Ok(true) {
                    continue;
                }
                let error = failures::everywhere(world, &what, built)?;
                assert_eq!(error.kind(), ErrorKind::Transport, "{what}: {error}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_call_that_fails_in_a_part_is_an_error_for_all() {
    job::must_succeed(3, "calls::parts_body");
}

#[test]
#[ignore = "started under mpirun by another test"]
fn parts_body() {
    checked(|world| failures::culprits(world).into_iter().try_for_each(|rank| parts(world, rank)));
}

/// One call, among all that make a part of a communicator, fails in one part: the others get the
/// error, with the rank that it happened on.
fn parts(world: &MpiComm, culprit: usize) -> Result<(), Error> {
    for number in 0.. {
        if world.rank() == culprit {
            UNTIL.store(number, Relaxed);
        }
        let made = world.split(world.rank() % 2, world.rank()).map(drop);
        let mut reached = [f64::from(UNTIL.swap(usize::MAX, Relaxed) == usize::MAX)];
        world.allreduce(thriffty::planning::Reduce::Min, &mut reached)?;
        if reached == [0.0] {
            assert!(number > 2, "only {number} calls");
            return made;
        }
        if made.is_ok() {
            // The plan works without memory that cannot be shared.
            continue;
        }
        let what = format!("parts: call {number} on {culprit}");
        let error = failures::everywhere(world, &what, made)?;
        let of = matches!(&error, Error::OnRank { rank, .. } if *rank == culprit);
        assert!(of, "{what}: {error:?}");
    }
    Ok(())
}

/// Runs one rank of a job, which a failed check ends at once.
fn checked(check: impl FnOnce(&MpiComm) -> Result<(), Error>) {
    as_rank(|world, _| check(world).unwrap_or_else(|error| panic!("{error}")));
}
