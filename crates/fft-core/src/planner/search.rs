//! The search for a recipe as a shortest path.
//!
//! A state is a layout and the set of transformed axes. Edges are reshapes to every candidate
//! layout ([`super::candidates`]) and local transforms along sets of whole axes. Dijkstra's
//! algorithm finds the cheapest path by [`crate::cost`].
//!
//! Costs are whole picoseconds, so ties are equal on every machine. They go to transforms of the
//! last axes first, then to the earlier candidate. Costs of reshapes are cached by pair of layouts.
//! Bricks of cuts are listed on first use.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::candidates::{
    AxisSet, Candidates, INPUT, Layouts, Lengths, OUTPUT, adjacent_bytes, bytes_in_cache, goal,
    tiles,
};
use super::cost::{Model, Order};
use super::small_keys::SmallKeys;
use super::volume::Volume;
use crate::base::Error;
use crate::base::cache_sizes;
use crate::geometry::{Layout, PerAxis, Topology};
use crate::planner::peer_read_order;
use crate::problem::{Access, Direction, Kind, Problem, TransportPolicy};
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

pub(crate) struct Search<'a> {
    problem: &'a Problem,
    layouts: Layouts,
    pub(crate) candidates: Candidates,
    hosts: Topology,
    halving: Option<usize>,
    lengths: Lengths,
    goal: AxisSet,
    /// Whether all ranks share memory.
    all_near: bool,
    policy: TransportPolicy,
    /// See [`tiles`].
    tiles: Option<usize>,
    /// Whether paths begin, and end, in any layout that all ranks have a part of.
    anywhere: [bool; 2],
}

impl<'a> Search<'a> {
    pub(crate) fn new(problem: &'a Problem, layouts: Layouts) -> Self {
        let ranks = problem.input.ranks();
        let policy = problem.policy();
        let all_near = policy.all_near && ranks > 1;
        let hosts = Topology::new(&problem.hosts, ranks);
        let candidates = Candidates::new(problem, &hosts, layouts);
        let (halving, goal) = (problem.halved_axis(), goal(problem));
        let lengths = Lengths::of(problem);
        let tiles = tiles(&policy, ranks);
        let anywhere = [false; 2];
        Self {
            problem,
            layouts,
            candidates,
            hosts,
            halving,
            lengths,
            goal,
            all_near,
            policy,
            tiles,
            anywhere,
        }
    }

    /// The same search for a path from any layout, and to any.
    pub(crate) fn anywhere(self, anywhere: [bool; 2]) -> Self {
        Self { anywhere, ..self }
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

    /// Whether the transform along `axis` is possible: C2C needs complex data.
    pub(crate) fn may_transform(&self, axis: usize, state: State) -> bool {
        let done = state.done.0;
        let open = self.goal & !done & (1 << axis) != 0;
        let complex = self.problem.complex || self.is_halved(done);
        let is_whole =
            |state: State| self.row_major(state).is_some_and(|layout| layout.is_whole(axis));
        // A short axis may be on one rank only before it is padded.
        let after = State { done: Reverse(done | 1 << axis), ..state };
        let stays = || !self.problem.is_resized(axis) || is_whole(after);
        open && is_whole(state)
            && stays()
            && match self.problem.kinds[axis] {
                Kind::C2C => complex,
                _ => true,
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
        let same = || self.layout(state).is_some_and(|layout| layout == self.problem.output);
        let spread = || self.row_major(state).is_some_and(Layout::is_spread);
        self.is_done(state)
            && (state.candidate == OUTPUT
                || state.candidate == INPUT && same()
                || self.anywhere[1] && spread())
    }

    pub(crate) fn is_done(&self, state: State) -> bool {
        state.done.0 == self.goal
    }

    pub(crate) fn start() -> State {
        State { candidate: INPUT, done: Reverse(0) }
    }

    /// Dijkstra's algorithm: the states of the cheapest path from the input to the output.
    fn path(&self, costs: &mut Costs<'_>, weight: NetworkWeight) -> Option<Vec<State>> {
        let mut best =
            SmallKeys::from_iter([(Self::start(), (PathCost::default(), Self::start()))]);
        let mut open = BTreeSet::from([(PathCost::default(), Self::start())]);
        while let Some((so_far, here)) = open.pop_first() {
            if self.is_goal(here) {
                return Some(self.trace(here, &best));
            }
            for (there, cost) in costs.edges(here, weight) {
                let way = so_far.and(cost, here.done.0 != there.done.0, there.done.0);
                let old = best.get(&there).copied();
                if old.is_none_or(|old| (way, here) < old) {
                    old.map(|(old, _)| open.remove(&(old, there)));
                    open.insert((way, there));
                    best.insert(there, (way, here));
                }
            }
        }
        None
    }

    fn trace(&self, goal: State, best: &SmallKeys<State, (PathCost, State)>) -> Vec<State> {
        let mut path = vec![goal];
        while path[path.len() - 1] != Self::start() {
            path.push(best[&path[path.len() - 1]].1);
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

    /// The order of transforms on one layout: the halved axis first, then from the last axis.
    fn in_order(&self, axes: AxisSet) -> impl Iterator<Item = usize> {
        let halving = self.halving.filter(|axis| axes & (1 << axis) != 0);
        let others =
            (0..self.problem.kinds.len()).rev().filter(move |axis| axes & (1 << axis) != 0);
        halving.into_iter().chain(others.filter(move |axis| Some(*axis) != halving))
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
            let last = steps.iter().rposition(|step| matches!(step, Step::Fft { .. }));
            let place = last.map_or(steps.len(), |last| last + 1);
            steps.insert(place, Step::Scale { forward, inverse });
            nodes.insert(place, nodes[place].clone());
        }
        (nodes, steps)
    }
}

pub(crate) struct Costs<'a> {
    search: &'a Search<'a>,
    model: Model<'a>,
    share: f64,
    /// By place before, place after and axes that have another length: seconds, and network seconds
    /// on average.
    reshapes: SmallKeys<(usize, usize, usize), [f64; 2]>,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(search: &'a Search<'a>) -> Self {
        let problem = search.problem;
        let ranks = problem.input.ranks();
        let model = Model::of(&problem.machine, &search.hosts, ranks);
        let share = problem.options.wire.share(problem.precision, problem.options.tolerance);
        Self { search, model, share, reshapes: SmallKeys::default() }
    }

    fn edges(&mut self, here: State, weight: NetworkWeight) -> Vec<(State, Cost)> {
        let search = self.search;
        let mut edges = Vec::new();
        for axes in (1..=search.goal).filter(|axes| axes & !search.goal == 0) {
            if let Some(cost) = self.transform(here, axes) {
                edges.push((State { done: Reverse(here.done.0 | axes), ..here }, cost));
            }
        }
        for candidate in 0..search.candidates.all.len() {
            let there = State { candidate, ..here };
            // A layout without possible transforms is useless.
            let useful =
                || (0..search.problem.kinds.len()).any(|axis| search.may_transform(axis, there));
            let all_ranks = weight.all_ranks || search.anywhere[0] && here == Search::start();
            let taken = |layout: &Layout| {
                (!all_ranks || candidate <= OUTPUT || layout.is_spread())
                    && self.is_useful(here, there, layout)
            };
            if candidate != here.candidate
                && search.row_major(there).is_some_and(taken)
                && (candidate == OUTPUT || useful())
            {
                // What begins elsewhere is not moved.
                let begins = search.anywhere[0] && here == Search::start();
                let [seconds, network] = match begins {
                    true => [0.0; 2],
                    false => self.reshape(here, there),
                };
                edges.push((there, picoseconds(seconds + weight.weight * network)));
            }
        }
        edges
    }

    /// Whether a reshape to this layout is useful; a change of order alone may not be.
    fn is_useful(&self, here: State, there: State, held: &Layout) -> bool {
        let search = self.search;
        let ordered = !search.problem.fetches() || there.candidate == OUTPUT;
        ordered || search.row_major(here).is_none_or(|now| !now.has_bricks_of(held))
    }

    /// The cost of transforms along several axes, if all are possible.
    fn transform(&self, here: State, axes: AxisSet) -> Option<Cost> {
        let (search, model) = (self.search, self.model);
        let (mut state, mut arithmetic, mut passes) = (here, 0.0, Vec::new());
        let scattered = |state: State, layout: &Layout, axes: AxisSet| match search.all_near {
            true if search.tiles.is_some() => {
                let (batch, home) = (search.problem.batch, State { candidate: INPUT, ..state });
                let element = search.element(state.done.0) as f64 / batch as f64;
                let (home, order) = (search.row_major(home), search.order(state));
                model.scattered(adjacent_bytes(home, layout, &order, axes, element, batch))
            }
            _ => 1.0,
        };
        for axis in search.in_order(axes) {
            if !search.may_transform(axis, state) {
                return None;
            }
            let layout = search.row_major(state)?;
            let most = layout.most_points() as f64;
            let strided = search.order(state).contiguous() != axis || search.all_near;
            let gathered = strided && search.problem.prefers_contiguous();
            let (len, bytes) =
                (layout.grid().len(axis), most * search.element(state.done.0) as f64);
            let n = search.problem.zero_padded[axis];
            // Lines are as long as their transform, whatever there is of them.
            let longer = n as f64 / len as f64;
            let [flops, memory] = model.transform(n, bytes, longer, gathered);
            arithmetic += flops;
            state.done.0 |= 1 << axis;
            let one = scattered(state, search.row_major(state)?, 1 << axis);
            passes.push([memory, memory * one]);
        }
        let mut memory = match search.is_one_pass(state, axes) {
            true => {
                let together = scattered(state, search.row_major(state)?, axes);
                passes.into_iter().map(|[memory, _]| memory * together).fold(0.0, f64::max)
            }
            false => passes.into_iter().map(|[_, memory]| memory).sum(),
        };
        let halves = search.halving.is_some_and(|axis| axes & (1 << axis) != 0);
        if search.all_near && halves && here.candidate != INPUT {
            let most = search.row_major(state)?.most_points() as f64;
            memory += model.copies_of_shared(most * search.element(state.done.0) as f64);
        }
        Some(picoseconds(arithmetic + memory))
    }

    /// Seconds of a reshape, and network seconds of the average rank.
    fn reshape(&mut self, here: State, there: State) -> [f64; 2] {
        let search = self.search;
        if search.all_near {
            return [self.model.meeting(), 0.0];
        }
        let [seconds, network] = self.moved(here, there);
        let problem = search.problem;
        let complex = problem.complex || search.is_halved(here.done.0);
        let ends = [&problem.input, &problem.output].map(Layout::order);
        let suits = || {
            let rest: Vec<_> = search.in_order(search.goal & !here.done.0).collect();
            there.candidate != OUTPUT || peer_read_order::suits(ends[1], &rest)
        };
        // Intermediate layouts keep the input's contiguous axis.
        let stays = ends[0].contiguous() == ends[1].contiguous();
        let joined = problem.fetches() && complex && stays && suits();
        if self.model.is_of_gpus() {
            return [self.beside_transforms(here, seconds, joined), network];
        }
        let share = if joined { peer_read_order::SHARE } else { 1.0 };
        [seconds * share + self.uncovered(here), network]
    }

    /// What a reshape between measured GPUs adds to the transforms beside it, which take a pass at
    /// least.
    fn beside_transforms(&self, here: State, seconds: f64, joined: bool) -> f64 {
        let Some(layout) = self.search.row_major(here) else { return seconds };
        let bytes = layout.most_points() as f64 * self.search.element(here.done.0) as f64;
        let transforms = self.model.pass(bytes);
        let chunked = self.search.problem.options.access == Access::Strided && here.done.0 != 0;
        match (joined, chunked) {
            (true, _) => self.model.fetched(seconds, transforms),
            (_, true) => {
                let chunks = self.model.device_chunks(bytes);
                self.model.chunked(bytes, chunks, seconds, transforms)
            }
            _ => seconds,
        }
    }

    /// The extra cost of a reshape that no transform hides: on devices engines copy chunks while
    /// others are transformed.
    fn uncovered(&self, here: State) -> f64 {
        let search = self.search;
        let is_first = search.problem.options.access == Access::Strided && here.done.0 == 0;
        match search.row_major(here).filter(|_| is_first) {
            Some(layout) => {
                self.model.pass(layout.most_points() as f64 * search.element(here.done.0) as f64)
            }
            None => 0.0,
        }
    }

    /// The cost of a reshape that is a pass of its own.
    fn moved(&mut self, here: State, there: State) -> [f64; 2] {
        let search = self.search;
        let place = |state: State| search.candidates.all[state.candidate].place;
        let key = (place(here), place(there), search.lengths.set(here.done.0));
        if let Some(known) = self.reshapes.get(&key) {
            return *known;
        }
        let (from, to) = (search.row_major(here), search.row_major(there));
        let (from, to) = (from.expect("reached"), to.expect("checked by the caller"));
        let problem = search.problem;
        let order = Order {
            load: Volume::new(from, to, &search.hosts, Layout::touches),
            element: search.element(here.done.0) as f64,
            share: self.share,
            wire: problem.options.wire,
            exchange: search.policy.exchange,
            chunk: search.policy.chunking.map(|chunking| chunking.bytes as f64),
            rounds: search.policy.rounds as f64,
        };
        let seconds = self.model.reshape(&order).seconds();
        let network = self.model.network(order.load.mean * order.element * order.share);
        self.reshapes.insert(key, [seconds, network]);
        [seconds, network]
    }
}
