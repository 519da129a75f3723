//! Plans in several threads of each process, at the same time or in turn.
//!
//! If MPI does not provide the level that a test needs, it prints "skipped".
use crate::common::check::{Case, check};
use crate::common::data::C64;
use crate::common::job;
use thriffty::mpi::rsmpi::{self, Threading, topology::SimpleCommunicator, traits::AsRaw};
use thriffty::mpi::{MpiComm, Rma};
use thriffty::planning::Exchange;
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

#[test]
fn one_thread_at_a_time() {
    for ranks in [1, 3] {
        job::must_succeed(ranks, "threads::serialized_body");
    }
}

#[test]
#[ignore = "started under mpirun by another test"]
fn serialized_body() {
    job::abort_on_panic();
    let (universe, level) =
        rsmpi::initialize_with_threading(Threading::Serialized).expect("MPI starts");
    if level < Threading::Serialized {
        println!("skipped: MPI gives {level:?}");
        return;
    }
    in_turn(level).unwrap_or_else(|error| panic!("{error}"));
    drop(universe);
}

/// A communicator and plan that are made on one thread are used and dropped on others, one after
/// the other.
fn in_turn(level: Threading) -> Result<(), Error> {
    let world = SimpleCommunicator::world();
    // SAFETY: the world lives as long as MPI, and each thread waits for the one that it starts.
    let comm = unsafe { MpiComm::from_raw(world.as_raw()) }?;
    job::assert_ranks(comm.size());
    let comm = elsewhere(move || transforms(&comm, 0).map(|()| comm))?;
    for exchange in Exchange::ALL {
        for shared in [false, true] {
            let draft = thriffty::c2c(&comm, [6, 5, 4]).exchange(exchange);
            let draft = if shared { draft.shared_arrays(true) } else { draft };
            let mut plan = draft.build()?;
            let plan = elsewhere(move || {
                let mut field = plan.shared_input()?;
                field.as_mut_slice().fill(1.0.into());
                let found: f64 = plan.forward(field)?.as_slice().iter().map(|x| x.re).sum();
                let expected = if plan.comm().rank() == 0 { 120.0 } else { 0.0 };
                assert!((found - expected).abs() < 1e-12, "{found}");
                Ok(plan)
            })?;
            drop_elsewhere(plan)?;
            comm.barrier()?;
        }
    }
    let mut plan = thriffty::r2c(&comm, [8, 6]).threads(2).build()?;
    elsewhere(move || {
        let mut output = vec![C64::default(); plan.output_len()];
        plan.forward_into(&vec![1.0; plan.input_len()], &mut output)
    })?;
    drop_elsewhere(comm)?;
    // A safe function cannot guarantee that calls do not overlap.
    let comm = MpiComm::of(&world)?;
    elsewhere(move || {
        match (comm.barrier(), level) {
            (Ok(()), Threading::Multiple) => {}
            (Err(error), _) => assert!(error.to_string().contains("MPI_THREAD_MULTIPLE")),
            (Ok(()), _) => panic!("a thread that may not call MPI"),
        }
        Ok(comm)
    })
    .map(drop)
}

fn drop_elsewhere(object: impl Send) -> Result<(), Error> {
    elsewhere(move || {
        drop(object);
        Ok(())
    })
}

/// Does something on another thread, and waits for it.
fn elsewhere<R: Send>(body: impl FnOnce() -> Result<R, Error> + Send) -> Result<R, Error> {
    std::thread::scope(|scope| scope.spawn(body).join().expect("a panic ends the job"))
}

/// Other transforms in each thread.
fn transforms(comm: &dyn Comm, thread: usize) -> Result<(), Error> {
    for round in 0..2 {
        for exchange in Exchange::ALL {
            let case = Case::new([6 + thread, 7, 5], [Kind::C2C; 3]).exchange(exchange);
            check::<C2c, 3>(comm, &case.tiling((round + thread) as u64))?;
            let case = Case::new([9, 8 + thread], [Kind::C2C, Kind::R2C]).exchange(exchange);
            check::<R2c<f32>, 2>(comm, &case)?;
        }
    }
    Ok(())
}
