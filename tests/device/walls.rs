//! Systems between walls on a CUDA device. Without a GPU tests print why and pass.

use thriffty::gpu::Gpu;
use thriffty::planning::{Location, Transform};
use thriffty::spectral::{Operator, Scheme, Tridiagonal};
use thriffty::{C2c, Comm, Draft, Ends, Error, Field, Kind, Plan, Spectral};

use crate::common::RANKS;
use crate::common::equation::{Equation, Plans, Values};
use crate::common::stencils::CONDITIONS;
use crate::common::tiling::Rng;
use crate::gpu::{few, gpu};

struct OnDevice(Gpu);

impl Plans for OnDevice {
    fn apply<K: Transform<Real = f64, Physical = f64>>(
        &self,
        draft: Draft<'_, K, 3>,
        equation: &Equation,
        task: (Operator, &[f64]),
    ) -> Result<Values, Error> {
        let mut plan = draft.on(&self.0).build()?;
        let field = equation.of_plan(&mut plan, task)?;
        let field = plan.download(&field)?;
        Ok(field.iter().map(|(index, value)| (index, *value)).collect())
    }
}

/// Combinations of ends along three axes, on stretched grids and on even ones.
#[test]
fn solutions_fulfil_their_discrete_equations() {
    let Some(gpu) = gpu() else { return };
    let (plans, mut rng) = (OnDevice(gpu), Rng(3));
    let count = CONDITIONS.len();
    // A step that shares no factor with their number takes each along each axis.
    for number in (0..count.pow(3)).step_by(if few() { 35 } else { 5 }) {
        let ends = [number / count / count, number / count % count, number % count];
        let ranks = RANKS[number % if few() { 2 } else { RANKS.len() }];
        let shape = [(); 3].map(|()| 1 + rng.below(9));
        let equation =
            Equation::new(shape, ends.map(|at| CONDITIONS[at]), number % 4 != 0, &mut rng);
        equation.check(&plans, ranks, &mut rng);
    }
}

/// A spectrum with coefficients along an axis, and what operators make of it.
fn made<K: Transform, L: Location>(
    plan: &Plan<K, 3, L>,
    mut field: Field<Spectral, K, 3, L>,
    scheme: &Tridiagonal,
    operator: Operator,
) -> Result<Field<Spectral, K, 3, L>, Error> {
    let domain = plan.domain([3.0, 2.0, 5.0])?.with_tridiagonal(scheme.clone())?;
    let domain = domain.with_schemes(&[Scheme::Staggered4; 3])?;
    domain.apply_in_place(operator, &mut field);
    Ok(field)
}

/// Batches, single precision, and more systems than threads that are resident at once.
#[test]
fn systems_of_batches_are_solved_as_by_the_host() {
    let Some(gpu) = gpu() else { return };
    let cases: [([usize; 3], usize, Ends); 4] = [
        ([24, 20, 17], 3, Ends::DirichletNeumann),
        ([24, 17, 20], 2, Ends::Neumann),
        ([31, 20, 18], 2, Ends::Periodic),
        ([640, 513, 3], 1, Ends::Neumann),
    ];
    for (shape, batch, ends) in cases {
        let axis = (0..3).find(|axis| [17, 31, 3].contains(&shape[*axis])).unwrap();
        let faces: Vec<f64> = (0..=shape[axis]).map(|i| (i * i + 9 * i) as f64 / 60.0).collect();
        let scheme = &Tridiagonal::second_derivative(&faces, ends).unwrap();
        let mut kinds = [Kind::C2C; 3];
        kinds[axis] = Kind::Tridiagonal;
        let gpu = &gpu;
        thriffty::threads(2, |comm| {
            let draft = || thriffty::c2c(&comm, shape).precision::<f32>().kinds(kinds).batch(batch);
            let plan = draft().transposed_output(true).on(gpu).build()?;
            let host = draft().like(&plan).build()?;
            let mut rng = Rng(1 + comm.rank() as u64);
            let mut there = host.output();
            for point in there.as_mut_slice() {
                (point.re, point.im) = (rng.below(100) as f32 - 50.0, rng.below(100) as f32 - 50.0);
            }
            for operator in [Operator::Poisson, Operator::Helmholtz(0.1), Operator::Laplacian] {
                let found = made(&plan, plan.upload(&there), scheme, operator)?;
                let found = plan.download(&found)?;
                let expected: Field<Spectral, C2c<f32>, 3> =
                    made(&host, there.clone(), scheme, operator)?;
                let sizes = expected.as_slice().iter().map(|point| point.norm());
                let most = sizes.fold(0.0, f32::max);
                for (x, y) in found.as_slice().iter().zip(expected.as_slice()) {
                    let error = (x - y).norm();
                    assert!(
                        error <= 1e-6 * most,
                        "{operator:?} of {shape:?}: {error:e} of {most:e}"
                    );
                }
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}
