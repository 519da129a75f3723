//! The edges of the search and their costs.
//!
//! Costs of reshapes are cached by pair of layouts, because searches with several weights need them
//! all.

use std::cmp::Reverse;

use super::{Cost, NetworkWeight, Search, State, picoseconds};
use crate::geometry::Layout;
use crate::planner::candidates::{AxisSet, INPUT, OUTPUT, adjacent_bytes};
use crate::planner::cost::{Model, Order};
use crate::planner::peer_read_order;
use crate::planner::small_keys::SmallKeys;
use crate::planner::volume::{FEW, Volume};
use crate::problem::Access;

pub(crate) struct Costs<'a> {
    pub(super) search: &'a Search<'a>,
    pub(super) model: Model<'a>,
    share: f64,
    /// By state before.
    transforms: SmallKeys<State, Vec<(State, Cost)>>,
    /// By place and axes that have another length, for each other place: seconds, and network
    /// seconds on average.
    reshapes: SmallKeys<(usize, usize), Vec<Option<[f64; 2]>>>,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(search: &'a Search<'a>) -> Self {
        let problem = search.problem;
        let ranks = problem.input.ranks();
        let model = Model::of(&problem.machine, &search.hosts, ranks);
        let share = problem.options.wire.share(problem.precision, problem.options.tolerance);
        let (transforms, reshapes) = (SmallKeys::default(), SmallKeys::default());
        Self { search, model, share, transforms, reshapes }
    }

    /// The states that one step leads to, with its cost: transforms, and reshapes to states that
    /// are not settled.
    pub(super) fn edges(
        &mut self,
        here: State,
        weight: NetworkWeight,
        is_settled: impl Fn(State) -> bool,
    ) -> Vec<(State, Cost)> {
        let search = self.search;
        let targets = &search.targets[here.done.0 as usize];
        let transforms = self.transforms(here);
        let mut edges = Vec::with_capacity(transforms.len() + targets.len());
        edges.extend_from_slice(transforms);
        let needs_all_ranks = weight.all_ranks || search.begins_anywhere(here);
        for target in targets {
            let there = State { candidate: target.candidate, ..here };
            let is_excluded = needs_all_ranks && !target.suits_all_ranks;
            if there == here || is_excluded || is_settled(there) || !self.is_useful(here, there) {
                continue;
            }
            let [seconds, network] =
                if search.begins_anywhere(here) { [0.0; 2] } else { self.reshape(here, there) };
            edges.push((there, picoseconds(seconds + weight.weight * network)));
        }
        edges
    }

    /// The states after the transforms that are possible, with their costs.
    fn transforms(&mut self, here: State) -> &[(State, Cost)] {
        if !self.transforms.contains_key(&here) {
            let open = self.search.goal & !here.done.0;
            let after = |axes| State { done: Reverse(here.done.0 | axes), ..here };
            let axes = (1..=open).filter(|axes| axes & !open == 0);
            let found = axes.filter_map(|axes| Some((after(axes), self.transform(here, axes)?)));
            self.transforms.insert(here, found.collect());
        }
        &self.transforms[&here]
    }

    /// Whether a reshape to this layout is useful; a change of order alone may not be.
    fn is_useful(&self, here: State, there: State) -> bool {
        let ordered = !self.search.problem.fetches() || there.candidate == OUTPUT;
        let both = || self.search.row_major(here).zip(self.search.row_major(there));
        ordered || both().is_none_or(|(now, then)| !now.has_bricks_of(then))
    }

    /// The cost of transforms along several axes, if all are possible.
    fn transform(&self, here: State, axes: AxisSet) -> Option<Cost> {
        let (search, model) = (self.search, self.model);
        let (mut state, mut arithmetic, mut passes) = (here, 0.0, Vec::new());
        let mut systems = 0.0;
        let scattered = |state: State, layout: &Layout, axes: AxisSet| {
            if search.all_near && search.tiles.is_some() {
                let (batch, home) = (search.problem.batch, State { candidate: INPUT, ..state });
                let element = search.element(state.done.0) as f64 / batch as f64;
                let (home, order) = (search.row_major(home), search.order(state));
                model.scattered(adjacent_bytes(home, layout, &order, axes, element, batch))
            } else {
                1.0
            }
        };
        for axis in search.in_order(axes) {
            if !search.may_transform(axis, state) {
                return None;
            }
            if !search.problem.kinds[axis].is_transform() {
                systems += self.half_of_reduced(state, axis);
                state.done.0 |= 1 << axis;
                continue;
            }
            let layout = search.row_major(state)?;
            let most = layout.most_points() as f64;
            let strided = search.order(state).contiguous() != axis || search.all_near;
            let gathered = strided && search.problem.prefers_contiguous();
            let (len, bytes) =
                (layout.grid().len(axis), most * search.element(state.done.0) as f64);
            let n = search.problem.zero_padded[axis];
            // A padded line costs as much as a full one.
            let longer = n as f64 / len as f64;
            let [flops, memory] = model.transform(n, bytes, longer, gathered);
            arithmetic += flops;
            state.done.0 |= 1 << axis;
            let one = scattered(state, search.row_major(state)?, 1 << axis);
            passes.push([memory, memory * one]);
        }
        let axes = axes & search.transforms;
        let mut memory = if search.is_one_pass(state, axes) {
            let together = scattered(state, search.row_major(state)?, axes);
            passes.into_iter().map(|[memory, _]| memory * together).fold(0.0, f64::max)
        } else {
            passes.into_iter().map(|[_, memory]| memory).sum()
        };
        let halves = search.halving.is_some_and(|axis| axes & (1 << axis) != 0);
        if search.all_near && halves && here.candidate != INPUT {
            let most = search.row_major(state)?.most_points() as f64;
            memory += model.copies_of_shared(most * search.element(state.done.0) as f64);
        }
        Some(picoseconds(arithmetic + memory + systems))
    }

    /// Seconds of a reshape, and network seconds of the average rank.
    pub(super) fn reshape(&mut self, here: State, there: State) -> [f64; 2] {
        let search = self.search;
        if search.all_near {
            return [self.model.barrier() + self.copied(here), 0.0];
        }
        let [seconds, network] = self.moved(here, there);
        let problem = search.problem;
        let complex = problem.complex || search.is_halved(here.done.0);
        let suits = || {
            let [first, last] = [&problem.input, &problem.output].map(Layout::order);
            let rest: Vec<_> = search.in_order(search.goal & !here.done.0).collect();
            // Intermediate layouts keep the input's contiguous axis.
            first.contiguous() == last.contiguous()
                && (there.candidate != OUTPUT || peer_read_order::suits(last, &rest))
        };
        let joined = problem.fetches() && complex && suits();
        if self.model.is_of_gpus() {
            return [self.beside_transforms(here, seconds, joined), network];
        }
        let share = if joined { peer_read_order::SHARE } else { 1.0 };
        [seconds * share + self.uncovered(here), network]
    }

    /// The pass of a reshape for tridiagonal systems, which no transform reads from other ranks.
    /// Half of it, as the inverse has none: its transforms read from systems.
    fn copied(&self, here: State) -> f64 {
        let search = self.search;
        let is_last = search.transforms != search.goal && search.transforms & !here.done.0 == 0;
        match search.row_major(here).filter(|_| is_last) {
            Some(layout) => {
                let bytes = layout.most_points() as f64 * search.element(here.done.0) as f64;
                0.5 * self.model.pass(bytes)
            }
            None => 0.0,
        }
    }

    /// The time that a reshape between measured GPUs adds to its transforms, which take at least a
    /// pass.
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
        let Self { search, model, share, ref mut reshapes, .. } = *self;
        let place = |state: State| search.candidates.all[state.candidate].place;
        // If all ranks are examined, the reshape back costs the same.
        let turns = search.hosts.ranks() <= FEW && place(there) < place(here);
        let [from, to] = if turns { [there, here] } else { [here, there] };
        let key = (place(from), search.lengths.set(here.done.0));
        let none = || vec![None; search.candidates.places.len()];
        let of_place = reshapes.entry(key).or_insert_with(none);
        *of_place[place(to)].get_or_insert_with(|| {
            let [from, to] = [from, to].map(|state| search.row_major(state).expect("both exist"));
            let order = Order {
                load: Volume::new(from, to, &search.hosts, Layout::touches),
                element: search.element(here.done.0) as f64,
                share,
                wire: search.problem.options.wire,
                exchange: search.policy.exchange,
                chunk: search.policy.chunking.map(|chunking| chunking.bytes as f64),
                rounds: search.policy.rounds as f64,
            };
            let network = model.network(order.load.mean * order.element * order.share);
            [model.reshape(&order).seconds(), network]
        })
    }
}
