//! Discrete equations with boundary conditions, which solutions fulfil to rounding.

use thriffty::planning::{Location, Transform};
use thriffty::spectral::{Operator, Scheme, Tridiagonal};
use thriffty::{Comm, Draft, Ends, Error, Field, Physical, Plan, ThreadComm};

use super::stencils::{length, rows, second};
use super::tiling::{Rng, divided};

/// The values of a rank's field, with their places.
pub(crate) type Values = Vec<([usize; 3], f64)>;

/// Where plans run.
pub(crate) trait Plans: Sync {
    /// What an operator makes of data between the transforms of this draft.
    fn apply<K: Transform<Real = f64, Physical = f64>>(
        &self,
        draft: Draft<'_, K, 3>,
        equation: &Equation,
        task: (Operator, &[f64]),
    ) -> Result<Values, Error>;
}

pub(crate) struct OnHost;

impl Plans for OnHost {
    fn apply<K: Transform<Real = f64, Physical = f64>>(
        &self,
        draft: Draft<'_, K, 3>,
        equation: &Equation,
        task: (Operator, &[f64]),
    ) -> Result<Values, Error> {
        let field = equation.of_plan(&mut draft.build()?, task)?;
        Ok(field.iter().map(|(index, value)| (index, *value)).collect())
    }
}

/// A discrete equation: boundary conditions, a scheme along each axis or coefficients along one.
#[derive(Debug)]
pub(crate) struct Equation {
    shift: f64,
    shape: [usize; 3],
    ends: [Ends; 3],
    schemes: [Scheme; 3],
    tridiagonal: Option<(usize, Tridiagonal)>,
    /// The seed of bricks that divide the axis of the coefficients.
    dividing: Option<u64>,
}

impl Equation {
    /// A random one; of those with coefficients, the grid is stretched along an axis.
    pub(crate) fn new(
        mut shape: [usize; 3],
        ends: [Ends; 3],
        stretched: bool,
        rng: &mut Rng,
    ) -> Self {
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
        Self { shift, shape, ends, schemes, tridiagonal, dividing: None }
    }

    /// The same, for ranks that divide the axis of the coefficients, if there are enough points.
    pub(crate) fn dividing(self, seed: u64) -> Self {
        Self { dividing: Some(seed), ..self }
    }

    /// The draft with the bricks and the order of the spectrum.
    fn placed<'a, K: Transform>(
        &self,
        draft: Draft<'a, K, 3>,
        comm: &ThreadComm,
    ) -> Draft<'a, K, 3> {
        if let (Some(seed), Some((axis, _))) = (self.dividing, &self.tridiagonal) {
            let mut rng = Rng(seed);
            if let Some(bricks) = divided(draft.spectral_grid(), *axis, comm.size(), &mut rng) {
                return draft.output_brick(bricks[comm.rank()]).output_order(rng.order());
            }
        }
        draft.transposed_output(true)
    }

    /// The ends that plans are made with.
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
    fn applied(
        &self,
        plans: &impl Plans,
        ranks: usize,
        operator: Operator,
        data: &[f64],
    ) -> Vec<f64> {
        let parts = thriffty::threads(ranks, |comm| {
            if self.asked().contains(&Ends::Periodic) {
                let draft = thriffty::r2c(&comm, self.shape).ends(self.asked());
                plans.apply(self.placed(draft, &comm), self, (operator, data))
            } else {
                let draft = thriffty::r2r(&comm, self.shape, self.asked().map(Ends::kind));
                plans.apply(self.placed(draft, &comm), self, (operator, data))
            }
        });
        let mut made = vec![0.0; data.len()];
        for (index, value) in parts.unwrap().into_iter().flatten() {
            made[self.at(index)] = value;
        }
        made
    }

    /// What an operator of a plan makes of data.
    pub(crate) fn of_plan<K: Transform<Real = f64, Physical = f64>, L: Location>(
        &self,
        plan: &mut Plan<K, 3, L>,
        (operator, data): (Operator, &[f64]),
    ) -> Result<Field<Physical, K, 3, L>, Error> {
        let lengths = std::array::from_fn(|axis| length(self.ends[axis], self.shape[axis]));
        let mut domain = plan.domain(lengths)?.with_schemes(&self.schemes)?;
        if let Some((_, scheme)) = &self.tridiagonal {
            domain = domain.with_tridiagonal(scheme.clone())?;
        }
        let mut field = plan.input();
        field.fill(|index| data[self.at(index)]);
        let mut field = plan.forward(field)?;
        domain.apply_in_place(operator, &mut field);
        plan.inverse(field)
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

    /// A solution fulfils the equation, with the Laplacian of the stencils.
    pub(crate) fn check(&self, plans: &impl Plans, ranks: usize, rng: &mut Rng) {
        let rho = self.noise(rng);
        let phi = self.applied(plans, ranks, Operator::Helmholtz(self.shift), &rho);
        let laplacian = self.laplacian(&phi);
        let found = self.applied(plans, ranks, Operator::Laplacian, &phi);
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
