//! Data in memory that the ranks of a host share, on any communicator.

use std::time::Duration;

use Kind::{C2C, Dct2, R2C};
use thriffty::planning::{Exchange, Reduce};
use thriffty::tuning::Outcome;
use thriffty::{C2c, Comm, Error, Field, Grid, Kind, Plan, R2c, R2r, Spectral, Tuning};

use super::check::{Case, Make};
use super::data::{C64, bound, random};
use super::{cases, failures, plans};

type Done = Result<(), Error>;

pub(crate) fn all(comm: &dyn Comm) -> Done {
    same(comm)?;
    memory(comm)?;
    tuned(comm)?;
    used_again(comm)?;
    outlives(comm)?;
    dropped_elsewhere(comm)?;
    strangers(comm)
}

/// Transforms of shared arrays equal those of any other arrays, bit for bit.
pub(crate) fn same(comm: &dyn Comm) -> Done {
    for (exchange, memory) in plans::everything() {
        let case = |shape, kinds| Case::<3>::new(shape, kinds).exchange(exchange).memory(memory);
        compare::<C2c<f64>>(comm, &case([12, 10, 8], [C2C; 3]))?;
        compare::<C2c<f32>>(comm, &case([9, 7, 11], [C2C; 3]).tiling(3).batch(2))?;
        let half = case([8, 9, 10], [C2C, Dct2, R2C]);
        compare::<R2c<f64>>(comm, &half)?;
        compare::<R2c<f64>>(comm, &half.tiling(5).orders([2, 0, 1], [1, 2, 0]))?;
        compare::<R2r<f32>>(comm, &case([7, 12, 6], [Dct2; 3]))?;
        // The result is in other bricks than the input.
        let ranks = comm.size();
        let turned = [[ranks, 1, 1], [1, 1, ranks]];
        compare::<C2c<f64>>(comm, &case([12, 12, 12], [C2C; 3]).cuts(turned[0], turned[1]))?;
        compare::<R2c<f64>>(comm, &case([12, 6, 20], [C2C, C2C, R2C]).cuts(turned[1], turned[0]))?;
    }
    for axis in 0..3 {
        for batch in [1, 2] {
            if let Some(half) = cases::pencils([8, 7, 10], axis, batch, comm) {
                compare::<R2c<f64>>(comm, &half)?;
            }
        }
    }
    Ok(())
}

fn compare<K: Make>(comm: &dyn Comm, case: &Case<3>) -> Done {
    let mut plain = case.plan::<K>(comm)?;
    let mut shared = case.draft::<K>(comm)?.shared_arrays(true).build()?;
    let what = format!("rank {} of {}, {case:?}", comm.rank(), comm.size());
    let x: Vec<K::Physical> = random(plain.input_len(), 1 + comm.rank() as u64);
    let y: Vec<K::Spectral> = random(plain.output_len(), 100 + comm.rank() as u64);
    let (mut to, mut back) = (y.clone(), x.clone());
    plain.forward_into(&x, &mut to)?;
    plain.inverse_into(&y, &mut back)?;

    let (mut physical, mut spectral) = (shared.shared_input()?, shared.shared_output()?);
    physical.as_mut_slice().copy_from_slice(&x);
    shared.forward_into(physical.as_slice(), spectral.as_mut_slice())?;
    assert!(same_bits(spectral.as_slice(), &to), "forward_into: {what}");
    assert!(same_bits(physical.as_slice(), &x), "forward_into changed its input: {what}");
    spectral.as_mut_slice().copy_from_slice(&y);
    shared.inverse_into(spectral.as_slice(), physical.as_mut_slice())?;
    assert!(same_bits(physical.as_slice(), &back), "inverse_into: {what}");
    assert!(same_bits(spectral.as_slice(), &y), "inverse_into changed its input: {what}");

    let mut field = plain.input();
    field.as_mut_slice().copy_from_slice(&x);
    let to = plain.forward(field)?;
    physical.as_mut_slice().copy_from_slice(&x);
    let mut field = shared.forward(physical)?;
    assert!(same_bits(field.as_slice(), to.as_slice()), "forward: {what}");
    field.as_mut_slice().copy_from_slice(&y);
    let mut other = plain.output();
    other.as_mut_slice().copy_from_slice(&y);
    let (found, expected) = (shared.inverse(field)?, plain.inverse(other)?);
    assert!(same_bits(found.as_slice(), expected.as_slice()), "inverse: {what}");
    Ok(())
}

fn same_bits<E: bytemuck::Pod>(found: &[E], expected: &[E]) -> bool {
    let bytes = |numbers| bytemuck::cast_slice::<E, u8>(numbers);
    bytes(found) == bytes(expected)
}

/// If all ranks share memory, and there are as many numbers before as after, a plan needs hardly
/// any memory of its own.
pub(crate) fn memory(comm: &dyn Comm) -> Done {
    let grid = Grid::new([64, 64, 64])?;
    let draft = || Plan::<C2c, 3>::c2c(comm, grid).exchange(Exchange::Shared);
    let shared = draft().shared_arrays(true).build()?;
    if (0..comm.size()).all(|rank| comm.host(rank) == comm.host(0)) {
        let (found, held) = (shared.workspace_bytes(), shared.input_len() * size_of::<C64>());
        // Tiles fit into the second cache; tables are for lines.
        let tiles = (1 << 20) + (1 << 16);
        assert!(found <= tiles.min(held), "{found} bytes beside {held} of a rank");
    }
    Ok(())
}

/// Tuning uses such arrays, too.
fn tuned(comm: &dyn Comm) -> Done {
    let tuning = Tuning::Measure { budget: Duration::from_millis(100) };
    let draft = Plan::<R2c, 3>::r2c(comm, Grid::new([8, 6, 10])?).tuning(tuning);
    let mut plan = draft.exchange(Exchange::Shared).shared_arrays(true).build()?;
    for row in &plan.report().rows {
        assert!(!matches!(row.outcome, Outcome::Failed(_)), "{:?}: {}", row.outcome, row.recipe);
    }
    let field = plan.shared_input()?;
    plan.forward(field).map(drop)
}

/// The memory of a dropped field is used for the next one, cleared; also if not all ranks dropped
/// theirs.
fn used_again(comm: &dyn Comm) -> Done {
    let draft = Plan::<C2c, 2>::c2c(comm, Grid::new([12, 10])?).exchange(Exchange::Shared);
    let mut plan = draft.shared_arrays(true).build()?;
    let mut kept = Vec::new();
    let at = |field: &Field<Spectral, C2c, 2>| field.as_slice().as_ptr().addr();
    let mut places = Vec::new();
    for round in 0..20 {
        let mut field = plan.shared_output()?;
        assert!(field.as_slice().iter().all(|x| *x == C64::default()), "round {round}");
        field.as_mut_slice().fill(C64::new(1.0, 2.0));
        places.push(at(&field));
        if round % 10 == 0 && comm.rank() == 0 {
            kept.push(field.clone());
            kept.push(field);
        }
    }
    places.sort_unstable();
    places.dedup();
    let alone = (0..comm.size()).filter(|&r| comm.host(r) == comm.host(comm.rank())).count() == 1;
    // Twice rank 0 kept one, and all ranks made another.
    assert!(alone || places.len() <= 3, "{places:x?}");
    // The arrays that the other ranks did not keep are used, too.
    let fields = (0..3).map(|_| plan.shared_input()).collect::<Result<Vec<_>, _>>()?;
    for field in fields {
        plan.forward(field)?;
    }
    Ok(())
}

/// A field lives on without its plan, on one rank or on all, and no rank waits for another.
fn outlives(comm: &dyn Comm) -> Done {
    for keepers in [0..1, 0..comm.size()] {
        let draft = Plan::<C2c, 2>::c2c(comm, Grid::new([12, 10])?).exchange(Exchange::Shared);
        let mut plan = draft.shared_arrays(true).build()?;
        let mut field = plan.shared_input()?;
        field.as_mut_slice().fill(C64::new(1.0, 0.0));
        let mut kept = keepers.contains(&comm.rank()).then_some(field);
        drop(plan);
        if let Some(field) = &mut kept {
            assert!(field.as_slice().iter().all(|x| x.re == 1.0));
            field.as_mut_slice().fill(C64::default());
        }
    }
    Ok(())
}

/// A plan that one rank drops on another thread or in a panic, where it cannot free memory of all
/// ranks: the memory is kept, and no rank waits.
fn dropped_elsewhere(comm: &dyn Comm) -> Done {
    for panics in [false, true] {
        let draft = Plan::<C2c, 2>::c2c(comm, Grid::new([12, 10])?).exchange(Exchange::Shared);
        let mut plan = draft.shared_arrays(true).build()?;
        let field = plan.shared_input()?;
        let here = move || {
            let _plan = plan;
            if panics {
                // Not a panic that is reported.
                std::panic::resume_unwind(Box::new("on purpose"));
            }
        };
        if comm.rank() + 1 == comm.size() && comm.name() == "mpi" {
            assert_eq!(std::thread::scope(|scope| scope.spawn(here).join().is_err()), panics);
        } else {
            drop(here);
        }
        assert!(field.as_slice().iter().all(|x| *x == C64::default()));
        drop(field);
        comm.barrier()?;
    }
    Ok(())
}

/// An array of a rank's own, or of another plan, is an error on all ranks, and nothing is sent.
fn strangers(comm: &dyn Comm) -> Done {
    let alone = (0..comm.size()).any(|rank| {
        let others = (0..comm.size()).filter(|&other| comm.host(other) == comm.host(rank));
        others.count() == 1
    });
    if comm.name() != "mpi" || alone {
        return Ok(());
    }
    let grid = Grid::new([12, 10])?;
    let build = || {
        let draft = Plan::<C2c, 2>::c2c(comm, grid).exchange(Exchange::Shared);
        draft.shared_arrays(true).build()
    };
    let [mut plan, mut other] = [build()?, build()?];
    for culprit in failures::culprits(comm) {
        let mine = comm.rank() == culprit;
        let (shared, own) = (plan.shared_input()?, plan.input());
        let field = if mine { own } else { shared };
        let mut output = plan.shared_output()?;
        let found = plan.forward_into(field.as_slice(), output.as_mut_slice());
        let error = failures::everywhere(comm, "own input", found)?;
        assert!(error.to_string().contains("one that this plan made"), "{error}");
        let found = plan.forward(field);
        failures::everywhere(comm, "own field", found)?;
        let theirs = other.shared_input()?;
        let good = plan.shared_input()?;
        let found = plan.forward(if mine { theirs } else { good });
        failures::everywhere(comm, "field of another plan", found)?;
        // The plan still works.
        let mut field = plan.shared_input()?;
        field.as_mut_slice().fill(C64::new(1.0, 0.0));
        let sum: C64 = plan.forward(field)?.as_slice().iter().sum();
        let mut sums = [sum.re];
        comm.allreduce(Reduce::Sum, &mut sums)?;
        let far = (sums[0] / 120.0 - 1.0).abs();
        assert!(far <= bound(f64::EPSILON, 120), "{sums:?}, not 120");
    }
    Ok(())
}
