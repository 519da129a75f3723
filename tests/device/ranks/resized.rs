//! Transforms on a device against plans of the host: padded and truncated ones, and large ones.

use thriffty::Grid;

use super::*;
use crate::common::tiling::tiling;

/// Lengths along each axis: of physical data, of the transform, and the number of modes.
#[derive(Clone, Copy, Debug)]
struct Lens<const D: usize> {
    points: [usize; D],
    transform: [usize; D],
    modes: [usize; D],
    kinds: [Kind; D],
    batch: usize,
}

impl<const D: usize> Lens<D> {
    /// With even bricks, or with random ones of a seed.
    fn draft<'a, K: Make>(
        &self,
        comm: &'a dyn Comm,
        seed: Option<u64>,
    ) -> Result<Draft<'a, K, D>, Error> {
        let grid = Grid::new(self.points)?;
        let draft = K::draft(comm, grid).kinds(self.kinds).batch(self.batch);
        let draft = draft.zero_padded(self.transform).modes(self.modes).exchange(Exchange::P2p);
        let Some(mut rng) = seed.map(Rng) else { return Ok(draft) };
        let (rank, ranks, spectral) = (comm.rank(), comm.size(), draft.spectral_grid());
        let draft = draft.input_brick(tiling(grid, ranks, &mut rng)[rank]);
        let draft = draft.output_brick(tiling(spectral, ranks, &mut rng)[rank]);
        Ok(draft.input_order(rng.order()).output_order(rng.order()))
    }
}

/// Transforms of whole axes.
fn whole<const D: usize>(points: [usize; D], kinds: [Kind; D]) -> Lens<D> {
    Lens { points, transform: points, modes: points, kinds, batch: 1 }
}

/// Both directions against the host, out of place, twice, and in place.
fn compare<K: Make, const D: usize>(
    comm: &dyn Comm,
    gpu: &impl Place,
    lens: &Lens<D>,
    seed: Option<u64>,
) -> Done
where
    K::Real: GpuReal,
{
    let draft = || Ok::<_, Error>(lens.draft::<K>(comm, seed)?.one_rank(true));
    let spectral = draft()?.spectral_grid().shape();
    let (mut host, mut plan) = (draft()?.build()?, gpu.plan(draft()?).build()?);
    let what = format!("rank {} of {}, {}", comm.rank(), comm.size(), plan.recipe());
    // Errors are relative to whole transforms of numbers up to 1, of which only a small part may be
    // kept.
    let points = |lens: [usize; D]| lens.into_iter().product::<usize>() as f64;
    let (batch, n) = (lens.batch as f64, points(lens.transform));
    let most = 2.0 * bound(K::Real::EPSILON, n as usize);
    let [forward, inverse] = [points(lens.points) * n, points(spectral) / n]
        .map(|square| most * (2.0 * batch * square).sqrt());
    let close = |way: &str, found: &[C64], expected: &[C64], most: f64| {
        let error = distance(found, expected);
        assert!(error <= most, "{way}: error {error:.2e} exceeds {most:.2e}: {what}");
    };
    let x: Vec<K::Physical> = random(host.input_len(), 1 + comm.rank() as u64);
    let y: Vec<K::Spectral> = random(host.output_len(), 100 + comm.rank() as u64);
    let (mut there, mut back) = (y.clone(), x.clone());
    host.forward_into(&x, &mut there)?;
    host.inverse_into(&y, &mut back)?;
    let (there, back) = (widen(&there), widen(&back));
    for _ in 0..2 {
        let found: Vec<K::Spectral> = transform(&mut plan, Direction::Forward, &x, y.len())?;
        close("forward_into", &widen(&found), &there, forward);
        let found: Vec<K::Physical> = transform(&mut plan, Direction::Inverse, &y, x.len())?;
        close("inverse_into", &widen(&found), &back, inverse);
    }
    let stream = plan.stream().clone();
    let mut data: Vec<K::Spectral> = random(plan.in_place_len(), 5);
    bytemuck::cast_slice_mut(&mut data)[..x.len()].copy_from_slice(&x);
    let mut array = Array::of(&stream, &data);
    let len = array.len;
    plan.forward_in_place(&mut array.numbers.slice_mut(0..len))?;
    let found: Vec<K::Spectral> = array.data(&stream);
    close("forward_in_place", &widen(&found[..y.len()]), &there, forward);
    data[..y.len()].copy_from_slice(&y);
    let mut array = Array::of(&stream, &data);
    plan.inverse_in_place(&mut array.numbers.slice_mut(0..len))?;
    let found: Vec<K::Spectral> = array.data(&stream);
    let found: &[K::Physical] = bytemuck::cast_slice(&found);
    close("inverse_in_place", &widen(&found[..x.len()]), &back, inverse);
    Ok(())
}

/// Lengths, modes and kinds at random; along some axis another kind, which keeps its length.
fn any<const D: usize>(family: DynTransform, seed: u64) -> Lens<D> {
    let mut rng = Rng(seed);
    let mut points: [usize; D] = std::array::from_fn(|_| 1 + rng.below(9));
    let mut transform = std::array::from_fn(|axis| points[axis] + rng.below(3) * rng.below(9));
    let mut modes = std::array::from_fn(|axis: usize| match rng.below(2) {
        0 => transform[axis],
        _ => 1 + rng.below(transform[axis]),
    });
    let (halved, other) = (rng.below(D), rng.below(D));
    let mut kinds = std::array::from_fn(|axis| match family {
        DynTransform::R2c if axis == halved => R2C,
        _ => C2C,
    });
    if seed.is_multiple_of(3) && kinds[other] == C2C {
        kinds[other] = [Kind::Dct2, Kind::Dst1, Kind::None][rng.below(3)];
        points[other] += 1;
        (transform[other], modes[other]) = (points[other], points[other]);
    }
    Lens { points, transform, modes, kinds, batch: 1 + rng.below(2) }
}

fn case<K: Make, const D: usize>(comm: &dyn Comm, gpu: &impl Place, seed: u64) -> Done
where
    K::Real: GpuReal,
{
    let lens = any(K::DYN, seed);
    compare::<K, D>(comm, gpu, &lens, Some(seed))
        .unwrap_or_else(|why| panic!("seed {seed}, {lens:?}: {why}"));
    Ok(())
}

pub(super) fn cases(comm: &dyn Comm, gpu: &impl Place, seeds: std::ops::Range<u64>) -> Done {
    for seed in seeds {
        case::<C2c<f64>, 1>(comm, gpu, seed)?;
        case::<R2c<f32>, 1>(comm, gpu, seed)?;
        case::<R2c<f64>, 2>(comm, gpu, seed)?;
        case::<C2c<f32>, 2>(comm, gpu, seed)?;
        case::<C2c<f64>, 3>(comm, gpu, seed)?;
        case::<R2c<f64>, 3>(comm, gpu, seed)?;
    }
    Ok(())
}

#[test]
fn padded_and_truncated_transforms_are_those_of_the_host() {
    let Some(gpu) = gpu() else { return };
    let seeds = if few() { 0..1 } else { 0..12 };
    for ranks in if few() { &RANKS[1..2] } else { &RANKS[..4] } {
        thriffty::threads(*ranks, |comm| cases(&comm, &gpu, seeds.clone())).unwrap();
    }
    on_hosts(&[0, 1, 1], |comm| cases(&comm, &gpu, 20..if few() { 21 } else { 26 }));
}

/// Arrays whose whole axes are fused with reshapes, and whose scale is linked into cuFFT's kernels.
#[test]
fn large_transforms_are_padded_and_truncated_along_some_axes() {
    let Some(gpu) = gpu() else { return };
    let lens =
        |transform, modes, kinds| Lens { points: [64, 32, 64], transform, modes, kinds, batch: 1 };
    for ranks in [1, 2, 4] {
        thriffty::threads(ranks, |comm| {
            for (transform, modes) in [
                ([128, 32, 64], [128, 32, 64]),
                ([64, 64, 64], [64, 64, 33]),
                ([64, 32, 64], [43, 32, 42]),
                ([128, 64, 128], [128, 64, 128]),
            ] {
                compare::<C2c<f64>, 3>(&comm, &gpu, &lens(transform, modes, [C2C; 3]), None)?;
                let halved = lens(transform, modes, [C2C, C2C, R2C]);
                compare::<R2c<f64>, 3>(&comm, &gpu, &halved, None)?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

/// Arrays so large that columns may be transformed by a kernel for their length, whichever is
/// faster, and that copy engines may move.
#[test]
fn large_arrays_have_the_fastest_columns() {
    let Some(gpu) = gpu() else { return };
    let other = gpu_of(1).unwrap_or_else(|| gpu.clone());
    for ranks in [1, 2] {
        thriffty::threads(ranks, |comm| {
            let gpu = [&gpu, &other][comm.rank()];
            let halved = whole([128, 110, 300], [C2C, C2C, R2C]);
            compare::<C2c<f64>, 3>(&comm, gpu, &whole([128, 126, 130], [C2C; 3]), None)?;
            compare::<R2c<f64>, 3>(&comm, gpu, &halved, None)?;
            compare::<C2c<f32>, 3>(&comm, gpu, &whole([250, 128, 144], [C2C; 3]), None)
        })
        .unwrap();
    }
}

/// Arrays so large that engines move chunks of them while others are transformed, where ranks have
/// GPUs of their own: out of place and in place, in slabs that are uneven, and with a rank that
/// shares a GPU.
#[test]
fn chunks_are_moved_beside_transforms() {
    let Some(gpu) = gpu() else { return };
    let gpus: Vec<_> = (0..3).map(|rank| gpu_of(rank).unwrap_or_else(|| gpu.clone())).collect();
    for ranks in if few() { 2..3 } else { 2..4 } {
        thriffty::threads(ranks, |comm| {
            let gpu = &gpus[comm.rank()];
            let many = whole([307, 150, 275], [C2C; 3]);
            compare::<C2c<f64>, 3>(&comm, gpu, &many, None)?;
            let halved = whole([300, 260, 330], [C2C, C2C, R2C]);
            compare::<R2c<f64>, 3>(&comm, gpu, &halved, None)?;
            let plane = whole([5000, 2600], [C2C; 2]);
            compare::<C2c<f64>, 2>(&comm, gpu, &plane, None)
        })
        .unwrap();
    }
}

/// The same of cosine and sine transforms, of real and of complex data, and of a batch.
#[test]
fn chunks_of_cosines_are_moved_beside_transforms() {
    use Kind::{Dct2, Dct3, Dct4, Dst2, Dst3, Dst4};
    let Some(gpu) = gpu() else { return };
    let gpus: Vec<_> = (0..3).map(|rank| gpu_of(rank).unwrap_or_else(|| gpu.clone())).collect();
    // A rank has data for four chunks or more, from which on recipes keep the order of axes.
    for ranks in if few() { 2..3 } else { 2..4 } {
        thriffty::threads(ranks, |comm| {
            let gpu = &gpus[comm.rank()];
            let real = |kinds| whole([203 * ranks, 300, 277], kinds);
            compare::<R2r<f64>, 3>(&comm, gpu, &real([Dct2, Dst3, Dct4]), None)?;
            let plane = whole([5000 * ranks, 7000], [Dct4, Dct2]);
            compare::<R2r<f32>, 2>(&comm, gpu, &plane, None)?;
            let batch = Lens { batch: 3, ..whole([72 * ranks, 300, 290], [Dst4, Dct3, Dst2]) };
            compare::<R2r<f64>, 3>(&comm, gpu, &batch, None)
        })
        .unwrap();
    }
}

/// The same of batches of random lengths: parts of each array, and whole arrays.
#[test]
fn chunks_of_batches_are_moved_beside_transforms() {
    let Some(gpu) = gpu() else { return };
    let other = gpu_of(1).unwrap_or_else(|| gpu.clone());
    for seed in 0..if few() { 1 } else { 5 } {
        let (mut rng, batch) = (Rng(seed), 2 + seed as usize);
        let lens = [0; 2].map(|_| 64 + 2 * rng.below(100));
        // A rank has data for a few chunks.
        let first = (10 << 20) / (batch / 2 * lens[0] * lens[1]);
        let points = [first / 4 * 4, lens[0], lens[1]];
        thriffty::threads(2, |comm| {
            let gpu = [&gpu, &other][comm.rank()];
            let complex = Lens { batch, ..whole(points, [C2C; 3]) };
            compare::<C2c<f64>, 3>(&comm, gpu, &complex, None)?;
            let halved = Lens { batch, ..whole(points, [C2C, C2C, R2C]) };
            compare::<R2c<f64>, 3>(&comm, gpu, &halved, None)
        })
        .unwrap_or_else(|why| panic!("seed {seed}, {batch} of {points:?}: {why}"));
    }
}

#[test]
fn plans_count_the_memory_of_whole_lines() {
    let Some(gpu) = gpu() else { return };
    thriffty::threads(1, |comm| {
        let lens = Lens { points: [64], transform: [4096], modes: [16], kinds: [C2C], batch: 1 };
        let plan = gpu.plan(lens.draft::<C2c<f64>>(&comm, None)?).build()?;
        assert!(plan.workspace_bytes() >= 4096 * 16, "{}", plan.workspace_bytes());
        let lens = Lens { kinds: [R2C], ..lens };
        let plan = gpu.plan(lens.draft::<R2c<f64>>(&comm, None)?).build()?;
        assert!(plan.workspace_bytes() >= 4096 * 8 + 2049 * 16, "{}", plan.workspace_bytes());
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// Transforms that hosts refuse, devices refuse as well, on all ranks.
#[test]
fn lengths_without_meaning_are_refused() {
    let Some(gpu) = gpu() else { return };
    thriffty::threads(2, |comm| {
        let draft = || thriffty::c2c(&comm, [4, 6]);
        for (draft, text) in [
            (draft().zero_padded([3, 6]), "zero_padded along axis 0: found 3"),
            (draft().modes([4, 7]), "modes along axis 1: found 7"),
            (draft().zero_padded([8, 6]).kinds([Kind::Dct2, C2C]), "kind of padding"),
            (draft().zero_padded([8, 6]).wire(Wire::F32), "wire beside padding"),
        ] {
            let error = draft.on(&gpu).build().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}
