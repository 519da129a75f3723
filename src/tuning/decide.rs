//! The choice of a recipe: by the model, by the clock, from wisdom, or by name.

use std::time::Duration;

use fft_comm::tuner::{Candidate, Choice, Progress, Report, candidates};
use fft_comm::{Signature, checksum};
use fft_core::{
    Algorithm, Comm, Error, Family, Machine, Memory, Problem, Recipe, Step, Wire, assert_same,
};

use super::tune::Tune;
use super::{files, wisdom};

/// A text that changes when any number of a machine does, how it is known, or its GPU.
pub(crate) fn fingerprint(machine: &Machine) -> String {
    let quantities = machine.quantities();
    let known = quantities.iter().map(|(_, quantity)| quantity.how as u64);
    let values = quantities.iter().map(|(_, quantity)| quantity.value.to_bits()).chain(known);
    let lengths = machine.flops.iter().map(|rate| rate.n as u64);
    let mut bytes: Vec<u8> = values.chain(lengths).flat_map(u64::to_le_bytes).collect();
    bytes.extend_from_slice(format!("{:?}{:?}", machine.lines, machine.gpu).as_bytes());
    format!("{:016x}", checksum(&bytes))
}

/// How a draft wants its recipe chosen.
pub(crate) struct Wanted<'a> {
    pub(crate) tune: &'a Tune,
    /// The exchange, if the draft names one.
    pub(crate) exchange: Option<Algorithm>,
    /// The layouts that the search considers.
    pub(crate) layouts: Family,
    /// Whether the draft names the wire.
    pub(crate) fixed: bool,
    /// The device and how data gets there, for plans on devices.
    pub(crate) device: Option<&'a str>,
    pub(crate) watch: &'a dyn Fn(Progress),
}

/// The chosen recipe, and the candidates.
pub(crate) struct Decision {
    pub(crate) recipe: Recipe,
    pub(crate) report: Report,
    /// The name of the problem in wisdom.
    pub(crate) key: String,
}

/// Chooses a recipe. Collective; the same on every rank.
///
/// # Errors
/// The same on every rank.
pub(crate) fn decide(
    comm: &dyn Comm,
    problem: Problem,
    wanted: &Wanted<'_>,
    by_clock: ByClock<'_>,
) -> Result<Decision, Error> {
    let key = key(&problem, wanted);
    let (all, report) = match wanted.tune {
        Tune::Model => by_model(comm, &problem, wanted)?,
        Tune::Measure { budget } => by_clock(&problem, wanted, *budget)?,
        Tune::Wisdom(path) => {
            let here = Signature::of(comm)?;
            let text = files::read(comm, path)?;
            let found = text.and_then(|text| wisdom::find(&text, &key, &here)).and_then(|entry| {
                let candidate = exact(&problem, wanted, &entry.recipe);
                candidate.map(|it| (it, entry.measured)).map_err(|error| error.to_string())
            });
            match found {
                Ok((candidate, seconds)) => {
                    let report = Report::remembered(&candidate, seconds);
                    (vec![candidate], report)
                }
                Err(why) => {
                    if comm.rank() == 0 {
                        log::warn!("wisdom {} is ignored: {why}", path.display());
                    }
                    let (all, mut report) = by_model(comm, &problem, wanted)?;
                    report.reason = format!("{}; wisdom is ignored: {why}", report.reason);
                    (all, report)
                }
            }
        }
        Tune::Recipe(text) => {
            let candidate = exact(&problem, wanted, text)?;
            let report = Report::given(&candidate);
            (vec![candidate], report)
        }
    };
    let recipe = all.into_iter().nth(report.chosen).expect("one of them was chosen").recipe;
    assert_same(comm, &[("recipe", recipe.to_string())])?;
    Ok(Decision { recipe, report, key })
}

/// Candidates, and the report on them.
pub(crate) type Chosen = (Vec<Candidate>, Report);

/// Times candidates for a problem, within a budget. Collective.
pub(crate) type ByClock<'a> = &'a dyn Fn(&Problem, &Wanted<'_>, Duration) -> Result<Chosen, Error>;

fn by_model(comm: &dyn Comm, problem: &Problem, wanted: &Wanted<'_>) -> Result<Chosen, Error> {
    let choice = Choice::of_model(problem, wanted.exchange);
    let choice = choice.of_messages(comm.has_messages()).of_family(wanted.layouts);
    let all = candidates(problem, &choice)?;
    let report = Report::of_model(&all, &choice);
    Ok((all, report))
}

/// The recipe that prints as this text, with the exchange and the wire that the draft names.
///
/// # Errors
/// Those of [`Recipe::exact`]; [`Error::Argument`] when it has another exchange or wire than it
/// may.
fn exact(problem: &Problem, wanted: &Wanted<'_>, text: &str) -> Result<Candidate, Error> {
    let recipe = Recipe::exact(problem.clone(), text)?;
    let reshapes = recipe.steps().iter().filter_map(|step| match step {
        Step::Reshape { wire, exchange } => Some((*wire, *exchange)),
        _ => None,
    });
    for (number, (wire, exchange)) in reshapes.enumerate() {
        if let Some(given) = wanted.exchange.filter(|given| *given != exchange) {
            return Err(Error::argument("exchange of the recipe", exchange, given));
        }
        let raw = wire == Wire::Raw && !wanted.fixed;
        if wire != problem.wire() && !raw {
            let what = format!("wire of reshape {number} of the recipe");
            return Err(Error::argument(what, wire, problem.wire()));
        }
    }
    Ok(Candidate::of(recipe))
}

/// The name of a problem in wisdom: everything that decides which recipe is fastest, but the
/// machine.
fn key(problem: &Problem, wanted: &Wanted<'_>) -> String {
    let Problem { kinds, precision, batch, input, output, hosts, .. } = problem;
    let kinds = kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",");
    let exchange = wanted.exchange.map_or_else(|| "any".into(), |given| given.to_string());
    let wire = match (wanted.fixed, problem.options.wire) {
        (false, Wire::Tolerance) => "any".into(),
        (_, wire) => wire.to_string(),
    };
    let tolerance = problem.options.tolerance.map_or_else(|| "none".into(), |it| it.to_string());
    let layouts = [input, output].map(|layout| {
        let bricks: Vec<_> = layout.bricks().iter().map(|brick| (brick.lo, brick.hi)).collect();
        (bricks, layout.order())
    });
    let least = if problem.options.memory == Memory::Least { " in least memory" } else { "" };
    let family = match wanted.layouts {
        Family::Any => String::new(),
        family => format!(" in {family}"),
    };
    let shared = if problem.options.shared_arrays { " in shared arrays" } else { "" };
    let device = wanted.device.map_or_else(String::new, |device| format!(" on {device}"));
    let scales = (problem.forward as u8, problem.inverse as u8);
    let lens = problem.is_any_resized().then_some([problem.transform, problem.modes]);
    let rest = match lens {
        None => format!("{:?}", (layouts, scales, hosts)),
        Some(lens) => format!("{:?}", (layouts, scales, hosts, lens)),
    };
    format!(
        "{kinds} {} {precision}{least}{shared}{family}{device} of {} numbers, batch {batch}, ranks {}, exchange {exchange}, wire {wire}, \
         tolerance {tolerance}, layouts {:016x}",
        problem.grid(),
        if problem.complex { "complex" } else { "real" },
        input.ranks(),
        checksum(rest.as_bytes())
    )
}
