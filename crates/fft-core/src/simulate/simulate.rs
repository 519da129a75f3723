//! Simulation of a recipe on a modelled machine, message by message.
//!
//! [`Recipe::predict`] adds up the busiest rank's times. Here every rank has its own clock, and
//! messages queue at the ports of hosts ([`super::events`]), which shows incast, dependent steps
//! and load imbalance. Local work has the cost of the model, in proportion to each rank's share.

use std::iter::Sum;

use super::events::{EventLoop, Time, picoseconds};
use super::message_list::{Message, Schedule};
use super::order::Order;
use crate::codec::Wire;
use crate::geometry::Topology;
use crate::planner::Expected;
use crate::planner::cost::Model;
use crate::problem::{Machine, Pattern};
use crate::recipe::{Recipe, Step};

/// The simulated times of one step of the recipe, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SimulatedStep {
    /// Between the ends of the step before and of this step on the last rank.
    pub seconds: f64,
    /// For a reshape: from its start on the first rank to the arrival of the last message.
    pub flight: f64,
}

/// The simulated times of a forward transform.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// Each step of the recipe.
    pub steps: Vec<SimulatedStep>,
    /// The end on each rank, in seconds.
    pub ranks: Vec<f64>,
    /// The end on the last rank.
    pub seconds: f64,
    /// Whether the result is approximate, because it is for matched steps or forwarding exchanges.
    pub approximate: bool,
}

/// The schedules of a recipe, for any number of simulations.
///
/// ```
/// use fft_core::*;
/// let grid = DynGrid::new([64, 64, 64])?;
/// let bricks = Layout::even(grid, ProcGrid::cubic(grid, 8), 8);
/// let mut problem = Problem::new([Kind::C2C; 3], true, Precision::F64, bricks.clone(), bricks)?;
/// problem.options.exchange = Exchange::P2p;
/// problem.hosts = (0..8).collect();
/// let recipe = Recipe::new(problem)?;
/// let simulator = Simulator::new(&recipe);
/// let machine = Machine::default();
/// let posted = simulator.run(&machine, None);
/// let pairwise = simulator.run(&machine, Some(Order::Pairwise));
/// assert!(posted.seconds < pairwise.seconds && !posted.approximate && pairwise.approximate);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Simulator<'a> {
    recipe: &'a Recipe,
    hosts: Topology,
    schedules: Vec<(usize, Schedule)>,
}

impl<'a> Simulator<'a> {
    /// Makes the schedules. Cost: O(messages) time and memory.
    ///
    /// # Panics
    /// If there are 2³² ranks or more.
    pub fn new(recipe: &'a Recipe) -> Self {
        let problem = recipe.problem();
        let hosts = Topology::new(&problem.hosts, problem.input.ranks());
        Self { recipe, hosts, schedules: Schedule::of(recipe) }
    }

    /// The reshapes and the numbers of their steps.
    pub fn schedules(&self) -> &[(usize, Schedule)] {
        &self.schedules
    }

    /// Simulates the forward transform on this machine, by default in the order of the recipe's
    /// exchange. Deterministic. Cost: O(messages log ranks).
    pub fn run(&self, machine: &Machine, order: Option<Order>) -> Simulation {
        let ranks = self.hosts.ranks();
        let problem = self.recipe.problem();
        let policy = problem.policy();
        let expected = self.recipe.predict_on(machine);
        let mut stage = Stage {
            model: Model::of(machine, &self.hosts, ranks),
            machine,
            hosts: &self.hosts,
            clocks: vec![0; ranks],
        };
        let mut steps = Vec::new();
        let mut approximate = false;
        for (number, step) in self.recipe.steps().iter().enumerate() {
            let before = stage.latest();
            let expected = &expected.steps[number];
            let mut flight = 0;
            match *step {
                Step::Reshape { wire, .. } => {
                    let pattern = policy.exchange.pattern();
                    let at = self.schedules.partition_point(|(step, _)| *step < number);
                    let order = order.unwrap_or(Order::of(policy.exchange));
                    approximate |= pattern == Pattern::Forwarded || order == Order::Pairwise;
                    let like = if order == Order::Put { Pattern::Put } else { pattern };
                    let chunked = policy.chunking.is_some();
                    let rounds = if chunked { like.rounds(problem.options.memory) } else { 1 };
                    let reshape =
                        Reshape { schedule: &self.schedules[at].1, wire, pattern, rounds };
                    flight = stage.reshape(&reshape, order, expected);
                }
                _ => stage.local(&self.recipe.nodes()[number].layout, expected),
            }
            let seconds = |time: Time| time as f64 * 1e-12;
            let (seconds, flight) = (seconds(stage.latest() - before), seconds(flight));
            steps.push(SimulatedStep { seconds, flight });
        }
        let seconds = stage.latest() as f64 * 1e-12;
        let ranks = stage.clocks.iter().map(|clock| *clock as f64 * 1e-12).collect();
        Simulation { steps, ranks, seconds, approximate }
    }
}

struct Reshape<'a> {
    schedule: &'a Schedule,
    wire: Wire,
    pattern: Pattern,
    rounds: usize,
}

struct Stage<'a> {
    model: Model<'a>,
    machine: &'a Machine,
    hosts: &'a Topology,
    clocks: Vec<Time>,
}

impl Stage<'_> {
    fn latest(&self) -> Time {
        latest(&self.clocks)
    }

    /// Local work in proportion to each rank's points.
    fn local(&mut self, layout: &crate::Layout, expected: &Expected) {
        let points = |rank: usize| layout.brick(rank).points() as f64;
        let most = (0..self.clocks.len()).map(points).fold(1.0, f64::max);
        for (rank, clock) in self.clocks.iter_mut().enumerate() {
            *clock += picoseconds(expected.seconds * points(rank) / most);
        }
    }

    fn barrier(&mut self) {
        let mut clocks = std::mem::take(&mut self.clocks);
        self.meet(&mut clocks);
        self.clocks = clocks;
    }

    /// A barrier among the ranks of each host, which reach it at these times.
    fn meet(&self, times: &mut [Time]) {
        let takes = picoseconds(self.model.barrier());
        for host in 0..self.hosts.hosts() {
            let members = self.hosts.ranks_of(host);
            let last = members.iter().map(|rank| times[*rank]).max().unwrap_or(0);
            members.iter().for_each(|rank| times[*rank] = last + takes);
        }
    }

    /// Simulates a reshape. Returns the time from the first rank's start to the last arrival.
    fn reshape(&mut self, reshape: &Reshape<'_>, order: Order, expected: &Expected) -> Time {
        let Reshape { schedule, wire, pattern, rounds } = *reshape;
        let shared = (0..schedule.ranks()).any(|rank| schedule.read(rank) > 0);
        // Leaders send once all ranks of their host have packed.
        let bundles = pattern == Pattern::Bundled && !schedule.messages().is_empty();
        if shared || bundles {
            self.barrier();
        }
        if shared && schedule.messages().is_empty() && self.hosts.hosts() == 1 {
            // The next transforms read from peers instead.
            return 0;
        }
        let matched = (order == Order::Pairwise).then(|| schedule.matched());
        let schedule = matched.as_ref().unwrap_or(schedule);
        let begins = self.clocks.iter().copied().min().unwrap_or(0);
        let mut held = held(schedule);
        if bundles {
            // Ranks share the work of their host's leaders.
            average_over_hosts(self.hosts, &mut held, |sum, count| sum / count as f64);
        }
        let work = Work { model: self.model, schedule, wire, held, expected };
        let mut unpack = work.unpack();
        if bundles {
            average_over_hosts(self.hosts, &mut unpack, |sum, count| sum / count as Time);
        }
        let timeline = if schedule.messages().is_empty() {
            Timeline::at(&self.clocks)
        } else {
            self.exchange(&work, &unpack, order, pattern, rounds)
        };
        for rank in 0..schedule.ranks() {
            // Local data is moved once everything is packed, while messages are in flight.
            let moved = timeline.packed[rank] + work.moved(rank);
            let rest = (timeline.late * unpack[rank] as f64).round() as Time;
            self.clocks[rank] = moved.max(timeline.arrived[rank]) + rest;
        }
        if shared {
            self.barrier();
        }
        latest(&timeline.arrived) - begins
    }

    fn exchange(
        &self,
        work: &Work<'_>,
        unpack: &[Time],
        order: Order,
        pattern: Pattern,
        rounds: usize,
    ) -> Timeline {
        if pattern == Pattern::Forwarded {
            let packed = work.packed(&self.clocks);
            let last = latest(&packed) + picoseconds(work.expected.spent.flight);
            return Timeline { arrived: vec![last; packed.len()], packed, late: 1.0 };
        }
        let is_collective = pattern == Pattern::Collective;
        let mut timeline = match order {
            Order::Put => return self.epochs(work, unpack, rounds),
            Order::Posted if rounds > 1 => self.in_rounds(work, order, rounds),
            Order::Posted if !is_collective => {
                self.deliver(work, order, &self.clocks, &|message| work.pack(message))
            }
            _ => self.deliver(work, order, &work.packed(&self.clocks), &|_| 0),
        };
        if pattern == Pattern::Bundled {
            // All ranks of a host read what has arrived, and have packed what was sent.
            average_over_hosts(self.hosts, &mut timeline.packed, |sum, count| sum / count as Time);
            self.meet(&mut timeline.arrived);
        }
        if is_collective {
            let copies = work.collected();
            timeline.arrived.iter_mut().zip(copies).for_each(|(arrived, copy)| *arrived += copy);
        }
        timeline
    }

    fn deliver(
        &self,
        work: &Work<'_>,
        order: Order,
        start: &[Time],
        pack: &dyn Fn(&Message) -> Time,
    ) -> Timeline {
        let all = (0..work.schedule.ranks()).map(|rank| work.schedule.places(rank)).collect();
        let events =
            EventLoop::new(work.schedule, self.machine, self.model.oversubscription(), order, all);
        let outcome = events.run(start, pack);
        Timeline { packed: outcome.packed, arrived: outcome.finished, late: 1.0 }
    }

    /// Rounds of chunks: a rank continues once all messages of a round have arrived.
    fn in_rounds(&self, work: &Work<'_>, order: Order, most: usize) -> Timeline {
        let mut timeline = Timeline::at(&self.clocks);
        for rest in rounds(work.schedule, most) {
            let slowdown = self.model.oversubscription();
            let events = EventLoop::new(work.schedule, self.machine, slowdown, order, rest);
            let outcome = events.run(&timeline.arrived, &|message| work.pack(message));
            (timeline.packed, timeline.arrived) = (outcome.packed, outcome.finished);
        }
        timeline
    }

    /// Rounds of chunks in epochs synchronized over all ranks.
    fn epochs(&self, work: &Work<'_>, unpack: &[Time], most: usize) -> Timeline {
        let rounds = rounds(work.schedule, most);
        let late = 1.0 / rounds.len() as f64;
        let hops = (work.schedule.ranks() as f64).log2().ceil();
        let wait = picoseconds((1.0 + hops) * self.machine.far.latency.value);
        let mut timeline = Timeline { packed: Vec::new(), arrived: self.clocks.clone(), late };
        for (round, rest) in rounds.into_iter().enumerate() {
            let start = vec![latest(&timeline.arrived) + wait; timeline.arrived.len()];
            let slowdown = self.model.oversubscription();
            let events = EventLoop::new(work.schedule, self.machine, slowdown, Order::Put, rest);
            let outcome = events.run(&start, &|message| work.pack(message));
            (timeline.packed, timeline.arrived) = (outcome.packed, outcome.finished);
            if round > 0 {
                // Data of the round before is unpacked during this round's puts.
                let ready = timeline.packed.iter().zip(unpack);
                let ready = ready.map(|(packed, it)| packed + (late * *it as f64).round() as Time);
                timeline
                    .arrived
                    .iter_mut()
                    .zip(ready)
                    .for_each(|(arrived, it)| *arrived = it.max(*arrived));
            }
        }
        let last = latest(&timeline.arrived) + wait;
        timeline.arrived.fill(last);
        timeline
    }
}

/// The times of each rank's last packing and arrival, and the share not unpacked by then.
struct Timeline {
    packed: Vec<Time>,
    arrived: Vec<Time>,
    late: f64,
}

impl Timeline {
    /// The timeline of ranks without messages.
    fn at(clocks: &[Time]) -> Self {
        Self { packed: clocks.to_vec(), arrived: clocks.to_vec(), late: 1.0 }
    }
}

fn latest(times: &[Time]) -> Time {
    times.iter().copied().max().unwrap_or(0)
}

/// Gives all ranks of a host their mean, from the sum and the number.
fn average_over_hosts<V: Copy + Sum>(
    hosts: &Topology,
    values: &mut [V],
    mean: impl Fn(V, usize) -> V,
) {
    for host in 0..hosts.hosts() {
        let ranks = hosts.ranks_of(host);
        let mean = mean(ranks.iter().map(|rank| values[*rank]).sum(), ranks.len());
        ranks.iter().for_each(|rank| values[*rank] = mean);
    }
}

/// Unencoded bytes that each rank sends.
fn held(schedule: &Schedule) -> Vec<f64> {
    let sent = |rank| schedule.of_rank(rank).iter().map(|message| message.bytes as f64).sum();
    (0..schedule.ranks()).map(sent).collect()
}

/// The messages of each rank in each round, by chunks.
fn rounds(schedule: &Schedule, most: usize) -> Vec<Vec<std::ops::Range<usize>>> {
    let chunks = 1 + schedule.messages().iter().map(|it| it.chunk as usize).max().unwrap_or(0);
    let rounds = chunks.min(most);
    let of = |round: usize| {
        let rank = |rank: usize| {
            let (list, first) = (schedule.of_rank(rank), schedule.places(rank).start);
            let until = |round: usize| {
                list.partition_point(|message| message.chunk as usize * rounds / chunks < round)
            };
            first + until(round)..first + until(round + 1)
        };
        (0..schedule.ranks()).map(rank).collect()
    };
    (0..rounds).map(of).collect()
}

struct Work<'a> {
    model: Model<'a>,
    schedule: &'a Schedule,
    wire: Wire,
    held: Vec<f64>,
    expected: &'a Expected,
}

impl Work<'_> {
    fn codec(&self, message: &Message) -> [f64; 2] {
        let far = self.schedule.is_far(message);
        self.model.codec(if far { self.wire } else { Wire::Raw }, message.bytes as f64)
    }

    /// Reading, encoding and writing a message, with its share of fused transforms and of launches.
    fn pack(&self, message: &Message) -> Time {
        let share = message.bytes as f64 / self.held[message.from as usize].max(1.0);
        let memory = self.model.memory((message.bytes + message.wire) as f64);
        let list = self.schedule.of_rank(message.from as usize);
        let chunks = list.last().map_or(0.0, |last| f64::from(last.chunk) + 1.0);
        let others = self.expected.arithmetic + self.model.launch() * chunks;
        picoseconds(memory + self.codec(message)[0] + others * share)
    }

    /// The times at which each rank has packed all of its messages, starting at these times.
    fn packed(&self, start: &[Time]) -> Vec<Time> {
        let of = |(rank, start): (usize, &Time)| {
            start + self.schedule.of_rank(rank).iter().map(|it| self.pack(it)).sum::<Time>()
        };
        start.iter().enumerate().map(of).collect()
    }

    /// Decoding and writing received messages, for each rank.
    fn unpack(&self) -> Vec<Time> {
        let mut bytes = vec![[0.0; 2]; self.schedule.ranks()];
        for message in self.schedule.messages() {
            let [all, far] = &mut bytes[message.to as usize];
            *all += (message.bytes + message.wire) as f64;
            *far += if self.schedule.is_far(message) { message.bytes as f64 } else { 0.0 };
        }
        let takes = |[all, far]: [f64; 2]| {
            picoseconds(self.model.memory(all) + self.model.codec(self.wire, far)[1])
        };
        bytes.into_iter().map(takes).collect()
    }

    /// The additional copy of a collective call's messages within a host, for each rank.
    fn collected(&self) -> Vec<Time> {
        let mut near = vec![0.0; self.schedule.ranks()];
        for message in self.schedule.messages().iter().filter(|it| !self.schedule.is_far(it)) {
            near[message.to as usize] += message.wire as f64;
        }
        near.into_iter().map(|bytes| picoseconds(self.model.collected(bytes))).collect()
    }

    /// Moving a rank's own data and reading from peers. A rank that sends nothing does its fused
    /// transforms here.
    fn moved(&self, rank: usize) -> Time {
        let bytes = (self.schedule.own(rank) + self.schedule.read(rank)) as f64;
        let alone = self.held[rank] == 0.0 && self.schedule.own(rank) > 0;
        let arithmetic = if alone { self.expected.arithmetic } else { 0.0 };
        picoseconds(self.model.pass(bytes) * self.model.strided() + arithmetic)
    }
}
