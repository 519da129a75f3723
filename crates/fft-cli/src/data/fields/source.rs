//! Fields on a rank's brick.

use std::f64::consts::TAU;

use bytemuck::{cast_slice, cast_slice_mut};
use thriffty::Error;
use thriffty::planning::{DynPlan, Element, PerAxis, Precision, Real};

use super::domain::Domain;
use super::{Field, charges, turbulence};
use crate::data::bricks::for_each_row;
use crate::data::noise::{gaussian, value};

/// A field on this rank's brick.
pub(crate) struct Source {
    field: Field,
    domain: Domain,
    /// A number per point, of fields that are not a function of the index.
    made: Vec<f64>,
}

impl Source {
    /// Input for a plan. Collective.
    ///
    /// # Errors
    /// On every rank for a field whose values depend on the place, if points are not in order.
    pub(crate) fn new(field: Field, plan: &DynPlan) -> Result<Self, Error> {
        let problem = plan.problem();
        if problem.input.is_strided() && field.noise_scale().is_none() && field != Field::Gaussian {
            let expected = "uniform or gaussian noise, where the input is cyclic or transposed";
            return Err(Error::argument("field", format!("{field:?}"), expected));
        }
        let domain = Domain {
            grid: problem.grid(),
            brick: plan.input_brick(),
            order: problem.input.order(),
            batch: problem.batch,
            precision: problem.precision,
        };
        let made = match field {
            Field::Turbulence => turbulence::make(&domain, plan.comm())?,
            Field::Charges => charges::make(&domain),
            _ => Vec::new(),
        };
        Ok(Self { field, domain, made })
    }

    /// Fills this rank's part of all arrays, one after the other in memory.
    pub(crate) fn fill<E: Element>(&self, data: &mut [E]) {
        let reals: &mut [E::Real] = cast_slice_mut(data);
        self.for_each::<E>(|place, value| reals[place] = Real::of(value));
    }

    /// The distance of `data` from the field.
    pub(crate) fn distance<E: Element>(&self, data: &[E]) -> Distance {
        let reals: &[E::Real] = cast_slice(data);
        let (mut distance, unit) = (Distance::default(), self.unit());
        self.for_each::<E>(|place, value| {
            distance.add(reals[place].as_f64() / unit, E::Real::of(value).as_f64() / unit);
        });
        distance
    }

    /// A scale near the largest numbers: squares of numbers over it are in range.
    pub(crate) fn unit(&self) -> f64 {
        match self.field {
            Field::Extremes => self.extremes()[0],
            Field::Subnormal => self.subnormal(),
            _ => 1.0,
        }
    }

    fn extremes(&self) -> [f64; 2] {
        let points = self.domain.grid.points() as f64;
        match self.domain.precision {
            Precision::F32 => [1e30 / points, 1e-30 / points],
            _ => [1e300 / points, 1e-300 / points],
        }
    }

    fn subnormal(&self) -> f64 {
        match self.domain.precision {
            Precision::F32 => 1e-40,
            _ => 1e-310,
        }
    }

    /// Calls `visit(place, value)` for every real number; places count the real numbers in memory.
    fn for_each<E: Element>(&self, mut visit: impl FnMut(usize, f64)) {
        let Domain { grid, brick, order, batch, .. } = &self.domain;
        let (shape, fast) = (grid.shape(), order[order.len() - 1]);
        let stride: usize = shape[fast + 1..].iter().product();
        for item in 0..*batch {
            for_each_row(brick, *order, |mut index, at| {
                let linear =
                    (0..shape.len()).fold(item, |linear, axis| linear * shape[axis] + index[axis]);
                for i in 0..brick.len(fast) {
                    let point = item * brick.points() + at + i;
                    let key = linear + i * stride;
                    for part in 0..E::WIDTH {
                        let value = match (part, self.made.get(point)) {
                            (1, _) if self.field.is_real() => 0.0,
                            (_, Some(made)) => *made,
                            _ => self.value(index, (key * E::WIDTH + part) as u64),
                        };
                        visit(point * E::WIDTH + part, value);
                    }
                    index[fast] += 1;
                }
            });
        }
    }

    /// The number at an index, with the unique `key` of that index.
    fn value(&self, index: PerAxis<usize>, key: u64) -> f64 {
        let shape = self.domain.grid.shape();
        let even = index.iter().sum::<usize>().is_multiple_of(2);
        match self.field {
            Field::Noise | Field::Uniform => {
                self.field.noise_scale().unwrap_or_default() * value(key)
            }
            // The last two are made before.
            Field::Gaussian | Field::Turbulence | Field::Charges => gaussian(key),
            Field::Profile => {
                let depth = (index[0] as f64 + 0.5) / shape[0] as f64;
                gaussian(key) * 10f64.powf(-12.0 * depth)
            }
            Field::Smooth => {
                let [x, y, z] = [0, 1, 2].map(|axis| {
                    if axis < shape.len() {
                        TAU * index[axis] as f64 / shape[axis] as f64
                    } else {
                        0.0
                    }
                });
                x.sin() * (2.0 * y).cos()
                    + 0.5 * (3.0 * z + x).cos()
                    + 0.25 * (5.0 * x - 2.0 * y + z).sin()
                    + 0.1 * (7.0 * y + 4.0 * z).cos()
                    + 1e-6 * gaussian(key)
            }
            Field::Spike => {
                if (0..shape.len()).all(|axis| index[axis] == shape[axis] / 3) {
                    1e12
                } else {
                    0.0
                }
            }
            Field::Constant => 3.25,
            Field::Checkerboard => [-1.0, 1.0][usize::from(even)],
            Field::Extremes => 2.0 * value(key) * self.extremes()[usize::from(!even)],
            Field::Subnormal => 2.0 * value(key) * self.subnormal(),
            Field::Delta => {
                if (0..shape.len()).all(|axis| index[axis] < shape[axis].div_ceil(8)) {
                    2.0 * value(key)
                } else {
                    0.0
                }
            }
        }
    }
}

/// The distance of numbers from expected ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Distance {
    /// `[Σ (x - x')², Σ x²]`
    pub(crate) squares: [f64; 2],
    /// `[max |x - x'|, max |x|]`
    pub(crate) largest: [f64; 2],
}

impl Distance {
    fn add(&mut self, found: f64, expected: f64) {
        for (i, x) in [found - expected, expected].into_iter().enumerate() {
            let largest = self.largest[i];
            self.squares[i] += x * x;
            // Unlike `f64::max`, this keeps a NaN.
            self.largest[i] = if largest.is_nan() || largest > x.abs() { largest } else { x.abs() };
        }
    }
}

#[cfg(test)]
mod tests {
    use thriffty::planning::{DynDraft, DynGrid, DynTransform, ProcGrid};

    use super::*;
    use crate::data::bricks::place;

    /// A field of two arrays, gathered from the bricks of a process grid.
    fn whole(field: Field, ranks: [usize; 3], order: [usize; 3]) -> Vec<f64> {
        let grid = DynGrid::new([12, 9, 10]).unwrap();
        let cut = ProcGrid::new(ranks);
        let bricks = thriffty::threads(cut.ranks(), |comm| {
            let brick = cut.part(&grid, thriffty::Comm::rank(&comm));
            let mut draft = DynDraft::new(&comm, grid, DynTransform::C2c, Precision::F64);
            (draft.options.batch, draft.options.input) = (2, Some(brick));
            draft.options.input_order = Some(order.into());
            let plan = draft.build()?;
            let mut data = vec![thriffty::Complex::<f64>::default(); plan.input_len()];
            let source = Source::new(field, &plan)?;
            source.fill(&mut data);
            assert_eq!(source.distance(&data).squares[0], 0.0);
            Ok::<_, Error>((brick, data))
        });
        let mut all = vec![0.0; 2 * 2 * grid.points()];
        for (brick, data) in bricks.unwrap() {
            for item in 0..2 {
                for_each_row(&brick, [0, 1, 2].into(), |first, _| {
                    for z in brick.range(2) {
                        let index = [first[0], first[1], z];
                        let from =
                            item * brick.points() + place(&brick, order.into(), index.into());
                        let to = ((item * 12 + index[0]) * 9 + index[1]) * 10 + index[2];
                        (all[2 * to], all[2 * to + 1]) = (data[from].re, data[from].im);
                    }
                });
            }
        }
        all
    }

    #[test]
    fn fields_are_the_same_for_any_number_of_ranks() {
        for (name, field) in Field::ALL {
            let [one, other] =
                [([1, 1, 1], [0, 1, 2]), ([2, 1, 3], [2, 0, 1])].map(|(r, o)| whole(field, r, o));
            let far = one.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(far <= if field == Field::Turbulence { 1e-13 } else { 0.0 }, "{name}: {far:e}");
            assert!(one.iter().all(|x| x.is_finite()) && one.iter().any(|x| *x != 0.0), "{name}");
            assert_eq!(field.name(), name);
        }
    }

    #[test]
    fn charges_are_spread_without_loss() {
        let all = whole(Field::Charges, [1, 2, 1], [0, 1, 2]);
        assert!(all.iter().sum::<f64>().abs() < 1e-12);
        assert!(
            all.iter().step_by(2).any(|x| *x > 0.1) && all.iter().step_by(2).any(|x| *x < -0.1)
        );
    }

    #[test]
    fn distance_keeps_a_nan() {
        let mut distance = Distance::default();
        [f64::NAN, 1.0].into_iter().for_each(|found| distance.add(found, 0.5));
        assert!(distance.largest[0].is_nan() && distance.squares[0].is_nan());
    }
}
