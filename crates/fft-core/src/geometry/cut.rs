//! An even cut of a grid over ranks: bricks by arithmetic instead of a list.

use std::fmt;
use std::sync::Arc;

use super::brick::DynBrick;
use super::grid::DynGrid;
use super::per_axis::{MAX_AXES, PerAxis};
use super::process_grid::ProcGrid;

/// The rule that places the parts of a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NearLayout {
    /// Ranks keep as much of the input as possible.
    Input,
    /// Ranks keep as much of the output as possible.
    Output,
    /// Hosts keep as much of the input as possible, then ranks.
    InputOnHosts,
    /// Hosts keep as much of the output as possible, then ranks.
    OutputOnHosts,
}

/// The suffix of a cut's name.
impl fmt::Display for NearLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "~in",
            Self::Output => "~out",
            Self::InputOnHosts => "~hosts-in",
            Self::OutputOnHosts => "~hosts-out",
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub(crate) parts: ProcGrid,
    ranks: usize,
    places: Places,
}

/// `4x2x1~in`: parts of each axis, and their placement.
impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.places {
            Places::First => write!(f, "{}", self.parts),
            Places::Spread => write!(f, "{}~spread", self.parts),
            Places::Nested(near, _) | Places::Listed(near, _) => write!(f, "{}{near}", self.parts),
        }
    }
}

#[derive(Clone, Debug)]
enum Places {
    /// In C order on the first ranks.
    First,
    /// In C order, spread evenly over more ranks.
    Spread,
    /// Near the parts of another cut in C order ([`nested`]).
    Nested(NearLayout, ProcGrid),
    /// The part of each rank, and the rank of each part.
    Listed(NearLayout, Arc<[Vec<u32>; 2]>),
}

impl Cut {
    /// Parts in C order on the first ranks.
    ///
    /// # Panics
    /// If there are more parts than ranks, or none.
    pub(crate) fn first(parts: ProcGrid, ranks: usize) -> Self {
        assert!(parts.ranks() > 0, "process grid {parts} has no ranks");
        assert!(parts.ranks() <= ranks, "process grid {parts} has more than {ranks} ranks");
        Self { parts, ranks, places: Places::First }
    }

    /// Parts in C order, spread evenly over the ranks.
    pub(crate) fn plain(parts: ProcGrid, ranks: usize) -> Self {
        let first = Self::first(parts, ranks);
        // A single part has the same place in both.
        if (2..ranks).contains(&parts.ranks()) {
            Self { places: Places::Spread, ..first }
        } else {
            first
        }
    }

    /// One part per rank, near the parts of another cut in C order.
    pub(super) fn nested_in(other: ProcGrid, parts: ProcGrid, near: NearLayout) -> Self {
        Self { places: Places::Nested(near, other), ..Self::first(parts, other.ranks()) }
    }

    /// One part per rank, in these places.
    pub(super) fn placed(parts: ProcGrid, near: NearLayout, part_of: Vec<u32>) -> Self {
        let ranks = part_of.len();
        let mut rank_of = vec![0; ranks];
        part_of.iter().enumerate().for_each(|(rank, part)| rank_of[*part as usize] = rank as u32);
        let places = Places::Listed(near, Arc::new([part_of, rank_of]));
        Self { places, ..Self::first(parts, ranks) }
    }

    /// Whether parts are in C order on the first ranks by definition.
    pub(crate) fn is_first(&self) -> bool {
        matches!(self.places, Places::First)
    }

    /// Whether every rank has the part that it has in C order.
    pub(super) fn is_in_order(&self) -> bool {
        (0..self.ranks).all(|rank| self.part_of(rank) == Some(rank))
    }

    pub(crate) fn ranks(&self) -> usize {
        self.ranks
    }

    fn part_of(&self, rank: usize) -> Option<usize> {
        let parts = self.parts.ranks();
        match &self.places {
            Places::First => (rank < parts).then_some(rank),
            Places::Spread => {
                let part = (rank * parts).div_ceil(self.ranks);
                (part < parts && part * self.ranks / parts == rank).then_some(part)
            }
            Places::Nested(_, other) => Some(nested(other, &self.parts, rank)),
            Places::Listed(_, places) => Some(places[0][rank] as usize),
        }
    }

    fn rank_of(&self, part: usize) -> usize {
        match &self.places {
            Places::First => part,
            Places::Spread => part * self.ranks / self.parts.ranks(),
            Places::Nested(_, other) => nested(&self.parts, other, part),
            Places::Listed(_, places) => places[1][part] as usize,
        }
    }

    /// The brick of a rank.
    pub(crate) fn brick(&self, grid: &DynGrid, rank: usize) -> DynBrick {
        self.part_of(rank).map_or(grid.nothing(), |part| self.parts.part(grid, part))
    }

    /// Whether both have the same bricks by their definition.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let same_places = match (&self.places, &other.places) {
            (Places::First, Places::First) | (Places::Spread, Places::Spread) => true,
            (Places::Nested(_, a), Places::Nested(_, b)) => a == b,
            (Places::Listed(_, a), Places::Listed(_, b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        self.parts == other.parts && self.ranks == other.ranks && same_places
    }

    /// The length of the longest part of an axis.
    pub(crate) fn longest(&self, grid: &DynGrid, axis: usize) -> usize {
        grid.len(axis).div_ceil(self.parts.shape()[axis])
    }

    /// Whether all parts with points have the whole axis.
    pub(crate) fn is_whole(&self, grid: &DynGrid, axis: usize) -> bool {
        self.parts.shape()[axis] == 1 || grid.len(axis) == 1
    }

    /// For each axis, the first part that a box touches and one past the last.
    fn touched(&self, grid: &DynGrid, query: &DynBrick) -> PerAxis<(usize, usize)> {
        PerAxis::from_fn(grid.axes(), |axis| {
            let (n, parts) = (grid.len(axis), self.parts.shape()[axis]);
            // Part i begins at ⌊n·i/p⌋.
            let long = |x: usize| (((x as u128 + 1) * parts as u128 - 1) / n as u128) as usize;
            let part = |x: usize| {
                (x + 1).checked_mul(parts).map_or_else(|| long(x), |product| (product - 1) / n)
            };
            match (query.len(axis), parts) {
                (0, _) => (0, 0),
                (_, 1) => (0, 1),
                _ => (part(query.lo[axis]), part(query.hi[axis] - 1) + 1),
            }
        })
    }

    /// The number of parts that a box touches, counting those without points.
    pub(crate) fn touches(&self, grid: &DynGrid, query: &DynBrick) -> usize {
        self.touched(grid, query).iter().map(|(first, last)| last - first).product()
    }

    /// The number of ranks that hold points of a box.
    pub(crate) fn count(&self, grid: &DynGrid, query: &DynBrick) -> usize {
        let touched = self.touched(grid, query);
        let along = |axis: usize| {
            if self.parts.shape()[axis] > grid.len(axis) {
                // Every point is a part of its own, between empty ones.
                query.len(axis)
            } else {
                touched[axis].1 - touched[axis].0
            }
        };
        (0..grid.axes()).map(along).product()
    }

    /// Calls `found(rank, common)` for every rank that holds points of a box.
    pub(crate) fn intersections(
        &self,
        grid: &DynGrid,
        query: &DynBrick,
        mut found: impl FnMut(usize, DynBrick),
    ) {
        let touched = self.touched(grid, query);
        let all: usize = touched.iter().map(|(first, last)| last - first).product();
        let shape = self.parts.shape();
        for number in 0..all {
            let (mut rest, mut part, mut stride) = (number, 0, 1);
            for axis in (0..shape.len()).rev() {
                let (first, last) = touched[axis];
                part += (first + rest % (last - first)) * stride;
                rest /= last - first;
                stride *= shape[axis];
            }
            let common = self.parts.part(grid, part).intersect(query);
            if !common.is_empty() {
                found(self.rank_of(part), common);
            }
        }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The finest cut that both refine.
pub(super) fn common(a: &ProcGrid, b: &ProcGrid) -> PerAxis<usize> {
    PerAxis::from_fn(a.shape().len(), |axis| gcd(a.shape()[axis], b.shape()[axis]))
}

/// The part `to` of the rank with part `from`, if ranks keep their share; both in C order.
///
/// The common factor of both cuts stays along each axis. Within the ranks that agree in it, the
/// remaining digits of one part count through the digits of the other. The inverse is the same with
/// the cuts exchanged.
fn nested(from: &ProcGrid, to: &ProcGrid, part: usize) -> usize {
    let (a, c, common) = (from.shape(), to.shape(), common(from, to));
    let axes = a.len();
    let mut rest = part;
    let (mut coarse, mut fine) = ([0; MAX_AXES], [0; MAX_AXES]);
    for axis in (0..axes).rev() {
        let (at, finer) = (rest % a[axis], a[axis] / common[axis]);
        (coarse[axis], fine[axis]) = (at / finer, at % finer);
        rest /= a[axis];
    }
    let mut number =
        (0..axes).fold(0, |number, axis| number * (a[axis] / common[axis]) + fine[axis]);
    let (mut part, mut stride) = (0, 1);
    for axis in (0..axes).rev() {
        let finer = c[axis] / common[axis];
        part += (coarse[axis] * finer + number % finer) * stride;
        number /= finer;
        stride *= c[axis];
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_parts_are_spread() {
        let grid = DynGrid::new([8, 8]).unwrap();
        let cut = Cut::plain(ProcGrid::new([3, 1]), 8);
        let busy: Vec<_> = (0..8).filter(|rank| !cut.brick(&grid, *rank).is_empty()).collect();
        assert_eq!(busy, [0, 2, 5]);
        for part in 0..3 {
            assert_eq!(cut.part_of(cut.rank_of(part)), Some(part));
        }
    }

    #[test]
    fn counts_have_points() {
        for shape in [[5, 3], [2, 7], [4, 4]] {
            let grid = DynGrid::new(shape).unwrap();
            for parts in ProcGrid::all(2, 12) {
                let cut = Cut::plain(parts, 12);
                for lo in [[0, 0], [1, 2]] {
                    let query = DynBrick::new(lo, shape);
                    let mut found = 0;
                    cut.intersections(&grid, &query, |_, _| found += 1);
                    assert_eq!(cut.count(&grid, &query), found, "{parts} of {shape:?}");
                }
            }
        }
    }
}
