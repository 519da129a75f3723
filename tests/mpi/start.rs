//! The start of ranks by one function, under a launcher.

use thriffty::planning::Reduce;
use thriffty::{Comm, Error, Job};

use crate::common::job;

#[test]
fn the_processes_of_a_job_are_the_ranks() {
    for ranks in [1, 3] {
        job::must_succeed(ranks, "start::body");
    }
}

#[test]
#[ignore = "started under mpirun by another test"]
fn body() {
    let count = |world: &dyn Comm| {
        assert_eq!(world.name(), "mpi");
        job::assert_ranks(world.size());
        let known = Job { rank: world.rank(), size: Some(world.size()) };
        assert_eq!(Job::of_this_process(), Some(known));
        let mut count = [1.0];
        world.allreduce(Reduce::Sum, &mut count)?;
        Ok::<_, Error>(count[0])
    };
    job::assert_ranks(thriffty::run(7, count).expect("MPI runs") as usize);
    // MPI starts once in a process.
    assert!(matches!(thriffty::run(7, count), Err(Error::Transport { .. })));
}
