//! The same checks with MPI processes as ranks.

use fft_core::{Expose, Link, Work};
use thriffty::mpi::rsmpi::{ffi, topology::SimpleCommunicator, traits::AsRaw};
use thriffty::mpi::{self, MpiComm};
use thriffty::planning::{Exchange, Memory};
use thriffty::{C2c, Comm, Error, Kind, R2c};

use crate::common::check::{Case, check};
use crate::common::{
    arrays, beyond, cases, failures, job, leaving, little, lossy, one_axis, plan_cache, plans,
    same_result,
};
use crate::{as_rank, buffers, together, windows};

#[test]
fn one_rank() {
    job::must_succeed(1, "checks::body");
}

#[test]
fn two_ranks() {
    job::must_succeed(2, "checks::body");
}

#[test]
fn three_ranks() {
    job::must_succeed(3, "checks::body");
}

#[test]
fn four_ranks() {
    job::must_succeed(4, "checks::body");
}

#[test]
fn six_ranks() {
    job::must_succeed(6, "checks::body");
}

#[test]
fn ranks_of_several_hosts() {
    for ranks in [3, 4, 6] {
        job::must_succeed(ranks, "checks::hosts_body");
    }
}

#[test]
#[ignore = "started under mpirun by another test"]
fn hosts_body() {
    as_rank(|_, _| several_hosts().unwrap_or_else(|error| panic!("{error}")));
}

#[test]
fn a_process_that_returns_early_is_an_error_for_the_others() {
    for ranks in [2, 4] {
        job::must_succeed(ranks, "checks::early_body");
    }
}

#[test]
#[ignore = "started under mpirun by another test"]
fn early_body() {
    as_rank(|world, _| {
        let all = || -> Result<(), Error> {
            leaving::early(world)?;
            leaving::all_but_one(world)?;
            leaving::in_any_order(world)?;
            // Under way when MPI ends.
            leaving::all_but_one(world)?;
            leaving::kept_by_one(world)
        };
        all().unwrap_or_else(|error| panic!("{error}"));
    });
}

/// By `cargo test --features mpi --test mpi -- --ignored --exact checks::more_than_2_gib
/// --nocapture`: takes 9 GiB of memory, and prints times.
#[test]
#[ignore = "takes 9 GiB of memory"]
fn more_than_2_gib() {
    job::must_succeed(2, "checks::long_body");
}

/// Something that must be true on any communicator.
type Check = fn(&dyn Comm) -> Result<(), Error>;

/// Everything that is checked on one rank of a job. A failed check ends the whole job.
#[test]
#[ignore = "started under mpirun by the other tests"]
fn body() {
    as_rank(|world, library| {
        assert!(mpi::init().is_err(), "a second initialisation is an error");
        let checks: [(&str, Check); 22] = [
            ("one axis", cases::one_axis),
            ("two axes", cases::two_axes),
            ("three axes", cases::three_axes),
            ("four axes", cases::four_axes),
            ("many peers", cases::many_neighbours),
            ("large planes", cases::large_planes),
            ("more than caches hold", beyond::all),
            ("random tilings", cases::random_tilings),
            ("one axis that ranks share", |comm| {
                (0..12).try_for_each(|seed| one_axis::check_random(comm, seed, 3000))
            }),
            ("the same bits", |comm| same_result::check_some(comm, 1000..1016)),
            ("sub-communicators", sub_communicators),
            ("communicators of others", communicators_of_others),
            ("overlapping communicators", |comm| {
                plans::overlapping(
                    comm,
                    &part_of_world(comm.rank() % 2, comm.rank())?,
                    &Exchange::ALL,
                )
            }),
            ("wires", |comm| lossy::all(comm, Memory::Ample)),
            ("little memory", little_memory),
            ("shared arrays", arrays::all),
            ("more than can be shared", more_than_can_be_shared),
            ("peers that leave", neighbours_that_leave),
            ("more than can be counted", windows::more_than_can_be_counted),
            ("messages packed together", together::all),
            ("a thousand plans", a_thousand_plans),
            ("cached plans", plan_cache::all),
        ];
        windows::all(world).unwrap_or_else(|error| panic!("windows: {error}"));
        buffers::all(world).unwrap_or_else(|error| panic!("buffers: {error}"));
        for (name, check) in checks {
            check(world).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        if world.size() > 1 {
            failures::all(world).unwrap_or_else(|error| panic!("failures: {error}"));
        }
        if world.rank() == 0 {
            println!("{} ranks: all is well ({})", world.size(), library.library());
        }
    });
}

#[test]
#[ignore = "started under mpirun by another test"]
fn long_body() {
    as_rank(|world, _| windows::more_than_2_gib(world).unwrap_or_else(|error| panic!("{error}")));
}

/// Six ranks are tested as threads.
fn little_memory(world: &dyn Comm) -> Result<(), Error> {
    if world.size() <= 4 { little::all(world) } else { Ok(()) }
}

/// By as many ranks as have pencils and so groups within the whole. One rank is tested as a thread.
fn a_thousand_plans(world: &dyn Comm) -> Result<(), Error> {
    if world.size() == 4 { plans::come_and_go(world, &Exchange::ALL) } else { Ok(()) }
}

fn part_of_world(color: usize, key: usize) -> Result<MpiComm, Error> {
    MpiComm::of(&SimpleCommunicator::world())?.split(color, key)
}

/// A split has the ranks of its colour in the order of the keys, and transforms by itself.
fn sub_communicators(world: &dyn Comm) -> Result<(), Error> {
    let color = world.rank() % 2;
    // Ranks of a group in reverse order.
    let part = part_of_world(color, world.size() - world.rank())?;
    assert_eq!(part.size(), (world.size() + 1 - color) / 2);
    assert_eq!(part.rank(), part.size() - 1 - world.rank() / 2);
    let case = Case::new([9, 8], [Kind::C2C, Kind::R2C]).tiling(5).batch(2);
    check::<R2c<f32>, 2>(&part, &case)
}

/// Ranks that share memory with some and send messages to others, in one exchange. All are on one
/// machine, so several hosts are simulated.
fn several_hosts() -> Result<(), Error> {
    let world = SimpleCommunicator::world();
    let cases: &[&[usize]] = match MpiComm::of(&world)?.size() {
        3 => &[&[0, 1, 1]],
        4 => &[&[0, 0, 1, 1], &[0, 1, 0, 1]],
        6 => &[&[0, 1, 0, 1, 0, 1], &[0, 0, 2, 2, 2, 1]],
        _ => &[],
    };
    for hosts in cases {
        let comm = MpiComm::of(&world)?.on_hosts(hosts);
        let links = [Link::Shared, Link::Remote];
        let [near, far] =
            links.map(|link| (0..comm.size()).filter(|&r| comm.link(r) == link).count());
        let own = hosts.iter().filter(|host| **host == hosts[comm.rank()]).count();
        assert_eq!((near, far), (own - 1, comm.size() - own), "{hosts:?}");
        for (exchange, memory) in plans::everything() {
            let case = Case::new([12, 10, 8], [Kind::C2C; 3]).exchange(exchange).memory(memory);
            check::<C2c, 3>(&comm, &case)?;
            let case = Case::new([7, 6, 9], [Kind::C2C, Kind::Dct2, Kind::R2C]);
            let case = case.exchange(exchange).memory(memory).tiling(3).batch(2);
            check::<R2c<f32>, 3>(&comm, &case)?;
        }
        // With six ranks only if hosts have unequal parts; four ranks cover equal ones.
        if comm.size() < 6 || *hosts == [0, 0, 2, 2, 2, 1] {
            arrays::all(&comm)?;
        }
        leaving::early(&comm)?;
    }
    Ok(())
}

/// If one rank requests more shared memory than there is, all ranks of its host get an error at
/// once, not when the memory is touched.
fn more_than_can_be_shared(world: &dyn Comm) -> Result<(), Error> {
    let Some(mut node_memory) = world.node_memory()? else { return Ok(()) };
    let bytes = if world.rank() + 1 == world.size() { 1 << 46 } else { 100 };
    let error = node_memory.allocate(bytes).map(drop).unwrap_err();
    assert!(error.to_string().contains("/dev/shm"), "{error}");
    let mut memory = node_memory.allocate(100)?;
    memory.bytes_mut().fill(1);
    Ok(())
}

/// A process that drops its node memory while others use it is no neighbour any more: they get an
/// error, and nobody waits when they drop theirs.
fn neighbours_that_leave(world: &dyn Comm) -> Result<(), Error> {
    for culprit in [0, world.size() - 1] {
        let Some(mut node_memory) = world.node_memory()? else { return Ok(()) };
        let memory = node_memory.allocate(100)?;
        node_memory.exposure_epoch(Expose::Read(memory.bytes()), &mut |_| Ok(()))?;
        if world.rank() != culprit {
            let mut visited = false;
            let work: Work<'_> = &mut |_| {
                visited = true;
                Ok(())
            };
            let found = node_memory.exposure_epoch(Expose::Read(memory.bytes()), work);
            assert_eq!(found, Err(Error::Left { gone: culprit }));
            assert!(!visited);
        }
        drop(memory);
        drop(node_memory);
        world.barrier()?;
    }
    Ok(())
}

/// Communicators that the caller made with rsmpi or in C, and still owns afterwards.
fn communicators_of_others(world: &dyn Comm) -> Result<(), Error> {
    let theirs = SimpleCommunicator::world();
    let case = Case::new([7, 4, 6], [Kind::C2C, Kind::C2C, Kind::R2C]);
    for _ in 0..3 {
        let comm = MpiComm::of(&theirs)?;
        assert_eq!((comm.rank(), comm.size()), (world.rank(), world.size()));
        check::<R2c, 3>(&comm, &case)?;
        // SAFETY: the world communicator lives until MPI is finalised, which `body` does last.
        let comm = unsafe { MpiComm::from_raw(theirs.as_raw()) }?;
        check::<R2c, 3>(&comm, &case.clone().tiling(4))?;
        // Messages that are sent in pieces, the last of which is shorter, and that wait for each
        // other to leave.
        for exchange in Exchange::ALL {
            let case = case.clone().batch(3).exchange(exchange);
            check::<R2c, 3>(&MpiComm::of(&theirs)?.with_pieces_of(50), &case)?;
        }
        // SAFETY: a constant of the library; COMM_SELF lives as long as the world.
        let alone = unsafe { MpiComm::from_raw(ffi::RSMPI_COMM_SELF) }?;
        assert_eq!((alone.rank(), alone.size()), (0, 1));
        check::<R2c, 3>(&alone, &case)?;
    }
    Ok(())
}
