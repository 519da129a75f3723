//! The forecast of one problem on one machine.

use serde::Serialize;
use thriffty::Wire;
use thriffty::machine::{Machine, Quantity};
use thriffty::planning::{
    Algorithm, BytesMoved, Capabilities, Direction, Expected, Family, Order, Recipe, Simulation,
    Simulator, Step, Summary,
};
use thriffty::tuning::{Candidate, Choice, candidates, favourite};

use super::ask::Ask;
use crate::ranks::world::Failure;

pub(crate) struct Forecast {
    pub(crate) recipe: String,
    /// Its passes over memory, in order.
    pub(crate) program: Vec<String>,
    pub(crate) reshapes: Vec<Reshape>,
    /// Of the recipe; always simulated.
    pub(crate) time: Guess,
    pub(crate) sensitivities: Vec<Sensitivity>,
    pub(crate) limits: Limits,
    pub(crate) memory: Memory,
    pub(crate) others: Vec<Other>,
}

/// An alternative, and its time or its error.
pub(crate) type Other = (String, Result<Guess, String>);

/// Seconds of a forward transform; not simulated where that takes long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Guess {
    pub(crate) predicted: f64,
    pub(crate) simulated: Option<f64>,
    /// Whether the simulation is no better than ±4×.
    pub(crate) rough: bool,
}

/// The most messages of a recipe that is simulated. The chosen recipe always is.
const FEW: f64 = 3e6;

/// The time of a recipe, with messages in this order or in that of its exchange.
pub(crate) fn guess(recipe: &Recipe, machine: &Machine, order: Option<Order>) -> Guess {
    let chunked = recipe.problem().policy().chunking.is_some();
    let chunks = |volume: &BytesMoved| match chunked {
        true => (volume.near + volume.far) / recipe.problem().options.chunk as f64 + 1.0,
        false => 1.0,
    };
    let of =
        |volume: &BytesMoved| chunks(volume) * (volume.near_messages + volume.far_messages) / 2.0;
    // Steps count messages of the busiest rank, so that this is a bound.
    let ranks = recipe.problem().input.ranks() as f64;
    let steps = recipe.predict_on(machine).steps;
    let messages = ranks * steps.iter().map(|step| of(&step.volume)).sum::<f64>();
    let simulator = (messages <= FEW).then(|| Simulator::new(recipe));
    time(recipe, simulator.as_ref(), machine, order)
}

/// The same, simulated if there is a simulator.
fn time(
    recipe: &Recipe,
    simulator: Option<&Simulator<'_>>,
    machine: &Machine,
    order: Option<Order>,
) -> Guess {
    let predicted = recipe.predict_on(machine).seconds;
    match simulator.map(|simulator| simulator.run(machine, order)) {
        Some(Simulation { seconds, rough, .. }) => {
            Guess { predicted, simulated: Some(seconds), rough }
        }
        None => {
            // The prediction assumes posted messages.
            let exchange = recipe.problem().options.exchange;
            let rough = order == Some(Order::Pairwise) || matches!(exchange, Algorithm::KWay(_));
            Guess { predicted, simulated: None, rough }
        }
    }
}

/// The recipe that the model chooses, and the other candidates.
pub(crate) fn chosen(ask: &Ask) -> Result<(Recipe, Vec<Candidate>), Failure> {
    let problem = ask.problem()?;
    let choice = Choice::of_model(&problem, ask.exchange);
    let mut candidates = candidates(&problem, &choice)?;
    let recipe = candidates.remove(favourite(&candidates, &choice)).recipe;
    Ok((recipe, candidates))
}

pub(crate) struct Reshape {
    /// The layout after it.
    pub(crate) to: String,
    pub(crate) wire: Wire,
    pub(crate) exchange: Algorithm,
    pub(crate) summary: Summary,
    pub(crate) expected: Expected,
    pub(crate) simulated: f64,
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
    /// The bytes that leave hosts do so evenly from all; `None` without any.
    pub(crate) leaving: Option<f64>,
    /// The data is read and written once before the first reshape and after each.
    pub(crate) memory: f64,
}

/// Bytes of the rank that has most.
#[derive(Serialize)]
pub(crate) struct Memory {
    /// Of input and output together.
    pub(crate) data: f64,
    /// Of the data between two steps.
    pub(crate) between: f64,
    /// Of all messages of a reshape, outgoing and incoming.
    pub(crate) messages: f64,
}

pub(crate) fn whole(ask: &Ask) -> Result<Forecast, Failure> {
    let (recipe, candidates) = chosen(ask)?;
    let simulator = Simulator::new(&recipe);
    let machine = &*ask.machine;
    let prediction = recipe.predict();
    let simulation = simulator.run(machine, None);
    let reshapes = reshapes(&recipe, &simulator, &prediction.steps, &simulation);
    let messages: usize = simulator.schedules().iter().map(|it| it.1.messages().len()).sum();
    let again = (messages as f64 <= FEW).then_some(&simulator);
    let time = &|machine: &Machine| time(&recipe, again, machine, None);
    let sensitivities = std::thread::scope(|scope| {
        let times = NUMBERS.map(|(name, of)| {
            let at = |factor| {
                let machine = changed(machine, of, factor);
                scope.spawn(move || time(&machine))
            };
            (name, at(0.5), at(2.0))
        });
        times.map(|(name, half, twice)| {
            let [half, twice] = [half, twice].map(|it| it.join().expect("no panic"));
            Sensitivity { name, half, twice }
        })
    });
    let capabilities = Capabilities::of_threads(recipe.problem());
    let program = recipe.lower(Direction::Forward, capabilities).to_string();
    Ok(Forecast {
        recipe: recipe.to_string(),
        program: program.lines().map(String::from).collect(),
        limits: limits(ask, &recipe, &reshapes),
        memory: memory(&recipe, &simulator),
        reshapes,
        time: Guess {
            predicted: prediction.seconds,
            simulated: Some(simulation.seconds),
            rough: simulation.rough,
        },
        sensitivities: sensitivities.into_iter().collect(),
        others: others(ask, &recipe, again, &candidates),
    })
}

/// The time with layouts of this family.
fn only(ask: &Ask, family: Family) -> Result<Guess, Failure> {
    let recipe = Recipe::of_family(ask.problem()?, family)?;
    Ok(guess(&recipe, &ask.machine, None))
}

fn reshapes(
    recipe: &Recipe,
    simulator: &Simulator<'_>,
    expected: &[Expected],
    simulation: &Simulation,
) -> Vec<Reshape> {
    let of = |(number, schedule): &(usize, thriffty::planning::Schedule)| match recipe.steps()
        [*number]
    {
        Step::Reshape { wire, exchange } => Some(Reshape {
            to: recipe.nodes()[number + 1].layout.to_string(),
            wire,
            exchange,
            summary: schedule.summary(),
            expected: expected[*number],
            simulated: simulation.steps[*number].seconds,
        }),
        _ => None,
    };
    simulator.schedules().iter().filter_map(of).collect()
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
    let far: f64 = reshapes.iter().map(|reshape| reshape.summary.far as f64).sum();
    let last = recipe.nodes().last().map_or(0.0, bytes);
    let of_host = host_memory.value.min(memory.value * ask.per_host as f64);
    Limits {
        network: (all > 0.0).then(|| flops / (all / (hosts * host.value))),
        leaving: (far > 0.0).then(|| flops / (far / (hosts * host.value))),
        memory: flops / (2.0 * (all + last) / (hosts * of_host)),
    }
}

fn memory(recipe: &Recipe, simulator: &Simulator<'_>) -> Memory {
    let problem = recipe.problem();
    let ranks = 0..problem.input.ranks();
    let reals = problem.howmany * problem.precision.bytes();
    let held = |node: &thriffty::planning::Node, rank| {
        (node.layout.brick(rank).points() * node.width() * reals) as f64
    };
    let nodes = recipe.nodes();
    let ends = |rank| held(&nodes[0], rank) + held(&nodes[nodes.len() - 1], rank);
    let most = |rank| nodes.iter().map(|node| held(node, rank)).fold(0.0, f64::max);
    let messages = simulator.schedules().iter().map(|(_, schedule)| {
        let mut bytes = vec![0.0; schedule.ranks()];
        for message in schedule.messages() {
            bytes[message.from as usize] += message.wire as f64;
            bytes[message.to as usize] += message.wire as f64;
        }
        bytes.into_iter().fold(0.0, f64::max)
    });
    Memory {
        data: ranks.clone().map(ends).fold(0.0, f64::max),
        between: ranks.map(most).fold(0.0, f64::max),
        messages: messages.fold(0.0, f64::max),
    }
}

/// The alternatives: other exchanges, raw messages, other families of layouts.
fn others(
    ask: &Ask,
    recipe: &Recipe,
    simulator: Option<&Simulator<'_>>,
    exchanges: &[Candidate],
) -> Vec<Other> {
    let machine = &*ask.machine;
    let pairwise = time(recipe, simulator, machine, Some(Order::Pairwise));
    let mut found = vec![("these layouts, pairwise".to_owned(), Ok(pairwise))];
    let problem = recipe.problem();
    let ask = &Ask { exchange: Some(problem.options.exchange), ..ask.clone() };
    for Candidate { recipe, .. } in exchanges {
        found.push((
            recipe.problem().options.exchange.to_string(),
            Ok(guess(recipe, machine, None)),
        ));
    }
    if problem.options.wire != Wire::Raw {
        let raw = Ask { encoding: Default::default(), ..ask.clone() };
        found.push(("messages raw".into(), only(&raw, Family::Any).map_err(text)));
    }
    for (name, family) in [("pencils", Family::Pencils), ("slabs", Family::Slabs)] {
        let mut problem = problem.clone();
        if problem.options.exchange != Algorithm::P2p {
            let name = format!("{name}, {}", problem.options.exchange);
            found.push((name, only(ask, family).map_err(text)));
        }
        // As a classic library does.
        problem.options.exchange = Algorithm::P2p;
        let orders = [("posted", Order::Posted), ("pairwise", Order::Pairwise)];
        match Recipe::of_family(problem, family) {
            Ok(recipe) => {
                for (how, order) in orders {
                    let guess = guess(&recipe, machine, Some(order));
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
