//! The brick of each rank, and the order of axes in memory.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::brick::DynBrick;
use super::brick_index::BrickIndex;
use super::grid::DynGrid;
use super::per_axis::{MAX_AXES, PerAxis};
use super::process_grid::ProcGrid;
use crate::base::Error;

/// One brick per rank and the order of axes in memory. The bricks tile the grid.
///
/// Bricks may be empty. Clones share the bricks.
#[derive(Clone)]
pub struct Layout {
    grid: DynGrid,
    order: PerAxis<usize>,
    bricks: Arc<Bricks>,
    /// The name in recipes, if it differs from that of the bricks.
    name: Option<Arc<str>>,
}

struct Bricks {
    of_rank: Vec<DynBrick>,
    /// The process grid of an even cut in C order.
    cut: Option<ProcGrid>,
    /// Built on first use: a search never queries most layouts.
    index: OnceLock<BrickIndex>,
    /// Computed on first use: a search asks for it at every edge.
    extent: OnceLock<Extent>,
}

/// The largest bricks of a layout.
struct Extent {
    /// Points of the brick that has most.
    points: usize,
    /// The length of the longest brick along each axis.
    longest: PerAxis<usize>,
    /// Whether all non-empty bricks have the whole axis.
    whole: PerAxis<bool>,
}

impl Extent {
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
        let layout = Self::unchecked(grid, bricks, cut);
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
        assert!(cut.ranks() > 0, "process grid {cut} has no ranks");
        assert!(cut.ranks() <= ranks, "process grid {cut} has more than {ranks} ranks");
        let bricks = (0..ranks).map(|rank| cut.part(&grid, rank)).collect();
        Self::unchecked(grid, bricks, Some(cut))
    }

    /// A layout of bricks that are known to tile the grid.
    pub(super) fn unchecked(grid: DynGrid, of_rank: Vec<DynBrick>, cut: Option<ProcGrid>) -> Self {
        let bricks =
            Arc::new(Bricks { of_rank, cut, index: OnceLock::new(), extent: OnceLock::new() });
        Self { grid, order: PerAxis::row_major(grid.axes()), bricks, name: None }
    }

    /// The process grid of an even cut in C order.
    pub(crate) fn plain_cut(&self) -> Option<ProcGrid> {
        self.bricks.cut
    }

    pub(crate) fn called(self, name: impl fmt::Display) -> Self {
        Self { name: Some(name.to_string().into()), ..self }
    }

    /// The same layout without its name, which means nothing in another recipe.
    pub(crate) fn uncalled(&self) -> Self {
        Self { name: None, ..self.clone() }
    }

    /// Whether every rank holds the same points of the same grid.
    pub(crate) fn has_bricks_of(&self, other: &Self) -> bool {
        let mut pairs = self.bricks().iter().zip(other.bricks());
        self.grid == other.grid
            && self.ranks() == other.ranks()
            && (Arc::ptr_eq(&self.bricks, &other.bricks) || pairs.all(|(a, b)| a.is_same(b)))
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
        self.bricks.of_rank.len()
    }

    /// The brick of a rank. Panics if `rank >= ranks()`.
    pub fn brick(&self, rank: usize) -> DynBrick {
        self.bricks.of_rank[rank]
    }

    /// The bricks of all ranks.
    pub fn bricks(&self) -> &[DynBrick] {
        &self.bricks.of_rank
    }

    /// Whether all non-empty bricks have the whole axis, so that transforms along it are local.
    pub fn is_whole(&self, axis: usize) -> bool {
        self.extent().whole[axis]
    }

    /// Points of the brick that has most.
    pub(crate) fn most_points(&self) -> usize {
        self.extent().points
    }

    /// The length of the longest brick along an axis.
    pub(crate) fn longest(&self, axis: usize) -> usize {
        self.extent().longest[axis]
    }

    fn extent(&self) -> &Extent {
        self.bricks.extent.get_or_init(|| Extent::of(&self.grid, self.bricks()))
    }

    /// Calls `found(rank, common)` for every rank whose brick intersects `query`.
    pub(crate) fn intersections(&self, query: &DynBrick, found: impl FnMut(usize, DynBrick)) {
        let make = || BrickIndex::new(&self.bricks.of_rank);
        self.bricks.index.get_or_init(make).intersections(query, found);
    }

    /// The layout after a local transform of a whole axis to length `n`.
    pub(crate) fn with_len(&self, axis: usize, n: usize) -> Self {
        debug_assert!(self.is_whole(axis));
        let stretch = |b: &DynBrick| if b.is_empty() { *b } else { b.with_range(axis, 0..n) };
        let bricks = self.bricks().iter().map(stretch).collect();
        let grid = self.grid.with_len(axis, n);
        let name = self.name.clone();
        Self { order: self.order, name, ..Self::unchecked(grid, bricks, self.bricks.cut) }
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

    /// A box without owner inside `within`, of which some points have none: bisection.
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
        match (&self.name, self.bricks.cut) {
            (Some(name), _) => write!(f, "[{name}]")?,
            (None, Some(cut)) => write!(f, "[{cut}]")?,
            (None, None) => write!(f, "[bricks]")?,
        }
        f.write_str(&order_name(&self.order))
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
