//! The same checks with MPI processes as ranks.
//!
//! Run by `cargo test --features mpi --test mpi`: each test below starts this very program again under
//! `mpirun`, where only [`body`] runs. Without `mpirun` they print "skipped".
#![cfg(feature = "mpi")]

mod common;

use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use common::check::{Case, check};
use common::data::{C64, bound, random};
use common::{cases, failures, windows};
use thriffty::mpi::rsmpi::{ffi, topology::SimpleCommunicator, traits::AsRaw};
use thriffty::mpi::{self, MpiComm};
use thriffty::{Algorithm, C2c, Comm, Error, Grid, Kind, Plan, R2c};

/// How often a job is looked after.
const POLL: Duration = Duration::from_millis(20);
/// How many looks a job may take: 100 seconds, many times what it needs. Looks are counted and not the time,
/// which goes on while all of this is stopped.
const PATIENCE: usize = 5000;

/// Jobs share the cores of one machine, so that they run one after the other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn under_mpirun(ranks: usize) {
    start(ranks, "body");
}

fn start(ranks: usize, body: &str) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let program = std::env::current_exe().expect("the test's own program");
    let mut command = Command::new("mpirun");
    command
        .args(["-n", &ranks.to_string()])
        .arg(program)
        .args(["--ignored", "--exact", body, "--nocapture", "--test-threads=1"])
        .envs([
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
            ("OMPI_MCA_mpi_yield_when_idle", "1"),
            (EXPECTED, &ranks.to_string()),
        ])
        .stdin(Stdio::null());
    let mut job = match command.spawn() {
        Ok(job) => job,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return println!("skipped: there is no mpirun");
        }
        Err(error) => panic!("mpirun -n {ranks}: {error}"),
    };
    let ended = (0..PATIENCE).find_map(|_| {
        std::thread::sleep(POLL);
        job.try_wait().expect("the job is ours")
    });
    let Some(status) = ended else {
        terminate(&mut job);
        panic!("mpirun -n {ranks} did not end");
    };
    assert!(status.success(), "mpirun -n {ranks} failed: {status}");
}

/// Asks `mpirun` to end its processes, which it cannot do when it is killed at once.
fn terminate(job: &mut std::process::Child) {
    let pid = job.id().to_string();
    if Command::new("kill").args(["-TERM", &pid]).status().is_ok_and(|status| status.success()) {
        std::thread::sleep(Duration::from_secs(3));
    }
    // It may have ended by now.
    let _ = job.kill();
    let _ = job.wait();
}

#[test]
fn one_rank() {
    under_mpirun(1);
}

#[test]
fn two_ranks() {
    under_mpirun(2);
}

#[test]
fn three_ranks() {
    under_mpirun(3);
}

#[test]
fn four_ranks() {
    under_mpirun(4);
}

#[test]
fn six_ranks() {
    under_mpirun(6);
}

#[test]
#[ignore = "takes 5 GiB of memory"]
fn more_than_2_gib() {
    start(1, "long_body");
}

/// How many ranks there must be: a job of single processes, started by another MPI's `mpirun`, would pass.
const EXPECTED: &str = "THRIFFTY_TEST_RANKS";

/// Something that must be true on any communicator.
type Check = fn(&dyn Comm) -> Result<(), Error>;

/// Everything that is checked on one rank of a job. A failed check ends the whole job.
#[test]
#[ignore = "started under mpirun by the other tests"]
fn body() {
    as_rank(|world, library| {
        let checks: [(&str, Check); 8] = [
            ("one axis", cases::one_axis),
            ("two axes", cases::two_axes),
            ("three axes", cases::three_axes),
            ("four axes", cases::four_axes),
            ("random tilings", cases::random_tilings),
            ("sub-communicators", sub_communicators),
            ("two plans", two_plans),
            ("communicators of others", communicators_of_others),
        ];
        windows::all(world).unwrap_or_else(|error| panic!("windows: {error}"));
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

/// Runs one rank of a job.
fn as_rank(check: impl FnOnce(&MpiComm, &mpi::Mpi)) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        mpi::abort(1);
    }));
    let library = mpi::init().expect("MPI is initialised once");
    {
        let world = library.world().expect("the world");
        let expected = std::env::var(EXPECTED).expect("started by the other tests");
        assert_eq!(world.size().to_string(), expected, "ranks of the job");
        assert!(mpi::init().is_err(), "a second initialisation is an error");
        check(&world, &library);
    }
    drop(library);
}

/// Every group of a split transforms by itself, different things at the same time, and so does the whole.
fn sub_communicators(world: &dyn Comm) -> Result<(), Error> {
    let color = world.rank() % 2;
    // Ranks of a group in reverse order.
    let part = world.split(color, world.size() - world.rank())?;
    assert_eq!(part.size(), (world.size() + 1 - color) / 2);
    assert_eq!(part.rank(), part.size() - 1 - world.rank() / 2);
    for exchange in Algorithm::ALL {
        if color == 0 {
            let case = Case::new([6, 7, 5], [Kind::C2C; 3]).exchange(exchange);
            check::<C2c, 3>(part.as_ref(), &case)?;
        } else {
            let case = Case::new([9, 8], [Kind::C2C, Kind::R2C]).exchange(exchange);
            check::<R2c<f32>, 2>(part.as_ref(), &case.tiling(5).howmany(2))?;
        }
        let case = Case::new([8, 9], [Kind::Dct2, Kind::R2C]).exchange(exchange);
        check::<R2c, 2>(world, &case)?;
    }
    Ok(())
}

/// Two plans on one communicator, used in turn, one made and dropped while the other lives.
fn two_plans(world: &dyn Comm) -> Result<(), Error> {
    let grids = [Grid::new([12, 10, 8])?, Grid::new([5, 7, 9])?];
    let mut first = Plan::<C2c, 3>::c2c(world, grids[0]).build()?;
    for exchange in Algorithm::ALL {
        let mut second = Plan::<C2c, 3>::c2c(world, grids[1]).exchange(exchange).build()?;
        let (x, y): (Vec<C64>, Vec<C64>) =
            (random(first.input_len(), 1), random(second.input_len(), 2));
        let mut spectra =
            [vec![C64::default(); first.output_len()], random(second.output_len(), 3)];
        let mut back = [vec![C64::default(); x.len()], vec![C64::default(); y.len()]];
        first.forward_into(&x, &mut spectra[0])?;
        second.forward_into(&y, &mut spectra[1])?;
        first.inverse_into(&spectra[0], &mut back[0])?;
        second.inverse_into(&spectra[1], &mut back[1])?;
        for (found, expected) in [(&back[0], &x), (&back[1], &y)] {
            let worst = found.iter().zip(expected).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
            // There and back, of numbers below √2 in size; 960 is the larger grid.
            assert!(worst <= 4.0 * bound(f64::EPSILON, 960), "{worst:.2e} after there and back");
        }
    }
    Ok(())
}

/// Communicators that the caller made with rsmpi or in C, and which stay the caller's.
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
        // Messages that travel in pieces, the last of them shorter than the others.
        check::<R2c, 3>(&MpiComm::of(&theirs)?.with_pieces_of(100), &case)?;
        // SAFETY: a constant of the library; COMM_SELF lives as long as the world.
        let alone = unsafe { MpiComm::from_raw(ffi::RSMPI_COMM_SELF) }?;
        assert_eq!((alone.rank(), alone.size()), (0, 1));
        check::<R2c, 3>(&alone, &case)?;
    }
    Ok(())
}
