//! Difference schemes: discrete equations that solutions fulfil to rounding.

use proptest::prelude::*;
use proptest::sample::select;
use thriffty::planning::Transform;
use thriffty::spectral::{Operator, Scheme};
use thriffty::{Draft, Ends, Error};

use crate::common::RANKS;
use crate::common::stencils::{length, second, slopes};
use crate::common::tiling::Rng;

/// A solution of a random right-hand side, and that side, of all ranks together.
fn solved<K: Transform<Physical = f64>>(
    draft: Draft<'_, K, 3>,
    (operator, lengths, schemes): (Operator, [f64; 3], [Scheme; 3]),
    value: impl Fn([usize; 3]) -> f64,
) -> Result<Vec<([usize; 3], f64)>, Error> {
    let mut plan = draft.transposed_output(true).build()?;
    let domain = plan.domain(lengths)?.with_schemes(&schemes)?;
    let mut rho = plan.input();
    rho.fill(value);
    let mut rho = plan.forward(rho)?;
    domain.apply_in_place(operator, &mut rho);
    Ok(plan.inverse(rho)?.iter().map(|(index, value)| (index, *value)).collect())
}

fn residual_is_rounding(ranks: usize, shape: [usize; 3], ends: [Ends; 3], seed: u64) {
    let mut rng = Rng(seed);
    let schemes = Scheme::ALL;
    let schemes = [(); 3].map(|()| schemes[1 + rng.below(schemes.len() - 1)]);
    let shift = if seed % 2 == 0 { 0.0 } else { 0.3 };
    let shape: [usize; 3] =
        std::array::from_fn(|axis| ends[axis].kind().least_points().max(shape[axis]));
    let at = |[i, j, k]: [usize; 3]| (i * shape[1] + j) * shape[2] + k;
    let random: Vec<f64> =
        (0..shape.iter().product()).map(|_| rng.below(2001) as f64 / 1e3 - 1.0).collect();
    let lengths = std::array::from_fn(|axis| length(ends[axis], shape[axis]));
    let what = (Operator::Helmholtz(shift), lengths, schemes);
    let parts = thriffty::threads(ranks, |comm| match ends.contains(&Ends::Periodic) {
        true => solved(thriffty::r2c(&comm, shape).ends(ends), what, |index| random[at(index)]),
        false => {
            let draft = thriffty::r2r(&comm, shape, ends.map(Ends::kind));
            solved(draft, what, |index| random[at(index)])
        }
    });
    let mut phi = vec![0.0; random.len()];
    for (index, value) in parts.unwrap().into_iter().flatten() {
        phi[at(index)] = value;
    }
    let mut residual: Vec<f64> = phi.iter().zip(&random).map(|(x, y)| y - shift * x).collect();
    for axis in 0..3 {
        let change = second(&phi, shape, axis, (ends[axis], schemes[axis]));
        residual.iter_mut().zip(change).for_each(|(r, change)| *r += change);
    }
    // A mean stays where nothing holds it.
    if shift == 0.0 && ends.iter().all(|ends| slopes(*ends) == [true; 2]) {
        let mean = residual[0];
        residual.iter_mut().for_each(|r| *r -= mean);
    }
    let most = residual.iter().fold(0.0f64, |most, r| most.max(r.abs()));
    assert!(most < 1e-12, "{most:e} of {ends:?}, {schemes:?}, {shape:?}, {ranks} ranks");
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(60)
    })]

    #[test]
    fn solutions_fulfil_their_discrete_equations(
        ranks in select(&RANKS[..]),
        shape in [1usize..9, 1..9, 1..9],
        ends in [select(&Ends::ALL[..]), select(&Ends::ALL[..]), select(&Ends::ALL[..])],
        seed in any::<u64>().no_shrink(),
    ) {
        residual_is_rounding(ranks, shape, ends, seed);
    }
}

/// A projected flow has no divergence by the scheme, as differences of neighbours have it.
#[test]
fn projected_flows_have_no_discrete_divergence() {
    let shape = [6, 5, 8];
    for (ranks, scheme) in RANKS.into_iter().zip(Scheme::ALL.into_iter().cycle().skip(1)) {
        let run = |comm: thriffty::ThreadComm| {
            let mut plan = thriffty::r2c(&comm, shape).batch(3).build()?;
            let domain = plan.domain([6.0, 5.0, 8.0])?.with_schemes(&[scheme; 3])?;
            let mut flow = plan.input();
            flow.fill(|[i, j, k]| ((7 * i * i + 3 * j + 5 * k * i) % 11) as f64);
            let count = flow.as_slice().len();
            for (at, v) in flow.as_mut_slice().iter_mut().enumerate() {
                *v += (3 * at / count.max(1)) as f64 * *v;
            }
            let mut flow = plan.forward(flow)?;
            domain.apply_in_place(Operator::Project, &mut flow);
            let flow = plan.inverse(flow)?;
            Ok::<_, Error>(flow.iter().map(|(index, v)| (index, *v)).collect::<Vec<_>>())
        };
        let parts = thriffty::threads(ranks, run).unwrap();
        let mut u = vec![[0.0; 3]; 240];
        for part in parts {
            let one = part.len() / 3;
            for (at, ([i, j, k], v)) in part.into_iter().enumerate() {
                u[(i * 5 + j) * 8 + k][at / one] = v;
            }
        }
        let value = |component: usize, index: [usize; 3], by: i64| {
            let mut index = index.map(|i| i as i64);
            index[component] = (index[component] + by).rem_euclid(shape[component] as i64);
            let [i, j, k] = index.map(|i| i as usize);
            u[(i * 5 + j) * 8 + k][component]
        };
        let stencil: &[(i64, f64)] = match scheme {
            Scheme::Central2 => &[(1, 0.5), (-1, -0.5)],
            Scheme::Central4 => {
                &[(1, 2.0 / 3.0), (-1, -2.0 / 3.0), (2, -1.0 / 12.0), (-2, 1.0 / 12.0)]
            }
            Scheme::Staggered2 => &[(0, 1.0), (-1, -1.0)],
            _ => &[(0, 27.0 / 24.0), (-1, -27.0 / 24.0), (1, -1.0 / 24.0), (-2, 1.0 / 24.0)],
        };
        for index in (0..240).map(|at| [at / 40, at / 8 % 5, at % 8]) {
            let terms =
                (0..3).flat_map(|a| stencil.iter().map(move |(by, c)| c * value(a, index, *by)));
            let divergence: f64 = terms.sum();
            if scheme != Scheme::Exact {
                assert!(divergence.abs() < 2e-13, "{divergence:e} at {index:?}, {scheme}");
            }
        }
    }
}
