//! The checks of all communicators, with the processes of a group as ranks.

use thriffty::group::GroupComm;
use thriffty::planning::{Exchange, Memory};
use thriffty::{Comm, Error};

use crate::common::{arrays, beyond, cases, failures, leaving, little, lossy, plan_cache, plans};
use crate::processes;

/// Something that must be true on any communicator.
type Check = fn(&dyn Comm) -> Result<(), Error>;

#[test]
fn one_process() {
    processes::must_succeed(1, "checks::body", "");
}

#[test]
fn two_processes() {
    processes::must_succeed(2, "checks::body", "");
}

#[test]
fn three_processes() {
    processes::must_succeed(3, "checks::body", "");
}

#[test]
fn four_processes() {
    processes::must_succeed(4, "checks::body", "");
}

#[test]
fn six_processes() {
    processes::must_succeed(6, "checks::body", "");
}

/// Everything that is checked on one rank. If a check fails, the process ends, and the others get
/// an error.
#[test]
#[ignore = "started by the other tests"]
fn body() {
    let checks: [(&str, Check); 16] = [
        ("one axis", cases::one_axis),
        ("two axes", cases::two_axes),
        ("three axes", cases::three_axes),
        ("four axes", cases::four_axes),
        ("many peers", cases::many_neighbours),
        ("large planes", cases::large_planes),
        ("more than caches hold", beyond::all),
        ("random tilings", cases::random_tilings),
        ("data that returns", cases::returning),
        ("wires", |comm| lossy::all(comm, Memory::Ample)),
        ("little memory", little_memory),
        ("shared arrays", arrays::all),
        ("more than can be shared", more_than_can_be_shared),
        ("a thousand plans", a_thousand_plans),
        ("cached plans", plan_cache::all),
        ("ranks that leave", ranks_that_leave),
    ];
    let world = GroupComm::new(processes::world()).expect("a group");
    assert_eq!([world.rank(), world.size()], processes::place());
    assert_eq!((world.name(), world.topology().hosts()), ("group", 1));
    for (name, check) in checks {
        check(&world).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    if world.size() > 1 {
        failures::all(&world).unwrap_or_else(|error| panic!("failures: {error}"));
    }
}

/// More ranks are tested as threads.
fn little_memory(world: &dyn Comm) -> Result<(), Error> {
    if world.size() <= 2 { little::all(world) } else { Ok(()) }
}

/// By as many ranks as have pencils and so groups within the whole. One rank is tested as a thread.
fn a_thousand_plans(world: &dyn Comm) -> Result<(), Error> {
    if world.size() == 4 { plans::come_and_go(world, &Exchange::ALL) } else { Ok(()) }
}

fn ranks_that_leave(world: &dyn Comm) -> Result<(), Error> {
    leaving::early(world)?;
    leaving::all_but_one(world.dup()?.as_ref())?;
    leaving::in_any_order(world)?;
    leaving::kept_by_one(world)
}

/// If one rank requests more shared memory than there is, all ranks get an error at once, not when
/// the memory is touched.
fn more_than_can_be_shared(world: &dyn Comm) -> Result<(), Error> {
    let Some(mut node_memory) = world.node_memory()? else { return Ok(()) };
    let bytes = if world.rank() + 1 == world.size() { 1 << 46 } else { 100 };
    let error = node_memory.allocate(bytes).map(drop).unwrap_err();
    assert!(matches!(error, Error::SharedMemory { .. }), "{error}");
    let mut memory = node_memory.allocate(100)?;
    memory.bytes_mut().fill(1);
    Ok(())
}
