//! Plans in several threads of each process, where MPI can do that.
//!
//! Where MPI does not give `MPI_THREAD_MULTIPLE`, they say "skipped".
use crate::common::check::{Case, check};
use crate::common::job;
use thriffty::mpi::rsmpi::{self, Threading, topology::SimpleCommunicator};
use thriffty::mpi::{MpiComm, Rma};
use thriffty::planning::Algorithm;
use thriffty::{C2c, Comm, Error, Kind, R2c};

#[test]
fn two_ranks() {
    job::must_succeed(2, "threads::body");
}

#[test]
fn three_ranks() {
    job::must_succeed(3, "threads::body");
}

#[test]
#[ignore = "started under mpirun by the other tests"]
fn body() {
    job::abort_on_panic();
    let (universe, level) =
        rsmpi::initialize_with_threading(Threading::Multiple).expect("MPI starts");
    if level != Threading::Multiple {
        println!("skipped: MPI gives {level:?}");
        return;
    }
    // Communicators are made in the same order on all ranks, and each is used by one thread.
    let make = || MpiComm::of(&SimpleCommunicator::world()).expect("a duplicate of the world");
    let comms: [MpiComm; 2] = [make(), make()];
    job::assert_ranks(comms[0].size());
    // Which mixes up the windows of several threads.
    let mpich = rsmpi::environment::library_version().is_ok_and(|text| text.starts_with("MPICH"));
    let windows = Rma::probe(&comms[0]).expect("an answer");
    assert!(!(mpich && windows.is_some()), "windows of MPICH with several threads");
    drop(windows);
    let done: Vec<Result<(), Error>> = std::thread::scope(|scope| {
        let start =
            |(thread, comm): (usize, MpiComm)| scope.spawn(move || transforms(&comm, thread));
        let running: Vec<_> = comms.into_iter().enumerate().map(start).collect();
        running.into_iter().map(|thread| thread.join().expect("a panic ends the job")).collect()
    });
    for (thread, result) in done.into_iter().enumerate() {
        result.unwrap_or_else(|error| panic!("thread {thread}: {error}"));
    }
    drop(universe);
}

/// Other transforms in each thread.
fn transforms(comm: &dyn Comm, thread: usize) -> Result<(), Error> {
    for round in 0..2 {
        for exchange in Algorithm::ALL {
            let case = Case::new([6 + thread, 7, 5], [Kind::C2C; 3]).exchange(exchange);
            check::<C2c, 3>(comm, &case.tiling((round + thread) as u64))?;
            let case = Case::new([9, 8 + thread], [Kind::C2C, Kind::R2C]).exchange(exchange);
            check::<R2c<f32>, 2>(comm, &case)?;
        }
    }
    Ok(())
}
