//! A recipe on a machine that one does not have, message by message.
//!
//! [`Recipe::predict`] adds up what the busiest rank does. Here every rank has a timings of its own, and messages stand in
//! line at the ports of hosts ([`crate::play`]): ranks that all send to the same one at once, steps that wait for each
//! other, and what is left over at the end are seen. Local work is that of the cost model, by what each rank has of it.

use super::events::{Play, Time, picoseconds};
use super::message_list::{Message, Schedule};
use super::order::Order;
use crate::codec::Wire;
use crate::geometry::Topology;
use crate::planner::Expected;
use crate::planner::cost::Model;
use crate::problem::Machine;
use crate::problem::{Algorithm, Epochs};
use crate::recipe::{Recipe, Step};

/// What was found out about one step of the recipe, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Played {
    /// From when the last rank was done with the step before to when the last is done with this one.
    pub seconds: f64,
    /// Of a reshape: from when the first rank begins to when the last message is there.
    pub flight: f64,
}

/// A whole forward transform.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// Of each step of the recipe.
    pub steps: Vec<Played>,
    /// When each rank is done, in seconds.
    pub ranks: Vec<f64>,
    /// When the last one is.
    pub seconds: f64,
    /// Whether it is no better than within a factor of 4: matched steps amplify what a model leaves out, as delays and
    /// routes in the network. Or the exchange forwards messages ([`Algorithm::KWay`]): then what [`Recipe::predict`]
    /// says of their flight is taken.
    pub rough: bool,
}

/// The schedules of a recipe, to be played as often as one likes.
///
/// ```
/// use fft_core::*;
/// let grid = DynGrid::new([64, 64, 64])?;
/// let bricks = Layout::even(grid, ProcGrid::cubic(grid, 8), 8);
/// let mut problem = Problem::new([Kind::C2C; 3], true, Precision::F64, bricks.clone(), bricks)?;
/// problem.options.exchange = Algorithm::P2p;
/// problem.hosts = (0..8).collect();
/// let recipe = Recipe::new(problem)?;
/// let simulator = Simulator::new(&recipe);
/// let machine = Machine::default();
/// let posted = simulator.run(&machine, None);
/// let pairwise = simulator.run(&machine, Some(Order::Pairwise));
/// assert!(posted.seconds < pairwise.seconds && !posted.rough && pairwise.rough);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Simulator<'a> {
    recipe: &'a Recipe,
    hosts: Topology,
    schedules: Vec<(usize, Schedule)>,
}

impl<'a> Simulator<'a> {
    /// Makes the schedules: O(messages) time and memory.
    ///
    /// # Panics
    /// If there are 2³² ranks or more.
    pub fn new(recipe: &'a Recipe) -> Self {
        let problem = recipe.problem();
        let hosts = Topology::new(&problem.hosts, problem.input.ranks());
        Self { recipe, hosts, schedules: Schedule::of(recipe) }
    }

    /// The reshapes, each with the number of its step.
    pub fn schedules(&self) -> &[(usize, Schedule)] {
        &self.schedules
    }

    /// Plays the forward transform on this machine, in this order or, without one, in that of the recipe's exchange.
    /// Deterministic. O(messages log ranks): about a microsecond per message.
    pub fn run(&self, machine: &Machine, order: Option<Order>) -> Simulation {
        let ranks = self.hosts.ranks();
        let policy = self.recipe.problem().policy();
        let expected = self.recipe.predict_on(machine);
        let mut stage = Stage {
            model: Model::of(machine, &self.hosts, ranks),
            machine,
            hosts: &self.hosts,
            clocks: vec![0; ranks],
        };
        let mut steps = Vec::new();
        let mut rough = false;
        for (number, step) in self.recipe.steps().iter().enumerate() {
            let before = stage.latest();
            let expected = &expected.steps[number];
            let mut flight = 0;
            match *step {
                Step::Reshape { wire, exchange } => {
                    let at = self.schedules.partition_point(|(step, _)| *step < number);
                    let order = order.unwrap_or(Order::of(exchange));
                    let forwards = matches!(exchange, Algorithm::KWay(_));
                    rough |= forwards || order == Order::Pairwise;
                    let like = match order {
                        Order::Ring => Algorithm::Ring(Epochs::Fence),
                        _ => exchange,
                    };
                    let problem = self.recipe.problem();
                    let chunked = policy.chunking.is_some();
                    let rounds = if chunked { problem.options.memory.rounds(like) } else { 1 };
                    let reshape =
                        Reshape { schedule: &self.schedules[at].1, wire, exchange, rounds };
                    flight = stage.reshape(&reshape, order, expected);
                }
                _ => stage.local(&self.recipe.nodes()[number].layout, expected),
            }
            let seconds = |time: Time| time as f64 * 1e-12;
            let (seconds, flight) = (seconds(stage.latest() - before), seconds(flight));
            steps.push(Played { seconds, flight });
        }
        let seconds = stage.latest() as f64 * 1e-12;
        let ranks = stage.clocks.iter().map(|timings| *timings as f64 * 1e-12).collect();
        Simulation { steps, ranks, seconds, rough }
    }
}

struct Reshape<'a> {
    schedule: &'a Schedule,
    wire: Wire,
    exchange: Algorithm,
    /// At most.
    rounds: usize,
}

/// Where all ranks are in time.
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

    /// Work of which each rank has as much as it has points.
    fn local(&mut self, layout: &crate::Layout, expected: &Expected) {
        let points = |rank: usize| layout.brick(rank).points() as f64;
        let most = (0..self.clocks.len()).map(points).fold(1.0, f64::max);
        for (rank, timings) in self.clocks.iter_mut().enumerate() {
            *timings += picoseconds(expected.seconds * points(rank) / most);
        }
    }

    /// All ranks of each host wait for each other.
    fn barrier(&mut self) {
        let takes = picoseconds(self.model.meeting());
        for host in 0..self.hosts.hosts() {
            let members = self.hosts.ranks_of(host);
            let last = members.iter().map(|rank| self.clocks[*rank]).max().unwrap_or(0);
            members.iter().for_each(|rank| self.clocks[*rank] = last + takes);
        }
    }

    /// Returns from when the first rank begins to when the last message is there.
    fn reshape(&mut self, reshape: &Reshape<'_>, order: Order, expected: &Expected) -> Time {
        let Reshape { schedule, wire, exchange, rounds } = *reshape;
        let shared = (0..schedule.ranks()).any(|rank| schedule.read(rank) > 0);
        if shared {
            self.barrier();
        }
        if shared && schedule.messages().is_empty() && self.hosts.hosts() == 1 {
            // Everybody reads where data is: in the transforms that follow.
            return 0;
        }
        let matched = (order == Order::Pairwise).then(|| schedule.matched());
        let schedule = matched.as_ref().unwrap_or(schedule);
        let begins = self.clocks.iter().copied().min().unwrap_or(0);
        let work = Work { model: self.model, schedule, wire, held: held(schedule), expected };
        let unpack = work.unpack();
        let forwards = matches!(exchange, Algorithm::KWay(_));
        let flown = if schedule.messages().is_empty() {
            Flown { packed: self.clocks.clone(), there: self.clocks.clone(), late: 1.0 }
        } else if forwards {
            let packed = work.packed(&self.clocks);
            let last = latest(&packed) + picoseconds(expected.spent.flight);
            Flown { there: vec![last; packed.len()], packed, late: 1.0 }
        } else if order == Order::Ring {
            self.epochs(&work, &unpack, rounds)
        } else if order == Order::Pairwise || exchange == Algorithm::Alltoallv {
            let mut flown = match order {
                Order::Posted if rounds > 1 => self.in_turn(&work, order, rounds),
                _ => self.fly(&work, order, &work.packed(&self.clocks), &|_| 0),
            };
            if exchange == Algorithm::Alltoallv {
                flown.there.iter_mut().zip(work.collected()).for_each(|(there, it)| *there += it);
            }
            flown
        } else if rounds > 1 {
            self.in_turn(&work, order, rounds)
        } else {
            self.fly(&work, order, &self.clocks, &|message| work.pack(message))
        };
        for rank in 0..schedule.ranks() {
            // What need not be sent is moved when everything is packed, while messages fly.
            let moved = flown.packed[rank] + work.moved(rank);
            let rest = (flown.late * unpack[rank] as f64).round() as Time;
            self.clocks[rank] = moved.max(flown.there[rank]) + rest;
        }
        if shared {
            self.barrier();
        }
        latest(&flown.there) - begins
    }

    /// All messages, from these times on.
    fn fly(
        &self,
        work: &Work<'_>,
        order: Order,
        start: &[Time],
        pack: &dyn Fn(&Message) -> Time,
    ) -> Flown {
        let all = (0..work.schedule.ranks()).map(|rank| work.schedule.places(rank)).collect();
        let play =
            Play::new(work.schedule, self.machine, self.model.oversubscription(), order, all);
        let outcome = play.run(start, pack);
        Flown { packed: outcome.packed, there: outcome.finished, late: 1.0 }
    }

    /// Some chunks after others: a rank goes on when it has all messages of a round.
    fn in_turn(&self, work: &Work<'_>, order: Order, most: usize) -> Flown {
        let (packed, there) = (self.clocks.clone(), self.clocks.clone());
        let mut flown = Flown { packed, there, late: 1.0 };
        for rest in rounds(work.schedule, most) {
            let slow = self.model.oversubscription();
            let play = Play::new(work.schedule, self.machine, slow, order, rest);
            let outcome = play.run(&flown.there, &|message| work.pack(message));
            (flown.packed, flown.there) = (outcome.packed, outcome.finished);
        }
        flown
    }

    /// Some chunks after others, in epochs that begin and end for all ranks together.
    fn epochs(&self, work: &Work<'_>, unpack: &[Time], most: usize) -> Flown {
        let rounds = rounds(work.schedule, most);
        let late = 1.0 / rounds.len() as f64;
        let hops = (work.schedule.ranks() as f64).log2().ceil();
        let wait = picoseconds((1.0 + hops) * self.machine.far.latency.value);
        let mut flown = Flown { packed: Vec::new(), there: self.clocks.clone(), late };
        for (round, rest) in rounds.into_iter().enumerate() {
            let start = vec![latest(&flown.there) + wait; flown.there.len()];
            let slow = self.model.oversubscription();
            let play = Play::new(work.schedule, self.machine, slow, Order::Ring, rest);
            let outcome = play.run(&start, &|message| work.pack(message));
            (flown.packed, flown.there) = (outcome.packed, outcome.finished);
            if round > 0 {
                // What the round before brought is unpacked while this one's puts fly.
                let ready = flown.packed.iter().zip(unpack);
                let ready = ready.map(|(packed, it)| packed + (late * *it as f64).round() as Time);
                flown.there.iter_mut().zip(ready).for_each(|(there, it)| *there = it.max(*there));
            }
        }
        let last = latest(&flown.there) + wait;
        flown.there.fill(last);
        flown
    }
}

/// Of each rank: when it has packed everything, and when its messages are there; and which part of them is still to be
/// unpacked then.
struct Flown {
    packed: Vec<Time>,
    there: Vec<Time>,
    late: f64,
}

fn latest(times: &[Time]) -> Time {
    times.iter().copied().max().unwrap_or(0)
}

/// Bytes in memory that each rank sends.
fn held(schedule: &Schedule) -> Vec<f64> {
    let sent = |rank| schedule.of_rank(rank).iter().map(|message| message.bytes as f64).sum();
    (0..schedule.ranks()).map(sent).collect()
}

/// The messages of each rank in each of so many rounds at most, by chunks.
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

/// What ranks do themselves in a reshape.
struct Work<'a> {
    model: Model<'a>,
    schedule: &'a Schedule,
    wire: Wire,
    /// Bytes in memory that each rank sends.
    held: Vec<f64>,
    expected: &'a Expected,
}

impl Work<'_> {
    fn codec(&self, message: &Message) -> [f64; 2] {
        let far = self.schedule.is_far(message);
        self.model.codec(if far { self.wire } else { Wire::Raw }, message.bytes as f64)
    }

    /// Reading, encoding and writing a message; and its share of a transform that is done on the way, and of what it takes
    /// to begin with each chunk.
    fn pack(&self, message: &Message) -> Time {
        let share = message.bytes as f64 / self.held[message.from as usize].max(1.0);
        let memory = self.model.memory((message.bytes + message.wire) as f64);
        let list = self.schedule.of_rank(message.from as usize);
        let chunks = list.last().map_or(0.0, |last| f64::from(last.chunk) + 1.0);
        let others = self.expected.arithmetic + self.model.launch() * chunks;
        picoseconds(memory + self.codec(message)[0] + others * share)
    }

    /// When each rank has packed all of its messages, from these times on.
    fn packed(&self, start: &[Time]) -> Vec<Time> {
        let of = |(rank, start): (usize, &Time)| {
            start + self.schedule.of_rank(rank).iter().map(|it| self.pack(it)).sum::<Time>()
        };
        start.iter().enumerate().map(of).collect()
    }

    /// For each rank, decoding and writing what came.
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

    /// For each rank, copying once more what came from its own host in one call.
    fn collected(&self) -> Vec<Time> {
        let mut near = vec![0.0; self.schedule.ranks()];
        for message in self.schedule.messages().iter().filter(|it| !self.schedule.is_far(it)) {
            near[message.to as usize] += message.wire as f64;
        }
        near.into_iter().map(|bytes| picoseconds(self.model.collected(bytes))).collect()
    }

    /// What stays with a rank, and what it reads where others have it. A rank that sends nothing does all of a transform on
    /// the way here.
    fn moved(&self, rank: usize) -> Time {
        let bytes = (self.schedule.own(rank) + self.schedule.read(rank)) as f64;
        let alone = self.held[rank] == 0.0 && self.schedule.own(rank) > 0;
        let arithmetic = if alone { self.expected.arithmetic } else { 0.0 };
        picoseconds(self.model.pass(bytes) * self.model.strided() + arithmetic)
    }
}
