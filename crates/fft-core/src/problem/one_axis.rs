//! Transforms of one axis over ranks, as transforms of a grid whose axes are factors of its length.
//!
//! A transform of one long axis cannot be cut into lines that ranks transform on their own. But for
//! `n = f0 f1`, number the points `i = i0 f1 + i1` and the frequencies `k = k0 + f0 k1`. With
//! `w(m) = exp(-2πi/m)`, the transform is (Cooley and Tukey, 1965)
//!
//! ```text
//! for each i1:    y[k0, i1] = sum over i0 of w(f0)^(i0 k0) x[i0 f1 + i1]
//! everywhere:     y[k0, i1] is multiplied by w(n)^(i1 k0)
//! for each k0:    X[k0 + f0 k1] = sum over i1 of w(f1)^(i1 k1) y[k0, i1]
//! ```
//!
//! This is a transform of the grid `f0 x f1` with factors between its axes
//! ([`Twiddles`](crate::Twiddles)), and the spectrum has the axes in reverse. More factors are
//! transformed one after the other in the same way. So layouts, search, exchanges and wires are
//! those of any grid:
//!
//! ```text
//! blocks of n        ranks divide the first factor of the input, and the last one of the output,
//!                    whose axes are in reverse
//! points apart       ranks divide the last factor of the input, and the first one of the output
//! ```
//!
//! From blocks to blocks ranks exchange data three times, as at the ends they hold neither factor
//! whole. Strided data on one side saves one exchange, and on both sides two (Inda and Bisseling,
//! 2001). In a cyclic layout, ranks divide a factor by the remainders of its indices, so that its
//! points are not in order ([`Layout::strided`]).
//!
//! Two factors would do. But lines of some thousand points do not stay in the first-level cache, so
//! that longer factors are divided again. One factor for each rank, and lines of n/ranks points,
//! was rejected for this reason.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::kind::Kind;
use super::memory::Access;
use super::problem::Problem;
use crate::base::Error;
use crate::geometry::{DynBrick, DynGrid, Layout, PerAxis};

/// Longer factors are divided, because lines of up to this length have the fastest algorithm.
const LONGEST: usize = 2048;
/// Shorter factors move data in short runs.
const SHORT: usize = 16;

/// What the layout of one side of a transform requires of the factors of its axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Division {
    /// Whether points of a rank lie apart, instead of in blocks.
    pub strided: bool,
    /// How far they lie apart; `None` for the factor that ranks divide.
    pub stride: Option<usize>,
    /// Whether the points of each rank are one stride apart, so that it may be any divisor of the
    /// factor.
    pub one_set: bool,
    /// A number that divides the first and last positions of all ranks; 0 for any.
    pub multiple: usize,
}

impl Division {
    /// Blocks that suit the factors.
    pub const BLOCKS: Self = Self { strided: false, stride: None, one_set: false, multiple: 0 };
    /// Points that lie as far apart as suits the factors.
    pub const STRIDED: Self = Self { strided: true, ..Self::BLOCKS };

    /// Points that lie `stride` apart, divided evenly between ranks.
    pub fn cyclic(stride: usize, ranks: usize) -> Self {
        Self { stride: Some(stride), one_set: stride <= ranks, ..Self::STRIDED }
    }

    /// What a layout of a single axis demands.
    ///
    /// # Panics
    /// If it has more axes.
    pub fn of(layout: &Layout) -> Self {
        let [stride] = layout.strides().array();
        let held = layout.bricks().iter().filter(|brick| !brick.is_empty());
        let bounds = held.flat_map(|brick| [brick.lo[0], brick.hi[0]]);
        let multiple = bounds.fold(0, gcd);
        if stride == 1 {
            return Self { multiple, ..Self::BLOCKS };
        }
        let each = layout.grid().len(0) / stride;
        let is_one = |brick: &DynBrick| {
            let range = brick.range(0);
            // A part of a set is no range of a longer factor.
            range.is_empty() || range.start.is_multiple_of(each) && range.len() == each
        };
        let one_set = layout.bricks().iter().all(is_one);
        Self { strided: true, stride: Some(stride), one_set, multiple }
    }

    /// Whether ranks can divide this factor of an axis of `n` points.
    fn allows(&self, factor: usize, n: usize) -> bool {
        let fits = |stride| factor == stride || self.one_set && factor.is_multiple_of(stride);
        self.stride.is_none_or(fits) && self.multiple.is_multiple_of(n / factor)
    }
}

/// A problem of one axis whose factors are the axes of another problem.
#[derive(Clone, Debug, PartialEq)]
pub struct OneAxis {
    /// The problem of one axis.
    pub given: Arc<Problem>,
    /// The strides between adjacent points along the last factor before its transform, and along
    /// the first factor after it, as in [`Layout::strided`].
    strides: [usize; 2],
}

/// The number of points, and the strides if there are any: `4096` or `4096/4/4`.
impl fmt::Display for OneAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, after] = self.strides;
        write!(f, "{}", self.given.grid().points())?;
        if self.strides != [1; 2] {
            write!(f, "/{before}/{after}")?;
        }
        Ok(())
    }
}

impl OneAxis {
    /// The strides between adjacent points along a factor, in physical and in spectral data.
    pub(crate) fn strides(&self, axis: usize, axes: usize) -> [usize; 2] {
        let [before, after] = self.strides;
        [if axis + 1 == axes { before } else { 1 }, if axis == 0 { after } else { 1 }]
    }
}

/// The factors of an axis over which ranks are to divide its transform.
#[derive(Clone, Debug, PartialEq)]
pub struct Factors(PerAxis<usize>);

impl Factors {
    /// Factors of `n` that suit both sides, physical and spectral, for this number of ranks; `None`
    /// if there are none. Cost: the square root of the largest prime, and the square of the number
    /// of divisors.
    ///
    /// ```
    /// use fft_core::{Factors, Division};
    /// let cyclic = [Division::cyclic(4, 4); 2];
    /// assert_eq!(Factors::new(4096, 4, cyclic).unwrap().shape()[..], [64, 64]);
    /// assert!(Factors::new(4097 * 4, 4, cyclic).is_none());
    /// assert!(Factors::new(7919, 2, [Division::BLOCKS; 2]).is_none());
    /// ```
    pub fn new(n: usize, ranks: usize, sides: [Division; 2]) -> Option<Self> {
        let divisors = divisors(n);
        let [physical, spectral] = sides;
        // The factors that ranks divide on each side: the first or the last one.
        let allowed = |first: usize, last: usize| {
            let (before, after) = (
                if physical.strided { last } else { first },
                if spectral.strided { first } else { last },
            );
            physical.allows(before, n) && spectral.allows(after, n)
        };
        let mut best: Option<(f64, PerAxis<usize>)> = None;
        // Factors have many middles in common.
        let mut halves = BTreeMap::new();
        for first in divisors.iter().filter(|first| **first > 1) {
            for last in divisors.iter().filter(|last| **last > 1) {
                let rest = n / first;
                if !rest.is_multiple_of(*last) || !allowed(*first, *last) {
                    continue;
                }
                let middle = rest / last;
                let half = *halves.entry(middle).or_insert_with(|| half(middle, &divisors));
                let factors = if middle == 1 {
                    PerAxis::from([*first, *last])
                } else if middle <= LONGEST || half == 1 {
                    PerAxis::from([*first, middle, *last])
                } else {
                    PerAxis::from([*first, middle / half, half, *last])
                };
                let cost = idle(*first, ranks) * idle(*last, ranks) * cost_of_lines(&factors);
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, factors));
                }
            }
        }
        best.map(|(_, factors)| Self(factors))
    }

    /// The error of [`Factors::new`] without factors.
    pub fn none(n: usize, sides: [Division; 2]) -> Error {
        if divisors(n).len() < 3 {
            let expected = "a product of two factors, or one_rank, which lets one rank do it";
            return Error::argument("length of an axis over several ranks", n, expected);
        }
        let text = |side: Division| match side {
            Division { strided: true, stride, .. } => {
                let stride = stride.map_or("any factor".into(), |stride| stride.to_string());
                format!("strided by {stride}")
            }
            Division { multiple: 0, .. } => "in any blocks".into(),
            Division { multiple, .. } => format!("in blocks of multiples of {multiple}"),
        };
        let [before, after] = sides.map(text);
        let or_alone =
            if sides.iter().any(|side| side.strided) { "" } else { ", or the option one_rank" };
        let expected = format!(
            "strides f, or blocks of multiples of n/f, for factors f of n on both sides whose \
             product divides n, as plans without bricks have them{or_alone}"
        );
        let found = format!("{before}, then {after}");
        Error::argument(format!("layouts of {n} points over several ranks"), found, expected)
    }

    /// The factors, the first one first.
    pub fn shape(&self) -> PerAxis<usize> {
        self.0
    }

    fn points(&self) -> usize {
        self.0.iter().product()
    }

    fn last(&self) -> usize {
        self.0.len() - 1
    }

    /// The axis of factors that ranks divide.
    fn divided(&self, is_physical: bool, strided: bool) -> usize {
        if is_physical == strided { self.last() } else { 0 }
    }

    /// The even layout of physical or spectral data.
    ///
    /// # Panics
    /// If the division's stride does not divide the number of points.
    pub fn layout(&self, is_physical: bool, division: Division, ranks: usize) -> Layout {
        let strided = division.strided;
        let factor = self.0[self.divided(is_physical, strided)];
        let divided = division.stride.unwrap_or(factor);
        let each = self.points() / divided;
        // A cyclic layout with fewer sets than ranks is one of the first ranks.
        let parts = if division.one_set { divided.min(ranks) } else { ranks };
        let even = |rank: usize| {
            let bound = |rank: usize| rank.min(parts) * divided / parts * each;
            DynBrick::new([bound(rank)], [bound(rank + 1)])
        };
        let grid = DynGrid::new([self.points()]).expect("factors of a grid");
        let layout =
            Layout::new(grid, (0..ranks).map(even).collect(), ranks).expect("they tile it");
        let stride = if strided { divided } else { 1 };
        layout.strided([stride]).expect("a factor divides the number of points")
    }

    /// The same data as a layout of the grid of factors.
    fn layout_of_factors(&self, is_physical: bool, given: &Layout) -> Result<Layout, Error> {
        let axes = self.0.len();
        let stride = given.strides()[0];
        let axis = self.divided(is_physical, stride != 1);
        let each = self.points() / self.0[axis];
        let brick = |brick: &DynBrick| {
            let (mut lo, mut hi) = (PerAxis::splat(axes, 0), self.0);
            (lo[axis], hi[axis]) = (brick.lo[0] / each, brick.hi[0] / each);
            DynBrick::new(lo, hi)
        };
        let mut order: Vec<_> = (0..axes).collect();
        if !is_physical {
            order.reverse();
        }
        if stride == self.0[axis] {
            // Each index along the axis has points that are adjacent in memory.
            order.retain(|other| *other != axis);
            order.insert(0, axis);
        }
        let bricks = given.bricks().iter().map(brick).collect();
        let layout = Layout::new(DynGrid::new(self.0)?, bricks, given.ranks())?;
        layout.ordered(PerAxis::from_fn(axes, |place| order[place]))
    }
}

/// The largest divisor up to the square root.
fn half(n: usize, divisors: &[usize]) -> usize {
    let of_n = divisors.iter().filter(|divisor| n.is_multiple_of(**divisor));
    of_n.take_while(|divisor| **divisor * **divisor <= n).last().copied().unwrap_or(1)
}

/// How much longer transforms take because ranks get uneven parts of a factor.
fn idle(factor: usize, ranks: usize) -> f64 {
    (factor.div_ceil(ranks) * ranks) as f64 / factor as f64
}

/// A relative cost: of passes, and of long and short lines.
fn cost_of_lines(factors: &PerAxis<usize>) -> f64 {
    let passes = 1.0 + 0.1 * (factors.len() - 2) as f64;
    let ratio = |n: usize, of: usize| (n as f64 / of as f64).log2().max(0.0);
    let line = |n: &usize| 1.0 + 0.25 * ratio(*n, LONGEST) + 0.05 * ratio(SHORT, *n);
    // Among equals, the least sum, so that factors are alike.
    let sum: f64 = factors.iter().map(|n| *n as f64).sum();
    passes * factors.iter().map(line).product::<f64>() * (1.0 + 1e-9 * sum.log2())
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// All divisors in ascending order.
fn divisors(n: usize) -> Vec<usize> {
    let mut found = vec![1];
    let (mut rest, mut prime) = (n, 2);
    while rest > 1 {
        if prime * prime > rest {
            prime = rest;
        }
        let before = found.clone();
        let mut power = 1;
        while rest.is_multiple_of(prime) {
            (rest, power) = (rest / prime, power * prime);
            found.extend(before.iter().map(|divisor| divisor * power));
        }
        prime += 1 + prime % 2;
    }
    found.sort_unstable();
    found
}

impl Problem {
    /// Whether ranks can share the transform of a single axis: a complex one, of host memory, which
    /// need not be the same for any number of ranks.
    pub fn can_share_axis(&self) -> bool {
        self.kinds[..] == [Kind::C2C]
            && self.one_axis.is_none()
            && self.input.ranks() > 1
            && !self.is_any_resized()
            && self.options.access == Access::Cached
            && !self.options.reproducible
    }

    /// The problem as the caller has it: of one axis, if the axes of this one are its factors.
    pub fn as_given(&self) -> Problem {
        match &self.one_axis {
            // Options may have changed since.
            Some(one_axis) => Problem { options: self.options, ..(*one_axis.given).clone() },
            None => self.clone(),
        }
    }

    /// The problem of the grid of factors, if ranks [can share](Problem::can_share_axis) a single
    /// axis. If there are no factors, `one_rank` leaves the problem as it is: one rank then
    /// transforms the whole axis.
    ///
    /// # Errors
    /// [`Error::Argument`] for lengths and layouts without factors, unless one rank has all points
    /// or is to do it; for strided layouts of other transforms.
    pub fn factored(self, one_rank: bool) -> Result<Self, Error> {
        let layouts = [&self.input, &self.output];
        if !self.can_share_axis() {
            return match layouts.iter().find(|layout| layout.is_strided()) {
                Some(layout) => {
                    let expected =
                        "blocks, unless a complex axis is divided between ranks on hosts";
                    Err(Error::argument("layout", layout, expected))
                }
                None => Ok(self),
            };
        }
        let is_on_one_rank = |layout: &&Layout| layout.most_points() == layout.grid().points();
        if layouts.iter().all(is_on_one_rank) {
            return Ok(self);
        }
        let (n, ranks) = (self.grid().len(0), self.input.ranks());
        let sides = layouts.map(Division::of);
        let Some(factors) = Factors::new(n, ranks, sides) else {
            let is_strided = sides.iter().any(|side| side.strided);
            return if one_rank && !is_strided { Ok(self) } else { Err(Factors::none(n, sides)) };
        };
        let axes = factors.shape().len();
        let [before, after] = layouts.map(|layout| layout.strides()[0]);
        let ends = [(factors.last(), before), (0, after)];
        let strides = ends.map(|(axis, stride)| if stride == factors.0[axis] { 1 } else { stride });
        let input = factors.layout_of_factors(true, &self.input)?;
        let output = factors.layout_of_factors(false, &self.output)?;
        Ok(Self {
            kinds: PerAxis::splat(axes, Kind::C2C),
            zero_padded: factors.shape(),
            modes: factors.shape(),
            input,
            output,
            one_axis: Some(OneAxis { given: Arc::new(self.clone()), strides }),
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::MAX_AXES;

    #[test]
    fn divisors_are_complete() {
        for n in 1..500usize {
            let all: Vec<_> = (1..=n).filter(|divisor| n.is_multiple_of(*divisor)).collect();
            assert_eq!(divisors(n), all);
        }
        assert_eq!(divisors(1 << 40).len(), 41);
    }

    #[test]
    fn factors_suit_both_sides() {
        let any = Division::BLOCKS;
        for (n, ranks) in [(1 << 20, 4), (1 << 24, 4), (1000, 3), (30030, 8), (2 * 7919, 2)] {
            let factors = Factors::new(n, ranks, [any; 2]).unwrap();
            assert_eq!(factors.points(), n);
            assert!(factors.shape().len() <= MAX_AXES);
        }
        let short = Factors::new(1 << 24, 4, [any; 2]).unwrap();
        assert!(short.shape().iter().all(|n| *n <= LONGEST), "{short:?}");
        let wide = |multiple| [Division { multiple, ..any }; 2];
        let found = Factors::new(1000, 4, wide(100)).unwrap().shape();
        assert!(found[0].is_multiple_of(10) && found[found.len() - 1].is_multiple_of(10));
        assert_eq!(Factors::new(1000, 4, wide(250)), None);
    }
}
