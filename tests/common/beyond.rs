//! Data larger than caches, some of which bypasses them when it is written: transforms of products
//! of lines are products of their transforms.

use std::f64::consts::TAU;

use thriffty::planning::Transform;
use thriffty::{C2c, Comm, Draft, Error, Grid, Plan, R2c};

use super::data::{C64, bound, random};

type Done = Result<(), Error>;

/// On 2 and 4 ranks, in arrays of their own and in those that they share.
pub(crate) fn all(comm: &dyn Comm) -> Done {
    if ![2, 4].contains(&comm.size()) {
        return Ok(());
    }
    for shared in [false, true] {
        // 68 MiB, in planes of 0.9.
        let shape = [72, 256, 240];
        let lines = [1, 2, 3].map(|axis| random::<C64>(shape[axis - 1], axis as u64));
        products(Plan::<C2c>::c2c(comm, Grid::new(shape)?), shared, lines, |x| x)?;
        // 66 MiB of half a spectrum.
        let shape = [140, 256, 240];
        let real = |x: f64| C64::new(x, 0.0);
        let line = |axis: usize| random::<f64>(shape[axis - 1], axis as u64).into_iter().map(real);
        let lines = [1, 2, 3].map(|axis| line(axis).collect());
        products(Plan::<R2c>::r2c(comm, Grid::new(shape)?), shared, lines, |x| x.re)?;
    }
    Ok(())
}

/// The definition.
fn transformed(line: &[C64]) -> Vec<C64> {
    let n = line.len();
    let root = |i: usize| C64::cis(-TAU * (i % n) as f64 / n as f64);
    (0..n).map(|k| line.iter().enumerate().map(|(j, x)| x * root(j * k)).sum()).collect()
}

/// Forward and back.
fn products<K: Transform<Spectral = C64>>(
    draft: Draft<'_, K, 3>,
    shared: bool,
    lines: [Vec<C64>; 3],
    physical: impl Fn(C64) -> K::Physical,
) -> Done
where
    C64: From<K::Physical>,
{
    let (mut plan, (mut x, mut y)) = if shared {
        let mut plan = draft.shared_arrays(true).build()?;
        let fields = (plan.shared_input()?, plan.shared_output()?);
        (plan, fields)
    } else {
        let plan = draft.build()?;
        let fields = (plan.input(), plan.output());
        (plan, fields)
    };
    let of = |lines: &[Vec<C64>; 3], [i, j, k]: [usize; 3]| lines[0][i] * lines[1][j] * lines[2][k];
    let bound = bound(f64::EPSILON, lines.iter().map(Vec::len).product());
    let spectra = lines.each_ref().map(|line| transformed(line));
    let close = |way: &str, sums: [f64; 2], bound: f64| {
        let error = (sums[0] / sums[1]).sqrt();
        assert!(error <= bound, "{way}, shared: {shared}: error {error:.2e} exceeds {bound:.2e}");
    };
    x.fill(|at| physical(of(&lines, at)));
    plan.forward_into(x.as_slice(), y.as_mut_slice())?;
    let mut sums = [0.0; 2];
    y.iter().for_each(|(at, found)| {
        let expected = of(&spectra, at);
        sums[0] += (found - expected).norm_sqr();
        sums[1] += expected.norm_sqr();
    });
    close("forward", sums, bound);
    x.fill(|_| physical(C64::new(f64::NAN, f64::NAN)));
    plan.inverse_into(y.as_slice(), x.as_mut_slice())?;
    let mut sums = [0.0; 2];
    x.iter().for_each(|(at, &found)| {
        let expected = of(&lines, at);
        sums[0] += (C64::from(found) - expected).norm_sqr();
        sums[1] += expected.norm_sqr();
    });
    close("there and back", sums, 2.0 * bound);
    Ok(())
}
