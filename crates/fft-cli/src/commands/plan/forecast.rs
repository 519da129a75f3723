//! The forecast of one problem on one machine.

use std::thread::Builder;

use serde::Serialize;
use thriffty::Wire;
use thriffty::machine::{Machine, Quantity};
use thriffty::planning::{
    Capabilities, DeviceCapabilities, Direction, Exchange, Expected, Layouts, Order, Pattern,
    Recipe, Schedule, Simulation, Simulator, Step, Summary,
};
use thriffty::tuning::{Candidate, Choice, Favourite, candidates, favourite};

use super::ask::Ask;
use crate::ranks::world::Failure;

pub(crate) struct Forecast {
    pub(crate) recipe: String,
    /// Why it was chosen.
    pub(crate) reason: String,
    /// Its passes over memory, in order.
    pub(crate) program: Vec<String>,
    pub(crate) reshapes: Vec<Reshape>,
    pub(crate) time: Guess,
    pub(crate) sensitivities: Vec<Sensitivity>,
    pub(crate) limits: Limits,
    pub(crate) memory: Memory,
    pub(crate) others: Vec<Other>,
}

/// The name of the recipe's own row.
pub(crate) const AS_IT_IS: &str = "as it is";

/// An alternative, and its time or its error.
pub(crate) type Other = (String, Result<Guess, String>);

/// Seconds of a forward transform; not simulated if that takes long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Guess {
    pub(crate) predicted: f64,
    pub(crate) simulated: Option<f64>,
    /// Whether the simulation is no better than ±4×.
    pub(crate) approximate: bool,
}

/// The most messages of the chosen recipe that are listed and simulated.
const MANY: f64 = 5e6;
/// The most messages of an alternative that are listed and simulated, and of all changed machines.
const FEW: f64 = 2e6;

/// The additional effort for uneven bricks, because their messages end at as many times as there
/// are lengths.
const UNEVEN: f64 = 2.0;

/// The messages of a recipe, as the number that would take as long with even bricks.
fn effort(recipe: &Recipe) -> f64 {
    let input = &recipe.problem().input;
    let is_even = input.most_points() * input.ranks() == input.grid().points();
    Schedule::estimate(recipe) * if is_even { 1.0 } else { UNEVEN }
}

/// The messages that may still be simulated, so that a forecast takes only seconds.
pub(crate) struct Budget(f64);

impl Budget {
    pub(crate) fn new() -> Self {
        Self(2.0 * FEW)
    }

    /// Whether `messages` more messages may be simulated.
    fn takes(&mut self, messages: f64) -> bool {
        let takes = messages <= FEW.min(self.0);
        self.0 -= if takes { messages } else { 0.0 };
        takes
    }

    /// The time of a recipe, with messages in this order or in the order of its exchange.
    pub(crate) fn guess(
        &mut self,
        recipe: &Recipe,
        machine: &Machine,
        order: Option<Order>,
    ) -> Guess {
        let simulator = self.takes(effort(recipe)).then(|| Simulator::new(recipe));
        time(recipe, simulator.as_ref(), machine, order)
    }
}

/// The same, simulated if there is a simulator.
fn time(
    recipe: &Recipe,
    simulator: Option<&Simulator<'_>>,
    machine: &Machine,
    order: Option<Order>,
) -> Guess {
    let simulation = simulator.map(|simulator| simulator.run(machine, order));
    guess_of(recipe, simulation.as_ref(), machine, order)
}

fn guess_of(
    recipe: &Recipe,
    simulation: Option<&Simulation>,
    machine: &Machine,
    order: Option<Order>,
) -> Guess {
    let predicted = recipe.predict_on(machine).seconds;
    match simulation {
        Some(Simulation { seconds, approximate, .. }) => {
            Guess { predicted, simulated: Some(*seconds), approximate: *approximate }
        }
        None => {
            // The prediction assumes posted messages.
            let pattern = recipe.problem().options.exchange.pattern();
            let approximate = order == Some(Order::Pairwise) || pattern == Pattern::Forwarded;
            Guess { predicted, simulated: None, approximate }
        }
    }
}

/// The model's choice.
pub(crate) struct Chosen {
    pub(crate) recipe: Recipe,
    /// Why this one.
    reason: String,
    others: Vec<Candidate>,
}

impl Chosen {
    pub(crate) fn by_model(ask: &Ask) -> Result<Self, Failure> {
        let problem = ask.problem()?;
        let choice =
            Choice::of_model(&problem, ask.options().exchange).with_layouts(ask.options().layouts);
        let mut others = candidates(&problem, &choice)?;
        let Favourite { place, reason } = favourite(&others, &choice);
        Ok(Self { recipe: others.remove(place).recipe, reason, others })
    }
}

pub(crate) struct Reshape {
    /// The layout after it.
    pub(crate) to: String,
    pub(crate) wire: Wire,
    pub(crate) exchange: Exchange,
    /// `None` if messages are too many to list.
    pub(crate) summary: Option<Summary>,
    pub(crate) expected: Expected,
    pub(crate) simulated: Option<f64>,
}

impl Reshape {
    /// Bytes that leave their hosts; if messages are not listed, computed from the busiest rank.
    fn far(&self, ranks: usize) -> f64 {
        match &self.summary {
            Some(summary) => summary.far as f64,
            None => self.expected.volume.far * ranks as f64,
        }
    }

    /// Bytes of all messages of the busiest rank, outgoing and incoming.
    fn most_bytes(&self) -> f64 {
        match &self.summary {
            Some(summary) => summary.rank_most as f64,
            None => 2.0 * (self.expected.volume.near + self.expected.volume.far),
        }
    }
}

/// The times with half and with twice a number of the machine.
#[derive(Serialize)]
pub(crate) struct Sensitivity {
    #[serde(skip)]
    pub(crate) name: &'static str,
    pub(crate) half: Guess,
    pub(crate) twice: Guess,
}

pub(crate) struct Limits {
    /// Ψ: all data leaves its host raw in each reshape; `None` without reshapes.
    pub(crate) network: Option<f64>,
    /// The limit if the bytes that leave hosts leave evenly from all; `None` if there are none.
    pub(crate) leaving: Option<f64>,
    /// The data is read and written once before the first reshape and after each.
    pub(crate) memory: f64,
}

/// Bytes of the rank with the most.
#[derive(Serialize)]
pub(crate) struct Memory {
    /// Bytes of input and output together.
    pub(crate) data: f64,
    /// Bytes of the data between two steps.
    pub(crate) between: f64,
    /// Bytes of all messages of a reshape, outgoing and incoming.
    pub(crate) messages: f64,
}

impl Forecast {
    /// The name of the row with the least of these times, among the recipe and its alternatives.
    pub(crate) fn fastest(&self, time: fn(&Guess) -> Option<f64>) -> Option<&str> {
        let others =
            self.others.iter().filter_map(|(name, guess)| Some((&**name, guess.as_ref().ok()?)));
        let rows = std::iter::once((AS_IT_IS, &self.time)).chain(others);
        let timed = rows.filter_map(|(name, guess)| Some((name, time(guess)?)));
        timed.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
    }

    /// Seconds by simulation, or else by prediction.
    pub(crate) fn seconds(&self) -> f64 {
        self.time.simulated.unwrap_or(self.time.predicted)
    }
}

pub(crate) fn whole(ask: &Ask) -> Result<Forecast, Failure> {
    let Chosen { recipe, reason, others: candidates } = Chosen::by_model(ask)?;
    let machine = &*ask.machine;
    let messages = effort(&recipe);
    let simulator = (messages <= MANY).then(|| Simulator::new(&recipe));
    let simulation = simulator.as_ref().map(|simulator| simulator.run(machine, None));
    let listed = simulator.as_ref().zip(simulation.as_ref());
    let reshapes = reshapes(&recipe, listed);
    let memory = memory(&recipe, &reshapes);
    let changes = 2.0 * NUMBERS.len() as f64;
    let again = simulator.as_ref().filter(|_| changes * messages <= FEW);
    let changed_time = &|machine: &Machine| time(&recipe, again, machine, None);
    let sensitivities = std::thread::scope(|scope| {
        let times = NUMBERS.map(|(name, of)| {
            let at = |factor| {
                let machine = changed(machine, of, factor);
                let here = machine.clone();
                let there = Builder::new().spawn_scoped(scope, move || changed_time(&machine));
                // Without another thread it is done at once.
                there.map_err(|_| changed_time(&here))
            };
            (name, at(0.5), at(2.0))
        });
        times.map(|(name, half, twice)| {
            let [half, twice] =
                [half, twice].map(|it| it.map_or_else(|it| it, |it| it.join().expect("no panic")));
            Sensitivity { name, half, twice }
        })
    });
    let program = program(ask, &recipe);
    Ok(Forecast {
        recipe: recipe.to_string(),
        reason,
        program: program.lines().map(String::from).collect(),
        limits: limits(ask, &recipe, &reshapes),
        memory,
        reshapes,
        time: guess_of(&recipe, simulation.as_ref(), machine, None),
        sensitivities: sensitivities.into_iter().collect(),
        others: others(ask, &recipe, &candidates),
    })
}

/// The operations of the forward transform, on threads or on GPUs.
fn program(ask: &Ask, recipe: &Recipe) -> String {
    let problem = recipe.problem();
    if !ask.is_on_devices() {
        let capabilities = Capabilities::of_threads(problem);
        return recipe.lower(Direction::Forward, capabilities).placed(0, false, true);
    }
    let devices = DeviceCapabilities::of_ranks(problem);
    let exposes_all = devices.exposes_all || problem.options.shared_arrays;
    recipe.lower(Direction::Forward, Capabilities::of_devices(&devices)).placed(
        0,
        false,
        exposes_all,
    )
}

/// The time with these layouts.
fn only(ask: &Ask, layouts: Layouts, budget: &mut Budget) -> Result<Guess, Failure> {
    let recipe = Recipe::with_layouts(ask.problem()?, layouts)?;
    Ok(budget.guess(&recipe, &ask.machine, None))
}

/// The reshapes, with the messages and the simulation of each if they are listed.
fn reshapes(recipe: &Recipe, listed: Option<(&Simulator<'_>, &Simulation)>) -> Vec<Reshape> {
    let expected = recipe.predict().steps;
    let of = |(number, step): (usize, &Step)| {
        let Step::Reshape { wire, exchange } = *step else { return None };
        let summary = listed.and_then(|(simulator, _)| {
            let mut schedules = simulator.schedules().iter();
            schedules.find(|(step, _)| *step == number).map(|(_, schedule)| schedule.summary())
        });
        Some(Reshape {
            to: recipe.nodes()[number + 1].layout.to_string(),
            wire,
            exchange,
            summary,
            expected: expected[number],
            simulated: listed.map(|(_, simulation)| simulation.steps[number].seconds),
        })
    };
    recipe.steps().iter().enumerate().filter_map(of).collect()
}

/// A group of a machine's numbers, by their names.
type Numbers = fn(&str) -> bool;

const NUMBERS: [(&str, Numbers); 4] = [
    ("bandwidth", |name| name == "host" || name.ends_with("bandwidth")),
    ("latency", |name| name.ends_with("latency") || name.ends_with("overhead")),
    ("memory", |name| {
        name.ends_with("memory") || name.starts_with("encode") || name.starts_with("decode")
    }),
    ("flops", |name| name.starts_with("flops")),
];

fn changed(machine: &Machine, of: Numbers, factor: f64) -> Machine {
    let names: Vec<_> = machine.quantities().into_iter().map(|(name, _)| of(&name)).collect();
    let mut changed = machine.clone();
    let chosen = changed.quantities_mut().into_iter().zip(names).filter(|(_, chosen)| *chosen);
    chosen.for_each(|(quantity, _): (&mut Quantity, bool)| quantity.value *= factor);
    changed
}

fn limits(ask: &Ask, recipe: &Recipe, reshapes: &[Reshape]) -> Limits {
    let (flops, hosts) = (ask.flops(), ask.hosts() as f64);
    let Machine { host, memory, host_memory, .. } = &*ask.machine;
    let bytes = |node: &thriffty::planning::Node| {
        (node.layout.grid().points() * node.width() * ask.real_bytes()) as f64
    };
    let steps = recipe.steps().iter().zip(recipe.nodes());
    let moved = steps.filter(|(step, _)| matches!(step, Step::Reshape { .. }));
    let all: f64 = moved.map(|(_, from)| bytes(from)).sum();
    let far: f64 = reshapes.iter().map(|reshape| reshape.far(ask.ranks)).sum();
    let last = recipe.nodes().last().map_or(0.0, bytes);
    let of_host = host_memory.value.min(memory.value * ask.per_host as f64);
    Limits {
        network: (all > 0.0).then(|| flops / (all / (hosts * host.value))),
        leaving: (far > 0.0).then(|| flops / (far / (hosts * host.value))),
        memory: flops / (2.0 * (all + last) / (hosts * of_host)),
    }
}

fn memory(recipe: &Recipe, reshapes: &[Reshape]) -> Memory {
    let problem = recipe.problem();
    let ranks = 0..problem.input.ranks();
    let reals = problem.batch * problem.precision.bytes();
    let held = |node: &thriffty::planning::Node, rank| {
        (node.layout.brick(rank).points() * node.width() * reals) as f64
    };
    let nodes = recipe.nodes();
    let ends = |rank| held(&nodes[0], rank) + held(&nodes[nodes.len() - 1], rank);
    let most = |rank| nodes.iter().map(|node| held(node, rank)).fold(0.0, f64::max);
    Memory {
        data: ranks.clone().map(ends).fold(0.0, f64::max),
        between: ranks.map(most).fold(0.0, f64::max),
        messages: reshapes.iter().map(Reshape::most_bytes).fold(0.0, f64::max),
    }
}

/// The alternatives: other exchanges, raw messages, other layouts.
fn others(ask: &Ask, recipe: &Recipe, exchanges: &[Candidate]) -> Vec<Other> {
    let machine = &*ask.machine;
    let budget = &mut Budget::new();
    let pairwise = budget.guess(recipe, machine, Some(Order::Pairwise));
    let mut found = vec![("these layouts, pairwise".to_owned(), Ok(pairwise))];
    let problem = recipe.problem();
    let mut ask = ask.clone();
    ask.options_mut().exchange = Some(problem.options.exchange);
    for Candidate { recipe, .. } in exchanges {
        found.push((
            recipe.problem().options.exchange.to_string(),
            Ok(budget.guess(recipe, machine, None)),
        ));
    }
    if problem.wire() != Wire::Raw {
        found.push(("messages raw".into(), only(&ask.raw(), Layouts::Any, budget).map_err(text)));
    }
    for (name, layouts) in [("pencils", Layouts::Pencils), ("slabs", Layouts::Slabs)] {
        let mut problem = problem.clone();
        if problem.options.exchange != Exchange::P2p {
            let name = format!("{name}, {}", problem.options.exchange);
            found.push((name, only(&ask, layouts, budget).map_err(text)));
        }
        // As a classic library does.
        problem.options.exchange = Exchange::P2p;
        let orders = [("posted", Order::Posted), ("pairwise", Order::Pairwise)];
        match Recipe::with_layouts(problem, layouts) {
            Ok(recipe) => {
                for (how, order) in orders {
                    let guess = budget.guess(&recipe, machine, Some(order));
                    found.push((format!("{name}, {how}"), Ok(guess)));
                }
            }
            Err(error) => found.push((name.into(), Err(error.to_string()))),
        }
    }
    found
}

fn text(failure: Failure) -> String {
    failure.to_string()
}
