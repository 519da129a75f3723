//! The brick of each rank, and the order of axes in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::brick::DynBrick;
use super::brick_index::BrickIndex;
use super::cut::Cut;
use super::grid::DynGrid;
use super::per_axis::{MAX_AXES, PerAxis, times};
use super::process_grid::ProcGrid;
use crate::base::Error;

/// The most ranks of a cut whose bricks are all listed at the first access.
const LISTED: usize = 64;

/// One brick per rank and the order of axes in memory. The bricks tile the grid.
///
/// Bricks may be empty. Clones share the bricks.
///
/// Bricks count *positions* along an axis. They are the indices of its points, unless the layout is
/// [strided](Layout::strided).
#[derive(Clone)]
pub struct Layout {
    pub(super) grid: DynGrid,
    order: PerAxis<usize>,
    pub(super) strides: PerAxis<usize>,
    bricks: Arc<Bricks>,
    /// The name in recipes, if it differs from the name of the bricks.
    name: Option<Arc<str>>,
}

struct Bricks {
    ranks: usize,
    /// The cut that defines the bricks, if they have one.
    cut: Option<Cut>,
    /// The list, which a cut makes on first use, because a search needs few of them.
    of_rank: OnceLock<Vec<DynBrick>>,
    /// Built on first use, because a search never queries most layouts.
    index: OnceLock<BrickIndex>,
    /// Computed on first use, because a search needs it at every edge.
    extent: OnceLock<Extent>,
}

/// The largest bricks of a layout.
struct Extent {
    /// Points of the largest brick.
    points: usize,
    /// The length of the longest brick along each axis.
    longest: PerAxis<usize>,
    /// Whether all non-empty bricks have the whole axis.
    whole: PerAxis<bool>,
}

impl Extent {
    fn of_cut(grid: &DynGrid, cut: &Cut) -> Self {
        let axes = grid.axes();
        let longest = PerAxis::from_fn(axes, |axis| cut.longest(grid, axis));
        let whole = PerAxis::from_fn(axes, |axis| cut.is_whole(grid, axis));
        Self { points: longest.iter().product(), longest, whole }
    }

    fn of(grid: &DynGrid, bricks: &[DynBrick]) -> Self {
        let axes = grid.axes();
        let longest = |axis| bricks.iter().map(|brick| brick.len(axis)).max().unwrap_or(0);
        let whole = |axis| {
            let full = 0..grid.len(axis);
            bricks.iter().all(|brick| brick.is_empty() || brick.range(axis) == full)
        };
        Self {
            points: bricks.iter().map(DynBrick::points).max().unwrap_or(0),
            longest: PerAxis::from_fn(axes, longest),
            whole: PerAxis::from_fn(axes, whole),
        }
    }
}

impl Layout {
    /// A row-major layout of any bricks, one per rank. Cost: O(P log P).
    ///
    /// # Errors
    /// [`Error::Geometry`] unless the bricks tile the grid; [`Error::Argument`] for other axes.
    pub fn new<B: Into<DynBrick>>(
        grid: impl Into<DynGrid>,
        bricks: Vec<B>,
        ranks: usize,
    ) -> Result<Self, Error> {
        Self::of_bricks(grid.into(), bricks.into_iter().map(Into::into).collect(), ranks)
    }

    fn of_bricks(grid: DynGrid, bricks: Vec<DynBrick>, ranks: usize) -> Result<Self, Error> {
        if bricks.len() != ranks {
            return Err(Error::rank_count(bricks.len(), ranks));
        }
        if ranks == 0 {
            return Err(Error::argument("ranks of a layout", ranks, "at least 1"));
        }
        let axes = |brick: &DynBrick| [brick.lo.len(), brick.hi.len()];
        let other = |brick: &DynBrick| axes(brick) != [grid.axes(); 2];
        if let Some(rank) = bricks.iter().position(other) {
            let [lo, hi] = axes(&bricks[rank]);
            let found = if lo == grid.axes() { hi } else { lo };
            let what = format!("axes of the brick of rank {rank}");
            return Err(Error::argument(what, found, grid.axes()));
        }
        let even = |cut: &ProcGrid| {
            bricks.iter().enumerate().all(|(rank, brick)| *brick == cut.part(&grid, rank))
        };
        let cut = ProcGrid::all(grid.axes(), ranks).into_iter().find(even);
        let cut = cut.map(|parts| Cut::first(parts, ranks));
        let layout = Self::of(grid, ranks, cut, bricks.into());
        layout.check_range()?;
        layout.check_overlap()?;
        layout.check_gap()?;
        Ok(layout)
    }

    /// An even cut over a process grid, row-major. Ranks beyond the process grid hold nothing.
    ///
    /// # Panics
    /// If the process grid has no ranks, more than `ranks`, or other axes than the grid.
    pub fn even(grid: impl Into<DynGrid>, cut: ProcGrid, ranks: usize) -> Self {
        let grid = grid.into();
        assert_eq!(cut.shape().len(), grid.axes(), "axes of a process grid and of a grid");
        Self::of_cut(grid, Cut::first(cut, ranks))
    }

    /// The row-major layout of a cut.
    pub(crate) fn of_cut(grid: DynGrid, cut: Cut) -> Self {
        Self::of(grid, cut.ranks(), Some(cut), OnceLock::new())
    }

    /// A layout of a cut, or of bricks that are guaranteed to tile the grid.
    fn of(grid: DynGrid, ranks: usize, cut: Option<Cut>, of_rank: OnceLock<Vec<DynBrick>>) -> Self {
        let (index, extent) = (OnceLock::new(), OnceLock::new());
        let bricks = Arc::new(Bricks { ranks, cut, of_rank, index, extent });
        let [order, strides] = [PerAxis::row_major(grid.axes()), PerAxis::splat(grid.axes(), 1)];
        Self { grid, order, strides, bricks, name: None }
    }

    /// The process grid of an even cut in C order on the first ranks.
    pub(crate) fn plain_cut(&self) -> Option<ProcGrid> {
        let cut = self.bricks.cut.as_ref().filter(|cut| cut.is_first());
        cut.map(|cut| cut.parts)
    }

    /// Whether it has no cut, or a cut with a part for each rank.
    pub(crate) fn is_spread(&self) -> bool {
        self.bricks.cut.as_ref().is_none_or(|cut| cut.parts.ranks() == self.ranks())
    }

    pub(crate) fn called(self, name: impl fmt::Display) -> Self {
        Self { name: Some(name.to_string().into()), ..self }
    }

    /// The same layout without its name, which means nothing in another recipe.
    pub(crate) fn uncalled(&self) -> Self {
        let placed = self.bricks.cut.as_ref().is_some_and(|cut| !cut.is_first());
        let bricks = if placed {
            Self::of(self.grid, self.ranks(), None, self.bricks().to_vec().into()).bricks
        } else {
            Arc::clone(&self.bricks)
        };
        Self { name: None, bricks, ..self.clone() }
    }

    /// Whether every rank holds the same points of the same grid.
    pub(crate) fn has_bricks_of(&self, other: &Self) -> bool {
        let same_cut = match (&self.bricks.cut, &other.bricks.cut) {
            (Some(cut), Some(other)) => cut.is_same(other),
            _ => false,
        };
        self.grid == other.grid
            && self.strides == other.strides
            && self.ranks() == other.ranks()
            && (same_cut
                || Arc::ptr_eq(&self.bricks, &other.bricks)
                || (0..self.ranks()).all(|rank| self.brick(rank).is_same(&other.brick(rank))))
    }

    /// The same bricks with another order of axes, slowest first: `[2, 1, 0]` is Fortran's.
    ///
    /// # Errors
    /// [`Error::Argument`] unless it is a permutation of the axes.
    pub fn ordered(self, order: impl Into<PerAxis<usize>>) -> Result<Self, Error> {
        let (order, axes) = (order.into(), self.grid.axes());
        if order.len() != axes || (0..axes).any(|axis| !order.contains(&axis)) {
            let expected = format!("a permutation of the {axes} axes");
            return Err(Error::argument("axis order", format!("{order:?}"), expected));
        }
        Ok(Self { order, ..self })
    }

    /// The grid.
    pub fn grid(&self) -> DynGrid {
        self.grid
    }

    /// The order of axes in memory, slowest first.
    pub fn order(&self) -> PerAxis<usize> {
        self.order
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.bricks.ranks
    }

    /// The brick of a rank.
    ///
    /// # Panics
    /// If `rank >= ranks()`.
    pub fn brick(&self, rank: usize) -> DynBrick {
        assert!(rank < self.ranks(), "rank {rank} of {}", self.ranks());
        match (self.bricks.of_rank.get(), &self.bricks.cut) {
            (None, Some(cut)) if self.ranks() > LISTED => cut.brick(&self.grid, rank),
            _ => self.bricks()[rank],
        }
    }

    /// The bricks of all ranks. The bricks of an even cut are listed on first use.
    pub fn bricks(&self) -> &[DynBrick] {
        let list = || {
            let of_cut = |cut: &Cut| -> Vec<_> {
                (0..self.ranks()).map(|rank| cut.brick(&self.grid, rank)).collect()
            };
            // A layout without a cut has its list from the start.
            self.bricks.cut.iter().flat_map(of_cut).collect()
        };
        self.bricks.of_rank.get_or_init(list)
    }

    /// Whether all non-empty bricks have the whole axis, so that transforms along it are local.
    pub fn is_whole(&self, axis: usize) -> bool {
        self.extent().whole[axis]
    }

    /// The intervals that divide an axis, if ranks hold the same parts of the other axes in each of
    /// them, and two points or more of this axis.
    pub fn intervals(&self, axis: usize) -> Option<Vec<Range<usize>>> {
        let mut of_interval = BTreeMap::<_, Vec<_>>::new();
        for brick in self.bricks() {
            if brick.is_empty() || brick.len(axis) < 2 {
                return None;
            }
            let (mut lo, mut hi) = (brick.lo, brick.hi);
            (lo[axis], hi[axis]) = (0, 0);
            of_interval.entry((brick.lo[axis], brick.hi[axis])).or_default().push((lo, hi));
        }
        of_interval.values_mut().for_each(|parts| parts.sort_unstable());
        let mut parts = of_interval.values();
        let first = parts.next();
        // Bricks tile the grid, so intervals with the same parts tile the axis.
        let alike = parts.all(|parts| Some(parts) == first);
        alike.then(|| of_interval.keys().map(|(start, end)| *start..*end).collect())
    }

    /// The number of [intervals](Layout::intervals) that divide an axis. Of a cut, without listing
    /// its bricks.
    pub(crate) fn count_intervals(&self, axis: usize) -> Option<usize> {
        let Some(cut) = &self.bricks.cut else {
            return self.intervals(axis).map(|intervals| intervals.len());
        };
        let (grid, parts) = (self.grid, cut.parts.shape());
        let least = |other: usize| if other == axis { 2 } else { 1 };
        let fits = (0..grid.axes()).all(|other| grid.len(other) >= least(other) * parts[other]);
        (fits && self.is_spread()).then(|| parts[axis])
    }

    /// Points of the largest brick.
    pub fn most_points(&self) -> usize {
        self.extent().points
    }

    /// The length of the longest brick along an axis.
    pub(crate) fn longest(&self, axis: usize) -> usize {
        self.extent().longest[axis]
    }

    fn extent(&self) -> &Extent {
        self.bricks.extent.get_or_init(|| match &self.bricks.cut {
            Some(cut) => Extent::of_cut(&self.grid, cut),
            None => Extent::of(&self.grid, self.bricks()),
        })
    }

    /// The maximum over ranks of the product of a brick's lengths along some axes.
    pub(crate) fn most_along(&self, axes: &[usize]) -> usize {
        if self.bricks.cut.is_some() {
            return axes.iter().map(|axis| self.longest(*axis)).product();
        }
        let points = |brick: &DynBrick| axes.iter().map(|axis| brick.len(*axis)).product();
        self.bricks().iter().map(points).max().unwrap_or(0)
    }

    /// As [`Layout::count`], but counting parts of a cut without points that the box touches.
    ///
    /// A search thus avoids cuts with empty bricks.
    pub(crate) fn touches(&self, query: &DynBrick) -> usize {
        match &self.bricks.cut {
            Some(cut) => cut.touches(&self.grid, query),
            None => self.count(query),
        }
    }

    /// The number of ranks that hold points of a box.
    pub(crate) fn count(&self, query: &DynBrick) -> usize {
        if let Some(cut) = &self.bricks.cut {
            return cut.count(&self.grid, query);
        }
        let mut count = 0;
        self.intersections(query, |_, _| count += 1);
        count
    }

    /// Calls `found(rank, common)` for every rank whose brick intersects `query`.
    pub(crate) fn intersections(&self, query: &DynBrick, found: impl FnMut(usize, DynBrick)) {
        let make = || BrickIndex::new(self.bricks());
        self.bricks.index.get_or_init(make).intersections(query, found);
    }

    /// The layout after a local transform of a whole axis to length `n`.
    pub(crate) fn with_len(&self, axis: usize, n: usize) -> Self {
        debug_assert!(self.is_whole(axis) && !self.is_strided());
        let (grid, name) = (self.grid.with_len(axis, n), self.name.clone());
        let cut = self
            .bricks
            .cut
            .clone()
            .filter(|cut| cut.parts.shape()[axis] == 1 || self.grid.len(axis) == n);
        let stretched = match cut {
            Some(cut) => Self::of_cut(grid, cut),
            None => {
                let stretch =
                    |b: &DynBrick| if b.is_empty() { *b } else { b.with_range(axis, 0..n) };
                let bricks: Vec<_> = self.bricks().iter().map(stretch).collect();
                Self::of(grid, self.ranks(), None, bricks.into())
            }
        };
        Self { order: self.order, name, ..stretched }
    }

    fn check_range(&self) -> Result<(), Error> {
        let inside = |b: &DynBrick| {
            (0..self.grid.axes())
                .all(|axis| b.lo[axis] <= b.hi[axis] && b.hi[axis] <= self.grid.len(axis))
        };
        let Some(rank) = self.bricks().iter().position(|brick| !inside(brick)) else {
            return Ok(());
        };
        let (brick, grid) = (self.brick(rank), self.grid);
        Err(Error::Geometry(format!("brick {brick} of rank {rank} is not inside the grid {grid}")))
    }

    fn check_overlap(&self) -> Result<(), Error> {
        for (rank, brick) in self.bricks().iter().enumerate() {
            let mut other: Option<(usize, DynBrick)> = None;
            self.intersections(brick, |r, common| {
                if r != rank && other.is_none_or(|(lowest, _)| r < lowest) {
                    other = Some((r, common));
                }
            });
            if let Some((rank_b, common)) = other {
                let other = self.brick(rank_b);
                return Err(Error::Geometry(format!(
                    "brick {brick} of rank {rank} and brick {other} of rank {rank_b} \
                     overlap in {common}"
                )));
            }
        }
        Ok(())
    }

    /// Disjoint bricks inside the grid tile it exactly when their points add up.
    fn check_gap(&self) -> Result<(), Error> {
        let (covered, points) =
            (self.bricks().iter().map(DynBrick::points).sum::<usize>(), self.grid.points());
        if covered == points {
            return Ok(());
        }
        let hole = self.hole(self.grid.whole());
        Err(Error::Geometry(format!(
            "{hole} of grid {} belongs to no rank ({covered} of {points} points are covered)",
            self.grid
        )))
    }

    /// A box without owner inside `within`, some of whose points have none. Found by bisection.
    fn hole(&self, within: DynBrick) -> DynBrick {
        let mut covered = 0;
        self.intersections(&within, |_, common| covered += common.points());
        if covered == 0 {
            return within;
        }
        let axis =
            (0..within.axes()).max_by_key(|&axis| within.len(axis)).expect("at least one axis");
        let (lo, hi) = (within.lo[axis], within.hi[axis]);
        let middle = lo + (hi - lo) / 2;
        let left = within.with_range(axis, lo..middle);
        let mut filled = 0;
        self.intersections(&left, |_, common| filled += common.points());
        let missing = filled < left.points();
        self.hole(if missing { left } else { within.with_range(axis, middle..hi) })
    }
}

/// Equal if every rank holds the same points in the same order, whatever the names.
impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order && self.has_bricks_of(other)
    }
}

/// The parts of an even cut, `[2x2x1]`, or `[bricks]`; then the order of axes unless row-major.
///
/// A suffix is the placement: `~in`, `~out`, `~hosts-in`, `~hosts-out` near the input or output,
/// `~spread` with fewer parts than ranks. `[bricks~in]` are an input's if the output has others.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, &self.bricks.cut) {
            (Some(name), _) => write!(f, "[{name}]")?,
            (None, Some(cut)) => write!(f, "[{cut}]")?,
            (None, None) => write!(f, "[bricks]")?,
        }
        f.write_str(&order_name(&self.order))?;
        if self.is_strided() {
            write!(f, " strided by {}", times(&self.strides))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layout({self} of {} over {} ranks)", self.grid, self.ranks())
    }
}

/// The axes in the order of memory; empty for row-major.
pub(crate) fn order_name(order: &[usize]) -> String {
    let names = axis_names(order.len());
    if order.is_sorted() { String::new() } else { order.iter().map(|axis| names[*axis]).collect() }
}

pub(crate) fn axis_names(axes: usize) -> PerAxis<char> {
    let names = if axes == MAX_AXES { ['w', 'x', 'y', 'z'] } else { ['x', 'y', 'z', ' '] };
    PerAxis::from_fn(axes, |axis| names[axis])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_answer_as_their_lists() {
        for shape in [[12, 10], [3, 7], [1, 40]] {
            let grid = DynGrid::new(shape).unwrap();
            for parts in ProcGrid::all(2, 6) {
                for cut in [Cut::plain(parts, 6), Cut::plain(parts, 9), Cut::first(parts, 9)] {
                    let ranks = cut.ranks();
                    let cut = Layout::of_cut(grid, cut);
                    let listed = Layout::of(grid, ranks, None, cut.bricks().to_vec().into());
                    assert!(cut.has_bricks_of(&listed));
                    assert_eq!(cut.most_points(), listed.most_points());
                    assert_eq!(cut.most_along(&[1]), listed.most_along(&[1]));
                    for axis in 0..2 {
                        assert_eq!(cut.longest(axis), listed.longest(axis));
                        assert_eq!(cut.is_whole(axis), listed.is_whole(axis), "{cut} {axis}");
                    }
                    let queries = cut.bricks().iter().copied().chain([grid.whole()]);
                    queries.for_each(|query| assert_eq!(cut.count(&query), listed.count(&query)));
                }
            }
        }
    }
}
