//! Difference schemes: discrete equations that solutions fulfil to rounding.

use proptest::prelude::*;
use proptest::sample::select;
use thriffty::planning::Transform;
use thriffty::spectral::{Operator, Scheme, Tridiagonal};
use thriffty::{Draft, Ends, Error};

use crate::common::RANKS;
use crate::common::stencils::{CONDITIONS, length, rows, second};
use crate::common::tiling::Rng;

/// A discrete equation: boundary conditions, a scheme along each axis or coefficients along one.
#[derive(Debug)]
struct Equation {
    shift: f64,
    shape: [usize; 3],
    ends: [Ends; 3],
    schemes: [Scheme; 3],
    tridiagonal: Option<(usize, Tridiagonal)>,
}

impl Equation {
    /// A random one; of those with coefficients, the grid is stretched along an axis.
    fn new(mut shape: [usize; 3], ends: [Ends; 3], stretched: bool, rng: &mut Rng) -> Self {
        let schemes = [(); 3].map(|()| Scheme::ALL[1 + rng.below(Scheme::ALL.len() - 1)]);
        for (n, ends) in shape.iter_mut().zip(ends) {
            *n = ends.kind().least_points().max(*n);
        }
        let tridiagonal = stretched.then(|| {
            let axis = rng.below(3);
            let cells = match (ends[axis].is_at_faces(), ends[axis].slopes()) {
                (false, _) => shape[axis],
                (true, slopes) => shape[axis] + 1 - slopes.iter().filter(|slope| **slope).count(),
            };
            let mut faces = vec![0.0];
            for cell in 0..cells {
                faces.push(faces[cell] + 0.5 + rng.below(1000) as f64 / 500.0);
            }
            (axis, Tridiagonal::second_derivative(&faces, ends[axis]).unwrap())
        });
        let shift = if rng.below(2) == 0 { 0.0 } else { 0.3 };
        Self { shift, shape, ends, schemes, tridiagonal }
    }

    /// What plans are told.
    fn asked(&self) -> [Ends; 3] {
        let mut ends = self.ends;
        if let Some((axis, _)) = self.tridiagonal {
            ends[axis] = Ends::Tridiagonal;
        }
        ends
    }

    fn at(&self, [i, j, k]: [usize; 3]) -> usize {
        (i * self.shape[1] + j) * self.shape[2] + k
    }

    fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// What an operator makes of data, of all ranks together.
    fn applied(&self, ranks: usize, operator: Operator, data: &[f64]) -> Vec<f64> {
        let parts = thriffty::threads(ranks, |comm| match self.asked().contains(&Ends::Periodic) {
            true => self.part(thriffty::r2c(&comm, self.shape).ends(self.asked()), operator, data),
            false => {
                let draft = thriffty::r2r(&comm, self.shape, self.asked().map(Ends::kind));
                self.part(draft, operator, data)
            }
        });
        let mut made = vec![0.0; data.len()];
        for (index, value) in parts.unwrap().into_iter().flatten() {
            made[self.at(index)] = value;
        }
        made
    }

    fn part<K: Transform<Physical = f64>>(
        &self,
        draft: Draft<'_, K, 3>,
        operator: Operator,
        data: &[f64],
    ) -> Result<Vec<([usize; 3], f64)>, Error> {
        let mut plan = draft.transposed_output(true).build()?;
        let lengths = std::array::from_fn(|axis| length(self.ends[axis], self.shape[axis]));
        let mut domain = plan.domain(lengths)?.with_schemes(&self.schemes)?;
        if let Some((_, scheme)) = &self.tridiagonal {
            domain = domain.with_tridiagonal(scheme.clone())?;
        }
        let mut field = plan.input();
        field.fill(|index| data[self.at(index)]);
        let mut field = plan.forward(field)?;
        domain.apply_in_place(operator, &mut field);
        Ok(plan.inverse(field)?.iter().map(|(index, value)| (index, *value)).collect())
    }

    /// The second derivative along all axes, by its stencils.
    fn laplacian(&self, f: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; f.len()];
        for axis in 0..3 {
            let change = match &self.tridiagonal {
                Some((along, scheme)) if *along == axis => rows(f, self.shape, axis, scheme),
                _ => second(f, self.shape, axis, (self.ends[axis], self.schemes[axis])),
            };
            sum.iter_mut().zip(change).for_each(|(sum, change)| *sum += change);
        }
        sum
    }

    /// Whether a constant is a solution.
    fn is_singular(&self) -> bool {
        self.shift == 0.0 && self.ends.iter().all(|ends| ends.slopes() == [true; 2])
    }

    fn noise(&self, rng: &mut Rng) -> Vec<f64> {
        (0..self.len()).map(|_| rng.below(2001) as f64 / 1e3 - 1.0).collect()
    }

    /// A solution fulfils the equation, and its Laplacian is that of the stencils.
    fn check(&self, ranks: usize, rng: &mut Rng) {
        let rho = self.noise(rng);
        let phi = self.applied(ranks, Operator::Helmholtz(self.shift), &rho);
        let laplacian = self.laplacian(&phi);
        let found = self.applied(ranks, Operator::Laplacian, &phi);
        let most = |values: &[f64]| values.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        let mut residual: Vec<f64> =
            (0..rho.len()).map(|i| rho[i] + laplacian[i] - self.shift * phi[i]).collect();
        // A mean stays where nothing holds it.
        if self.is_singular() {
            let mean = residual[0];
            residual.iter_mut().for_each(|r| *r -= mean);
        }
        assert!(most(&residual) < 1e-12, "{:e} of {self:?}, {ranks} ranks", most(&residual));
        let differences: Vec<_> = found.iter().zip(&laplacian).map(|(x, y)| x - y).collect();
        assert!(most(&differences) < 1e-12, "{:e} of {self:?}", most(&differences));
    }
}

/// As of the Python package.
fn cases() -> u32 {
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
        seed in any::<u64>().no_shrink(),
    ) {
        let mut rng = Rng(seed);
        Equation::new(shape, ends, stretched, &mut rng).check(ranks, &mut rng);
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
