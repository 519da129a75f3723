//! The recipe as a shortest path.
//!
//! A state is (layout, which axes are done). From it lead a reshape to every candidate layout, and local
//! transforms along every set of axes that are whole there and not yet done. Candidates are the user's input and
//! output and, for every set of whole axes, every even cut of the others over the ranks, with each whole
//! axis in turn contiguous in memory. Slabs, pencils and bricks are not cases: they are paths. Dijkstra's
//! algorithm finds the cheapest by [`crate::cost`], in whole picoseconds, so that ties are ties on every
//! machine; they go to what transforms the last axes first, then to the earlier candidate.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use crate::recipe::{Node, Step};
use crate::{Brick, Direction, Kind, Layout, Problem, ProcGrid, cost, local};

/// A layout that may be passed through, over the grid before and after the axis of kind R2C is halved.
struct Candidate<const D: usize> {
    full: Option<Layout<D>>,
    halved: Option<Layout<D>>,
}

/// A set of axes, as bits.
type Axes = u32;

/// In the order in which equally cheap ones are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct State {
    done: Reverse<Axes>,
    candidate: usize,
}

/// Picoseconds.
type Cost = u64;

/// What it takes to get somewhere, in the order of preference: of equally cheap ways, the one that transforms later
/// axes, which lie closer in memory, first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    cost: Cost,
    /// Axes done after each transform, latest axes first, as bits that are compared in reverse.
    done: [Reverse<Axes>; 4],
    transforms: usize,
}

impl Way {
    fn and(mut self, cost: Cost, transforms: bool, done: Axes) -> Self {
        self.cost = self.cost.saturating_add(cost);
        if transforms {
            self.done[self.transforms] = Reverse(done);
            self.transforms += 1;
        }
        self
    }
}

fn picoseconds(seconds: f64) -> Cost {
    (seconds * 1e12).round() as Cost
}

/// The nodes and steps of the cheapest way from input to output.
pub(crate) fn shortest_path<const D: usize>(problem: &Problem<D>) -> (Vec<Node<D>>, Vec<Step>) {
    let search = Search::new(problem);
    search.recipe(&search.path())
}

struct Search<'a, const D: usize> {
    problem: &'a Problem<D>,
    /// The input is the first, the output the second.
    candidates: Vec<Candidate<D>>,
    halving: Option<usize>,
    /// All axes that have something to be done.
    goal: Axes,
    /// Whether all ranks share memory.
    all_near: bool,
    /// Whether lines are brought together in tiles wherever they lie, so that the order of axes in memory may stay.
    tiled: bool,
}

const INPUT: usize = 0;

impl<'a, const D: usize> Search<'a, D> {
    fn new(problem: &'a Problem<D>) -> Self {
        let axes = |wanted: &dyn Fn(Kind) -> bool| -> Axes {
            (0..D).filter(|&axis| wanted(problem.kinds[axis])).map(|axis| 1 << axis).sum()
        };
        let halving = problem.kinds.iter().position(|kind| *kind == Kind::R2C);
        let goal = axes(&|kind| kind != Kind::Identity);
        let all_near = problem.all_near() && problem.input.ranks() > 1;
        let tiled = all_near || problem.pipelined();
        let mut search = Self { problem, candidates: Vec::new(), halving, goal, all_near, tiled };
        search.candidates.push(search.candidate(Some(&problem.input), None));
        search.candidates.push(search.candidate(None, Some(&problem.output)));
        let (grid, spectral) = (problem.grid(), problem.output.grid());
        let ranks = problem.input.ranks();
        let mut wholes: Vec<Axes> = (1..1 << D).filter(|whole| whole & goal != 0).collect();
        if tiled {
            // The later the whole axes the longer the runs.
            wholes.reverse();
        }
        for whole in wholes {
            for cut in cuts::<D>(ranks, whole) {
                let full = Layout::even(grid, cut, ranks);
                let halved = halving.map(|_| Layout::even(spectral, cut, ranks));
                let last = (0..D).filter(|axis| whole & goal & (1 << axis) != 0);
                for axis in last.take(if tiled { 1 } else { D }) {
                    let order =
                        if tiled { problem.output.order() } else { whole_last(whole, axis) };
                    let ordered =
                        |layout: &Layout<D>| layout.clone().ordered(order).expect("a permutation");
                    let (full, halved) = (ordered(&full), halved.as_ref().map(ordered));
                    search.candidates.push(search.candidate(Some(&full), halved.as_ref()));
                }
            }
        }
        search
    }

    /// A candidate that exists on one of the grids or both; on the other it is derived where the axis in
    /// which they differ is whole.
    fn candidate(&self, full: Option<&Layout<D>>, halved: Option<&Layout<D>>) -> Candidate<D> {
        let Some(axis) = self.halving else {
            let only = full.or(halved).cloned();
            return Candidate { full: only, halved: None };
        };
        let derive = |other: Option<&Layout<D>>, n| {
            other.filter(|layout| layout.is_whole(axis)).map(|layout| layout.with_len(axis, n))
        };
        let (n, m) = (self.problem.grid().len(axis), self.problem.output.grid().len(axis));
        Candidate {
            full: full.cloned().or_else(|| derive(halved, n)),
            halved: halved.cloned().or_else(|| derive(full, m)),
        }
    }

    fn is_halved(&self, done: Axes) -> bool {
        self.halving.is_some_and(|axis| done & (1 << axis) != 0)
    }

    fn layout(&self, state: State) -> Option<&Layout<D>> {
        let candidate = &self.candidates[state.candidate];
        if self.is_halved(state.done.0) {
            candidate.halved.as_ref()
        } else {
            candidate.full.as_ref()
        }
    }

    fn node(&self, state: State) -> Node<D> {
        let layout = self.layout(state).expect("states on a path have a layout").clone();
        Node { layout, complex: self.problem.complex || self.is_halved(state.done.0) }
    }

    /// Bytes of an element in this state.
    fn element(&self, done: Axes) -> f64 {
        let width = if self.problem.complex || self.is_halved(done) { 2 } else { 1 };
        (width * self.problem.precision.bytes() * self.problem.howmany) as f64
    }

    /// Whether the transform along `axis` may come now: real data cannot be transformed by C2C.
    fn may_transform(&self, axis: usize, done: Axes) -> bool {
        let open = self.goal & !done & (1 << axis) != 0;
        let complex = self.problem.complex || self.is_halved(done);
        open && match self.problem.kinds[axis] {
            Kind::C2C => complex,
            _ => true,
        }
    }

    /// Bytes of memory that must be in cache together to transform along these axes in one pass.
    fn block(&self, layout: &Layout<D>, axes: Axes, done: Axes) -> f64 {
        let chosen = |axis: &usize| axes & (1 << axis) != 0;
        let order = layout.order();
        let element = self.element(done);
        let lens = |axes: &mut dyn Iterator<Item = usize>| -> f64 {
            axes.map(|axis| layout.grid().len(axis) as f64).product()
        };
        if self.tiled {
            // A cache line of neighbours at a time.
            let neighbours = if chosen(&order[D - 1]) { element } else { element.max(64.0) };
            return lens(&mut (0..D).filter(chosen)) * neighbours;
        }
        let outermost = order.iter().position(chosen).unwrap_or(D);
        lens(&mut order[outermost..].iter().copied()) * element
    }

    /// Points of the largest brick.
    fn most(&self, layout: &Layout<D>) -> f64 {
        layout.bricks().iter().map(Brick::points).max().unwrap_or(0) as f64
    }

    /// Points of a rank's brick that it, or a rank whose memory it can reach, has in another layout.
    fn kept(&self, other: &Layout<D>, rank: usize, brick: &Brick<D>) -> usize {
        if self.problem.hosts.is_empty() {
            return brick.intersect(&other.brick(rank)).points();
        }
        let mut kept = 0;
        other.meet(brick, |peer, common| {
            kept += if self.problem.near(rank, peer) { common.points() } else { 0 };
        });
        kept
    }

    fn is_goal(&self, state: State) -> bool {
        state.done.0 == self.goal
            && self.layout(state).is_some_and(|layout| *layout == self.problem.output)
    }

    /// Dijkstra: the states of the cheapest path from the input to the output.
    fn path(&self) -> Vec<State> {
        let start = State { candidate: INPUT, done: Reverse(0) };
        let mut costs = Costs { search: self, reshapes: HashMap::new() };
        let mut best = HashMap::from([(start, (Way::default(), start))]);
        let mut open = BTreeSet::from([(Way::default(), start)]);
        while let Some((so_far, here)) = open.pop_first() {
            if self.is_goal(here) {
                return self.trace(start, here, &best);
            }
            for (there, cost) in costs.leaving(here) {
                let way = so_far.and(cost, here.done.0 != there.done.0, there.done.0);
                let old = best.get(&there).copied();
                if old.is_none_or(|old| (way, here) < old) {
                    old.map(|(old, _)| open.remove(&(old, there)));
                    open.insert((way, there));
                    best.insert(there, (way, here));
                }
            }
        }
        unreachable!("a reshape leads from every layout to the output");
    }

    fn trace(&self, start: State, goal: State, best: &HashMap<State, (Way, State)>) -> Vec<State> {
        let mut path = vec![goal];
        while path[path.len() - 1] != start {
            path.push(best[&path[path.len() - 1]].1);
        }
        path.reverse();
        path
    }

    /// The order in which axes are transformed on the same layout: the halved one first, as what follows needs complex
    /// data, then the last.
    fn in_order(&self, axes: Axes) -> impl Iterator<Item = usize> {
        let halving = self.halving.filter(|axis| axes & (1 << axis) != 0);
        let others = (0..D).rev().filter(move |axis| axes & (1 << axis) != 0);
        halving.into_iter().chain(others.filter(move |axis| Some(*axis) != halving))
    }

    /// The path as nodes and steps, scaling after the last transform, while its results are in cache.
    fn recipe(&self, path: &[State]) -> (Vec<Node<D>>, Vec<Step>) {
        let problem = self.problem;
        let mut nodes = vec![self.node(path[0])];
        let mut steps = Vec::new();
        for pair in path.windows(2) {
            let new = pair[1].done.0 & !pair[0].done.0;
            if new == 0 {
                let before = steps.iter().filter(|step| matches!(step, Step::Reshape { .. }));
                let (wire, exchange) = (problem.wire_of(before.count()), problem.exchange);
                steps.push(Step::Reshape { wire, exchange });
                nodes.push(self.node(pair[1]));
            }
            let mut done = pair[0].done.0;
            for axis in self.in_order(new) {
                done |= 1 << axis;
                steps.push(Step::Fft { axis, kind: problem.kinds[axis] });
                nodes.push(self.node(State { done: Reverse(done), ..pair[0] }));
            }
        }
        let (forward, inverse) =
            (problem.factor(Direction::Forward), problem.factor(Direction::Inverse));
        if (forward, inverse) != (1.0, 1.0) {
            let last = steps.iter().rposition(|step| matches!(step, Step::Fft { .. }));
            let place = last.map_or(steps.len(), |last| last + 1);
            steps.insert(place, Step::Scale { forward, inverse });
            nodes.insert(place, nodes[place].clone());
        }
        (nodes, steps)
    }
}

/// The edges of the graph and what they cost.
struct Costs<'a, const D: usize> {
    search: &'a Search<'a, D>,
    reshapes: HashMap<(usize, usize, bool), Cost>,
}

impl<const D: usize> Costs<'_, D> {
    fn leaving(&mut self, here: State) -> Vec<(State, Cost)> {
        let search = self.search;
        let mut edges = Vec::new();
        for axes in (1..=search.goal).filter(|axes| axes & !search.goal == 0) {
            if let Some(cost) = self.transform(here, axes) {
                edges.push((State { done: Reverse(here.done.0 | axes), ..here }, cost));
            }
        }
        for candidate in 0..search.candidates.len() {
            let there = State { candidate, ..here };
            if candidate != here.candidate && search.layout(there).is_some() {
                edges.push((there, self.reshape(here, there)));
            }
        }
        edges
    }

    /// Transforms along several axes, if all of them may come now.
    fn transform(&self, here: State, axes: Axes) -> Option<Cost> {
        let search = self.search;
        let (mut done, mut seconds) = (here.done.0, 0.0);
        let mut passes = 0.0;
        for axis in search.in_order(axes) {
            let layout = search.layout(State { done: Reverse(done), ..here })?;
            if !search.may_transform(axis, done) || !layout.is_whole(axis) {
                return None;
            }
            let most = search.most(layout);
            let contiguous = layout.order()[D - 1] == axis || search.tiled;
            let elements = most * search.problem.howmany as f64;
            seconds += cost::flops(layout.grid().len(axis), elements, contiguous);
            passes += cost::pass(most * search.element(done));
            done |= 1 << axis;
        }
        let layout = search.layout(State { done: Reverse(done), ..here })?;
        if search.block(layout, axes, done) <= local::BLOCK_BYTES as f64 {
            passes /= f64::from(axes.count_ones());
        }
        let halves = search.halving.is_some_and(|axis| axes & (1 << axis) != 0);
        if search.all_near && halves && here.candidate != INPUT {
            // What changes its length cannot stay where it is: it is brought here first, and cannot stay here either.
            passes += 2.0 * cost::pass(search.most(layout) * search.element(done));
        }
        Some(picoseconds(seconds + passes))
    }

    fn reshape(&mut self, here: State, there: State) -> Cost {
        let search = self.search;
        if search.all_near {
            return picoseconds(cost::meeting());
        }
        let key = (here.candidate, there.candidate, search.is_halved(here.done.0));
        *self.reshapes.entry(key).or_insert_with(|| {
            let (from, to) = (search.layout(here), search.layout(there));
            let (from, to) = (from.expect("reached"), to.expect("checked by the caller"));
            let (mut held, mut sent) = (0, 0);
            for (rank, (a, b)) in from.bricks().iter().zip(to.bricks()).enumerate() {
                held = held.max(a.points()).max(b.points());
                sent = sent.max(a.points() - search.kept(to, rank, a));
                sent = sent.max(b.points() - search.kept(from, rank, b));
            }
            let element = search.element(here.done.0);
            picoseconds(cost::reshape(held as f64 * element, sent as f64 * element))
        })
    }
}

/// Even cuts that leave just the axes in `whole` in one part; over one rank when that is all of them.
fn cuts<const D: usize>(ranks: usize, whole: Axes) -> Vec<ProcGrid<D>> {
    let is_whole = |axis: usize| whole & (1 << axis) != 0;
    if (0..D).all(is_whole) {
        return vec![ProcGrid::new([1; D])];
    }
    let fits = |cut: &ProcGrid<D>| (0..D).all(|axis| is_whole(axis) == (cut.shape()[axis] == 1));
    // Those that cut the first axes most come first: their bricks have the longest runs in memory.
    ProcGrid::all(ranks).into_iter().rev().filter(fits).collect()
}

/// The order of axes in memory that suits transforms: axes that are cut outside, whole axes inside, so that
/// these form blocks that fit into cache, and `last` contiguous.
fn whole_last<const D: usize>(whole: Axes, last: usize) -> [usize; D] {
    let mut order: [usize; D] = std::array::from_fn(|axis| axis);
    order.sort_by_key(|&axis| (axis == last, whole & (1 << axis) != 0, axis));
    order
}
