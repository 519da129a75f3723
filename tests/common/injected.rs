//! Failures injected into the device of one rank, through interfaces that the library has anyway.

use std::collections::BTreeMap;
use std::sync::Mutex;

use fft_comm::exchanger_in;
use fft_core::{AnyExecutor, Cpu, Executor, Layout, MakeExchanger, locked};
use thriffty::planning::{Direction, Exchange, Memory, Precision, Problem, ProcGrid, Recipe};
use thriffty::{Brick, Comm, Error, ErrorKind, Grid, Kind};

use super::failures::{culprits, everywhere};
use super::faulty::{Fault, Switch};
use super::weak::{self, Weak};

/// What fails: how messages travel, in how much memory, and between whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) exchange: Exchange,
    pub(crate) memory: Memory,
    pub(crate) who: Who,
    /// Fields at once.
    pub(crate) batch: usize,
}

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Every rank to every rank, there and back; if all share memory, data that stays and a
    /// transform across ranks.
    Everyone,
    /// Each rank to the one after it, in one reshape.
    Next,
    /// The ranks of a row to each other, and then the ranks of a column: 4 ranks or 6.
    Rows,
}

/// Both, with messages in one round and in several.
pub(crate) const MEMORY: [Memory; 2] = [Memory::Ample, Memory::Least];
/// More than one, because chunks have at least 8 KiB for every rank.
pub(crate) const BATCH: usize = 3;
const SHAPE: [usize; 3] = [24, 20, 18];

impl Setup {
    /// Between all ranks.
    pub(crate) fn new(exchange: Exchange, memory: Memory) -> Self {
        Self { exchange, memory, who: Who::Everyone, batch: BATCH }
    }

    /// The same for all exchanges.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        MEMORY.into_iter().flat_map(|memory| Exchange::ALL.map(|all| Self::new(all, memory)))
    }

    fn problem(&self, comm: &dyn Comm) -> Result<Problem, Error> {
        let (grid, ranks) = (Grid::new(SHAPE)?, comm.size());
        let cut = |shape| Layout::even(grid, ProcGrid::new(shape), ranks);
        let hosts: Vec<_> = (0..ranks).map(|rank| comm.host(rank)).collect();
        let input = cut([ranks, 1, 1]);
        let (input, output) = match self.who {
            Who::Everyone => (input.clone(), input),
            Who::Next => (input, Layout::new(grid, shifted(ranks), ranks)?),
            Who::Rows => (cut([1, 2, ranks / 2]), cut([2, ranks / 2, 1])),
        };
        let kinds = match self.who {
            Who::Next => [Kind::None, Kind::C2C, Kind::C2C],
            _ => [Kind::C2C; 3],
        };
        let mut problem = Problem::new(kinds, true, Precision::F64, input, output)?;
        (problem.options.exchange, problem.options.memory, problem.hosts) =
            (self.exchange, self.memory, hosts);
        problem.batch = self.batch;
        Ok(problem)
    }
}

/// Slabs along the first axis; each, except the last, ends a plane before the even one.
fn shifted(ranks: usize) -> Vec<Brick<3>> {
    let first = |rank: usize| SHAPE[0] * rank / ranks - usize::from((1..ranks).contains(&rank));
    let slab = |rank| Brick { lo: [first(rank), 0, 0], hi: [first(rank + 1), SHAPE[1], SHAPE[2]] };
    (0..ranks).map(slab).collect()
}

pub(crate) type Bound = Executor<f64, Cpu<f64>>;

/// Recipes by setup and hosts. Each is bound many times, and planning would take most of the time.
static RECIPES: Mutex<BTreeMap<String, Recipe>> = Mutex::new(BTreeMap::new());

fn recipe(comm: &dyn Comm, setup: Setup) -> Result<Recipe, Error> {
    let problem = setup.problem(comm)?;
    let key = format!("{setup:?} on {:?}", problem.hosts);
    let mut recipes = locked(&RECIPES);
    if let Some(recipe) = recipes.get(&key) {
        return Ok(recipe.clone());
    }
    let recipe = Recipe::new(problem)?;
    recipes.insert(key, recipe.clone());
    Ok(recipe)
}

pub(crate) fn bind(comm: &dyn Comm, fault: &Switch, setup: Setup) -> Result<Bound, Error> {
    bind_with(comm, fault, setup, exchanger_in(setup.memory))
}

/// With exchanges of the test's own.
pub(crate) fn bind_with(
    comm: &dyn Comm,
    fault: &Switch,
    setup: Setup,
    make: MakeExchanger<'_>,
) -> Result<Bound, Error> {
    let recipe = recipe(comm, setup)?;
    let reshapes = recipe.to_string().matches("(exchange").count();
    let expected = if setup.who == Who::Next { 1 } else { 2 };
    assert_eq!(reshapes, expected, "{recipe}");
    Executor::bind(&recipe, comm.dup()?, fault.cpu(), make)
}

/// The spectrum of ones, checked when the transform succeeds.
pub(crate) fn transform_of_ones(bound: &mut Bound, setup: Setup) -> Result<(), Error> {
    let (rank, problem) = (bound.comm().rank(), setup.problem(bound.comm())?);
    let (input, brick) = (problem.input.brick(rank), problem.output.brick(rank));
    let src: Vec<f64> = [1.0, 0.0].repeat(input.points() * BATCH);
    let mut dst = vec![f64::NAN; 2 * brick.points() * BATCH];
    bound.run(Direction::Forward, Some(&src), &mut dst)?;
    let along = |axis: usize, at: usize| match problem.kinds[axis] {
        Kind::None => 1.0,
        _ if at == 0 => SHAPE[axis] as f64,
        _ => 0.0,
    };
    let mut found = dst.chunks_exact(2);
    for _ in 0..BATCH {
        for (i, j, k) in brick.range(0).flat_map(|i| {
            let rows = brick.range(1).map(move |j| (i, j));
            rows.flat_map(|(i, j)| brick.range(2).map(move |k| (i, j, k)))
        }) {
            let (found, expected) =
                (found.next().expect("one for each"), along(0, i) * along(1, j) * along(2, k));
            // All but the mean cancel, to a few units in the last place of the sum of 8640 ones.
            let far = (found[0] - expected).abs().max(found[1].abs());
            assert!(far < 1e-10, "{found:?} instead of {expected}");
        }
    }
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

/// One rank has no memory for buffers, for tables, or for messages.
pub(crate) fn memory(comm: &dyn Comm) -> Result<(), Error> {
    let messages = (Fault::Nothing, weak::Fault::Reserve);
    let faults = [Fault::Buffer, Fault::Tables].map(|fault| (fault, weak::Fault::Nothing));
    for culprit in culprits(comm) {
        for (device, link) in faults.into_iter().chain([messages]) {
            for setup in Setup::all() {
                // If memory is shared, there are no messages.
                if (device, setup.exchange) == (Fault::Nothing, Exchange::Shared) {
                    continue;
                }
                let bad = comm.rank() == culprit;
                let switch = Switch::new(if bad { device } else { Fault::Nothing });
                let link = if bad { link } else { weak::Fault::Nothing };
                let bound = bind(&Weak::new(comm, link)?, &switch, setup).map(drop);
                let what = format!("{device:?}, {link:?} on {culprit}, {setup:?}");
                let error = everywhere(comm, &what, bound)?;
                let beginning = format!("rank {culprit} could not allocate");
                assert_of(&error, culprit, ErrorKind::Memory, &beginning);
            }
        }
    }
    Ok(())
}

/// One rank cannot access the memory of its host, or gets none that the others can access, which
/// threads do not need.
pub(crate) fn shared(comm: &dyn Comm) -> Result<(), Error> {
    use weak::Fault::{NodeMemory, Nothing, Room};
    let faults =
        [(NodeMemory, ErrorKind::Transport, "a call failed"), (Room, ErrorKind::Memory, "")];
    let faults = if comm.name() == "mpi" { &faults[..] } else { &faults[..1] };
    let switch = Switch::new(Fault::Nothing);
    let setups = MEMORY.map(|memory| Setup::new(Exchange::Shared, memory));
    let all = faults.iter().flat_map(|fault| setups.map(move |setup| (*fault, setup)));
    // Slots of messages are shared if a host has several ranks.
    let slots = (comm.topology().ranks_per_host() > 1).then_some(Exchange::Hosts);
    let slots = slots.map(|hosts| Setup::new(hosts, Memory::Ample));
    let no_slots = slots.map(|setup| ((Room, ErrorKind::Memory, ""), setup));
    for ((fault, kind, beginning), setup) in all.chain(no_slots) {
        for culprit in culprits(comm) {
            let here = if comm.rank() == culprit { fault } else { Nothing };
            let bound = bind(&Weak::new(comm, here)?, &switch, setup).map(drop);
            let error = everywhere(comm, &format!("{fault:?} on {culprit}, {setup:?}"), bound)?;
            assert_of(&error, culprit, kind, beginning);
        }
        transform_of_ones(&mut bind(&Weak::new(comm, Nothing)?, &switch, setup)?, setup)?;
    }
    Ok(())
}

/// One rank cannot read its messages; when it can again, all is well again.
pub(crate) fn damage(comm: &dyn Comm) -> Result<(), Error> {
    for culprit in culprits(comm) {
        // If memory is shared, there are no messages.
        for setup in Setup::all().filter(|setup| setup.exchange != Exchange::Shared) {
            let switch = Switch::new(Fault::Nothing);
            let mut bound = bind(comm, &switch, setup)?;
            if comm.rank() == culprit {
                switch.set(Fault::Message);
            }
            let result = transform_of_ones(&mut bound, setup);
            switch.set(Fault::Nothing);
            let error = everywhere(comm, &format!("{setup:?} damaged on {culprit}"), result)?;
            let beginning = format!("rank {culprit} received");
            assert_of(&error, culprit, ErrorKind::Message, &beginning);
            transform_of_ones(&mut bound, setup)?;
        }
    }
    Ok(())
}

/// Messages of other sizes than expected, to or from one rank, or none for lack of memory. The
/// exchange still works afterwards.
pub(crate) fn sizes(comm: &dyn Comm) -> Result<(), Error> {
    use Exchange::{Alltoallv, KWay, P2p, Pipelined};
    use weak::Fault::{Narrow, Short, Slots};
    let pairs = [P2p, Pipelined, KWay(2), KWay(4)];
    let faults = [Short, Narrow, Slots].into_iter();
    let faults = faults.flat_map(|fault| pairs.map(|exchange| (exchange, fault)));
    let faults = faults.chain([(Alltoallv, Narrow)]);
    let device = Switch::new(Fault::Nothing);
    for ((exchange, fault), memory) in faults.flat_map(|fault| MEMORY.map(|m| (fault, m))) {
        // MPI's collective ends the job if there is less room than was agreed on; threads receive
        // in slots of the sender, and make no room. Threads of several processes do both.
        let is_seen = match comm.name() {
            "mpi" => exchange != Alltoallv,
            "threads" => exchange == Alltoallv,
            _ => false,
        };
        if fault == Narrow && !is_seen {
            continue;
        }
        let ranks = comm.size();
        let rows = (ranks == 4 || ranks == 6).then_some(Who::Rows);
        for who in [Who::Everyone, Who::Next].into_iter().chain(rows) {
            let setup = Setup { who, ..Setup::new(exchange, memory) };
            for culprit in culprits(comm) {
                // The last has nobody to send to, and the first nobody to receive from.
                let idle = if fault == Narrow { 0 } else { ranks - 1 };
                if who != Who::Next || culprit != idle {
                    sizes_on(comm, (setup, fault, culprit), &device)?;
                }
            }
        }
    }
    Ok(())
}

fn sizes_on(
    comm: &dyn Comm,
    (setup, fault, culprit): (Setup, weak::Fault, usize),
    device: &Switch,
) -> Result<(), Error> {
    let what = format!("{fault:?} on {culprit}, {setup:?}");
    let here = if comm.rank() == culprit { fault } else { weak::Fault::Nothing };
    let mut bound = bind(&Weak::new(comm, here)?, device, setup)?;
    // Twice: the first failure must leave the exchange in order.
    for _ in 0..2 {
        let error = everywhere(comm, &what, transform_of_ones(&mut bound, setup))?;
        let Error::OnRank { rank, kind, .. } = error else { panic!("{what}: {error:?}") };
        match fault {
            // The sender has the reason for a short message; the others only see that it is short.
            weak::Fault::Slots if rank == culprit => assert_eq!(kind, ErrorKind::Memory, "{what}"),
            _ => assert_eq!(kind, ErrorKind::Message, "{what}: {error}"),
        }
        // A lost message may also be missed by the ranks to whom it was to be forwarded.
        if setup.who == Who::Everyone && !matches!(setup.exchange, Exchange::KWay(_)) {
            // The lowest rank that it sends to.
            let first = match fault {
                weak::Fault::Short => usize::from(culprit == 0),
                weak::Fault::Slots => 0,
                _ => culprit,
            };
            assert_eq!(rank, first, "{what}");
        }
    }
    Ok(())
}
