//! The effect of encoded messages on a transform: none if encoding is lossless, and otherwise
//! errors within the promise and as reported.

use crate::common::check::{Case, Make};
use crate::common::data::{C64, random};
use crate::common::lossy::{DIRECTIONS, FIELDS, Pair, relative};
use crate::common::tiling::Rng;
use crate::recorded::Recorded;
use thriffty::machine::Machine;
use thriffty::planning::{Direction, Exchange, WireError};
use thriffty::{
    Brick, C2c, Comm, Draft, Error, ErrorKind, Grid, Kind, Plan, R2c, R2r, Tolerance, Wire,
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
    for exchange in Exchange::ALL {
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

/// Cosine and sine transforms are not unitary up to a factor, and single precision has fewer bits.
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

/// Three thousand transforms that lost something: random shapes, bricks, ranks, wires, exchanges,
/// kinds, directions, fields.
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
    ];
    let (mut cases, mut round) = (0, 0);
    while cases < 3000 {
        round += 1;
        let mut below = |n: usize| (rng.next() % n as u64) as usize;
        let shape = [2 + below(16), 1 + below(12), 2 + below(20)];
        let ranks = 2 + below(5);
        let wire = if below(2) == 0 { Wire::Tolerance } else { wires[below(wires.len())] };
        let direction = DIRECTIONS[below(2)];
        let exchange = Exchange::ALL[below(Exchange::ALL.len())];
        let tolerance = Tolerance::relative(10f64.powi(-(below(12) as i32) - 1)).unwrap();
        let tolerance = if below(2) == 0 { tolerance } else { tolerance.strict() };
        let kind = below(4);
        let last = [Kind::C2C, Kind::R2C, Kind::Dct2, Kind::C2C][kind];
        let first = if kind == 2 { Kind::Dst3 } else { Kind::C2C };
        let case = Case::new(shape, [first, first, last])
            .tiling(round)
            .batch(1 + below(2))
            .exchange(exchange);
        let found = thriffty::threads(ranks, |comm| match kind {
            0 => bounded::<C2c>(&comm, &case, direction, wire, tolerance),
            1 => bounded::<R2c>(&comm, &case, direction, wire, tolerance),
            2 => bounded::<R2r>(&comm, &case, direction, wire, tolerance),
            _ => bounded::<C2c<f32>>(&comm, &case, direction, wire, tolerance),
        });
        cases += found.unwrap_or_else(|error| panic!("{case:?} on {ranks}: {error}"))[0];
    }
}

/// 18 fields through one pair of plans. How many of them lost something.
fn bounded<K: Make>(
    comm: &dyn Comm,
    case: &Case<3>,
    direction: Direction,
    wire: Wire,
    tolerance: Tolerance,
) -> Result<usize, Error> {
    let double = size_of::<K::Real>() == 8;
    // Single precision cannot do better.
    let tolerance = match (double || tolerance.value() > 1e-5, tolerance.is_strict()) {
        (true, _) => tolerance,
        (false, true) => Tolerance::relative(1e-4)?.strict(),
        (false, false) => Tolerance::relative(1e-4)?,
    };
    let mut pair = Pair::<K, 3>::new(comm, case, direction, |draft| {
        if wire == Wire::Tolerance { draft.tolerance(tolerance) } else { draft.wire(wire) }
    })?;
    let mut lossy = 0;
    for seed in 0..2 * FIELDS.len() {
        let (name, field) = FIELDS[seed % FIELDS.len()];
        if !double && ["large and tiny by turns", "subnormal", "one spike in zeros"].contains(&name)
        {
            continue;
        }
        let (error, reported) = pair.lost(seed as u64, field)?;
        let what =
            format!("{name} {case:?} {direction:?} {wire} {tolerance}: {error:e}, {reported:?}");
        // If squares overflow, only a tolerance promises anything.
        assert!(reported.bound.is_nan() || error <= reported.bound, "{what}");
        assert!(reported.estimate.is_nan() || reported.estimate <= reported.bound, "{what}");
        if wire == Wire::Tolerance && tolerance.is_strict() {
            assert!(error <= tolerance.value(), "{what}");
        }
        lossy += usize::from(reported.estimate > 0.0);
    }
    Ok(lossy)
}

/// Many small messages of numbers that are all alike, whose errors are, too: none of them may lose
/// more than its share.
#[test]
fn a_tolerance_is_kept_by_small_messages_that_are_all_alike() {
    // Without latencies there is no reason for more than one reshape.
    let mut simple = Machine::default();
    (simple.far.latency.value, simple.far.overhead.value) = (0.0, 0.0);
    let machines = [Machine::default(), simple];
    let cases = [(32, 16), (64, 8), (64, 16)];
    for ((n, ranks), machine) in
        cases.into_iter().flat_map(|case| machines.iter().map(move |it| (case, it)))
    {
        thriffty::threads(ranks, |comm| {
            let (rank, part) = (comm.rank(), n / ranks);
            let grid = Grid::new([n, n])?;
            let rows = Brick { lo: [rank * part, 0], hi: [(rank + 1) * part, n] };
            let columns = Brick { lo: [0, rank * part], hi: [n, (rank + 1) * part] };
            let mut x = vec![C64::default(); n * part];
            x.iter_mut().step_by(n).for_each(|x| *x = C64::new(1.0, 1.0));
            let run = |tolerance: Option<f64>| -> Result<Vec<C64>, Error> {
                let draft = Plan::<C2c, 2>::c2c(&comm, grid).ignore_shared_memory(true);
                let draft = draft.input_brick(rows).output_brick(columns).machine(machine.clone());
                let mut plan = match tolerance {
                    Some(error) => draft.tolerance(Tolerance::relative(error)?).build()?,
                    None => draft.build()?,
                };
                let mut y = vec![C64::default(); n * part];
                plan.forward_into(&x, &mut y).map(|()| y)
            };
            let exact = run(None)?;
            for step in 0..40 {
                let tolerance = 0.3 * 0.8f64.powi(step);
                let found = run(Some(tolerance))?;
                let error = relative(&comm, &vec![1.0; found.len()], &found, &exact)?;
                assert!(error <= tolerance, "{n}² on {ranks}: {error:e} of {tolerance:e}");
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

/// Messages are lossless by default, with a lossless wire, and between ranks of one host.
#[test]
fn nothing_is_lost_unasked() {
    for exchange in Exchange::ALL {
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
                Ok((y, plan.wire_error(), plan.timings()))
            };
            let draft = || case.draft::<C2c>(&comm);
            let (plain, none, _) = run(draft()?.ignore_shared_memory(true))?;
            assert_eq!(none, None);
            let (lossless, none, _) =
                run(draft()?.ignore_shared_memory(true).wire(Wire::Lossless))?;
            assert_eq!(none, None);
            assert!(lossless == plain, "{exchange}");
            // Ranks of one host have nothing to gain from an encoding.
            let (near, none, timings) = run(draft()?.wire(Wire::Bits(8)))?;
            assert_eq!(none, None);
            assert!(timings.reals == 0 || timings.sent == 8 * timings.reals, "{exchange}");
            let shared = exchange == Exchange::Shared;
            assert!(shared || near == plain, "{exchange}");
            Ok::<_, Error>(())
        })
        .unwrap();
    }
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
    assert!(error.to_string().contains("at least 5.4e-15"), "{error}");
    let error = refused(None, Some(Wire::Tolerance), 3);
    assert!(error.to_string().contains("tolerance"), "{error}");
    assert_eq!(refused(None, Some(Wire::Bits(60)), 3).kind(), ErrorKind::Argument);
    let error = thriffty::threads(2, |comm| {
        let draft = Plan::<C2c, 2>::c2c(&comm, Grid::new([8, 8])?).wire(Wire::F16);
        draft.tolerance(Tolerance::relative(1e-8)?.strict()).build().map(drop)
    });
    let error = error.map(drop).unwrap_err().to_string();
    assert!(error.contains("strict") && error.contains("f16"), "{error}");
    let error = refused(Some(1e-3), None, 1).to_string();
    assert!(
        error.contains("tolerance") && error.contains("default") && error.contains("1e-3"),
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
            let timings = pair.coded.timings();
            assert!(
                timings.sent < timings.reals,
                "zeros take {} bytes for {}",
                timings.sent,
                timings.reals
            );
            let rank = comm.rank();
            for strange in [f64::NAN, f64::INFINITY] {
                let field = |at, x| if rank == 1 && at == 5 { strange } else { x };
                let (_, reported) = pair.lost(1, field)?;
                assert!(reported.estimate.is_nan() && reported.bound.is_nan());
            }
            // The next transform is not affected.
            let (error, _) = pair.lost(1, |_, x| x)?;
            assert!(error > 8e-4 * if option.is_strict() { 0.1 } else { 1.0 } && error <= 1e-3);
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

/// Sizes follow from the plan, or are sent with the messages, so that no collective is needed for
/// them.
#[test]
fn sizes_of_messages_take_no_collective() {
    let fixed = ["raw", "f32", "f16", "bf16", "mantissa:20", "bits:2", "bits:12", "bits:33"];
    let wires = fixed.into_iter().chain(["mantissa:0", "tolerance", "lossless"]);
    for (wire, exchange) in wires.flat_map(|w| Exchange::ALL.map(|e| (w, e))) {
        // More than one shape of messages, few of them a multiple of 64 numbers.
        let case = Case::new([14, 9, 12], [Kind::C2C; 3]).tiling(8).exchange(exchange);
        thriffty::threads(4, |comm| {
            let comm = Recorded::new(&comm)?;
            let draft = case.draft::<C2c>(&comm)?.ignore_shared_memory(true);
            let mut plan = match wire {
                "tolerance" => draft.tolerance(Tolerance::relative(1e-4)?),
                wire => draft.wire(wire.parse()?),
            }
            .build()?;
            let noise: Vec<C64> = random(plan.input_len(), 5 + comm.rank() as u64);
            let mut strange = noise.clone();
            strange.iter_mut().step_by(7).for_each(|x| x.re = f64::NAN);
            strange.iter_mut().step_by(5).for_each(|x| x.im = f64::INFINITY);
            let zeros = vec![C64::default(); noise.len()];
            let mut y = vec![C64::default(); plan.output_len()];
            let mut runs = Vec::new();
            for x in [&noise, &strange, &zeros] {
                plan.clear_timings();
                comm.take();
                plan.forward_into(x, &mut y)?;
                runs.push((plan.timings().sent, comm.take()));
            }
            let what = format!("{wire} {exchange}");
            let count = |name| runs[0].1.iter().filter(|(call, _)| *call == name).count();
            // Whether all slices are right, and whether all went well; the error, and the norm,
            // which a tolerance needs first.
            let reductions = match wire {
                "raw" | "lossless" => 2,
                "tolerance" => 4,
                _ => 3,
            };
            assert_eq!(count("allreduce"), reductions, "{what}");
            let collective = exchange == Exchange::Alltoallv && fixed.contains(&wire);
            assert_eq!(count("alltoallv") > 0, collective, "{what}");
            assert_eq!(count("allgather") + count("barrier"), 0, "{what}");
            if fixed.contains(&wire) {
                assert!(runs.iter().all(|run| *run == runs[0]), "{what}: {runs:?}");
            } else {
                assert!(runs[2].0 < runs[0].0 || wire == "mantissa:0", "{what}: {runs:?}");
            }
            if collective {
                let bytes = |(_, [out, _]): &(_, [Vec<usize>; 2])| out.iter().sum::<usize>();
                let bytes: usize = runs[0].1.iter().map(bytes).sum();
                assert_eq!(bytes as u64, runs[0].0, "{what}");
            }
            Ok::<_, Error>(())
        })
        .unwrap_or_else(|error| panic!("{wire} {exchange}: {error}"));
    }
}

/// Bytes of the scratch of codecs, one for each of two reshapes each way.
const CODECS: usize = 4 * 2048 * size_of::<f64>();

/// Slots are as long as messages, not as the decoded numbers.
#[test]
fn memory_is_reserved_for_what_is_sent() {
    for exchange in [Exchange::P2p, Exchange::Alltoallv, Exchange::KWay(2)] {
        // So large that the rest of a plan's memory is small.
        let case = Case::new([64, 48, 48], [Kind::C2C; 3]).exchange(exchange);
        thriffty::threads(4, |comm| {
            let plan =
                |wire| case.draft::<C2c>(&comm)?.ignore_shared_memory(true).wire(wire).build();
            // Keeps the tables that the threads share, which the plan that makes them counts.
            let _kept = plan(Wire::Raw)?;
            let memory = |wire| Ok::<_, Error>(plan(wire)?.workspace_bytes());
            // Codecs of other wires have scratch.
            let raw = memory(Wire::Raw)? + CODECS;
            let saved = |wire| Ok::<_, Error>(raw as f64 - memory(wire)? as f64);
            let (half, quarter) = (saved(Wire::F32)?, saved(Wire::Bits(16))?);
            // What else is held is the same.
            assert!((1.45..1.55).contains(&(quarter / half)), "{exchange}: {quarter} of {raw}");
            assert!(half > 0.18 * raw as f64, "{exchange}: {half} of {raw}");
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

/// The worst possible data: every number that is sent is half a step off in the same direction, and
/// the next transform adds up these errors in the mode that it weights most.
#[test]
fn a_strict_tolerance_is_used_by_the_worst_data() {
    const N: usize = 16;
    /// In steps of the encoder.
    const VALUE: f64 = 10.0;
    let off = 0.5 * (1.0 - 1e-6);
    // With it the step is 1. Three quarters of the numbers are sent.
    let tolerance = (0.75 / (2.0 * (VALUE * VALUE + off * off))).sqrt();
    thriffty::threads(4, |comm| {
        let (rank, part) = (comm.rank(), N / 4);
        let rows = Brick { lo: [rank * part, 0], hi: [(rank + 1) * part, N] };
        let columns = Brick { lo: [0, rank * part], hi: [N, (rank + 1) * part] };
        let run = |tolerance: Option<Tolerance>| -> Result<Vec<f64>, Error> {
            let draft = Plan::<R2r, 2>::r2r(&comm, Grid::new([N, N])?)
                .kinds([Kind::Dct2, Kind::Dct3])
                .ignore_shared_memory(true)
                .input_brick(rows)
                .output_brick(columns);
            let mut plan = match tolerance {
                Some(tolerance) => draft.tolerance(tolerance).build()?,
                None => draft.build()?,
            };
            // Rows become constant, of alternating sign.
            let mut x = vec![0.0; N * part];
            for (row, x) in x.iter_mut().step_by(N).enumerate() {
                *x = off + if row % 2 == 0 { VALUE } else { -VALUE };
            }
            let mut y = vec![0.0; N * part];
            plan.forward_into(&x, &mut y).map(|()| y)
        };
        let strict = Tolerance::relative(tolerance)?.strict();
        let (exact, found) = (run(None)?, run(Some(strict))?);
        let lost: Vec<_> = exact.iter().zip(&found).map(|(a, b)| a - b).collect();
        let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        let share = norm(&lost) / norm(&exact) / tolerance;
        assert!((0.9..=1.0).contains(&share), "{share}");
        Ok::<_, Error>(())
    })
    .unwrap();
}
