//! Processes that end in the midst of transforms.

use std::time::Duration;

use thriffty::group::GroupComm;
use thriffty::planning::{Exchange, Reduce};
use thriffty::{C2c, Comm, Error, Grid, Plan, SharesMemory};

use crate::common::data::{C64, bound, random};
use crate::processes;
use crate::sockets::SocketGroup;

const RANKS: usize = 4;
/// Transforms there and back in all, and at least this number after the end.
const TRANSFORMS: usize = 100;
const AFTER: usize = 20;
/// The rank that is killed, and the transform from which on it may be.
const VICTIM: usize = 2;
const LAST: usize = 50;

/// Runs four processes; one is killed and the others must go on.
fn three_go_on(test: &str, exchange: Exchange) {
    let ended = processes::run(RANKS, test, &exchange.to_string());
    for (rank, status) in ended.into_iter().enumerate() {
        assert_eq!(status.success(), rank != VICTIM, "{exchange}: rank {rank}: {status}");
    }
}

#[test]
fn three_go_on_when_one_of_four_is_killed() {
    for exchange in Exchange::ALL {
        three_go_on("endings::one_host", exchange);
    }
}

#[test]
fn three_on_two_hosts_go_on_when_one_of_four_is_killed() {
    for exchange in Exchange::ALL {
        three_go_on("endings::two_hosts", exchange);
    }
    three_go_on("endings::two_hosts_without_messages", Exchange::Alltoallv);
}

#[test]
#[ignore = "started by another test"]
fn one_host() {
    survive(0, |group, _| group);
}

#[test]
#[ignore = "started by another test"]
fn two_hosts() {
    survive(1, |group, rank| group.on_host(rank % 2).with_messages());
}

#[test]
#[ignore = "started by another test"]
fn two_hosts_without_messages() {
    survive(1, |group, rank| group.on_host(rank % 2));
}

/// Transforms, first with three others and then with two, some of which may have completed `more`
/// more.
fn survive(more: usize, placed: impl Fn(SocketGroup, usize) -> SocketGroup) {
    let exchange: Exchange = processes::told().parse().expect("an exchange");
    let [rank, _] = processes::place();
    let comm = GroupComm::new(placed(processes::world(), rank)).expect("a group");
    let (done, error) = until_it_fails(&comm, exchange);
    assert_eq!(error, Error::Left { gone: VICTIM }, "rank {rank}");
    drop(comm);

    let others: Vec<usize> = (0..RANKS).filter(|other| *other != VICTIM).collect();
    let group = SocketGroup::connect(&processes::folder(), "survivors", &others, rank);
    let comm = GroupComm::new(placed(group, rank)).expect("a smaller group");
    let mut bounds = [done as f64, -(done as f64)];
    comm.allreduce(Reduce::Max, &mut bounds).expect("all three are there");
    assert!(bounds[0] + bounds[1] <= more as f64 && bounds[0] >= LAST as f64, "{bounds:?}");
    let mut plan = plan(&comm, exchange).expect("a plan of three");
    let done = -bounds[1] as usize;
    for number in done..TRANSFORMS.max(done + AFTER) {
        there_and_back(&mut plan, number).expect("all three are there");
    }
    let near = (0..comm.size()).filter(|&other| comm.host(other) == comm.host(comm.rank())).count();
    assert_eq!(shared_files(), near > 1, "there is shared memory where there are neighbours");
}

/// Whether this process has shared memory. None of it is a file that would stay.
fn shared_files() -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("this is Linux");
    assert!(!maps.contains("/dev/shm"), "{maps}");
    let mut shared = maps.lines().filter(|line| line.contains("rw-s")).peekable();
    let there = shared.peek().is_some();
    for line in shared {
        assert!(line.contains("/memfd:thriffty") && line.ends_with("(deleted)"), "{line}");
    }
    there
}

fn plan(comm: &dyn Comm, exchange: Exchange) -> Result<Plan<C2c, 3>, Error> {
    Plan::<C2c, 3>::c2c(comm, Grid::new([16, 12, 10])?).exchange(exchange).build()
}

fn there_and_back(plan: &mut Plan<C2c, 3>, number: usize) -> Result<(), Error> {
    let x: Vec<C64> = random(plan.input_len(), number as u64);
    let mut spectrum = vec![C64::default(); plan.output_len()];
    let mut back = x.clone();
    plan.forward_into(&x, &mut spectrum)?;
    plan.inverse_into(&spectrum, &mut back)?;
    let far = x.iter().zip(&back).map(|(x, y)| (x - y).norm()).fold(0.0, f64::max);
    assert!(far <= 4.0 * bound(f64::EPSILON, 1920), "off by {far:e}");
    Ok(())
}

/// Transforms until one fails; later calls must fail in the same way.
fn until_it_fails(comm: &GroupComm, exchange: Exchange) -> (usize, Error) {
    let mut plan = plan(comm, exchange).expect("a plan of four");
    for number in 0.. {
        if comm.rank() == VICTIM && number == LAST {
            kill_in_the_midst();
        }
        if let Err(error) = there_and_back(&mut plan, number) {
            for _ in 0..2 {
                assert_eq!(there_and_back(&mut plan, number), Err(error.clone()));
                assert_eq!(plan.agree(Ok(())), Err(error.clone()));
            }
            assert_eq!(comm.barrier(), Err(error.clone()));
            assert_eq!(comm.dup().map(drop), Err(error.clone()));
            return (number, error);
        }
    }
    unreachable!("the loop has no end");
}

/// Kills this process at any moment of the transforms to come.
fn kill_in_the_midst() {
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_micros(u64::from(std::process::id() % 7) * 100));
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
    });
}
