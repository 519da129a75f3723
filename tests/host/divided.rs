//! Tridiagonal systems along lines that ranks divide.

use std::sync::Arc;

use fft_core::Real;
use proptest::prelude::*;
use proptest::sample::select;
use thriffty::planning::{Access, DynGrid, Layout, Layouts, Precision, Problem, ProcGrid, Recipe};
use thriffty::spectral::{Domain, Operator, Scheme, Tridiagonal};
use thriffty::{Brick, C2c, Comm, Ends, Error, Grid, Kind, Plan, R2c, R2r};

use crate::allocations::calls;
use crate::common::RANKS;
use crate::common::check::{Case, Make};
use crate::common::data::{C64, cut, widen};
use crate::common::failures::{culprits, everywhere};
use crate::common::operators::field;
use crate::common::stencils::CONDITIONS;
use crate::common::tiling::{Rng, divided};
use crate::common::weak::{Fault, Weak};

/// Systems of a plan's spectrum on a stretched grid.
fn domain<K: Make, const D: usize>(
    plan: &Plan<K, D>,
    axis: usize,
    ends: Ends,
) -> Result<Domain, Error> {
    let n = plan.problem().modes[axis];
    let cells = if ends.is_at_faces() {
        n + 1 - ends.slopes().iter().filter(|slope| **slope).count()
    } else {
        n
    };
    let faces: Vec<_> = (0..=cells).map(|face| (4 * face + face * face % 5) as f64 / 4.0).collect();
    let lengths = std::array::from_fn(|axis| 1.0 + axis as f64);
    let domain = plan.domain(lengths)?.with_schemes(&[Scheme::Staggered2; D])?;
    domain.with_tridiagonal(Tridiagonal::second_derivative(&faces, ends)?)
}

/// Operators on bricks are those on whole arrays.
fn same<K: Make>(comm: &dyn Comm, case: &Case<3>, of: &Systems) -> Result<(), Error> {
    let (grid, shape) = (case.grids()?[1], case.grids()?[1].shape());
    let mut rng = Rng(of.seed);
    let Some(bricks) = divided(grid, of.axis, comm.size(), &mut rng) else { return Ok(()) };
    let draft = case.draft::<K>(comm)?.output_brick(bricks[comm.rank()]);
    let here = draft.output_order(rng.order()).build()?;
    assert!(here.divides_systems());
    let alone = thriffty::alone();
    let there = case.plan::<K>(&alone)?;
    let [divided, whole] = [domain(&here, of.axis, of.ends)?, domain(&there, of.axis, of.ends)?];
    let ([(mut x, _), (mut y, _)], [(a, _), (mut b, _)]) = (
        [field(&here, shape, 5), field(&here, shape, 6)],
        [field(&there, shape, 5), field(&there, shape, 6)],
    );
    divided.apply(of.operator, &x, &mut y);
    whole.apply(of.operator, &a, &mut b);
    divided.apply_in_place(of.operator, &mut x);
    let order = here.output_order().array();
    let expected = widen(&cut(b.as_slice(), shape, here.output_brick(), order));
    let most = widen(b.as_slice()).iter().fold(0.0f64, |most, v| most.max(v.norm()));
    let bound = if K::Real::EPSILON < 1e-10 { 1e-12 } else { 4.0 * K::Real::EPSILON } * most;
    for found in [x, y] {
        for (found, expected) in widen(found.as_slice()).iter().zip(&expected) {
            let error: C64 = found - expected;
            assert!(error.norm() <= bound, "{found}, not {expected}, of {of:?}, {case:?}");
        }
    }
    Ok(())
}

/// What is solved.
#[derive(Debug)]
struct Systems {
    axis: usize,
    ends: Ends,
    operator: Operator,
    /// Of the bricks.
    seed: u64,
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(crate::schemes::cases())
    })]

    #[test]
    fn solutions_are_those_along_whole_lines(
        ranks in select(&RANKS[1..]),
        shape in [1usize..9, 1..9, 1..9],
        n in 4usize..20,
        axis in 0usize..3,
        ends in select(&CONDITIONS[..]),
        operator in select(
            &[Operator::Poisson, Operator::Helmholtz(0.3), Operator::Laplacian][..]
        ),
        others in [select(&[Kind::C2C, Kind::None][..]), select(&[Kind::Dct2, Kind::Dst3][..])],
        batch in 1usize..4,
        seed in any::<u64>().no_shrink(),
    ) {
        let mut shape = shape;
        shape[axis] = n;
        let along = |first: Kind, second: Kind| {
            let mut kinds = [first, second, first];
            kinds[axis] = Kind::Tridiagonal;
            kinds[(axis + 1) % 3] = first;
            kinds
        };
        let mut halved = along(Kind::C2C, others[0]);
        halved[(axis + 1) % 3] = Kind::R2C;
        let case = |kinds: [Kind; 3]| Case::new(shape, kinds).batch(batch);
        let of = Systems { axis, ends, operator, seed };
        thriffty::threads(ranks, |comm| {
            same::<R2c<f64>>(&comm, &case(halved), &of)?;
            same::<C2c<f32>>(&comm, &case(along(Kind::C2C, others[0])), &of)?;
            same::<R2r<f64>>(&comm, &case(along(others[1], Kind::None)), &of)?;
            same::<R2r<f32>>(&comm, &case(along(Kind::Dct2, others[1])), &of)
        })
        .unwrap();
    }
}

/// Slabs along the axis of systems.
fn slabs(comm: &dyn Comm) -> Result<Plan<R2c, 3>, Error> {
    let kinds = [Kind::Tridiagonal, Kind::C2C, Kind::R2C];
    let brick = |grid: Grid<3>| ProcGrid::new([comm.size(), 1, 1]).brick(&grid, comm.rank());
    let draft = thriffty::r2c(comm, [12, 5, 6]).kinds(kinds);
    let spectral = draft.spectral_grid();
    draft.input_brick(brick(Grid::new([12, 5, 6])?)).output_brick(brick(spectral)).build()
}

#[test]
fn one_axis_needs_no_other() {
    for ranks in RANKS {
        thriffty::threads(ranks, |comm| {
            let mut plan = thriffty::r2r(&comm, [13], [Kind::Tridiagonal]).build()?;
            let domain = domain(&plan, 0, Ends::Dirichlet)?;
            let mut x = plan.input();
            x.fill(|[i]| (i * i % 7) as f64);
            let mut phi = plan.forward(x.clone())?;
            domain.apply_in_place(Operator::Poisson, &mut phi);
            domain.apply_in_place(Operator::Laplacian, &mut phi);
            let found = plan.inverse(phi)?;
            let far = found.iter().zip(x.iter()).map(|((_, a), (_, b))| (a + b).abs());
            assert!(far.fold(0.0, f64::max) < 1e-12);
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

#[test]
fn solutions_allocate_nothing() {
    thriffty::threads(3, |comm| {
        let plan = slabs(&comm)?;
        let domain = domain(&plan, 0, Ends::Neumann)?;
        let mut x = plan.output();
        for round in 0..8 {
            for operator in [Operator::Poisson, Operator::Laplacian] {
                let calls = calls(|| {
                    domain.apply_in_place(operator, &mut x);
                    Ok(())
                })?;
                assert!(calls == 0, "{calls} in round {round} of {operator:?}");
            }
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// An error on one rank is reported on every rank, and no rank hangs.
#[test]
fn failures_are_errors_of_all_ranks() {
    for ranks in [2, 3, 4] {
        thriffty::threads(ranks, |comm| {
            for culprit in culprits(&comm) {
                let is_bad = comm.rank() == culprit;
                for fault in [Fault::Short, Fault::Slots] {
                    let fault = if is_bad { fault } else { Fault::Nothing };
                    let mut plan = slabs(&Weak::new(&comm, fault)?)?;
                    let domain = domain(&plan, 0, Ends::Neumann)?;
                    let mut x = plan.output();
                    domain.apply_in_place(Operator::Poisson, &mut x);
                    everywhere(&comm, "a solve", plan.inverse(x))?;
                }
                let mut plan = slabs(&comm)?;
                let (bare, solver) = (plan.domain([1.0; 3])?, domain(&plan, 0, Ends::Neumann)?);
                let other = domain(&plan, 0, Ends::Dirichlet)?;
                for (operator, domain, found) in [
                    (Operator::Poisson, &other, "coefficients"),
                    (Operator::Helmholtz(f64::NAN), &solver, "shift"),
                    (Operator::Helmholtz(0.1), &solver, "Solve(0.1)"),
                    (Operator::Poisson, &bare, "coefficients along the tridiagonal axis 0"),
                    (Operator::Derivative(1), &solver, "None"),
                ] {
                    let mut x = plan.output();
                    if is_bad {
                        domain.apply_in_place(operator, &mut x)
                    } else {
                        solver.apply_in_place(Operator::Poisson, &mut x)
                    }
                    let error = everywhere(&comm, "a solve", plan.inverse(x))?;
                    assert!(error.to_string().contains(found), "{error}");
                }
                let mut x = plan.output();
                solver.apply_in_place(Operator::Poisson, &mut x);
                plan.inverse(x)?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

/// Between hosts the rows of reduced systems are fewer than the data, unless ranks have few points.
/// Within a host whole lines cost a pass less.
#[test]
fn the_model_chooses_between_reduced_systems_and_whole_lines() {
    let machine = Arc::new(thriffty::machine::named("ethernet").unwrap());
    let chosen = |shape: [usize; 3], hosts: [usize; 4]| {
        let kinds = [Kind::Tridiagonal, Kind::C2C, Kind::R2C];
        let grid = DynGrid::new(shape).unwrap();
        let slabs = |grid| Layout::even(grid, ProcGrid::new([4, 1, 1]), 4);
        let output = slabs(Problem::spectral_grid(grid, kinds));
        let mut problem = Problem::new(kinds, false, Precision::F64, slabs(grid), output).unwrap();
        (problem.hosts, problem.machine) = (hosts.into(), machine.clone());
        let transposed = Recipe::transposed_layouts(&problem, Layouts::Any, [false, true]);
        [_, problem.output] = transposed.unwrap();
        let text = Recipe::new(problem.clone()).unwrap().to_string();
        assert_eq!(Recipe::exact(problem, &text).unwrap().to_string(), text);
        text
    };
    for (shape, hosts, reduced) in [
        ([256, 256, 192], [0, 1, 2, 3], true),
        ([8, 256, 192], [0, 1, 2, 3], false),
        ([256, 256, 192], [0; 4], false),
    ] {
        let text = chosen(shape, hosts);
        let step = if reduced { "(reduced x)" } else { "(tridiagonal x)" };
        assert!(text.contains(step), "{text}");
        assert_eq!(text.matches("exchange").count(), usize::from(!reduced), "{text}");
    }
}

#[test]
fn devices_and_reproducible_transforms_keep_lines_whole() {
    let kinds = [Kind::Tridiagonal, Kind::C2C];
    let slabs = Layout::even(DynGrid::new([12, 4]).unwrap(), ProcGrid::new([3, 1]), 3);
    let mut problem =
        Problem::new(kinds, true, Precision::F64, slabs.clone(), slabs.clone()).unwrap();
    Recipe::new(problem.clone()).unwrap();
    problem.options.access = Access::Contiguous;
    let expected = "as transposed_output leaves them on devices and in reproducible transforms";
    let error = Recipe::new(problem.clone()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    let mut reproducible = problem.clone();
    (reproducible.options.access, reproducible.options.reproducible) = (Access::Cached, true);
    let error = Recipe::new(reproducible).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    let transposed = Recipe::transposed_layouts(&problem, Layouts::Any, [false, true]);
    [_, problem.output] = transposed.unwrap();
    assert!(Recipe::new(problem).unwrap().to_string().contains("(tridiagonal x)"));
}

/// Layouts whose ranks do not divide the axis alike have no reduced systems.
#[test]
fn uneven_divisions_are_refused() {
    let brick = |lo: [usize; 2], hi: [usize; 2]| Brick { lo, hi };
    let thin = [brick([0, 0], [1, 4]), brick([1, 0], [3, 4]), brick([3, 0], [6, 4])];
    let unlike = [brick([0, 0], [3, 4]), brick([3, 0], [6, 1]), brick([3, 1], [6, 4])];
    let empty = [brick([0, 0], [3, 4]), brick([3, 0], [6, 4]), brick([0, 0], [0, 4])];
    for bricks in [thin, unlike, empty] {
        let made = thriffty::threads(3, |comm| {
            let draft = thriffty::c2c(&comm, [6, 4]).kinds([Kind::Tridiagonal, Kind::C2C]);
            draft.output_brick(bricks[comm.rank()]).build().map(drop)
        });
        let error = made.unwrap_err().to_string();
        assert!(error.contains("intervals of 2 points or more"), "{error}");
    }
}
