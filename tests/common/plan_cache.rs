//! A cache of plans, on any communicator: which plans are kept, and that all ranks find the same.

use std::f64::consts::TAU;

use thriffty::planning::{Direction, DynDraft, DynTransform, PlanCache, Precision, Timings};
use thriffty::{Brick, C2c, Comm, Complex, Draft, Error, Grid, Plan};

use super::failures::{culprits, everywhere};

type Done = Result<(), Error>;

const SHAPE: [usize; 2] = [12, 10];

pub(crate) fn all(comm: &dyn Comm) -> Done {
    capacity(comm)?;
    types(comm)?;
    if comm.size() > 1 {
        bricks(comm)?;
        errors(comm)?;
    }
    Ok(())
}

/// Transforms a point, and returns whether the plan has run before.
fn has_run(plan: &mut Plan<C2c, 2>) -> Result<bool, Error> {
    let has_run = plan.timings() != Timings::default();
    let mut x = plan.input();
    x.fill(|index| Complex::new(f64::from(index == [1, 2]), 0.0));
    let spectrum = plan.forward(x)?;
    let shape = plan.recipe().problem().grid().shape();
    let turns = |[i, j]: [usize; 2]| i as f64 / shape[0] as f64 + 2.0 * j as f64 / shape[1] as f64;
    for (index, v) in spectrum.iter() {
        let expected = Complex::from_polar(1.0, -TAU * turns(index));
        assert!((v - expected).norm() < 1e-13, "{index:?}: {v}, expected {expected}");
    }
    for (index, v) in plan.inverse(spectrum)?.iter() {
        let expected = f64::from(index == [1, 2]);
        assert!((v - expected).norm() < 1e-13, "{index:?}: {v}, expected {expected}");
    }
    Ok(has_run)
}

/// The plan whose last use is oldest makes room.
pub(crate) fn capacity(comm: &dyn Comm) -> Done {
    let mut plans = PlanCache::new(comm, 2)?;
    for (step, (n, is_kept)) in [
        (12, false),
        (14, false),
        (12, true),
        (16, false),
        (12, true),
        (14, false),
        (16, false),
        (14, true),
    ]
    .into_iter()
    .enumerate()
    {
        let found = has_run(plans.plan(thriffty::c2c(comm, [n, 10]))?)?;
        assert_eq!(found, is_kept, "step {step}, {n}x10");
    }
    Ok(())
}

/// Any difference between drafts makes another plan, and plans with types differ from plans
/// without.
pub(crate) fn types(comm: &dyn Comm) -> Done {
    let mut plans = PlanCache::new(comm, 8)?;
    let draft = || thriffty::c2c(comm, SHAPE);
    let grid = Grid::new(SHAPE)?;
    let without = || DynDraft::new(comm, grid, DynTransform::C2c, Precision::F64);
    for is_kept in [false, true] {
        assert_eq!(has_run(plans.plan(draft())?)?, is_kept);
        assert_eq!(has_run(plans.plan(draft().output_order([1, 0]))?)?, is_kept);
        let single = plans.plan(draft().precision::<f32>())?;
        assert_eq!(single.timings() != Timings::default(), is_kept);
        single.forward(single.input())?;
        let plan = plans.dyn_plan(without())?;
        assert_eq!(plan.timings() != Timings::default(), is_kept);
        let (x, mut y) = (plan.zeros()?, plan.zeros()?);
        plan.run_arrays(Direction::Forward, &x, &mut y)?;
    }
    Ok(())
}

/// Slabs of rows. The border between the first two is `moved` rows after the default one.
fn slabs<'a>(comm: &'a dyn Comm, moved: usize) -> Draft<'a, C2c, 2> {
    let (rank, ranks) = (comm.rank(), comm.size());
    let border = |at: usize| 12 * at / ranks + if at == 1 { moved } else { 0 };
    let brick = Brick { lo: [border(rank), 0], hi: [border(rank + 1), 10] };
    thriffty::c2c(comm, SHAPE).input_brick(brick)
}

/// If one rank's brick changes, all ranks make a new plan, even ranks that have a plan with their
/// brick. Ranks whose bricks are in several plans find the one that all share.
pub(crate) fn bricks(comm: &dyn Comm) -> Done {
    let mut plans = PlanCache::new(comm, 4)?;
    for is_kept in [false, true, true] {
        for moved in [0, 1] {
            assert_eq!(has_run(plans.plan(slabs(comm, moved))?)?, is_kept, "moved by {moved}");
        }
    }
    // The default brick differs from the option on one rank, and equals it on the others.
    for culprit in culprits(comm) {
        for is_kept in [false, true] {
            let usual = Grid::new(SHAPE)?.brick(comm.rank(), comm.size());
            let draft = thriffty::c2c(comm, SHAPE);
            let draft = if comm.rank() == culprit { draft.input_brick(usual) } else { draft };
            assert_eq!(has_run(plans.plan(draft)?)?, is_kept, "rank {culprit} names its brick");
        }
    }
    Ok(())
}

/// An error on one rank is an error on all, after which all find the same plans as before.
pub(crate) fn errors(comm: &dyn Comm) -> Done {
    let other = comm.dup()?;
    for culprit in culprits(comm) {
        let is_culprit = comm.rank() == culprit;
        let capacity = if is_culprit { 3 } else { 4 };
        everywhere(comm, "capacities", PlanCache::new(comm, capacity))?;
        everywhere(comm, "no capacity", PlanCache::new(comm, 0))?;
        let mut plans = PlanCache::new(comm, 4)?;
        let good = || thriffty::c2c(comm, SHAPE);
        assert!(!has_run(plans.plan(good())?)?);
        plans.plan(good().batch(2))?;
        let wrong = |what: &str| match what {
            "a plan that others find, too" => good().batch(2),
            "another transform" => good().batch(3),
            "another communicator" => thriffty::c2c(&*other, SHAPE),
            "no grid" => thriffty::c2c(comm, [0, 10]),
            _ => good().input_brick(Brick { lo: [0, 0], hi: [12, 11] }),
        };
        for what in [
            "a plan that others find, too",
            "another transform",
            "another communicator",
            "no grid",
            "a brick beyond the grid",
        ] {
            let draft = if is_culprit { wrong(what) } else { good() };
            everywhere(comm, what, plans.plan(draft))?;
            assert!(has_run(plans.plan(good())?)?, "{what} on rank {culprit}");
        }
    }
    Ok(())
}
