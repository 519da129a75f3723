//! Processes that do more than transforms: they fork, or have no file descriptor to spare.

use std::ffi::c_int;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thriffty::group::GroupComm;
use thriffty::{C2c, Comm, Error, Grid, Plan, SharesMemory};

use crate::common::cases;
use crate::processes;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

#[test]
fn a_forked_process_is_no_rank_and_harms_none() {
    processes::must_succeed(3, "forks::forking_body", "");
}

#[test]
#[ignore = "started by another test"]
fn forking_body() {
    let comm = GroupComm::new(processes::world()).expect("a group");
    let mut plan = plan(&comm).expect("a plan");
    // SAFETY: the child only calls this library, which locks nothing that another thread of the
    // parent may hold, and ends without running what the parent has registered.
    unsafe {
        let child = fork();
        if child == 0 {
            let is_refused = is_refused(comm.barrier())
                && is_refused(plan.agree(Ok(())))
                && is_refused(comm.dup().map(drop));
            drop((plan, comm));
            _exit(c_int::from(!is_refused));
        }
        let mut status = -1;
        assert_eq!(waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0, "the child must be refused and end");
    }
    plan.agree(Ok(())).expect("the others are there");
    cases::random_tilings(&comm).expect("the group works");
}

fn plan(comm: &dyn Comm) -> Result<Plan<C2c, 3>, Error> {
    Plan::<C2c, 3>::c2c(comm, Grid::new([12, 10, 8])?).build()
}

fn is_refused(result: Result<(), Error>) -> bool {
    result.is_err_and(|error| error.to_string().contains("forked"))
}

#[test]
fn ranks_that_cannot_share_memory_send_messages() {
    processes::must_succeed(3, "forks::without_files_body", "");
}

/// Rank 1 cannot open the memory of the others.
#[test]
#[ignore = "started by another test"]
fn without_files_body() {
    let group = processes::world().on_host(0).with_messages();
    let [rank, ranks] = processes::place();
    let before = getrlimit(Resource::Nofile);
    if rank == 1 {
        let none = Rlimit { current: Some(0), ..before };
        setrlimit(Resource::Nofile, none).expect("a lower limit");
    }
    let comm = GroupComm::new(group);
    setrlimit(Resource::Nofile, before).expect("the limit as it was");
    let comm = comm.expect("a group");
    let hosts: Vec<_> = (0..ranks).map(|rank| comm.host(rank)).collect();
    assert_eq!(hosts, (0..ranks).collect::<Vec<_>>());
    cases::random_tilings(&comm).expect("the group works");
}
