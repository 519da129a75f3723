//! Groups of several hosts, which are simulated, because all processes are on one machine.

use fft_core::MessagePlan;
use thriffty::group::GroupComm;
use thriffty::planning::{Exchange, Memory, Reduce};
use thriffty::{
    C2c, Comm, Error, ErrorKind, Grid, Kind, Plan, R2c, SharesMemory, Tolerance, Tuning,
};

use crate::common::check::{Case, check};
use crate::common::message_buffers::{memory, message_plan, moves, reaches};
use crate::common::{arrays, failures, lossy, plans};
use crate::processes;
use crate::sockets::SocketGroup;

type Done = Result<(), Error>;

/// The hosts of ranks.
const HOSTS: [&[usize]; 6] =
    [&[0, 1], &[0, 0, 1], &[0, 0, 1, 1], &[0, 1, 0, 1], &[0, 1, 2, 3], &[0, 0, 2, 2, 2, 1]];

fn on_all_hosts(test: &str) {
    for hosts in HOSTS {
        let names: Vec<_> = hosts.iter().map(|host| host.to_string()).collect();
        processes::must_succeed(hosts.len(), test, &names.join(","));
    }
}

/// In a process: the group, on the hosts in the text for the test.
fn world(has_messages: bool) -> GroupComm {
    let hosts: Vec<usize> =
        processes::told().split(',').map(|host| host.parse().expect("a number")).collect();
    let [rank, _] = processes::place();
    let group = processes::world().on_host(hosts[rank]);
    let group = if has_messages { group.with_messages() } else { group };
    let comm = GroupComm::new(group).expect("a group");
    let lowest = |host| hosts.iter().position(|other| *other == host).expect("its own");
    assert!(hosts.iter().enumerate().all(|(rank, host)| comm.host(rank) == lowest(*host)));
    assert_eq!(comm.has_messages(), has_messages);
    comm
}

#[test]
fn a_group_with_messages_has_all_exchanges() {
    on_all_hosts("hosts::with_messages");
}

#[test]
#[ignore = "started by another test"]
fn with_messages() {
    let run = |comm: &dyn Comm| -> Done {
        for (exchange, memory) in plans::everything() {
            transforms(comm, exchange, memory)?;
        }
        sums(comm)?;
        // Only the hosts that are least alike.
        if comm.size() == 3 {
            lossy::all(comm, Memory::Ample)?;
            arrays::all(comm)?;
            failures::all(comm)?;
        }
        Ok(())
    };
    run(&world(true)).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_group_with_messages_of_devices_carries_them_in_one_collective() {
    processes::must_succeed(3, "hosts::device_messages", "0,0,0");
    processes::must_succeed(3, "hosts::device_messages", "0,0,1");
}

#[test]
#[ignore = "started by another test"]
fn device_messages() {
    let [rank, ranks] = processes::place();
    let hosts = processes::told();
    let host = hosts.split(',').nth(rank).and_then(|host| host.parse().ok()).expect("a number");
    let members: Vec<_> = (0..ranks).collect();
    let group =
        |name| SocketGroup::connect(&processes::folder(), name, &members, rank).on_host(host);
    let run = || -> Done {
        let comm = GroupComm::new(group("all").with_device_messages())?;
        assert!(reaches(&comm, &memory(1, true))?);
        moves(&comm, Exchange::Alltoallv)?;
        let made = fft_comm::exchanger(Exchange::Alltoallv, &comm)?;
        let messages = message_plan(&comm, 0, 1, &[memory(1, true), memory(1, true)]);
        let shorter = MessagePlan { shorter: true, ..messages };
        assert!(!made.takes_message_buffers(&shorter), "of unknown length");
        // If one rank has none, no rank uses them.
        let mixed = group("mixed");
        let mixed = if rank == 1 { mixed } else { mixed.with_device_messages() };
        let comm = GroupComm::new(mixed)?;
        assert!(!reaches(&comm, &memory(1, true))?);
        Ok(())
    };
    run().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn two_collectives_are_enough_for_plans() {
    on_all_hosts("hosts::without_messages");
}

#[test]
#[ignore = "started by another test"]
fn without_messages() {
    let run = |comm: &dyn Comm| -> Done {
        for memory in [Memory::Ample, Memory::Least] {
            transforms(comm, Exchange::Alltoallv, memory)?;
        }
        sums(comm)?;
        refused(comm)?;
        encoded(comm)?;
        chosen(comm)
    };
    run(&world(false)).unwrap_or_else(|error| panic!("{error}"));
}

fn transforms(comm: &dyn Comm, exchange: Exchange, memory: Memory) -> Done {
    let case = Case::new([12, 10, 8], [Kind::C2C; 3]).exchange(exchange).memory(memory);
    check::<C2c, 3>(comm, &case)?;
    let case = Case::new([7, 6, 9], [Kind::C2C, Kind::Dct2, Kind::R2C]);
    check::<R2c<f32>, 3>(comm, &case.exchange(exchange).memory(memory).tiling(3).batch(2))
}

/// Sums are the same bits on all ranks: they are of numbers in the order of ranks.
fn sums(comm: &dyn Comm) -> Done {
    let of = |rank: usize| 0.1 * (rank + 1) as f64;
    let mut value = [of(comm.rank()), -of(comm.rank()), 1.0];
    comm.allreduce(Reduce::Sum, &mut value)?;
    let sum: f64 = (0..comm.size()).map(of).sum();
    assert_eq!(value, [sum, -sum, comm.size() as f64]);
    let mut value = [of(comm.rank())];
    comm.allreduce(Reduce::Min, &mut value)?;
    assert_eq!(value, [of(0)]);
    comm.allreduce(Reduce::Max, &mut [])?;
    comm.barrier()
}

/// An exchange that sends messages is refused by its name.
fn refused(comm: &dyn Comm) -> Done {
    for exchange in Exchange::ALL.into_iter().filter(|one| *one != Exchange::Alltoallv) {
        let draft = Plan::<C2c, 3>::c2c(comm, Grid::new([12, 10, 8])?).exchange(exchange);
        let error = failures::everywhere(comm, "refused", draft.build().map(drop))?;
        assert_eq!(error.kind(), ErrorKind::Argument);
        let text = error.to_string();
        assert!(text.contains(&format!("found {exchange}, expected alltoallv")), "{text}");
    }
    Ok(())
}

/// Messages whose length depends on the data.
fn encoded(comm: &dyn Comm) -> Done {
    for exact in [1e-3, 1e-6] {
        let grid = Grid::new([16, 12, 10])?;
        let mut reference = Plan::<C2c, 3>::c2c(comm, grid).build()?;
        let draft = Plan::<C2c, 3>::c2c(comm, grid).tolerance(Tolerance::relative(exact)?);
        let mut plan = draft.build()?;
        assert_eq!(plan.exchange(), Exchange::Alltoallv);
        let fill = |[i, j, k]: [usize; 3]| ((i * 7 + j * 3 + k) as f64).sin().into();
        let [mut x, mut y] = [plan.input(), reference.input()];
        x.fill(fill);
        y.fill(fill);
        let (x, y) = (plan.forward(x)?, reference.forward(y)?);
        let both = x.as_slice().iter().zip(y.as_slice());
        let mut sums = both
            .fold([0.0; 2], |[far, all], (x, y)| [far + (x - y).norm_sqr(), all + y.norm_sqr()]);
        comm.allreduce(Reduce::Sum, &mut sums)?;
        let error = (sums[0] / sums[1]).sqrt();
        assert!(error > 0.0 && error <= exact, "{error:e} instead of {exact:e}");
    }
    Ok(())
}

/// The planner considers only available exchanges, by the model and by the clock.
fn chosen(comm: &dyn Comm) -> Done {
    let budget = std::time::Duration::from_millis(200);
    for tuning in [Tuning::Model, Tuning::Measure { budget }] {
        let plan = Plan::<C2c, 3>::c2c(comm, Grid::new([12, 10, 8])?).tuning(tuning).build()?;
        assert_eq!(plan.exchange(), Exchange::Alltoallv);
    }
    Ok(())
}
