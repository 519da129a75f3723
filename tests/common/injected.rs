//! Failures put into the device of one rank, through the seams that the library has anyway.

use fft_core::{Cpu, Executor, Host, Layout, MakeExchange};
use thriffty::{
    Algorithm, Comm, Direction, Error, ErrorKind, Grid, Kind, Precision, Problem, ProcGrid, Recipe,
};

use super::failures::{culprits, everywhere};
use super::faulty::{Fault, Faulty, Switch};
use super::weak::{self, Weak};

/// Two reshapes and messages between all ranks; for ranks that share memory, which are on one host here, data that
/// stays and a transform across ranks.
fn recipe(ranks: usize, exchange: Algorithm) -> Result<Recipe<3>, Error> {
    let grid = Grid::new([8, 12, 10])?;
    let cut = |shape| Layout::even(grid, ProcGrid::new(shape), ranks);
    let shared = exchange == Algorithm::Shared;
    let input = cut([ranks, 1, 1]);
    let output = if shared { input.clone() } else { cut([1, 1, ranks]) };
    let mut problem = Problem::new([Kind::C2C; 3], true, Precision::F64, input, output)?;
    problem.exchange = exchange;
    problem.hosts = vec![0; ranks];
    Recipe::new(problem)
}

pub(crate) type Bound<'a> = Executor<f64, Host<Faulty<'a, f64>>>;

pub(crate) fn bind<'a>(
    comm: &dyn Comm,
    fault: &'a Switch,
    exchange: Algorithm,
    make: MakeExchange<'_>,
) -> Result<Bound<'a>, Error> {
    let device = Host(Faulty { cpu: Cpu::default(), fault });
    Executor::bind(&recipe(comm.size(), exchange)?, comm.dup()?, device, make)
}

/// The spectrum of a constant, checked when the transform succeeds.
pub(crate) fn transform_of_ones(bound: &mut Bound<'_>, exchange: Algorithm) -> Result<(), Error> {
    let (rank, ranks) = (bound.comm().rank(), bound.comm().size());
    let recipe = recipe(ranks, exchange)?;
    let reals = |layout: &Layout<3>| 2 * layout.brick(rank).points();
    let src: Vec<f64> = [1.0, 0.0].repeat(reals(&recipe.problem().input) / 2);
    let mut dst = vec![f64::NAN; reals(&recipe.problem().output)];
    bound.run(Direction::Forward, Some(&src), &mut dst)?;
    // All but the mean cancel, to a few units in the last place of the sum of 960 ones.
    let mean = if rank == 0 { 960.0 } else { 0.0 };
    assert!((dst[0] - mean).abs() < 1e-11, "{} instead of {mean}", dst[0]);
    assert!(dst[1..].iter().all(|x| x.abs() < 1e-11), "a constant has only a mean");
    Ok(())
}

/// The same on every rank: an error of this rank, kind and beginning.
fn assert_of(error: &Error, culprit: usize, expected: ErrorKind, beginning: &str) {
    match error {
        Error::OnRank { rank, kind, message } if (*rank, *kind) == (culprit, expected) => {
            assert!(message.starts_with(beginning), "{message}");
        }
        other => panic!("{other:?} instead of {expected:?} on {culprit}"),
    }
}

/// One rank has no memory for buffers, or for tables.
pub(crate) fn memory(comm: &dyn Comm) -> Result<(), Error> {
    for culprit in culprits(comm) {
        for fault in [Fault::Buffer, Fault::Tables] {
            for exchange in Algorithm::ALL {
                let here = if comm.rank() == culprit { fault } else { Fault::Nothing };
                let switch = Switch::new(here);
                let bound = bind(comm, &switch, exchange, &fft_comm::exchange).map(drop);
                let error = everywhere(comm, &format!("{fault:?} on {culprit}"), bound)?;
                let beginning = format!("rank {culprit} could not allocate");
                assert_of(&error, culprit, ErrorKind::Memory, &beginning);
            }
        }
    }
    Ok(())
}

/// One rank cannot read its messages; when it can again, all is well again.
pub(crate) fn damage(comm: &dyn Comm) -> Result<(), Error> {
    for culprit in culprits(comm) {
        // Where memory is shared there are no messages.
        for exchange in Algorithm::ALL.into_iter().filter(|a| *a != Algorithm::Shared) {
            let switch = Switch::new(Fault::Nothing);
            let mut bound = bind(comm, &switch, exchange, &fft_comm::exchange)?;
            if comm.rank() == culprit {
                switch.set(Fault::Message);
            }
            let result = transform_of_ones(&mut bound, exchange);
            switch.set(Fault::Nothing);
            let error = everywhere(comm, &format!("{exchange} damaged on {culprit}"), result)?;
            let beginning = format!("rank {culprit} received");
            assert_of(&error, culprit, ErrorKind::Message, &beginning);
            transform_of_ones(&mut bound, exchange)?;
        }
    }
    Ok(())
}

/// Messages of other sizes than expected, to or from one rank. The exchange is not harmed by it.
pub(crate) fn sizes(comm: &dyn Comm) -> Result<(), Error> {
    use Algorithm::{Alltoallv, KWay, P2p, Pipelined};
    let pairs = [P2p, Pipelined, KWay(2), KWay(4)];
    let faults = [weak::Fault::Short, weak::Fault::Narrow];
    let faults = faults.into_iter().flat_map(|fault| pairs.map(|exchange| (exchange, fault)));
    let device = Switch::new(Fault::Nothing);
    for (exchange, fault) in faults.chain([(Alltoallv, weak::Fault::Narrow)]) {
        // MPI's collective ends the job; threads receive in slots of the sender, and make no room.
        if fault == weak::Fault::Narrow && (comm.name() == "mpi") == (exchange == Alltoallv) {
            continue;
        }
        for culprit in culprits(comm) {
            let what = format!("{fault:?} on {culprit}, {exchange}");
            let here = if comm.rank() == culprit { fault } else { weak::Fault::Nothing };
            let mut bound = bind(&Weak::new(comm, here)?, &device, exchange, &fft_comm::exchange)?;
            // Twice: the first failure must leave the exchange in order.
            for _ in 0..2 {
                let error = everywhere(comm, &what, transform_of_ones(&mut bound, exchange))?;
                let Error::OnRank { rank, kind, .. } = error else { panic!("{what}: {error:?}") };
                match fault {
                    // The lowest rank that it sends to.
                    weak::Fault::Short => assert_eq!(rank, usize::from(culprit == 0), "{what}"),
                    // What is lost may also be missed by others, to whom it was to be forwarded.
                    _ => assert!(rank == culprit || matches!(exchange, KWay(_)), "{what}: {rank}"),
                }
                assert_eq!(kind, ErrorKind::Message, "{what}: {error}");
            }
        }
    }
    Ok(())
}
