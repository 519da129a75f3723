//! Poisson's equation in open space, by plans that are padded to twice their length.

use bytemuck::cast_slice_mut;
use fft_core::{
    Comm, Direction, DynBrick, DynGrid, Error, PerAxis, Precision, Problem, Real, Scale, agree,
    assert_same,
};

use super::dyn_draft::DynDraft;
use super::dyn_plan::{DynPlan, types_of};
use super::plan::Plan;
use crate::field::{DynArray, Field, Location, Spectral, Transform};
use crate::spectral::{check_spacing, integrated};

impl<K: Transform, const D: usize, L: Location> Plan<K, D, L> {
    /// The transform of Green's function in open space, on a grid with this spacing: convolving a
    /// density with it solves -∇²φ = ρ without walls or periods. Collective.
    ///
    /// The plan is padded to twice its length along each of 2 or 3 axes
    /// ([`Draft::zero_padded`](crate::Draft::zero_padded)), and has the usual scales. Green's
    /// function is integrated over cells: φ is exact for a density that is constant in each, and
    /// converges with the square of the spacing otherwise. In two dimensions it is -ln r / 2π.
    ///
    /// Make the transform once, because it uses a whole array of twice the length along each axis,
    /// on the host. Then use it in many solutions, by
    /// [`Domain::convolve`](crate::spectral::Domain::convolve):
    ///
    /// ```
    /// thriffty::threads(2, |world| {
    ///     let plan = thriffty::r2c(&world, [8, 8, 8]).zero_padded([16; 3]);
    ///     let mut plan = plan.transposed_output(true).build()?;
    ///     let (green, domain) = (plan.green_function([0.1; 3])?, plan.domain([1.0; 3])?);
    ///     let mut rho = plan.input();
    ///     rho.fill(|index| if index == [4; 3] { 1.0 } else { 0.0 });
    ///     let mut rho_hat = plan.forward(rho)?;
    ///     domain.convolve(&green, &mut rho_hat);
    ///     let phi = plan.inverse(rho_hat)?;
    ///     let far = 1e-3 / (4.0 * std::f64::consts::PI * 0.3); // the charge over 4πr
    ///     assert!(phi.iter().all(|(i, v)| i != [4, 1, 4] || (v / far - 1.0).abs() < 1e-3));
    ///     Ok::<(), thriffty::Error>(())
    /// })?;
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`DynPlan::green_function`].
    pub fn green_function(&self, spacing: [f64; D]) -> Result<Field<Spectral, K, D, L>, Error> {
        Ok(Field::new(self.part(), DynPlan::green_function(self, spacing)?))
    }
}

impl DynPlan {
    /// As [`Plan::green_function`], as an array for spectral data of one transform, where the
    /// plan's data is. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::Disagreement`] about the spacing; [`Error::OnRank`] for spacings
    /// that are not positive, when a rank lacks memory, and for a plan that is not padded to twice
    /// its length along 2 or 3 axes, or has a batch or other scales; the errors of
    /// [`DynDraft::build`](super::DynDraft::build) and of [`DynPlan::run`].
    pub fn green_function(&self, spacing: impl AsRef<[f64]>) -> Result<DynArray, Error> {
        self.placed(green_function(self.comm(), self.problem(), spacing.as_ref())?)
    }

    /// Moves spectral data of the host to where the plan's data is. Collective.
    fn placed(&self, data: DynArray) -> Result<DynArray, Error> {
        #[cfg(feature = "cuda")]
        if self.stream().is_some() {
            let made = self.zeros().and_then(|mut there| {
                there.write(&data.bytes()[..self.output_bytes()])?;
                Ok(there)
            });
            return agree(self.comm(), made);
        }
        Ok(data)
    }
}

/// The transform of Green's function for a problem, on the host, as an array for spectral data of
/// one transform. Collective.
///
/// # Errors
/// The errors of [`DynPlan::green_function`].
fn green_function(comm: &dyn Comm, problem: &Problem, spacing: &[f64]) -> Result<DynArray, Error> {
    let spacing = agree(comm, check_open(problem, spacing))?;
    assert_same(comm, &[("spacing", format!("{spacing:?}"))])?;
    let grid = DynGrid::new(problem.zero_padded)?;
    let (transform, precision) = types_of(problem);
    let draft = DynDraft::new(comm, grid, transform, precision).with(|options| {
        options.kinds = Some(problem.kinds);
        options.output = Some(problem.output.brick(comm.rank()));
        options.output_order = Some(problem.output.order());
        // The bricks of a padded axis need not suit its factors.
        options.one_rank = true;
    });
    let mut whole = draft.build()?;
    let made = DynArray::zeros(whole.in_place_bytes(), comm.rank());
    let mut data = agree(comm, made)?;
    let (brick, width) = (whole.input_brick(), problem.widths()[0]);
    match precision {
        Precision::F32 => fill::<f32>(&mut data, brick, width, (problem.zero_padded, spacing)),
        Precision::F64 => fill::<f64>(&mut data, brick, width, (problem.zero_padded, spacing)),
    }
    whole.run_in_place(Direction::Forward, data.bytes_mut())?;
    Ok(data)
}

/// Checks that a problem is one for open space.
fn check_open<'a>(problem: &Problem, spacing: &'a [f64]) -> Result<&'a [f64], Error> {
    check_spacing(spacing)?;
    if spacing.len() != problem.kinds.len() {
        return Err(Error::argument("spacings of a grid", spacing.len(), problem.kinds.len()));
    }
    for axis in 0..spacing.len() {
        let twice = 2 * problem.grid().len(axis);
        if problem.zero_padded[axis] < twice || problem.modes[axis] != problem.zero_padded[axis] {
            let what = format!("zero_padded along axis {axis} in open space");
            let found = problem.zero_padded[axis].min(problem.modes[axis]);
            return Err(Error::argument(what, found, format!("{twice} or more, and all modes")));
        }
    }
    let scales = (problem.forward_scale, problem.inverse_scale);
    match (problem.batch, scales == (Scale::None, Scale::Full)) {
        (1, true) => Ok(spacing),
        (1, false) => {
            let (found, expected) = (format!("{scales:?}"), "the usual ones");
            Err(Error::argument("scales in open space", found, expected))
        }
        (found, _) => Err(Error::argument("batch in open space", found, 1)),
    }
}

/// Fills a brick of the whole array with Green's function of the displacement from its origin.
fn fill<T: Real>(
    data: &mut DynArray,
    brick: DynBrick,
    width: usize,
    (lens, spacing): (PerAxis<usize>, &[f64]),
) {
    let (axes, mut index) = (lens.len(), brick.lo);
    let points = brick.points();
    let numbers: &mut [T] =
        cast_slice_mut(&mut data.bytes_mut()[..points * width * size_of::<T>()]);
    for point in numbers.chunks_exact_mut(width) {
        // Beyond the middle, displacements are negative.
        let cells = PerAxis::from_fn(axes, |axis| {
            if 2 * index[axis] > lens[axis] {
                index[axis] as f64 - lens[axis] as f64
            } else {
                index[axis] as f64
            }
        });
        point[0] = T::of(integrated(&cells, spacing));
        for axis in (0..axes).rev() {
            index[axis] += 1;
            if index[axis] < brick.hi[axis] {
                break;
            }
            index[axis] = brick.lo[axis];
        }
    }
}
