//! A plan of heFFTe: both precisions, real data of complex transforms, a scale for each call.

use std::path::PathBuf;
use std::time::Duration;

use bytemuck::{cast_slice, cast_slice_mut};
use thriffty::planning::{
    Algorithm, Direction, DynDraft, DynPlan, DynTransform, Element, Family, Options, PerAxis,
    Precision, Real, Recipe, Step, agree,
};
use thriffty::{Comm, Error, ErrorKind, Kind, Scale, Tolerance, Tune, Wire};

use crate::boxes::{Extent, Geometry};

/// Options of messages from the environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) tolerance: Option<Tolerance>,
    pub(crate) exchange: Option<Algorithm>,
    pub(crate) everywhere: bool,
    pub(crate) tune: Tune,
    /// The file for what [`Tune::Measure`] finds.
    pub(crate) wisdom: Option<PathBuf>,
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
            tune: match (said("THRIFFTY_TUNE"), said("THRIFFTY_WISDOM")) {
                (Some(text), _) => Tune::Measure { budget: seconds(&text)? },
                (None, Some(path)) => Tune::Wisdom(path.into()),
                (None, None) => Tune::Model,
            },
            wisdom: said("THRIFFTY_WISDOM").map(PathBuf::from),
        })
    }
}

fn seconds(text: &str) -> Result<Duration, Error> {
    let found = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    found.ok_or_else(|| Error::argument("THRIFFTY_TUNE", text, "seconds, 0 or more"))
}

/// What a program holds.
pub(crate) struct Both {
    pub(crate) single: Transformer,
    pub(crate) double: Transformer,
    /// Complex numbers of the workspace that a program is told to bring.
    pub(crate) workspace: usize,
    /// Whether this is the rank that speaks for all.
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
    let wishes = Wishes::of_environment();
    let asked = geometry.and_then(|geometry| Ok((geometry, axis?, wishes?)));
    let (geometry, axis, wishes) = agree(comm, asked)?;
    let make =
        |precision, wishes: &Wishes| Transformer::new(comm, &geometry, (axis, precision), wishes);
    let double = make(Precision::F64, &wishes)?;
    let workspace = workspace(double.plan.recipe(), comm.rank());
    // A tolerance below the rounding of single precision is refused: these messages are sent raw.
    let coarse = Wishes { tolerance: None, ..wishes.clone() };
    let single = match make(Precision::F32, &wishes) {
        Err(error) if error.kind() == ErrorKind::Argument && wishes.tolerance.is_some() => {
            make(Precision::F32, &coarse)
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
        wishes: &Wishes,
    ) -> Result<Self, Error> {
        let transform = if halved.is_some() { DynTransform::R2c } else { DynTransform::C2c };
        let mut draft = DynDraft::new(comm, geometry.grid, transform, precision);
        let kind = |axis| if halved == Some(axis) { Kind::R2C } else { Kind::C2C };
        draft.options = Options {
            kinds: PerAxis::from_fn(3, kind),
            input: Some(geometry.input.into()),
            output: Some(geometry.output.into()),
            input_order: geometry.orders[0].into(),
            output_order: geometry.orders[1].into(),
            forward: Scale::None,
            inverse: Scale::None,
            exchange: wishes.exchange,
            tolerance: wishes.tolerance,
            ignore_shared_memory: wishes.everywhere,
            tune: wishes.tune.clone(),
            ..draft.options
        };
        let plan = draft.build()?;
        if let (Tune::Measure { .. }, Some(path)) = (&wishes.tune, &wishes.wisdom) {
            plan.save_wisdom(path)?;
        }
        Ok(Self { plan, is_complex: halved.is_none() })
    }

    /// Numbers of input and output on this rank; no complex numbers where data is real.
    pub(crate) fn lens<A: Element, B: Element>(&self, direction: Direction) -> [usize; 2] {
        let physical = |width| match width == 2 && !self.is_complex {
            true => 0,
            false => self.plan.input_len(),
        };
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
            // The same on every rank, as all have this plan.
            let (what, found) = ("plan of complex data", "one of real data");
            return Err(Error::argument(what, found, "one that heffte_plan_create made"));
        }
        if real && self.is_complex {
            self.run_parts(direction, input, output)?;
        } else {
            self.plan.run(direction, cast_slice(input), cast_slice_mut(output))?;
        }
        // One more pass over the result: the plan, which could do it on the way, does not know the
        // scale.
        let factor = scale.factor(self.plan.recipe().problem().logical_points());
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
                // As long as the output is said to be, so that all ranks hear of one that is none.
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
/// largest box of complex numbers that is transformed, in a classic recipe of pencils; in the
/// plan's own recipe where the grid is too small for pencils.
fn workspace(own: &Recipe, rank: usize) -> usize {
    let mut problem = own.problem().clone();
    problem.options.exchange = Algorithm::Alltoallv;
    (problem.options.wire, problem.options.tolerance, problem.hosts) =
        (Wire::Raw, None, Vec::new());
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
    use thriffty::Grid;
    use thriffty::planning::{Layout, Precision, Problem, ProcGrid};

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
