//! A plan as heFFTe means it: both precisions, real data of complex transforms, a scale for each call.

use thriffty::{
    Algorithm, C2c, Comm, Complex, Direction, Draft, Element, Error, ErrorKind, Family, Kind, Plan,
    R2c, Real, Recipe, Scale, Step, Tolerance, Transform, Wire, agree,
};

use crate::boxes::{Extent, Geometry};

/// What the environment says of how messages travel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) tolerance: Option<Tolerance>,
    pub(crate) exchange: Option<Algorithm>,
    pub(crate) everywhere: bool,
}

impl Wishes {
    /// # Errors
    /// [`Error::Argument`] for what cannot be wished.
    pub(crate) fn of_environment() -> Result<Self, Error> {
        let said = |name| std::env::var(name).ok().filter(|text: &String| !text.is_empty());
        let tolerance = |text: String| {
            let name = "THRIFFTY_TOLERANCE";
            let number = text.parse().map_err(|_| Error::argument(name, &text, "a number"))?;
            Tolerance::relative(number)
        };
        Ok(Self {
            tolerance: said("THRIFFTY_TOLERANCE").map(tolerance).transpose()?,
            exchange: said("THRIFFTY_EXCHANGE").map(|text| text.parse()).transpose()?,
            everywhere: said("THRIFFTY_WIRE_EVERYWHERE").is_some_and(|text| text != "0"),
        })
    }
}

/// A transform of one precision.
pub(crate) enum Transformer<T: Real>
where
    Complex<T>: Element<Real = T>,
{
    /// Of complex data, whole spectra.
    Complex(Plan<C2c<T>, 3>),
    /// Of real data, half spectra.
    Real(Plan<R2c<T>, 3>),
}

/// What a program holds.
pub(crate) struct Both {
    pub(crate) single: Transformer<f32>,
    pub(crate) double: Transformer<f64>,
    /// Complex numbers of the workspace that a program is told to bring.
    pub(crate) workspace: usize,
    /// Whether this is the rank that speaks for all.
    pub(crate) first: bool,
}

/// Makes plans of both precisions; `halved` is heFFTe's dimension of which half a spectrum is kept. Collective.
///
/// # Errors
/// The same on every rank.
pub(crate) fn build(
    comm: &dyn Comm,
    boxes: [Extent; 2],
    halved: Option<i32>,
) -> Result<Both, Error> {
    // All ranks gather before any of them complains.
    let geometry = Geometry::of(comm, boxes);
    let axis = match halved {
        None => Ok(None),
        Some(d @ 0..=2) => Ok(Some(2 - d as usize)),
        Some(d) => Err(Error::argument("r2c_direction", d, "0, 1 or 2")),
    };
    let wishes = Wishes::of_environment();
    let asked = geometry.and_then(|geometry| Ok((geometry, axis?, wishes?)));
    let (geometry, axis, wishes) = agree(comm, asked)?;
    let double = Transformer::<f64>::new(comm, &geometry, axis, wishes)?;
    let workspace = workspace(double.recipe(), comm.rank());
    // What is finer than their own rounding cannot be asked of short numbers: they are sent as they are.
    let coarse = Wishes { tolerance: None, ..wishes };
    let single = match Transformer::<f32>::new(comm, &geometry, axis, wishes) {
        Err(error) if error.kind() == ErrorKind::Argument && wishes.tolerance.is_some() => {
            Transformer::new(comm, &geometry, axis, coarse)
        }
        made => made,
    };
    Ok(Both { single: single?, double, workspace, first: comm.rank() == 0 })
}

impl<T: Real> Transformer<T>
where
    Complex<T>: Element<Real = T>,
{
    fn new(
        comm: &dyn Comm,
        geometry: &Geometry,
        halved: Option<usize>,
        wishes: Wishes,
    ) -> Result<Self, Error> {
        let made = match halved {
            None => Self::Complex(draft(comm, geometry, wishes).build()?),
            Some(halved) => {
                let kind = |axis| if axis == halved { Kind::R2C } else { Kind::C2C };
                let kinds = std::array::from_fn(kind);
                Self::Real(draft(comm, geometry, wishes).kinds(kinds).build()?)
            }
        };
        Ok(made)
    }

    fn recipe(&self) -> &Recipe {
        match self {
            Self::Complex(plan) => plan.recipe(),
            Self::Real(plan) => plan.recipe(),
        }
    }

    /// Points of the input on this rank.
    pub(crate) fn input_len(&self) -> usize {
        match self {
            Self::Complex(plan) => plan.input_len(),
            Self::Real(plan) => plan.input_len(),
        }
    }

    /// Points of complex data on this rank; none where data is real.
    pub(crate) fn complex_len(&self) -> usize {
        match self {
            Self::Complex(plan) => plan.input_len(),
            Self::Real(_) => 0,
        }
    }

    /// Points of the output on this rank.
    pub(crate) fn output_len(&self) -> usize {
        match self {
            Self::Complex(plan) => plan.output_len(),
            Self::Real(plan) => plan.output_len(),
        }
    }

    /// Real data to a spectrum; of a complex plan, a whole one. Collective.
    pub(crate) fn forward_real(
        &mut self,
        input: &[T],
        output: &mut [Complex<T>],
        scale: Scale,
    ) -> Result<(), Error> {
        match self {
            Self::Complex(plan) => {
                let zero = T::default();
                let input: Vec<_> = input.iter().map(|&x| Complex::new(x, zero)).collect();
                plan.forward_into(&input, output)?;
            }
            Self::Real(plan) => plan.forward_into(input, output)?,
        }
        multiply(output, self.factor(scale));
        Ok(())
    }

    /// A spectrum to real data; of a whole one, the real parts of what it comes to. Collective.
    pub(crate) fn inverse_real(
        &mut self,
        input: &[Complex<T>],
        output: &mut [T],
        scale: Scale,
    ) -> Result<(), Error> {
        match self {
            Self::Complex(plan) => {
                // As long as the output is said to be, so that all ranks hear of one that is none.
                let mut field = vec![Complex::default(); output.len()];
                plan.inverse_into(input, &mut field)?;
                output.iter_mut().zip(field).for_each(|(x, z)| *x = z.re);
            }
            Self::Real(plan) => plan.inverse_into(input, output)?,
        }
        multiply(output, self.factor(scale));
        Ok(())
    }

    /// Complex data to a spectrum. Collective.
    pub(crate) fn forward(
        &mut self,
        input: &[Complex<T>],
        output: &mut [Complex<T>],
        scale: Scale,
    ) -> Result<(), Error> {
        let Self::Complex(plan) = self else { return Err(real_plan()) };
        plan.forward_into(input, output)?;
        multiply(output, self.factor(scale));
        Ok(())
    }

    /// A spectrum to complex data. Collective.
    pub(crate) fn inverse(
        &mut self,
        input: &[Complex<T>],
        output: &mut [Complex<T>],
        scale: Scale,
    ) -> Result<(), Error> {
        let Self::Complex(plan) = self else { return Err(real_plan()) };
        plan.inverse_into(input, output)?;
        multiply(output, self.factor(scale));
        Ok(())
    }

    fn factor(&self, scale: Scale) -> f64 {
        scale.factor(self.recipe().problem().logical_points())
    }
}

/// The same on every rank, as all have this plan.
fn real_plan() -> Error {
    Error::argument("plan of complex data", "one of real data", "one that heffte_plan_create made")
}

/// One more pass over the result: the plan itself, which could do it on the way, does not know the scale.
fn multiply<E: Element>(numbers: &mut [E], factor: f64) {
    if factor != 1.0 {
        let numbers: &mut [E::Real] = bytemuck::cast_slice_mut(numbers);
        let factor = E::Real::of(factor);
        numbers.iter_mut().for_each(|x| *x = *x * factor);
    }
}

/// A draft with all that is wanted.
fn draft<'a, K: Transform>(
    comm: &'a dyn Comm,
    geometry: &Geometry,
    wishes: Wishes,
) -> Draft<'a, K, 3> {
    let mut draft = Draft::new(comm, geometry.grid)
        .input_brick(geometry.input)
        .output_brick(geometry.output)
        .input_order(geometry.orders[0])
        .output_order(geometry.orders[1])
        .scale(Scale::None, Scale::None);
    if let Some(exchange) = wishes.exchange {
        draft = draft.exchange(exchange);
    }
    if let Some(tolerance) = wishes.tolerance {
        draft = draft.tolerance(tolerance);
    }
    if wishes.everywhere {
        draft = draft.ignore_shared_memory();
    }
    draft
}

/// heFFTe's rule: the most elements that a reshape takes and gives, and the largest box of complex numbers that is
/// transformed. Programs count on it, so that it is that of the pencils of a classic library, whatever is done here; of what
/// is done here where the grid is too small for pencils on so many ranks.
fn workspace(own: &Recipe, rank: usize) -> usize {
    let mut problem = own.problem().clone();
    problem.exchange = Algorithm::Alltoallv;
    (problem.wire, problem.tolerance, problem.hosts) = (Wire::Raw, None, Vec::new());
    let classic = Recipe::of_family(problem, Family::Pencils).unwrap_or_else(|_| own.clone());
    let (mut moved, mut largest) = (0, 0);
    for (before, step, after) in classic.walk(Direction::Forward) {
        let [from, to] = [before, after].map(|node| node.layout.brick(rank).points());
        match step {
            Step::Reshape { .. } => moved = moved.max(from + to),
            Step::Fft { .. } if after.complex => largest = largest.max(to),
            _ => {}
        }
    }
    moved + largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use thriffty::{Grid, Layout, Precision, Problem, ProcGrid};

    #[test]
    fn there_is_a_workspace_where_pencils_are_too_many() {
        // Of 64³ points on 67 ranks no pencils can be cut so that nobody holds nothing.
        for (n, ranks) in [(64, 67), (64, 64), (4, 2)] {
            let grid = Grid::new([n; 3]).unwrap();
            let bricks = Layout::even(grid, ProcGrid::cubic(grid, ranks), ranks);
            let (most, kinds) = (bricks.brick(0).points(), [Kind::C2C; 3]);
            let problem = Problem::new(kinds, true, Precision::F64, bricks.clone(), bricks);
            let own = Recipe::new(problem.unwrap()).unwrap();
            assert!(workspace(&own, 0) >= most, "{n}³ on {ranks}");
        }
    }
}
