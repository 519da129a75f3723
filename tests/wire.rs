//! What encoded messages do to a transform: nothing where every bit arrives, and otherwise no more than was promised and
//! no other than was reported.

mod common;

use common::check::{Case, Make};
use common::data::{C64, random};
use common::lossy::{DIRECTIONS, FIELDS, Pair};
use common::tiling::Rng;
use thriffty::{
    Algorithm, C2c, Comm, Direction, Draft, Error, ErrorKind, Grid, Kind, Plan, R2c, R2r,
    Tolerance, Wire, WireError,
};

#[test]
fn a_tolerance_is_kept_and_used() {
    let case = Case::new([48, 40, 50], [Kind::C2C; 3]);
    let half = Case::new([48, 40, 50], [Kind::C2C, Kind::C2C, Kind::R2C]);
    for tolerance in [1e-1, 1e-3, 1e-6, 1e-9, 1e-12, 1e-13] {
        for direction in DIRECTIONS {
            thriffty::threads(6, |comm| {
                let option = Tolerance::relative(tolerance)?;
                let mut pair =
                    Pair::<C2c, 3>::new(&comm, &case, direction, |d| d.tolerance(option))?;
                let complex = pair.lost(1, |_, x| x)?;
                let mut pair =
                    Pair::<R2c, 3>::new(&comm, &half, direction, |d| d.tolerance(option))?;
                let real = pair.lost(1, |_, x| x)?;
                if comm.rank() == 0 {
                    println!("{tolerance:e} {direction:?}: complex {complex:?}, real {real:?}");
                }
                for (what, (error, reported)) in [("complex", complex), ("real", real)] {
                    let share = error / tolerance;
                    let what =
                        format!("{what} {tolerance:e} {direction:?}: {error:e}, {reported:?}");
                    assert!((0.85..=1.0).contains(&share), "{what}");
                    assert!((reported.estimate / error - 1.0).abs() < 0.02, "{what}");
                    assert!(error <= reported.bound, "{what}");
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        }
    }
}

#[test]
fn a_strict_tolerance_is_kept_whatever_the_data() {
    for exchange in Algorithm::ALL {
        let case = Case::new([12, 9, 10], [Kind::C2C; 3]).tiling(5).exchange(exchange);
        for direction in DIRECTIONS {
            for tolerance in [1e-1, 1e-5, 1e-12] {
                let option = Tolerance::relative(tolerance).unwrap().strict();
                thriffty::threads(4, |comm| {
                    let mut pair =
                        Pair::<C2c, 3>::new(&comm, &case, direction, |d| d.tolerance(option))?;
                    for (name, field) in FIELDS {
                        let (error, reported) = pair.lost(7, field)?;
                        let what = format!("{name}, {exchange}, {option}: {error:e}, {reported:?}");
                        assert!(error <= tolerance, "{what}");
                        assert!(reported.bound.is_nan() || error <= reported.bound, "{what}");
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
            }
        }
    }
}

/// Cosine and sine transforms are not unitary up to a factor, and single precision has fewer bits to give.
#[test]
fn every_kind_and_precision_has_its_bound() {
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.is_real());
    for (n, kind) in kinds.enumerate() {
        let case = Case::new([10, 12], [kind, if n % 2 == 0 { kind } else { Kind::Dct2 }]);
        thriffty::threads(3, |comm| {
            for direction in DIRECTIONS {
                for option in [Tolerance::relative(1e-4)?, Tolerance::relative(1e-4)?.strict()] {
                    let mut double =
                        Pair::<R2r, 2>::new(&comm, &case, direction, |d| d.tolerance(option))?;
                    let mut single =
                        Pair::<R2r<f32>, 2>::new(&comm, &case, direction, |d| d.tolerance(option))?;
                    for seed in 0..20 {
                        for (error, reported) in
                            [double.lost(seed, |_, x| x)?, single.lost(seed, |_, x| x)?]
                        {
                            let what =
                                format!("{kind} {direction:?} {option}: {error:e}, {reported:?}");
                            assert!(error <= 1e-4, "{what}");
                            assert!(error <= reported.bound, "{what}");
                            assert!(error <= 2.0 * reported.estimate, "{what}");
                        }
                    }
                }
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

/// Ten thousand transforms: random shapes, bricks, ranks, wires, exchanges, kinds, directions, fields.
#[test]
fn the_bound_is_never_exceeded() {
    let mut rng = Rng(2026);
    let wires = [
        Wire::F32,
        Wire::F16,
        Wire::Bf16,
        Wire::Mantissa(10),
        Wire::Mantissa(0),
        Wire::Bits(2),
        Wire::Bits(5),
        Wire::Bits(8),
        Wire::Bits(16),
        Wire::Bits(33),
        Wire::Tolerance,
    ];
    for round in 0..400 {
        let mut below = |n: usize| (rng.next() % n as u64) as usize;
        let shape = [1 + below(9), 1 + below(7), 1 + below(11)];
        let (ranks, wire) = (1 + below(6), wires[below(wires.len())]);
        let direction = DIRECTIONS[below(2)];
        let exchange = Algorithm::ALL[below(Algorithm::ALL.len())];
        let tolerance = Tolerance::relative(10f64.powi(-(below(12) as i32) - 1)).unwrap();
        let tolerance = if below(2) == 0 { tolerance } else { tolerance.strict() };
        let real = below(2) == 0;
        let last = if real { Kind::R2C } else { Kind::C2C };
        let case = Case::new(shape, [Kind::C2C, Kind::C2C, last]).tiling(round).exchange(exchange);
        thriffty::threads(ranks, |comm| {
            if real {
                bounded::<R2c>(&comm, &case, direction, wire, tolerance)
            } else {
                bounded::<C2c>(&comm, &case, direction, wire, tolerance)
            }
        })
        .unwrap_or_else(|error| panic!("{case:?} on {ranks}: {error}"));
    }
}

/// 25 fields through one pair of plans.
fn bounded<K: Make<Real = f64>>(
    comm: &dyn Comm,
    case: &Case<3>,
    direction: Direction,
    wire: Wire,
    tolerance: Tolerance,
) -> Result<(), Error> {
    let mut pair = Pair::<K, 3>::new(comm, case, direction, |d| d.wire(wire).tolerance(tolerance))?;
    for seed in 0..25 {
        let (name, field) = FIELDS[seed % FIELDS.len()];
        // Beyond what squares can hold nothing is promised but by a strict tolerance.
        let (error, reported) = pair.lost(seed as u64, field)?;
        let what =
            format!("{name} {case:?} {direction:?} {wire} {tolerance}: {error:e}, {reported:?}");
        assert!(reported.bound.is_nan() || error <= reported.bound, "{what}");
        assert!(reported.estimate.is_nan() || reported.estimate <= reported.bound, "{what}");
        if wire == Wire::Tolerance && tolerance.is_strict() {
            assert!(error <= tolerance.value(), "{what}");
        }
    }
    Ok(())
}

/// Every bit arrives by default, with a lossless wire, and on the ranks of one host.
#[test]
fn nothing_is_lost_unasked() {
    for exchange in Algorithm::ALL {
        let case = Case::new([8, 9, 10], [Kind::C2C; 3]).tiling(3).exchange(exchange);
        thriffty::threads(4, |comm| {
            let x: Vec<C64> = {
                let plan = case.plan::<C2c>(&comm)?;
                random(plan.input_len(), 5 + comm.rank() as u64)
            };
            let run = |draft: Draft<'_, C2c, 3>| -> Result<_, Error> {
                let mut plan = draft.build()?;
                let mut y = vec![C64::default(); plan.output_len()];
                plan.forward_into(&x, &mut y)?;
                Ok((y, plan.last_error(), plan.clock()))
            };
            let draft = || case.draft::<C2c>(&comm);
            let (plain, none, _) = run(draft()?.wire_everywhere())?;
            assert_eq!(none, None);
            let (lossless, none, _) = run(draft()?.wire_everywhere().wire(Wire::Lossless))?;
            assert_eq!(none, None);
            assert!(lossless == plain, "{exchange}");
            // Ranks of one host have nothing to gain from an encoding.
            let (near, some, clock) = run(draft()?.wire(Wire::Bits(8)))?;
            assert_eq!(some.map(|lost| lost.estimate), Some(0.0));
            assert!(clock.reals == 0 || clock.sent == 8 * clock.reals, "{exchange}");
            let shared = exchange == Algorithm::Shared;
            assert!(shared || near == plain, "{exchange}");
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

#[test]
fn one_reshape_can_have_a_wire_of_its_own() {
    let case = Case::new([8, 8, 8], [Kind::C2C; 3]).exchange(Algorithm::P2p);
    thriffty::threads(4, |comm| {
        let draft = || -> Result<_, Error> { Ok(case.draft::<C2c>(&comm)?.wire_everywhere()) };
        let bits = |draft: Draft<'_, C2c, 3>| -> Result<_, Error> {
            let mut plan = draft.build()?;
            let x: Vec<C64> = random(plan.input_len(), 5);
            let mut y = vec![C64::default(); plan.output_len()];
            plan.forward_into(&x, &mut y)?;
            let lost = plan.last_error().map(|lost| lost.estimate);
            Ok((plan.recipe().to_string(), plan.clock().sent, lost))
        };
        let (_, all, none) = bits(draft()?)?;
        let (recipe, some, lost) = bits(draft()?.wire_of(1, Wire::Bits(8)))?;
        assert!(recipe.contains("p2p raw)") && recipe.contains("p2p bits:8)"), "{recipe}");
        assert!(some < all && none.is_none() && lost.is_some_and(|lost| lost > 1e-3));
        let error = draft()?.wire_of(7, Wire::F32).build().map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(error.to_string().contains("found 7"), "{error}");
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn what_cannot_be_is_refused_on_all_ranks() {
    let refused = |tolerance: Option<f64>, wire: Option<Wire>, rank: usize| {
        thriffty::threads(3, |comm| {
            let mut draft = Plan::<C2c, 2>::c2c(&comm, Grid::new([8, 8])?);
            if rank == 3 || comm.rank() == rank {
                if let Some(tolerance) = tolerance {
                    draft = draft.tolerance(Tolerance::relative(tolerance)?);
                }
                if let Some(wire) = wire {
                    draft = draft.wire(wire);
                }
            }
            draft.build().map(drop)
        })
        .map(drop)
        .unwrap_err()
    };
    let error = refused(Some(1e-15), None, 3);
    assert!(error.to_string().contains("at least 5.3e-15"), "{error}");
    let error = refused(None, Some(Wire::Tolerance), 3);
    assert!(error.to_string().contains("tolerance"), "{error}");
    assert_eq!(refused(None, Some(Wire::Bits(60)), 3).kind(), ErrorKind::Argument);
    let error = refused(Some(1e-3), None, 1).to_string();
    assert!(
        error.contains("tolerance") && error.contains("none") && error.contains("1e-3"),
        "{error}"
    );
    for error in [refused(Some(1e-3), None, 1), refused(None, Some(Wire::F32), 2)] {
        assert!(matches!(error, Error::Disagreement { .. }), "{error}");
    }
}

/// Fields that have no relative error.
#[test]
fn zeros_and_what_is_not_finite() {
    let case = Case::new([8, 9, 10], [Kind::C2C; 3]);
    for option in [Tolerance::relative(1e-3).unwrap(), Tolerance::relative(1e-3).unwrap().strict()]
    {
        thriffty::threads(4, |comm| {
            let mut pair =
                Pair::<C2c, 3>::new(&comm, &case, Direction::Forward, |d| d.tolerance(option))?;
            let (error, reported) = pair.lost(1, |_, _| 0.0)?;
            assert_eq!((error, reported), (0.0, WireError::default()));
            let clock = pair.coded.clock();
            assert!(
                clock.sent < clock.reals,
                "zeros take {} bytes for {}",
                clock.sent,
                clock.reals
            );
            let rank = comm.rank();
            for strange in [f64::NAN, f64::INFINITY] {
                let field = |at, x| if rank == 1 && at == 5 { strange } else { x };
                let (_, reported) = pair.lost(1, field)?;
                assert!(reported.estimate.is_nan() && reported.bound.is_nan());
            }
            // The next one is as if nothing had been.
            let (error, _) = pair.lost(1, |_, x| x)?;
            assert!(error > 8e-4 * if option.is_strict() { 0.1 } else { 1.0 } && error <= 1e-3);
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}
