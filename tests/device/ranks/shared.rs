//! Arrays that processes share on a device, compared with plans of the host.

use fft_core::Step;
use thriffty::gpu::cudarc::driver::{CudaView, CudaViewMut};

use super::*;
use crate::gpu::stores;

/// A field's numbers, or none.
fn all<'a, T: GpuReal>(found: Result<CudaView<'a, T>, Error>) -> CudaView<'a, T> {
    found.expect("it was made")
}

fn put<T: GpuReal>(
    stream: &std::sync::Arc<CudaStream>,
    numbers: &[T],
    to: &mut CudaViewMut<'_, T>,
) {
    if !numbers.is_empty() {
        stream.memcpy_htod(numbers, to).unwrap();
    }
}

fn get<T: GpuReal, E: Element<Real = T>>(
    stream: &std::sync::Arc<CudaStream>,
    from: &CudaView<'_, T>,
) -> Vec<E> {
    let mut numbers = vec![T::default(); from.len()];
    if !numbers.is_empty() {
        stream.memcpy_dtoh(from, &mut numbers).unwrap();
        stream.synchronize().unwrap();
    }
    bytemuck::cast_slice(&numbers).to_vec()
}

/// Both directions, in place and not, twice; returns whether the last forward reshape was fused.
fn compare<K: Make, const D: usize>(
    comm: &dyn Comm,
    gpu: &impl Place,
    case: &Case<D>,
) -> Result<bool, Error>
where
    K::Real: GpuReal,
{
    let mut host = case.draft::<K>(comm)?.build()?;
    let mut plan = gpu.plan(case.draft::<K>(comm)?.shared_arrays(true)).build()?;
    let what = format!("rank {} of {}, {}", comm.rank(), comm.size(), plan.recipe());
    let stream = plan.stream().clone();
    let most = 2.0 * bound(K::Real::EPSILON, case.shape.iter().product());
    let close = |way: &str, found: &[C64], expected: &[C64]| {
        let error = distance(found, expected) / norm(expected).max(f64::MIN_POSITIVE);
        assert!(error <= most, "{way}: error {error:.2e} exceeds {most:.2e}: {what}");
    };
    for time in 0..2 {
        let seed = 2 * comm.rank() as u64 + time;
        let x: Vec<K::Physical> = random(host.input_len(), seed);
        let y: Vec<K::Spectral> = random(host.output_len(), 100 + seed);
        let (mut there, mut back) = (y.clone(), x.clone());
        host.forward_into(&x, &mut there)?;
        host.inverse_into(&y, &mut back)?;

        let (mut physical, mut spectral) = (plan.shared_input()?, plan.shared_output()?);
        let zeros: Vec<K::Spectral> = get(&stream, &all(spectral.as_slice()));
        assert!(widen(&zeros).iter().all(|number| *number == C64::default()), "cleared: {what}");
        put(&stream, bytemuck::cast_slice(&x), &mut physical.as_mut_slice()?);
        plan.forward_into(&all(physical.as_slice()), &mut spectral.as_mut_slice()?)?;
        let found: Vec<K::Spectral> = get(&stream, &all(spectral.as_slice()));
        close("forward_into", &widen(&found), &widen(&there));
        let stays: Vec<K::Physical> = get(&stream, &all(physical.as_slice()));
        assert_eq!(widen(&stays), widen(&x), "the input stays: {what}");
        put(&stream, bytemuck::cast_slice(&y), &mut spectral.as_mut_slice()?);
        plan.inverse_into(&all(spectral.as_slice()), &mut physical.as_mut_slice()?)?;
        let found: Vec<K::Physical> = get(&stream, &all(physical.as_slice()));
        close("inverse_into", &widen(&found), &widen(&back));
        let stays: Vec<K::Spectral> = get(&stream, &all(spectral.as_slice()));
        assert_eq!(widen(&stays), widen(&y), "the spectrum stays: {what}");

        put(&stream, bytemuck::cast_slice(&x), &mut physical.as_mut_slice()?);
        let field = plan.forward(physical)?;
        let found: Vec<K::Spectral> = get(&stream, &all(field.as_slice()));
        close("forward", &widen(&found), &widen(&there));
        drop(field);
        let field = plan.inverse(spectral)?;
        let found: Vec<K::Physical> = get(&stream, &all(field.as_slice()));
        close("inverse", &widen(&found), &widen(&back));
    }
    Ok(stores(plan.operations(Direction::Forward)))
}

/// Complex and real data, uneven and empty bricks, batches; arrays that do not fit; tuning.
///
/// Threads that share a device can access all arrays.
pub(crate) fn cases(comm: &dyn Comm, gpu: &Gpu, joined: bool, all_seen: bool) -> Done {
    let p2p = Exchange::P2p;
    let longest = Case::new([128, 64, 64], [C2C; 3]).scales(Scale::Symmetric, Scale::Full);
    let stored = compare::<C2c<f64>, 3>(comm, gpu, &longest.exchange(p2p))?;
    if joined && crate::gpu::links(gpu) && comm.size() != 3 {
        assert_eq!(stored, comm.size() > 1, "of {} ranks", comm.size());
    }
    // Half a spectrum has 129 planes: of four ranks the first has fewer at the end than before.
    let halves = Case::new([64, 64, 256], [C2C, C2C, R2C]).exchange(p2p);
    let stored = compare::<R2c<f64>, 3>(comm, gpu, &halves)?;
    let near = fetched::share_one(comm, gpu)?;
    if near && crate::gpu::links(gpu) && [2, 4].contains(&comm.size()) {
        assert!(stored, "of {} ranks", comm.size());
    }
    compare::<C2c<f32>, 3>(comm, gpu, &Case::new([64, 32, 64], [C2C; 3]).exchange(p2p))?;
    compare::<R2c<f64>, 3>(comm, gpu, &Case::new([12, 20, 16], [C2C, C2C, R2C]).exchange(p2p))?;
    let tiled = Case::new([9, 12, 10], [C2C; 3]).tiling(3).exchange(p2p);
    compare::<C2c<f64>, 3>(comm, gpu, &tiled)?;
    compare::<C2c<f64>, 3>(comm, gpu, &tiled.batch(2))?;
    refused(comm, gpu, all_seen)?;
    timed(comm, gpu)
}

/// Other arrays are an error on all ranks, unless no other rank accesses them.
fn refused(comm: &dyn Comm, gpu: &Gpu, seen_anyway: bool) -> Done {
    let case = Case::new([6, 5, 4], [C2C; 3]).exchange(Exchange::P2p);
    let mut plan = case.draft::<C2c<f64>>(comm)?.shared_arrays(true).on(gpu).build()?;
    let stream = plan.stream().clone();
    let mut shared = plan.shared_output()?;
    // An array of one rank only.
    let own = plan.input();
    let seen = plan.shared_input()?;
    let odd = if comm.rank() == 0 { &own } else { &seen };
    match plan.forward_into(&all(odd.as_slice()), &mut shared.as_mut_slice()?) {
        Ok(()) => assert!(seen_anyway, "an array that others do not see"),
        Err(error) => {
            assert!(!seen_anyway && error.kind() == ErrorKind::Argument, "{error}");
        }
    }
    plan.forward_into(&all(seen.as_slice()), &mut shared.as_mut_slice()?)?;
    drop((plan, shared));
    // An array outlives the plan.
    let numbers: Vec<C64> = get(&stream, &all(seen.as_slice()));
    assert!(numbers.iter().all(|number| *number == C64::default()));
    comm.barrier()
}

/// Tuning by time uses such arrays.
fn timed(comm: &dyn Comm, gpu: &Gpu) -> Done {
    let tuning = Tuning::Measure { budget: std::time::Duration::from_millis(100) };
    let case = Case::new([16, 12, 10], [C2C; 3]).exchange(Exchange::P2p);
    let draft = case.draft::<C2c<f64>>(comm)?.tuning(tuning).shared_arrays(true);
    let mut plan = draft.on(gpu).build()?;
    for row in &plan.report().rows {
        assert!(
            !matches!(row.outcome, thriffty::tuning::Outcome::Failed(_)),
            "{:?}: {}",
            row.outcome,
            row.recipe
        );
    }
    let reshapes = plan.recipe().steps().iter();
    let reshapes = reshapes.filter(|step| matches!(step, Step::Reshape { .. })).count();
    assert!(comm.size() == 1 || reshapes > 0);
    let field = plan.shared_input()?;
    plan.forward(field).map(drop)
}

#[test]
fn arrays_that_ranks_share_are_transformed_as_on_the_host() {
    let Some(gpu) = gpu() else { return };
    for ranks in RANKS {
        thriffty::threads(ranks, |comm| cases(&comm, &gpu, true, true)).unwrap();
    }
}
