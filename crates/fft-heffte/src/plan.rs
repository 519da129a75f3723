//! A plan of heFFTe: both precisions, real data of complex transforms, a scale for each call.

use bytemuck::{cast_slice, cast_slice_mut};
use thriffty::planning::{
    Direction, DynDraft, DynPlan, DynTransform, Element, Exchange, Layouts, Options, PerAxis,
    Precision, Real, Recipe, Step, agree,
};
use thriffty::{Comm, Error, ErrorKind, Kind, Scale, Tuning, Wire};

use crate::boxes::{Extent, Geometry};

/// The file for the results of measurements, if the environment names one.
fn wisdom_file() -> Option<std::ffi::OsString> {
    std::env::var_os("THRIFFTY_WISDOM").filter(|path| !path.is_empty())
}

/// The options that the environment names.
fn options_of_environment() -> Result<Options, Error> {
    let mut options = Options::default();
    options.read_environment()?;
    Ok(options)
}

/// What a program holds.
pub(crate) struct Both {
    pub(crate) single: Transformer,
    pub(crate) double: Transformer,
    /// Complex numbers of the workspace that a program must provide.
    pub(crate) workspace: usize,
    /// Whether this is the rank that prints errors.
    pub(crate) first: bool,
}

/// Makes plans of both precisions; `halved` is heFFTe's dimension with half a spectrum. Collective.
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
    let options = options_of_environment();
    let asked = geometry.and_then(|geometry| Ok((geometry, axis?, options?)));
    let (geometry, axis, options) = agree(comm, asked)?;
    let make = |precision, options| Transformer::new(comm, &geometry, (axis, precision), options);
    let double = make(Precision::F64, options.clone())?;
    let workspace = workspace(double.plan.recipe(), comm.rank());
    let single = match make(Precision::F32, options.clone()) {
        // A tolerance below the rounding of single precision is refused: its messages lose nothing.
        Err(error) if error.kind() == ErrorKind::Argument && options.tolerance.is_some() => {
            make(Precision::F32, Options { tolerance: None, ..options })
        }
        made => made,
    };
    Ok(Both { single: single?, double, workspace, first: comm.rank() == 0 })
}

/// A transform of one precision, of complex data and whole spectra, or of real data and half ones.
pub(crate) struct Transformer {
    pub(crate) plan: DynPlan,
    is_complex: bool,
}

impl Transformer {
    fn new(
        comm: &dyn Comm,
        geometry: &Geometry,
        (halved, precision): (Option<usize>, Precision),
        options: Options,
    ) -> Result<Self, Error> {
        let transform = if halved.is_some() { DynTransform::R2c } else { DynTransform::C2c };
        let kind = |axis| if halved == Some(axis) { Kind::R2C } else { Kind::C2C };
        let options = Options {
            kinds: Some(PerAxis::from_fn(3, kind)),
            input: Some(geometry.input.into()),
            output: Some(geometry.output.into()),
            input_order: Some(geometry.orders[0].into()),
            output_order: Some(geometry.orders[1].into()),
            forward_scale: Scale::None,
            inverse_scale: Scale::None,
            ..options
        };
        let wisdom = wisdom_file().filter(|_| matches!(options.tuning, Tuning::Measure { .. }));
        let draft = DynDraft::new(comm, geometry.grid, transform, precision);
        let plan = draft.with(|it| *it = options).build()?;
        if let Some(path) = wisdom {
            plan.save_wisdom(path)?;
        }
        Ok(Self { plan, is_complex: halved.is_none() })
    }

    /// Numbers of input and output on this rank; no complex numbers if data is real.
    pub(crate) fn lens<A: Element, B: Element>(&self, direction: Direction) -> [usize; 2] {
        let physical =
            |width| if width == 2 && !self.is_complex { 0 } else { self.plan.input_len() };
        let spectral = self.plan.output_len();
        direction.choose([physical(A::WIDTH), spectral], [spectral, physical(B::WIDTH)])
    }

    /// Transforms, and multiplies by a scale. Arrays are real or complex as the plan's data; real
    /// data of a plan of complex data has imaginary parts of 0, which are dropped on the way back.
    /// Collective.
    pub(crate) fn run<A: Element, B: Element<Real = A::Real>>(
        &mut self,
        direction: Direction,
        input: &[A],
        output: &mut [B],
        scale: Scale,
    ) -> Result<(), Error> {
        let real = [A::WIDTH, B::WIDTH].contains(&1);
        if !real && !self.is_complex {
            // The same on every rank, because all have this plan.
            let (what, found) = ("plan of complex data", "one of real data");
            return Err(Error::argument(what, found, "one that heffte_plan_create made"));
        }
        if real && self.is_complex {
            self.run_parts(direction, input, output)?;
        } else {
            self.plan.run(direction, cast_slice(input), cast_slice_mut(output))?;
        }
        // One more pass over the result. The plan could do it on the way, but was made without the
        // scale.
        let factor = scale.factor(self.plan.problem().logical_points());
        if factor != 1.0 {
            let factor = A::Real::of(factor);
            let numbers: &mut [A::Real] = cast_slice_mut(output);
            numbers.iter_mut().for_each(|x| *x = *x * factor);
        }
        Ok(())
    }

    /// Transforms real parts by a plan of complex data. Collective.
    fn run_parts<A: Element, B: Element<Real = A::Real>>(
        &mut self,
        direction: Direction,
        input: &[A],
        output: &mut [B],
    ) -> Result<(), Error> {
        let zero = A::Real::default();
        let (from, to): (&[A::Real], &mut [A::Real]) = (cast_slice(input), cast_slice_mut(output));
        match direction {
            Direction::Forward => {
                let input: Vec<[A::Real; 2]> = from.iter().map(|&x| [x, zero]).collect();
                self.plan.run(direction, cast_slice(input.as_flattened()), cast_slice_mut(to))
            }
            Direction::Inverse => {
                // Has the claimed length of the output, so that all ranks get the error if there is
                // none.
                let mut field = vec![[zero; 2]; to.len()];
                self.plan.run(
                    direction,
                    cast_slice(from),
                    cast_slice_mut(field.as_flattened_mut()),
                )?;
                to.iter_mut().zip(field).for_each(|(x, z)| *x = z[0]);
                Ok(())
            }
        }
    }
}

/// The workspace by heFFTe's rule: the largest sum of elements before and after a reshape, and the
/// largest box of complex numbers that is transformed, in a classic recipe of pencils, or in the
/// plan's own recipe if the grid is too small for pencils.
fn workspace(own: &Recipe, rank: usize) -> usize {
    let mut problem = own.problem().clone();
    problem.options.exchange = Exchange::Alltoallv;
    (problem.options.wire, problem.options.tolerance, problem.hosts) =
        (Wire::Raw, None, Vec::new());
    let classic = Recipe::with_layouts(problem, Layouts::Pencils).unwrap_or_else(|_| own.clone());
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
    use thriffty::Grid;
    use thriffty::planning::{Layout, Precision, Problem, ProcGrid};

    #[test]
    fn there_is_a_workspace_where_pencils_are_too_many() {
        // 64³ points cannot be cut into pencils on 67 ranks without empty ones.
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
