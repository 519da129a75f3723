//! Failures that end a job of MPI processes, so that nobody waits for a rank that has left.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use thriffty::mpi::rsmpi::topology::SimpleCommunicator;
use thriffty::mpi::{self, MpiComm};
use thriffty::planning::{Exchange, Memory};
use thriffty::{C2c, Comm, Error, Grid, Plan};

use crate::common::data::C64;
use crate::common::faulty::{self, Switch};
use crate::common::injected::{self, Setup};
use crate::common::job;
use crate::common::weak::{self, Weak};
use crate::{as_rank, in_world};

/// Separates the text for a job from the file which shows that its fault has come.
const FILE: char = '|';

/// Runs a job, which must come to its fault and then end without success.
fn must_end(ranks: usize, body: &str, told: &str) {
    static JOBS: AtomicUsize = AtomicUsize::new(0);
    let job = JOBS.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("thriffty-{}-fault-{job}", std::process::id()));
    let what = format!("{told}{FILE}{}", file.display());
    if let Some(status) = job::run_told(ranks, body, &what) {
        let came = std::fs::remove_file(file);
        assert!(came.is_ok(), "{body}, {told}: ended before its fault: {status}");
        assert!(!status.success(), "{body}, {told}: {status}");
    }
}

/// In a job: the text for it.
fn told() -> String {
    let mut told = job::told();
    told.truncate(told.find(FILE).expect("a file"));
    told
}

/// In a job: now comes its fault.
fn fault_comes() {
    let told = job::told();
    let (_, file) = told.split_once(FILE).expect("a file");
    std::fs::write(file, "").expect("a temporary folder");
}

/// Added to the exchange in the text for a job: rank 2 is on another host than ranks 0 and 1.
const TWO_HOSTS: &str = " on two hosts";

/// Exchanges that have shared memory within a host and messages between hosts.
fn between_hosts() -> impl Iterator<Item = String> {
    [Exchange::Shared, Exchange::Hosts].into_iter().map(|exchange| format!("{exchange}{TWO_HOSTS}"))
}

/// Runs one of three ranks, on the hosts and with the exchange in the text for the job.
fn as_told(body: impl FnOnce(&MpiComm, Exchange)) {
    in_world(|_, _| {
        let told = told();
        let (exchange, hosts) = match told.strip_suffix(TWO_HOSTS) {
            Some(exchange) => (exchange, [0, 0, 1]),
            None => (&told[..], [0, 0, 0]),
        };
        let comm = MpiComm::of(&SimpleCommunicator::world()).expect("a communicator");
        body(&comm.on_hosts(&hosts), exchange.parse().expect("an exchange"));
    });
}

#[test]
fn a_rank_that_is_killed_ends_the_job() {
    for told in
        Exchange::ALL.map(|exchange| exchange.to_string()).into_iter().chain(between_hosts())
    {
        must_end(3, "endings::killed_body", &told);
    }
}

/// Transforms without end, until rank 1 is killed in the midst of them.
#[test]
#[ignore = "started under mpirun by another test"]
fn killed_body() {
    as_told(|comm, exchange| {
        let grid = Grid::new([12, 10, 8]).expect("a grid");
        let mut plan = Plan::<C2c, 3>::c2c(comm, grid).exchange(exchange).build().expect("a plan");
        let mut data = vec![C64::default(); plan.in_place_len()];
        for round in 0.. {
            if comm.rank() == 1 && round == 20 {
                fault_comes();
                let this = std::process::id().to_string();
                Command::new("kill").args(["-KILL", &this]).status().expect("there is `kill`");
            }
            // Whether the others get an error or wait depends on MPI, but the job must end.
            let _ = plan.forward_in_place(&mut data);
        }
    });
}

#[test]
fn a_collective_that_fails_on_one_rank_ends_the_job() {
    if let Some(status) = job::run(3, "endings::narrow_body") {
        assert!(!status.success(), "a rank could not receive: {status}");
    }
}

/// Rank 1 makes less room in `MPI_Alltoallv` than it is sent.
#[test]
#[ignore = "started under mpirun by another test"]
fn narrow_body() {
    as_rank(|world, _| {
        let fault = if world.rank() == 1 { weak::Fault::Narrow } else { weak::Fault::Nothing };
        let device = Switch::new(faulty::Fault::Nothing);
        let setup = Setup::new(Exchange::Alltoallv, Memory::Ample);
        let weak = Weak::new(world, fault).expect("a communicator");
        let bound = injected::bind(&weak, &device, setup);
        // Others would wait for rank 1, which does nothing any more.
        let _ = injected::transform_of_ones(&mut bound.expect("a plan"), setup);
    });
}

#[test]
fn a_message_that_there_is_no_memory_for_ends_the_job() {
    if let Some(status) = job::run(2, "endings::no_room_body") {
        assert!(!status.success(), "a rank had no memory: {status}");
    }
}

/// Rank 0 receives more than there is memory for, and would go on without it; rank 1 sends it.
#[test]
#[ignore = "started under mpirun by another test"]
fn no_room_body() {
    in_world(|world, _| {
        // More than a system lends.
        const TOO_MUCH: usize = 1 << 44;
        let mut flight = world.flight(None).expect("a flight");
        match world.rank() {
            0 => drop(flight.post_recv(1, TOO_MUCH)),
            _ => {
                // Longer than messages that leave without a receiver.
                let slot = flight.slot(1 << 20).expect("a slot");
                let _ = flight.send(0, TOO_MUCH, slot).and_then(|()| flight.wait_all());
            }
        }
    });
}

#[test]
fn a_rank_that_panics_ends_the_job() {
    // Memory that is shared is not packed: on one host nothing panics.
    let exchanges = Exchange::ALL.into_iter().filter(|exchange| *exchange != Exchange::Shared);
    let told = exchanges.map(|exchange| exchange.to_string()).chain(between_hosts());
    let within = told.map(|told| ("endings::panic_within_body", told));
    for (body, told) in within.chain([("endings::panic_between_body", String::new())]) {
        must_end(3, body, &told);
    }
}

/// Rank 1 unwinds, through all MPI objects that it holds, while others transform.
#[test]
#[ignore = "started under mpirun by another test"]
fn panic_between_body() {
    in_world(|world, _| {
        let mut plan = Plan::<C2c, 2>::c2c(world, Grid::new([8, 9]).expect("a grid")).build();
        if world.rank() == 1 {
            fault_comes();
            panic!("a panic on purpose");
        }
        let mut data = vec![C64::default(); 72];
        let _ = plan.as_mut().expect("a plan").forward_in_place(&mut data);
    });
}

/// Rank 1 panics in an exchange, and its caller does not let the others learn of it.
#[test]
#[ignore = "started under mpirun by another test"]
fn panic_within_body() {
    as_told(|comm, exchange| {
        let device = Switch::new(faulty::Fault::Nothing);
        let setup = Setup::new(exchange, Memory::Ample);
        let mut bound = injected::bind(comm, &device, setup).expect("a plan");
        if comm.rank() == 1 {
            fault_comes();
            device.set(faulty::Fault::PanicEarly);
        }
        let transform = AssertUnwindSafe(|| injected::transform_of_ones(&mut bound, setup));
        let _ = catch_unwind(transform);
    });
}

#[test]
fn a_thread_that_panics_ends_the_job() {
    for exchange in [Exchange::P2p, Exchange::Alltoallv, Exchange::Hosts, Exchange::Shared] {
        for when in ["before", "within"] {
            must_end(2, "endings::panic_of_thread_body", &format!("{exchange} {when}"));
        }
    }
}

/// The second of two threads of process 1 panics, before a transform or within it, while the other
/// ranks transform.
#[test]
#[ignore = "started under mpirun by another test"]
fn panic_of_thread_body() {
    in_world(|world, _| {
        let told = told();
        let (exchange, when) = told.split_once(' ').expect("an exchange, and when");
        let exchange = exchange.parse().expect("an exchange");
        let ended = mpi::threads(world, 2, |comm| match when {
            "before" => {
                let draft = Plan::<C2c, 2>::c2c(&comm, Grid::new([8, 9]).expect("a grid"));
                let mut plan = draft.exchange(exchange).build().expect("a plan");
                if comm.rank() == 3 {
                    fault_comes();
                    panic!("a panic on purpose");
                }
                let mut data = vec![C64::default(); plan.in_place_len()];
                assert_eq!(plan.forward_in_place(&mut data), Err(Error::Left { gone: 3 }));
            }
            _ => {
                let device = Switch::new(faulty::Fault::Nothing);
                let setup = Setup::new(exchange, Memory::Ample);
                let mut bound = injected::bind(&comm, &device, setup).expect("a plan");
                if comm.rank() == 3 {
                    fault_comes();
                    device.set(faulty::Fault::PanicEarly);
                }
                // The panic ends the job before others return.
                let _ = injected::transform_of_ones(&mut bound, setup);
            }
        });
        // In process 1 the panic comes out of `threads`.
        assert_eq!(ended.map(|all| all.len()), Ok(2));
    });
}
