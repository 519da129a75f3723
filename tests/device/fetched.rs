//! Lengths and sizes with which transforms fetch what they read from other ranks, against plans of the host.

use super::*;

fn as_on_the_host<K: Make, const D: usize>(
    comm: &dyn Comm,
    gpu: &impl Place,
    case: &Case<D>,
) -> Done
where
    K::Real: GpuReal,
{
    let rank = comm.rank() as u64;
    let mut host = case.draft::<K>(comm)?.build()?;
    let mut plan = gpu.plan(case.draft::<K>(comm)?).build()?;
    let x: Vec<K::Physical> = random(host.input_len(), 2 * rank);
    let mut y: Vec<K::Spectral> = random(host.output_len(), 2 * rank + 1);
    let what = format!("rank {rank}, {}", plan.recipe());
    let compare = |way: &str, found: &[C64], expected: &[C64]| {
        // Of what this rank has, whose share of the error may be larger.
        let most = 2.0 * bound(K::Real::EPSILON, case.shape.iter().product());
        let error = distance(found, expected) / norm(expected).max(f64::MIN_POSITIVE);
        assert!(error <= most, "{way}: error {error:.2e} exceeds {most:.2e}: {what}");
    };
    // The second time from other places.
    for time in 0..2 {
        host.forward_into(&x, &mut y)?;
        let found: Vec<K::Spectral> = transform(&mut plan, Direction::Forward, &x, y.len())?;
        compare(&format!("forward_into, time {time}"), &widen(&found), &widen(&y));
        let mut back = x.clone();
        host.inverse_into(&y, &mut back)?;
        let found: Vec<K::Physical> = transform(&mut plan, Direction::Inverse, &y, x.len())?;
        compare(&format!("inverse_into, time {time}"), &widen(&found), &widen(&back));
    }
    Ok(())
}

/// Orders that are kept and turned, uneven bricks and more of them than tables have, scales, fewer axes, real data.
pub(crate) fn cases(comm: &dyn Comm, gpu: &impl Place) -> Done {
    let complex = |case: Case<3>| as_on_the_host::<C2c<f64>, 3>(comm, gpu, &case);
    let case = || Case::new([64, 64, 128], [C2C; 3]);
    complex(case().scales(Scale::Symmetric, Scale::Full))?;
    complex(case().orders([2, 1, 0], [1, 2, 0]))?;
    complex(case().tiling(1))?;
    as_on_the_host::<C2c<f32>, 3>(comm, gpu, &case())?;
    as_on_the_host::<C2c<f64>, 2>(comm, gpu, &Case::new([512, 512], [C2C; 2]))?;
    as_on_the_host::<R2c<f64>, 3>(comm, gpu, &Case::new([128, 128, 64], [C2C, C2C, R2C]))
}

#[test]
fn transforms_that_fetch_are_those_of_the_host() {
    let Some(gpu) = gpu() else { return };
    for ranks in RANKS {
        thriffty::threads(ranks, |comm| cases(&comm, &gpu)).unwrap();
    }
}
