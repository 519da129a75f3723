//! Difference schemes: discrete equations that solutions fulfil to rounding.

use proptest::prelude::*;
use proptest::sample::select;
use thriffty::Error;
use thriffty::spectral::{Operator, Scheme};

use crate::common::RANKS;
use crate::common::equation::{Equation, OnHost};
use crate::common::stencils::CONDITIONS;
use crate::common::tiling::Rng;

/// As of the Python package.
pub(crate) fn cases() -> u32 {
    let asked = std::env::var("THRIFFTY_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(60)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases())
    })]

    #[test]
    fn solutions_fulfil_their_discrete_equations(
        ranks in select(&RANKS[..]),
        shape in [1usize..9, 1..9, 1..9],
        ends in [select(&CONDITIONS[..]), select(&CONDITIONS[..]), select(&CONDITIONS[..])],
        stretched in any::<bool>(),
        divided in any::<bool>(),
        seed in any::<u64>().no_shrink(),
    ) {
        let mut rng = Rng(seed);
        let equation = Equation::new(shape, ends, stretched, &mut rng);
        let equation = if divided { equation.dividing(rng.next()) } else { equation };
        equation.check(&OnHost, ranks, &mut rng);
    }
}

/// A projected flow has no divergence by the scheme, computed from differences of neighbours.
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
