//! The search for a recipe as a shortest path.
//!
//! A state is a layout and the set of transformed axes. Edges are reshapes to every candidate
//! layout ([`super::candidates`]) and local transforms along sets of whole axes. Dijkstra's
//! algorithm finds the cheapest path by [`crate::cost`].
//!
//! Costs ([`costs`]) are whole picoseconds, so ties are equal on every machine. They go to
//! transforms of the last axes first, then to the earlier candidate.

mod costs;
mod reduced;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(crate) use costs::Costs;

use super::candidates::{
    AxisSet, Candidates, INPUT, Layouts, Lengths, OUTPUT, bytes_in_cache, goal, tiles,
};
use crate::base::Error;
use crate::base::cache_sizes;
use crate::geometry::{Layout, PerAxis, Topology};
use crate::planner::peer_read_order;
use crate::problem::{Direction, Kind, Problem, TransportPolicy};
use crate::recipe::{Node, Step};

/// Ordered by preference among equal costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct State {
    pub(crate) done: Reverse<AxisSet>,
    pub(crate) candidate: usize,
}

type Cost = u64;

/// The cost of a path. Ties prefer paths that transform later axes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct PathCost {
    cost: Cost,
    /// The axes done after each transform, latest axes first, as bits compared in reverse.
    done: [Reverse<AxisSet>; 4],
    transforms: usize,
}

impl PathCost {
    fn and(mut self, cost: Cost, transforms: bool, done: AxisSet) -> Self {
        self.cost = self.cost.saturating_add(cost);
        if transforms {
            self.done[self.transforms] = Reverse(done);
            self.transforms += 1;
        }
        self
    }
}

/// The weight of the mean network time relative to the time of the busiest rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetworkWeight {
    weight: f64,
    /// Whether layouts with idle ranks are excluded.
    all_ranks: bool,
}

impl NetworkWeight {
    /// The weight of the first search.
    pub(crate) const SOME: Self = Self { weight: 1.0, all_ranks: false };
    /// Increasing weights. The largest ones exclude layouts with idle ranks.
    pub(crate) const MORE: [Self; 6] = [
        Self { weight: 3.0, all_ranks: false },
        Self { weight: 10.0, all_ranks: false },
        Self { weight: 1e2, all_ranks: true },
        Self { weight: 1e3, all_ranks: true },
        Self { weight: 1e4, all_ranks: true },
        Self { weight: 1e6, all_ranks: true },
    ];
}

/// At least one, so that every cycle has a positive cost.
fn picoseconds(seconds: f64) -> Cost {
    ((seconds * 1e12).round() as Cost).max(1)
}

pub(crate) struct Found {
    pub(crate) nodes: Vec<Node>,
    pub(crate) steps: Vec<Step>,
    /// Network seconds of the average rank.
    pub(crate) network: f64,
}

/// A candidate that a reshape may lead to.
struct Target {
    candidate: usize,
    /// Whether it is the input, the output, or has a part for each rank.
    suits_all_ranks: bool,
}

pub(crate) struct Search<'a> {
    problem: &'a Problem,
    layouts: Layouts,
    pub(crate) candidates: Candidates,
    hosts: Topology,
    halving: Option<usize>,
    lengths: Lengths,
    goal: AxisSet,
    /// The axes of the goal whose data is transformed.
    transforms: AxisSet,
    /// By transformed axes, the candidates that exist and, unless they are the output, allow a
    /// transform. A cheapest path contains no others.
    targets: Vec<Vec<Target>>,
    /// Whether all ranks share memory.
    all_near: bool,
    policy: TransportPolicy,
    /// See [`tiles`].
    tiles: Option<usize>,
    /// Whether paths may begin, and end, in any layout in which all ranks have a part.
    anywhere: [bool; 2],
}

impl<'a> Search<'a> {
    /// A search from the problem's input to its output, or instead of either `anywhere`.
    pub(crate) fn new(problem: &'a Problem, layouts: Layouts, anywhere: [bool; 2]) -> Self {
        let ranks = problem.input.ranks();
        let policy = problem.policy();
        let hosts = Topology::new(&problem.hosts, ranks);
        let mut search = Self {
            problem,
            layouts,
            candidates: Candidates::new(problem, &hosts, layouts),
            hosts,
            halving: problem.halved_axis(),
            lengths: Lengths::of(problem),
            goal: goal(problem),
            transforms: goal(problem) & !problem.tridiagonal_axis().map_or(0, |axis| 1 << axis),
            targets: Vec::new(),
            all_near: policy.all_near && ranks > 1,
            tiles: tiles(&policy, ranks),
            policy,
            anywhere,
        };
        search.targets = (0..=search.goal).map(|done| search.targets_after(done)).collect();
        search
    }

    fn targets_after(&self, done: AxisSet) -> Vec<Target> {
        let target = |candidate: usize| {
            let there = State { done: Reverse(done), candidate };
            let suits_all_ranks = self.row_major(there)?.is_spread() || candidate <= OUTPUT;
            let mut axes = 0..self.problem.kinds.len();
            let leads_on = candidate == OUTPUT || axes.any(|axis| self.may_transform(axis, there));
            leads_on.then_some(Target { candidate, suits_all_ranks })
        };
        (0..self.candidates.all.len()).filter_map(target).collect()
    }

    pub(crate) fn problem(&self) -> &'a Problem {
        self.problem
    }

    fn is_halved(&self, done: AxisSet) -> bool {
        self.halving.is_some_and(|axis| done & (1 << axis) != 0)
    }

    fn order(&self, state: State) -> PerAxis<usize> {
        self.candidates.all[state.candidate].order
    }

    /// The row-major layout of a state; `None` if its candidate does not exist on its grid.
    fn row_major(&self, state: State) -> Option<&Layout> {
        let place = &self.candidates.places[self.candidates.all[state.candidate].place];
        place.layout(self.lengths.set(state.done.0))
    }

    /// The layout of a state; `None` if its candidate does not exist on the state's grid.
    pub(crate) fn layout(&self, state: State) -> Option<Layout> {
        let layout = self.row_major(state)?.clone();
        Some(layout.ordered(self.order(state)).expect("orders are permutations"))
    }

    pub(crate) fn name(&self, state: State) -> Option<String> {
        Some(self.layout(state)?.to_string())
    }

    fn node(&self, state: State) -> Node {
        let layout = self.layout(state).expect("states on a path have a layout");
        Node { layout, complex: self.problem.complex || self.is_halved(state.done.0) }
    }

    fn element(&self, done: AxisSet) -> usize {
        let width = if self.problem.complex || self.is_halved(done) { 2 } else { 1 };
        width * self.problem.precision.bytes() * self.problem.batch
    }

    /// Whether the transform along `axis` is possible: C2C needs complex data, and reproducible
    /// transforms and factors of one axis have one order.
    pub(crate) fn may_transform(&self, axis: usize, state: State) -> bool {
        let done = state.done.0;
        let open = self.goal & !done & (1 << axis) != 0;
        let complex = self.problem.complex || self.is_halved(done);
        let is_whole =
            |state: State| self.row_major(state).is_some_and(|layout| layout.is_whole(axis));
        // A short axis may be on one rank only before it is padded.
        let after = State { done: Reverse(done | 1 << axis), ..state };
        let stays = || !self.problem.is_resized(axis) || is_whole(after);
        let in_order = || {
            !(self.problem.options.reproducible || self.problem.one_axis.is_some())
                || self.in_order(self.goal & !done).next() == Some(axis)
        };
        open && in_order()
            && match self.problem.kinds[axis] {
                // Systems belong to modes of all other axes.
                Kind::Tridiagonal => done | 1 << axis == self.goal && self.has_systems(axis, state),
                Kind::C2C => is_whole(state) && stays() && complex,
                _ => is_whole(state) && stays(),
            }
    }

    /// Whether systems can be solved if the output is as a state, or as the problem says.
    fn has_systems(&self, axis: usize, state: State) -> bool {
        let Some(layout) = self.row_major(state) else { return false };
        match self.anywhere[1] {
            true => self.is_end(state) && self.problem.has_systems(layout, axis),
            false if self.problem.output.is_whole(axis) => layout.is_whole(axis),
            false => self.layout(state).is_some_and(|layout| layout == self.problem.output),
        }
    }

    /// Whether transforms along these axes are one pass.
    fn is_one_pass(&self, state: State, axes: AxisSet) -> bool {
        let grid = self.row_major(state).map_or(self.problem.grid(), Layout::grid);
        let element = self.element(state.done.0);
        bytes_in_cache(&grid, &self.order(state), axes, element, self.tiles)
            <= cache_sizes::BLOCK_BYTES
    }

    fn is_goal(&self, state: State) -> bool {
        self.is_done(state) && self.is_end(state)
    }

    /// Whether the output may be as a state.
    fn is_end(&self, state: State) -> bool {
        let same = || self.layout(state).is_some_and(|layout| layout == self.problem.output);
        let spread = || self.row_major(state).is_some_and(Layout::is_spread);
        state.candidate == OUTPUT
            || state.candidate == INPUT && same()
            || self.anywhere[1] && spread()
    }

    /// Whether data may begin in any layout, so that the first reshape moves nothing.
    fn begins_anywhere(&self, state: State) -> bool {
        self.anywhere[0] && state == Self::start()
    }

    pub(crate) fn is_done(&self, state: State) -> bool {
        state.done.0 == self.goal
    }

    pub(crate) fn start() -> State {
        State { candidate: INPUT, done: Reverse(0) }
    }

    /// Dijkstra's algorithm: the states of the cheapest path from the input to the output.
    fn path(&self, costs: &mut Costs<'_>, weight: NetworkWeight) -> Option<Vec<State>> {
        let mut best = vec![None; self.targets.len() * self.candidates.all.len()];
        best[self.number(Self::start())] = Some((PathCost::default(), Self::start()));
        let mut open = BinaryHeap::from([Reverse((PathCost::default(), Self::start()))]);
        while let Some(Reverse((so_far, here))) = open.pop() {
            if self.is_goal(here) {
                return Some(self.trace(here, &best));
            }
            // Costs are positive, so no cheaper path can follow.
            let is_settled = |state: State| {
                best[self.number(state)].is_some_and(|(cheapest, _)| cheapest < so_far)
            };
            if is_settled(here) {
                continue;
            }
            for (there, cost) in costs.edges(here, weight, is_settled) {
                let way = so_far.and(cost, here.done.0 != there.done.0, there.done.0);
                let old = best[self.number(there)];
                if old.is_none_or(|old| (way, here) < old) {
                    if old.is_none_or(|(old, _)| way < old) {
                        open.push(Reverse((way, there)));
                    }
                    best[self.number(there)] = Some((way, here));
                }
            }
        }
        None
    }

    /// The index of a state among all.
    fn number(&self, state: State) -> usize {
        state.done.0 as usize * self.candidates.all.len() + state.candidate
    }

    fn trace(&self, goal: State, best: &[Option<(PathCost, State)>]) -> Vec<State> {
        let mut path = vec![goal];
        while path[path.len() - 1] != Self::start() {
            let (_, before) = best[self.number(path[path.len() - 1])].expect("reached");
            path.push(before);
        }
        path.reverse();
        path
    }

    /// The cheapest path from input to output.
    pub(crate) fn shortest_path(
        &self,
        costs: &mut Costs<'_>,
        weight: NetworkWeight,
    ) -> Result<Found, Error> {
        let path = self.path(costs, weight).ok_or_else(|| {
            let expected = "one with a way to the output";
            Error::argument("layouts", self.layouts, expected)
        })?;
        let pairs = path.windows(2).filter(|pair| pair[0].done == pair[1].done);
        let network = pairs.map(|pair| costs.reshape(pair[0], pair[1])[1]).sum();
        let (nodes, steps) = self.recipe(&path);
        Ok(Found { nodes, steps, network })
    }

    /// The order of transforms on one layout: the halved axis first, then from the last axis, and
    /// tridiagonal systems at the end. The factors of one axis are transformed from the first.
    fn in_order(&self, axes: AxisSet) -> impl Iterator<Item = usize> {
        let halving = self.halving.filter(|axis| axes & (1 << axis) != 0);
        let last = self.problem.tridiagonal_axis().filter(|axis| axes & (1 << axis) != 0);
        let (count, ascends) = (self.problem.kinds.len(), self.problem.one_axis.is_some());
        let others = (0..count).map(move |place| if ascends { place } else { count - 1 - place });
        let others = others.filter(move |axis| axes & (1 << axis) != 0);
        let others = others.filter(move |axis| Some(*axis) != halving && Some(*axis) != last);
        halving.into_iter().chain(others).chain(last)
    }

    /// The path as nodes and steps. Scaling follows the last transform.
    pub(crate) fn recipe(&self, path: &[State]) -> (Vec<Node>, Vec<Step>) {
        let problem = self.problem;
        let mut nodes = vec![self.node(path[0])];
        let mut steps = Vec::new();
        for pair in path.windows(2) {
            let new = pair[1].done.0 & !pair[0].done.0;
            if new == 0 {
                let node = self.node(pair[1]);
                // On a small grid, different cuts may have equal bricks.
                if nodes.last() == Some(&node) {
                    continue;
                }
                let exchange = problem.options.exchange;
                steps.push(Step::Reshape { wire: problem.wire(), exchange });
                nodes.push(node);
            }
            let mut done = pair[0].done.0;
            for axis in self.in_order(new) {
                done |= 1 << axis;
                steps.push(Step::Fft { axis, kind: problem.kinds[axis] });
                nodes.push(self.node(State { done: Reverse(done), ..pair[0] }));
            }
        }
        if problem.fetches() {
            peer_read_order::arrange(&mut nodes, &steps);
        }
        let (forward, inverse) =
            (problem.factor(Direction::Forward), problem.factor(Direction::Inverse));
        if (forward, inverse) != (1.0, 1.0) {
            let last = steps.iter().rposition(Step::is_transform);
            let place = last.map_or(steps.len(), |last| last + 1);
            steps.insert(place, Step::Scale { forward, inverse });
            nodes.insert(place, nodes[place].clone());
        }
        (nodes, steps)
    }
}
