//! Transforms that load their input from other ranks, compared with plans of the host.

use crate::gpu::{fetched, links, stores};
use fft_core::Step;
use thriffty::gpu::cudarc::driver::DevicePtr;

use super::*;

/// Reshapes of a direction that transforms follow.
fn followed<K: Make, const D: usize>(plan: &DevicePlan<K, D>, direction: Direction) -> usize
where
    K::Real: GpuReal,
{
    let (mut found, mut moved) = (0, false);
    for (_, step, _) in plan.recipe().walk(direction) {
        match step {
            Step::Reshape { .. } => moved = true,
            Step::Fft { .. } => found += usize::from(std::mem::take(&mut moved)),
            Step::Scale { .. } => {}
        }
    }
    found
}

/// The UUIDs of all ranks' GPUs.
fn identities(comm: &dyn Comm, gpu: &Gpu) -> Result<Vec<[u8; 16]>, Error> {
    let mine = gpu.context().uuid().unwrap().bytes.map(|byte| byte as u8);
    let mut all = vec![[0; 16]; comm.size()];
    comm.allgather(&mine, all.as_flattened_mut())?;
    Ok(all)
}

/// Whether all GPUs are one or joined, so that complex transforms load from other ranks.
pub(crate) fn joined(comm: &dyn Comm, gpu: &Gpu) -> Result<bool, Error> {
    let near = |other: &[u8; 16]| thriffty::gpu::joined(gpu, *other);
    let mut all = [f64::from(identities(comm, gpu)?.iter().all(near))];
    comm.allreduce(Reduce::Min, &mut all)?;
    Ok(all == [1.0])
}

/// Whether all ranks share a GPU, so that real transforms do as well.
pub(crate) fn share_one(comm: &dyn Comm, gpu: &Gpu) -> Result<bool, Error> {
    let all = identities(comm, gpu)?;
    Ok(all.iter().all(|other| *other == all[0]))
}

/// Fused reshapes and all reshapes that could be fused, forward and inverse; whether ranks reach
/// each other's memory; and whether the last forward reshape is fused.
struct Counts([[usize; 2]; 2], bool, bool);

/// Compares with a plan of the host.
fn as_on_the_host<K: Make, const D: usize>(
    comm: &dyn Comm,
    gpu: &Gpu,
    case: &Case<D>,
) -> Result<Counts, Error>
where
    K::Real: GpuReal,
{
    let rank = comm.rank() as u64;
    let mut host = case.draft::<K>(comm)?.build()?;
    let mut plan = gpu.plan(case.draft::<K>(comm)?).build()?;
    let stream = plan.stream().clone();
    let what = format!("rank {rank}, {}", plan.recipe());
    let compare = |way: &str, found: &[C64], expected: &[C64]| {
        // A rank's own part may have more than its share of the error.
        let most = 2.0 * bound(K::Real::EPSILON, case.shape.iter().product());
        let error = distance(found, expected) / norm(expected).max(f64::MIN_POSITIVE);
        assert!(error <= most, "{way}: error {error:.2e} exceeds {most:.2e}: {what}");
    };
    // Each time from other arrays. The earlier ones hold other numbers, which shows stale reads.
    let mut held: Vec<[Array<K::Real>; 2]> = Vec::new();
    for time in 0..3 {
        let x: Vec<K::Physical> = random(host.input_len(), 10 * rank + time);
        let mut y: Vec<K::Spectral> = random(host.output_len(), 3);
        host.forward_into(&x, &mut y)?;
        let arrays = [Array::of(&stream, &x), Array::of(&stream, &y)];
        let at = |array: &Array<K::Real>| array.numbers.device_ptr(&stream).0;
        assert!(held.iter().flatten().all(|other| arrays.iter().all(|one| at(one) != at(other))));
        let found: Vec<K::Spectral> =
            transform_from(&mut plan, Direction::Forward, &arrays[0], y.len())?;
        compare(&format!("forward_into, time {time}"), &widen(&found), &widen(&y));
        let mut back = x.clone();
        host.inverse_into(&y, &mut back)?;
        let found: Vec<K::Physical> =
            transform_from(&mut plan, Direction::Inverse, &arrays[1], x.len())?;
        compare(&format!("inverse_into, time {time}"), &widen(&found), &widen(&back));
        let stays = [
            widen::<K::Physical>(&arrays[0].data(&stream)),
            widen::<K::Spectral>(&arrays[1].data(&stream)),
        ];
        assert!(stays == [widen(&x), widen(&y)], "the input stays: {what}");
        held.push(arrays);
    }
    let directions = [Direction::Forward, Direction::Inverse];
    let counts = directions.map(|way| [fetched(plan.operations(way)), followed(&plan, way)]);
    assert!(counts.iter().all(|[fetched, followed]| fetched <= followed), "{counts:?}: {what}");
    Ok(Counts(
        counts,
        plan.transport() == GpuTransport::PeerToPeer,
        stores(plan.operations(Direction::Forward)),
    ))
}

/// Same and other orders, uneven and too many bricks, scales, fewer axes, real data.
///
/// Ranks that can access each other's arrays store results there.
pub(crate) fn cases(comm: &dyn Comm, gpu: &Gpu, seen: bool) -> Done {
    let complex = |case: Case<3>| as_on_the_host::<C2c<f64>, 3>(comm, gpu, &case);
    let case = || Case::new([64, 64, 128], [C2C; 3]);
    let Counts(plain, near, _) = complex(case().scales(Scale::Symmetric, Scale::Full))?;
    // The longest axis is cut; transforms along it come last, alone.
    let longest = Case::new([128, 64, 64], [C2C; 3]).scales(Scale::Symmetric, Scale::Full);
    let Counts(_, _, stored) = complex(longest)?;
    let Counts(turned, ..) = complex(case().orders([2, 1, 0], [1, 2, 0]))?;
    complex(case().tiling(1))?;
    let Counts(single, ..) = as_on_the_host::<C2c<f32>, 3>(comm, gpu, &case())?;
    as_on_the_host::<C2c<f64>, 2>(comm, gpu, &Case::new([512, 512], [C2C; 2]))?;
    as_on_the_host::<R2c<f64>, 3>(comm, gpu, &Case::new([128, 128, 64], [C2C, C2C, R2C]))?;
    assert!(single.iter().all(|[fetched, _]| *fetched == 0), "{single:?}");
    let joined = joined(comm, gpu)?;
    if near && !joined {
        println!("ranks have GPUs that are not joined: nothing is fetched");
        assert!(
            plain.iter().chain(&turned).all(|[fetched, _]| *fetched == 0),
            "{plain:?} {turned:?}"
        );
    }
    if near && joined && links(gpu) {
        for [forward, inverse] in [plain, turned] {
            assert!(
                comm.size() == 1 || forward[1] > 0 && inverse[1] > 0,
                "{forward:?} {inverse:?}"
            );
            assert_eq!(forward[0], forward[1], "of {} ranks", comm.size());
            // Eight pieces along another axis than the first do not fit into tables: slabs of
            // eight ranks have them, pencils do not.
            let least = inverse[1] - usize::from(comm.size() == 8);
            let fetched = (least..=inverse[1]).contains(&inverse[0]);
            assert!(fetched, "{inverse:?} of {} ranks", comm.size());
        }
        if comm.size() != 3 {
            assert_eq!(stored, seen && comm.size() > 1, "of {} ranks", comm.size());
        }
    }
    Ok(())
}

#[test]
fn transforms_that_fetch_are_those_of_the_host() {
    let Some(gpu) = gpu() else { return };
    for ranks in RANKS {
        thriffty::threads(ranks, |comm| cases(&comm, &gpu, true)).unwrap();
    }
}
