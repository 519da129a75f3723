//! Errors of lossy plans on devices, against the same plans without loss.

use super::*;

/// The error of a plan with this option against the same plan without, and the reported one.
pub(crate) fn lost<K: Make, const D: usize>(
    comm: &dyn Comm,
    gpu: &impl Place,
    case: &Case<D>,
    direction: Direction,
    data: impl Fn(f64) -> f64,
    option: impl Fn(Draft<'_, K, D>) -> Draft<'_, K, D>,
) -> Result<(f64, thriffty::planning::WireError), Error>
where
    K::Real: GpuReal,
{
    let mut exact = gpu.plan(case.draft::<K>(comm)?).build()?;
    let mut plan = gpu.plan(option(case.draft::<K>(comm)?.ignore_shared_memory(true))).build()?;
    let lens = [exact.input_len(), exact.output_len()];
    let (a, b) = match direction {
        Direction::Forward => {
            let mut x: Vec<K::Physical> = random(lens[0], comm.rank() as u64);
            change::<_, K::Real>(&mut x, &data);
            let a: Vec<K::Spectral> = transform(&mut exact, direction, &x, lens[1])?;
            let b: Vec<K::Spectral> = transform(&mut plan, direction, &x, lens[1])?;
            (widen(&a), widen(&b))
        }
        Direction::Inverse => {
            // The inverse needs a spectrum of real data.
            let mut x: Vec<K::Physical> = random(lens[0], comm.rank() as u64);
            change::<_, K::Real>(&mut x, &data);
            let y: Vec<K::Spectral> = transform(&mut exact, Direction::Forward, &x, lens[1])?;
            let a: Vec<K::Physical> = transform(&mut exact, direction, &y, lens[0])?;
            let b: Vec<K::Physical> = transform(&mut plan, direction, &y, lens[0])?;
            (widen(&a), widen(&b))
        }
    };
    let mut squares = [distance(&a, &b).powi(2), norm(&a).powi(2)];
    comm.allreduce(Reduce::Sum, &mut squares)?;
    let reported = plan.wire_error().expect("something may be lost");
    Ok(((squares[0] / squares[1]).sqrt(), reported))
}

fn change<E: Element<Real = T>, T: Real>(data: &mut [E], by: &impl Fn(f64) -> f64) {
    for x in bytemuck::cast_slice_mut::<E, T>(data) {
        *x = T::of(by(x.as_f64()));
    }
}

/// Ranks that reach each other, and ranks that do not.
const PLACES: [&[usize]; 7] =
    [&[0; 4], &[0, 1, 2], &[0, 0, 1, 1], &[0; 2], &[0, 1], &[0; 8], &[0, 1, 2, 3, 3, 2, 1, 0]];

/// All of them, or the first few under a slow tool.
fn places() -> &'static [&'static [usize]] {
    if few() { &PLACES[..3] } else { &PLACES }
}

/// A single rank sends nothing, and so loses nothing.
#[test]
fn one_rank_loses_nothing_whatever_it_may() {
    let Some(gpu) = gpu() else { return };
    on_hosts(&[0], |comm| {
        let case = Case::new([12, 18, 20], [C2C; 3]).exchange(Exchange::P2p);
        let mut exact = case.draft::<C2c<f64>>(&comm)?.on(&gpu).build()?;
        let x: Vec<C64> = random(exact.input_len(), 1);
        let expected: Vec<C64> = transform(&mut exact, Direction::Forward, &x, x.len())?;
        for wire in [Wire::F16, Wire::Bits(16), Wire::Lossless, Wire::Tolerance] {
            let draft = case.draft::<C2c<f64>>(&comm)?.ignore_shared_memory(true);
            let draft = match wire {
                Wire::Tolerance => draft.tolerance(Tolerance::relative(1e-3)?),
                wire => draft.wire(wire),
            };
            let mut plan = draft.on(&gpu).build()?;
            let found: Vec<C64> = transform(&mut plan, Direction::Forward, &x, x.len())?;
            assert_eq!(found, expected, "{wire}");
            assert_eq!(plan.wire_error().unwrap_or_default(), Default::default(), "{wire}");
            assert_eq!((plan.timings().sent, plan.timings().reals), (0, 0), "{wire}");
        }
        Ok(())
    });
}

#[test]
fn a_tolerance_is_kept_and_reported() {
    let Some(gpu) = gpu() else { return };
    let shape = if few() { [12, 10, 16] } else { [48, 40, 50] };
    for hosts in places() {
        on_hosts(hosts, |comm| {
            for tolerance in [1e-2, 1e-6, 1e-11] {
                for direction in [Direction::Forward, Direction::Inverse] {
                    let option = Tolerance::relative(tolerance)?;
                    let case = Case::new(shape, [C2C; 3]).exchange(Exchange::P2p);
                    let half = Case::new(shape, [C2C, C2C, R2C]).exchange(Exchange::P2p);
                    let complex = lost::<C2c<f64>, 3>(
                        &comm,
                        &gpu,
                        &case,
                        direction,
                        |x| x,
                        |d| d.tolerance(option),
                    )?;
                    let real = lost::<R2c<f64>, 3>(
                        &comm,
                        &gpu,
                        &half,
                        direction,
                        |x| x,
                        |d| d.tolerance(option),
                    )?;
                    for (what, (error, reported)) in [("complex", complex), ("real", real)] {
                        let what =
                            format!("{what} {tolerance:e} {direction:?}: {error:e}, {reported:?}");
                        assert!((0.5..=1.0).contains(&(error / tolerance)), "{what}");
                        assert!((reported.estimate / error - 1.0).abs() < 0.05, "{what}");
                        assert!(error <= reported.bound, "{what}");
                    }
                    // Equal numbers, and zeros.
                    for field in [|_| 0.7, |_| 0.0] {
                        let (error, reported) =
                            lost::<C2c<f64>, 3>(&comm, &gpu, &case, direction, field, |d| {
                                d.tolerance(option)
                            })?;
                        // Zeros have no relative error.
                        let what = format!("{error:e}, {reported:?}");
                        assert!(error <= tolerance || error.is_nan(), "{what}");
                    }
                }
            }
            Ok(())
        });
    }
}

#[test]
fn wires_lose_what_they_report() {
    let Some(gpu) = gpu() else { return };
    for hosts in places() {
        on_hosts(hosts, |comm| {
            for (wire, most) in [
                (Wire::F32, 1e-7),
                (Wire::F16, 1e-3),
                (Wire::Bf16, 1e-2),
                (Wire::Mantissa(20), 1e-6),
                (Wire::Bits(16), 1e-4),
                (Wire::Bits(31), 1e-8),
            ] {
                let case = Case::new([12, 18, 20], [C2C; 3]).tiling(2).exchange(Exchange::P2p);
                let (error, reported) = lost::<C2c<f64>, 3>(
                    &comm,
                    &gpu,
                    &case,
                    Direction::Forward,
                    |x| x,
                    |d| d.wire(wire),
                )?;
                let what = format!("{wire}: {error:e}, {reported:?}");
                assert!(error > 0.0 && error < most && error <= reported.bound, "{what}");
                assert!((reported.estimate / error - 1.0).abs() < 0.2, "{what}");
            }
            // Large messages of several ranks, in which blocks of threads take several tiles.
            for wire in
                [Wire::F32, Wire::Bits(16)].into_iter().filter(|_| !few() && hosts.len() <= 4)
            {
                let case = Case::new([192, 160, 256], [C2C; 3]).exchange(Exchange::P2p);
                for _ in 0..3 {
                    let forward = Direction::Forward;
                    let (error, reported) =
                        lost::<C2c<f64>, 3>(&comm, &gpu, &case, forward, |x| x, |d| d.wire(wire))?;
                    let what = format!("{wire}: {error:e}, {reported:?}");
                    assert!((reported.estimate / error - 1.0).abs() < 0.02, "{what}");
                }
            }
            Ok(())
        });
    }
}

/// Single precision is raw with `f32`.
#[test]
fn single_precision_loses_nothing_as_f32() {
    let Some(gpu) = gpu() else { return };
    for hosts in places() {
        on_hosts(hosts, |comm| {
            let case = Case::new([12, 18, 20], [C2C; 3]).exchange(Exchange::P2p);
            let forward = Direction::Forward;
            let (error, reported) =
                lost::<C2c<f32>, 3>(&comm, &gpu, &case, forward, |x| x, |d| d.wire(Wire::F32))?;
            assert!(error < 1e-6 && reported.estimate == 0.0, "{error:e}, {reported:?}");
            Ok(())
        });
    }
}

#[test]
fn the_host_encodes_wires_without_kernels() {
    let Some(gpu) = gpu() else { return };
    on_hosts(&[0, 0], |comm| {
        for wire in Wire::ALL {
            let draft = thriffty::c2c(&comm, [12, 18, 20]).ignore_shared_memory(true);
            let draft = match wire {
                Wire::Tolerance => draft.tolerance(Tolerance::relative(1e-3)?),
                wire => draft.wire(wire),
            };
            let with_kernels =
                matches!(wire, Wire::Raw | Wire::F32 | Wire::Bits(_) | Wire::Tolerance);
            let expected =
                if with_kernels { GpuTransport::PeerToPeer } else { GpuTransport::HostStaged };
            assert_eq!(draft.on(&gpu).build()?.transport(), expected, "{wire}");
        }
        Ok(())
    });
}

#[test]
fn what_loses_nothing_is_the_same_bit_for_bit() {
    let Some(gpu) = gpu() else { return };
    for hosts in places() {
        on_hosts(hosts, |comm| {
            for exchange in [Exchange::P2p, Exchange::Alltoallv] {
                let case = Case::new([24, 18, 20], [C2C, C2C, R2C]).tiling(2).exchange(exchange);
                let draft = case.draft::<R2c<f64>>(&comm)?.ignore_shared_memory(true);
                let mut plan = draft.wire(Wire::Lossless).on(&gpu).build()?;
                assert_eq!(plan.transport(), GpuTransport::HostStaged);
                // The same steps.
                let tuning =
                    Tuning::Recipe(plan.recipe().to_string().replace(" lossless)", " raw)"));
                let draft =
                    case.draft::<R2c<f64>>(&comm)?.ignore_shared_memory(true).tuning(tuning);
                let mut raw = draft.wire(Wire::Raw).on(&gpu).build()?;
                let x: Vec<f64> = (0..raw.input_len()).map(|i| (i % 7) as f64).collect();
                let len = raw.output_len();
                let expected: Vec<C64> = transform(&mut raw, Direction::Forward, &x, len)?;
                let found: Vec<C64> = transform(&mut plan, Direction::Forward, &x, len)?;
                let same = |a: &[C64], b: &[C64]| {
                    bytemuck::cast_slice::<_, u64>(a) == bytemuck::cast_slice::<_, u64>(b)
                };
                assert!(same(&found, &expected), "{exchange}");
                let mut sent = [plan.timings().sent as f64, 8.0 * plan.timings().reals as f64];
                comm.allreduce(Reduce::Sum, &mut sent)?;
                assert!(sent[0] < 0.99 * sent[1], "{exchange}: {sent:?}");
                let back: Vec<f64> = transform(&mut plan, Direction::Inverse, &found, x.len())?;
                let again: Vec<f64> = transform(&mut raw, Direction::Inverse, &found, x.len())?;
                assert_eq!(back, again, "{exchange}");
            }
            // Ranks that reach each other encode nothing unless requested.
            let case = Case::new([12, 18, 20], [C2C; 3]).exchange(Exchange::P2p);
            let plan = case.draft::<C2c<f64>>(&comm)?.wire(Wire::Lossless).on(&gpu).build()?;
            let near = hosts.iter().all(|host| *host == hosts[0]);
            assert_eq!(
                plan.transport(),
                if near { GpuTransport::PeerToPeer } else { GpuTransport::HostStaged }
            );
            Ok(())
        });
    }
}
