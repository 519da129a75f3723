//! Shapes on the command line: `256x256x256`, `256^3`, `1x2x2`.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use thriffty::Error;
use thriffty::planning::{DynGrid, MAX_AXES, PerAxis, ProcGrid};

use super::parse::count;
use crate::ranks::world::{Failure, refused};

/// 1 to 4 lengths, none of them 0: of a grid of points, or of a grid of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape(Vec<usize>);

impl Shape {
    pub(crate) fn axes(&self) -> usize {
        self.0.len()
    }

    /// A shape of 1 to 4 lengths, none of them 0.
    pub(crate) fn new(lengths: Vec<usize>) -> Self {
        debug_assert!((1..=MAX_AXES).contains(&lengths.len()) && !lengths.contains(&0));
        Self(lengths)
    }

    pub(crate) fn lengths(&self) -> &[usize] {
        &self.0
    }

    /// The product of the lengths; `None` on overflow.
    pub(crate) fn product(&self) -> Option<usize> {
        self.0.iter().try_fold(1usize, |product, &n| product.checked_mul(n))
    }

    pub(crate) fn shortest(&self) -> usize {
        self.0.iter().copied().min().unwrap_or(0)
    }

    fn per_axis(&self) -> PerAxis<usize> {
        PerAxis::from_fn(self.axes(), |axis| self.0[axis])
    }

    /// A length for each of `axes` axes; `name` is the name of the option.
    pub(crate) fn of_axes(&self, name: &str, axes: usize) -> Result<PerAxis<usize>, Failure> {
        if self.axes() != axes {
            return refused(format!("{name} {self} has {} axes, expected {axes}", self.axes()));
        }
        Ok(self.per_axis())
    }

    /// The grid of points of this shape.
    pub(crate) fn grid(&self) -> Result<DynGrid, Error> {
        DynGrid::new(self.per_axis())
    }

    /// The process grid of this shape, for `ranks` ranks and as many axes; `name` is its option's.
    pub(crate) fn proc_grid(
        &self,
        name: &str,
        axes: usize,
        ranks: usize,
    ) -> Result<ProcGrid, Failure> {
        let shape = self.of_axes(name, axes)?;
        if self.product() != Some(ranks) {
            return refused(format!("{name} {self} is not a grid of {ranks} ranks"));
        }
        Ok(ProcGrid::new(shape))
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |length: &str| {
            let read = count(length).map(NonZeroUsize::get);
            read.map_err(|expected| format!("found length `{length}`, {expected}"))
        };
        let lengths = match text.split_once('^') {
            Some((base, exponent)) => {
                let (base, exponent) = (number(base)?, number(exponent)?);
                powers(base, exponent).ok_or(format!("found {text}, which has too many points"))?
            }
            None => text.split('x').map(number).collect::<Result<_, _>>()?,
        };
        match lengths.len() {
            1..=MAX_AXES => Ok(Self(lengths)),
            _ => Err(format!("found more than {MAX_AXES} axes, expected 1 to {MAX_AXES}")),
        }
    }
}

/// As many axes of this length as the exponent says or, as a grid has fewer, one axis of the power.
fn powers(base: usize, exponent: usize) -> Option<Vec<usize>> {
    if exponent <= MAX_AXES {
        return Some(vec![base; exponent]);
    }
    let points = base.checked_pow(u32::try_from(exponent).ok()?)?;
    Some(vec![points])
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&times(&self.0))
    }
}

/// The grid of an array, which may have any number of axes.
pub(crate) fn grid(shape: &[usize]) -> Result<DynGrid, Failure> {
    match shape.len() {
        axes @ 1..=MAX_AXES => Ok(DynGrid::new(PerAxis::from_fn(axes, |axis| shape[axis]))?),
        axes => refused(format!("found {axes} axes, expected 1 to {MAX_AXES}")),
    }
}

/// `4x6x8`
pub(crate) fn times(lengths: &[usize]) -> String {
    lengths.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_products_and_powers() {
        for (text, lengths) in [
            ("7", vec![7]),
            ("1x2x3x4", vec![1, 2, 3, 4]),
            ("16^3", vec![16; 3]),
            ("2^28", vec![1 << 28]),
        ] {
            assert_eq!(text.parse(), Ok(Shape(lengths)));
        }
        assert_eq!("16^3".parse::<Shape>().unwrap().to_string(), "16x16x16");
        assert_eq!("4x5".parse::<Shape>().unwrap().per_axis(), [4, 5]);
    }

    #[test]
    fn refuses_everything_else() {
        let wrong = ["", "x", "4x", "0", "4x0", "-1", "4^0", "2^64", "1x1x1x1x1", "4X4", "2^2^2"];
        for text in wrong.into_iter().chain(["99999999999999999999", "1^99999999999"]) {
            assert!(text.parse::<Shape>().is_err(), "{text}");
        }
    }
}
