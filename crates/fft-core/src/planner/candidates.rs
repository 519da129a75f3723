//! Candidate layouts of a recipe.
//!
//! Candidates are the input, the output and, for every set of whole axes, every even cut of the
//! other axes over the ranks. Cuts are placed in C order and near the input and the output
//! ([`crate::geometry::placed_cut`]). Each whole axis in turn is contiguous in memory. Small
//! messages add cuts over fewer ranks. Slabs, pencils and bricks are no special cases.

use crate::base::cache_sizes::{CHUNK_RUN_BYTES, LINE_BYTES, TILE_BYTES};
use crate::base::named::names;
use crate::geometry::cut::{Cut, NearLayout};
use crate::geometry::{DynGrid, Layout, PerAxis, ProcGrid, Topology};
use crate::lower::fusion::{block_axes, tile_bytes};
use crate::planner::volume;
use crate::problem::{Kind, Problem, TransportPolicy};

pub(crate) type AxisSet = u32;

/// The layouts between input and output that a search considers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layouts {
    /// All layouts.
    #[default]
    Any,
    /// One axis cut at a time.
    Slabs,
    /// All axes but one cut, in C order over the process grid with the smallest sum.
    Pencils,
}

names!(Layouts, "layouts", { Any = "any", Slabs = "slabs", Pencils = "pencils" });

/// A layout of the grids between the transforms: one for each set of transformed axes that change
/// their length ([`Lengths::set`]).
pub(crate) struct Place(Vec<Option<Layout>>);

impl Place {
    /// The layout of the grid with these axes transformed.
    pub(crate) fn layout(&self, set: usize) -> Option<&Layout> {
        self.0[set].as_ref()
    }
}

pub(crate) struct Candidate {
    pub(crate) place: usize,
    pub(crate) order: PerAxis<usize>,
}

/// All candidates; the input is the first, the output the second.
pub(crate) struct Candidates {
    pub(crate) places: Vec<Place>,
    pub(crate) all: Vec<Candidate>,
}

pub(crate) const INPUT: usize = 0;
pub(crate) const OUTPUT: usize = 1;

/// Cuts over fewer ranks are considered if messages have fewer bytes than this on average.
const SMALL: f64 = 65_536.0;

impl Candidates {
    pub(crate) fn new(problem: &Problem, hosts: &Topology, layouts: Layouts) -> Self {
        let tiled = tiles(&problem.policy(), problem.input.ranks()).is_some();
        let mut found = Self { places: Vec::new(), all: Vec::new() };
        let lengths = Lengths::of(problem);
        let [input, output] = ends(problem);
        let orders = [input.order(), output.order()];
        found.add(lengths.place(&input, false), [orders[0]]);
        found.add(lengths.place(&output, true), [orders[1]]);
        let goal = goal(problem);
        let mut wholes: Vec<AxisSet> =
            (1..1 << problem.kinds.len()).filter(|whole| whole & goal != 0).collect();
        let kept = tiled || problem.fetches() || !problem.prefers_contiguous();
        if kept {
            // The later the whole axes are, the longer are the runs.
            wholes.reverse();
        }
        for whole in wholes {
            let cuts = counts(problem, hosts, layouts).into_iter().flat_map(|parts| {
                let fits = |cut: &ProcGrid| layouts.contains(cut, parts);
                self::cuts(problem, parts, whole).into_iter().filter(fits).collect::<Vec<_>>()
            });
            for parts in cuts {
                let last = (0..problem.kinds.len()).filter(|axis| whole & goal & (1 << axis) != 0);
                let orders: Vec<_> = if kept {
                    // With peer reads, orders follow from the steps (`peer_read_order.rs`).
                    vec![problem.output.order()]
                } else {
                    last.map(|axis| whole_last(problem.kinds.len(), whole, axis)).collect()
                };
                for cut in placed(problem, parts, hosts, layouts) {
                    found.add(lengths.place_of(&cut), orders.iter().copied());
                }
            }
        }
        found
    }

    fn add(&mut self, place: Place, orders: impl IntoIterator<Item = PerAxis<usize>>) {
        let number = self.places.len();
        self.places.push(place);
        self.all.extend(orders.into_iter().map(|order| Candidate { place: number, order }));
    }
}

/// The input and the output. If both have different uneven bricks, they print differently.
fn ends(problem: &Problem) -> [Layout; 2] {
    let [input, output] = [&problem.input, &problem.output].map(Layout::uncalled);
    let is_even = |layout: &Layout| layout.plain_cut().is_some();
    if is_even(&input) || is_even(&output) || input.has_bricks_of(&output) {
        [input, output]
    } else {
        [input.called("bricks~in"), output]
    }
}

/// Minimum adjacent bytes of strided lines gathered in tiles; `None` without tiles.
pub(crate) fn tiles(policy: &TransportPolicy, ranks: usize) -> Option<usize> {
    if policy.all_near && ranks > 1 {
        Some(LINE_BYTES)
    } else {
        policy.pipelined.then_some(CHUNK_RUN_BYTES)
    }
}

/// Bytes in cache for transforms along some axes in one pass, with or without [`tiles`]. Blocks are
/// assumed to be as long as the grid, because bricks differ.
pub(crate) fn bytes_in_cache(
    grid: &DynGrid,
    order: &PerAxis<usize>,
    axes: AxisSet,
    element: usize,
    tiles: Option<usize>,
) -> usize {
    let axes: Vec<_> = (0..grid.axes()).filter(|axis| axes & (1 << axis) != 0).collect();
    match tiles {
        Some(run) => tile_bytes(grid, order, &axes, element, run),
        None => {
            let axes = block_axes(order, &axes).iter();
            axes.fold(element, |bytes, axis| bytes.saturating_mul(grid.len(*axis)))
        }
    }
}

/// Adjacent bytes of lines that [`tiles`] gather along some axes, as if from one home.
pub(crate) fn adjacent_bytes(
    home: Option<&Layout>,
    work: &Layout,
    order: &PerAxis<usize>,
    axes: AxisSet,
    element: f64,
    batch: usize,
) -> f64 {
    let chosen = |axis: &usize| axes & (1 << axis) != 0;
    let bytes = |axes: &[usize]| -> f64 {
        axes.iter().map(|axis| work.longest(*axis).max(1) as f64).product::<f64>() * element
    };
    let axes_of_grid = order.len();
    let all = bytes(&order[axes_of_grid - 1..]);
    let inside = &order[order.iter().rposition(chosen).map_or(axes_of_grid, |place| place + 1)..];
    if inside.is_empty() {
        return all;
    }
    let lines: usize = (0..axes_of_grid).filter(chosen).map(|axis| work.grid().len(axis)).product();
    let most = (TILE_BYTES as f64 / (lines * batch) as f64).max(LINE_BYTES as f64);
    // Rows of an unchanged brick are adjacent.
    let as_long =
        |home: &Layout| (0..axes_of_grid).all(|axis| home.longest(axis) == work.longest(axis));
    let stays = home.is_some_and(as_long);
    most.min(if stays { bytes(inside) } else { all })
}

/// The axes with a transform.
pub(crate) fn goal(problem: &Problem) -> AxisSet {
    let open = |axis: &usize| problem.kinds[*axis] != Kind::None;
    (0..problem.kinds.len()).filter(open).map(|axis| 1 << axis).sum()
}

/// The axes whose transforms change their length, and the grid before and after all transforms.
pub(crate) struct Lengths {
    axes: Vec<usize>,
    before: DynGrid,
    after: DynGrid,
}

impl Lengths {
    pub(crate) fn of(problem: &Problem) -> Self {
        let (before, after) = (problem.grid(), problem.output.grid());
        let changes = |axis: &usize| problem.kinds[*axis] == Kind::R2C || problem.is_resized(*axis);
        Self { axes: (0..problem.kinds.len()).filter(changes).collect(), before, after }
    }

    /// The number of the set of these transformed axes, without those that keep their length.
    pub(crate) fn set(&self, done: AxisSet) -> usize {
        let bit = |(place, axis): (usize, &usize)| (done as usize >> axis & 1) << place;
        self.axes.iter().enumerate().map(bit).sum()
    }

    /// The grid with the axes of this set transformed.
    fn grid(&self, set: usize) -> DynGrid {
        let changed = |(place, _): &(usize, &usize)| set >> place & 1 == 1;
        let axes = self.axes.iter().enumerate().filter(changed);
        axes.fold(self.before, |grid, (_, &axis)| grid.with_len(axis, self.after.len(axis)))
    }

    fn sets(&self) -> std::ops::Range<usize> {
        0..1 << self.axes.len()
    }

    /// The layouts of a cut.
    fn place_of(&self, cut: &Cut) -> Place {
        Place(self.sets().map(|set| Some(Layout::of_cut(self.grid(set), cut.clone()))).collect())
    }

    /// The layouts of a layout that is given on the grid before or after all transforms. On another
    /// grid it exists if all axes whose lengths differ are whole.
    fn place(&self, given: &Layout, after: bool) -> Place {
        let layout = |set: usize| {
            let grid = self.grid(set);
            let other = |axis: &usize| grid.len(*axis) != given.grid().len(*axis);
            let axes = || self.axes.iter().copied().filter(|axis| other(axis));
            let resized = |layout: Layout, axis: usize| layout.with_len(axis, grid.len(axis));
            let is_own = set == if after { self.sets().end - 1 } else { 0 };
            match is_own {
                true => Some(given.clone()),
                false if axes().all(|axis| given.is_whole(axis)) => {
                    Some(axes().fold(given.clone(), resized))
                }
                false => None,
            }
        };
        Place(self.sets().map(layout).collect())
    }
}

impl Layouts {
    fn contains(self, cut: &ProcGrid, parts: usize) -> bool {
        let mut sides: Vec<_> = cut.shape().into_iter().filter(|side| *side > 1).collect();
        match self {
            Self::Any => true,
            Self::Slabs => sides.len() <= 1,
            Self::Pencils => {
                sides.sort_unstable();
                let pencils =
                    ProcGrid::all(cut.shape().len(), parts).into_iter().map(|cut| cut.shape());
                let pencils = pencils.filter(|shape| shape.contains(&1));
                let least = pencils.min_by_key(|shape| {
                    let mut shape = *shape;
                    shape.sort_unstable();
                    (shape.iter().sum::<usize>(), shape)
                });
                let mut least = least.map_or(Vec::new(), |shape| shape.to_vec());
                least.retain(|side| *side > 1);
                least.sort_unstable();
                sides == least
            }
        }
    }
}

/// The numbers of parts of the grid: the number of ranks and, for small messages, fewer.
fn counts(problem: &Problem, hosts: &Topology, layouts: Layouts) -> Vec<usize> {
    let ranks = problem.input.ranks();
    let mut counts = vec![ranks];
    let bytes = (problem.grid().points() * problem.batch * problem.precision.bytes()) as f64;
    // Each rank of a row or column of pencils sends to each of the others.
    let message = |parts: usize| bytes / (parts as f64).powf(1.5);
    if layouts == Layouts::Any && !problem.all_near() {
        let mut fewer = ranks;
        while fewer > 1 && message(fewer) < SMALL {
            fewer = fewer.div_ceil(4);
            counts.push(fewer);
        }
        if hosts.hosts() < ranks && message(ranks) < SMALL {
            counts.push(hosts.hosts());
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.dedup();
    }
    counts
}

/// Even cuts into this many parts that leave just the axes in `whole` uncut.
fn cuts(problem: &Problem, parts: usize, whole: AxisSet) -> Vec<ProcGrid> {
    let is_whole = |axis: usize| whole & (1 << axis) != 0;
    let grid = problem.output.grid();
    let axes = grid.axes();
    if (0..axes).all(is_whole) {
        return if parts == problem.input.ranks() {
            vec![ProcGrid::new(PerAxis::splat(axes, 1))]
        } else {
            vec![]
        };
    }
    let fits = |cut: &ProcGrid| (0..axes).all(|axis| is_whole(axis) == (cut.shape()[axis] == 1));
    // Cuts of the first axes come first: their bricks have the longest runs in memory.
    let all: Vec<_> = ProcGrid::all(axes, parts).into_iter().rev().filter(fits).collect();
    // Cuts with empty bricks are the last resort, and excluded for many ranks.
    let fills = |cut: &&ProcGrid| (0..axes).all(|axis| cut.shape()[axis] <= grid.len(axis));
    let full: Vec<_> = all.iter().filter(fills).copied().collect();
    let few = problem.input.ranks() <= volume::FEW;
    let cuts = if full.is_empty() && few { all } else { full };
    if parts == problem.input.ranks() {
        return few_of(cuts, axes, parts);
    }
    // For fewer ranks, only the cut with the fewest messages.
    cuts.into_iter().min_by_key(|cut| cut.shape().iter().sum::<usize>()).into_iter().collect()
}

/// Ranks from which on not all cuts are candidates.
const MANY_RANKS: usize = 1 << 10;

/// The most cuts for each set of whole axes; with four axes there are more sets.
fn most_cuts(axes: usize) -> usize {
    if axes > 3 { 6 } else { 24 }
}

/// If there are many cuts into many parts, some of them, evenly chosen, with the first and the
/// last.
fn few_of(cuts: Vec<ProcGrid>, axes: usize, parts: usize) -> Vec<ProcGrid> {
    if parts > MANY_RANKS {
        volume::some(cuts.len(), most_cuts(axes)).map(|at| cuts[at]).collect()
    } else {
        cuts
    }
}

/// A cut in C order and cuts near the ends. With shared memory, the latter come first.
fn placed(problem: &Problem, parts: ProcGrid, hosts: &Topology, layouts: Layouts) -> Vec<Cut> {
    let mut found = vec![Cut::plain(parts, problem.input.ranks())];
    let near = |layout, near| Cut::matched(parts, layout, near, hosts);
    match (layouts, problem.all_near()) {
        (Layouts::Any, true) => {
            if let Some(cut) = near(&problem.output, NearLayout::Output) {
                found.insert(0, cut);
            }
        }
        (Layouts::Any, false) => {
            let sides = [
                (&problem.input, [NearLayout::Input, NearLayout::InputOnHosts]),
                (&problem.output, [NearLayout::Output, NearLayout::OutputOnHosts]),
            ];
            for (layout, [ranks, on_hosts]) in sides {
                found.extend(near(layout, ranks));
                if (2..problem.input.ranks()).contains(&hosts.hosts()) {
                    found.extend(near(layout, on_hosts));
                }
            }
        }
        _ => {}
    }
    found
}

/// The order of axes for transforms: cut axes outside, whole axes inside, `last` contiguous.
fn whole_last(axes: usize, whole: AxisSet, last: usize) -> PerAxis<usize> {
    let mut order = PerAxis::row_major(axes);
    order.sort_by_key(|&axis| (axis == last, whole & (1 << axis) != 0, axis));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_hold_runs_as_long_as_fit() {
        let grid = DynGrid::new([128, 128, 128]).unwrap();
        let even = |cuts| Layout::even(grid, ProcGrid::new(cuts), 4);
        let side = |cuts: [[usize; 3]; 2], axes: AxisSet, batch| {
            let [home, work] = cuts.map(even);
            adjacent_bytes(Some(&home), &work, &PerAxis::row_major(3), axes, 16.0, batch)
        };
        let [x, y, z] = [1, 2, 4];
        let bricks = [2, 2, 1];
        assert_eq!(side([bricks, [4, 1, 1]], y | z, 1), 2048.0, "rows");
        assert_eq!(side([bricks, [1, 4, 1]], x, 1), 2048.0, "peers of lines");
        assert_eq!(side([bricks, [1, 4, 1]], x, 8), 512.0, "of several batches");
        assert_eq!(side([bricks, [1, 1, 4]], x, 1), 512.0, "a quarter of a row");
        assert_eq!(side([bricks, [1, 1, 4]], x | y, 1), 64.0, "a line of memory at least");
        assert_eq!(side([[1, 2, 2], [1, 2, 2]], x, 1), 4096.0, "four rows of a brick");
        assert_eq!(side([[2, 1, 2], [2, 1, 2]], y, 1), 1024.0, "rows of a brick");
    }
}
