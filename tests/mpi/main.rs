//! All tests with MPI processes as ranks, by `cargo test --features mpi --test mpi`. Tests start
//! this program again under `mpirun`, where only the named body runs. Without `mpirun` they print
//! "skipped".

#[path = "../common/allocations.rs"]
mod allocations;
mod buffers;
#[path = "../common/mod.rs"]
mod common;
mod together;
mod windows;

mod alloc;
mod calls;
mod checks;
mod endings;
mod funnel;
mod start;
mod threads;

use thriffty::Comm;
use thriffty::mpi::{self, MpiComm};

/// Runs one rank of a job, which a panic ends at once.
fn as_rank(check: impl FnOnce(&MpiComm, &mpi::Mpi)) {
    common::job::abort_on_panic();
    in_world(check);
}

/// Runs one rank of a job.
fn in_world(check: impl FnOnce(&MpiComm, &mpi::Mpi)) {
    let library = mpi::init().expect("MPI is initialised once");
    {
        let world = library.world().expect("the world");
        common::job::assert_ranks(world.size());
        check(&world, &library);
    }
    drop(library);
}
