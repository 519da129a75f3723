//! The choice of a recipe: by the model, by the clock, from wisdom, or by name.

use std::time::Duration;

use fft_comm::{Signature, checksum};
use fft_core::{Comm, Error, Problem, Recipe, Step, Wire, assert_same};

use super::{Candidate, Choice, Progress, Report, candidates, files, wisdom};
use crate::options::{Options, Tuning};

/// How a draft wants its recipe chosen.
pub(crate) struct Wanted<'a> {
    pub(crate) options: &'a Options,
    /// The device and how data gets there, for plans on devices.
    pub(crate) device: Option<&'a str>,
    pub(crate) watch: &'a dyn Fn(Progress),
}

/// The chosen recipe, and the candidates.
pub(crate) struct Decision {
    pub(crate) recipe: Recipe,
    pub(crate) report: Report,
    /// The name of the problem in wisdom; `None` for a recipe that was given.
    pub(crate) key: Option<String>,
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
    let (all, report) = match &wanted.options.tuning {
        Tuning::Model => by_model(comm, &problem, wanted)?,
        Tuning::Measure { budget } => by_clock(&problem, wanted, *budget)?,
        Tuning::Wisdom(path) => {
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
        Tuning::Recipe(text) => {
            let candidate = exact(&problem, wanted, text)?;
            let report = Report::given(&candidate);
            (vec![candidate], report)
        }
    };
    let recipe = all.into_iter().nth(report.chosen).expect("one of them was chosen").recipe;
    assert_same(comm, &[("recipe", recipe.to_string())])?;
    Ok(Decision { recipe, report, key: Some(key) })
}

/// Candidates, and the report on them.
pub(crate) type Chosen = (Vec<Candidate>, Report);

/// Times candidates for a problem, within a budget. Collective.
pub(crate) type ByClock<'a> = &'a dyn Fn(&Problem, &Wanted<'_>, Duration) -> Result<Chosen, Error>;

fn by_model(comm: &dyn Comm, problem: &Problem, wanted: &Wanted<'_>) -> Result<Chosen, Error> {
    let choice = Choice::of_model(problem, wanted.options.exchange)
        .of_messages(comm.has_messages())
        .with_layouts(wanted.options.layouts);
    let all = candidates(problem, &choice)?;
    let report = Report::of_model(&all, &choice);
    Ok((all, report))
}

/// The recipe that prints as this text, with the exchange and the wire that the draft names.
///
/// # Errors
/// The errors of [`Recipe::exact`]; [`Error::Argument`] for an exchange or a wire that the options
/// do not allow.
fn exact(problem: &Problem, wanted: &Wanted<'_>, text: &str) -> Result<Candidate, Error> {
    let recipe = Recipe::exact(problem.clone(), text)?;
    let reshapes = recipe.steps().iter().filter_map(|step| match step {
        Step::Reshape { wire, exchange } => Some((*wire, *exchange)),
        _ => None,
    });
    for (number, (wire, exchange)) in reshapes.enumerate() {
        if let Some(given) = wanted.options.exchange.filter(|given| *given != exchange) {
            return Err(Error::argument("exchange of the recipe", exchange, given));
        }
        let raw = wire == Wire::Raw && wanted.options.wire.is_none();
        if wire != problem.wire() && !raw {
            let what = format!("wire of reshape {number} of the recipe");
            return Err(Error::argument(what, wire, problem.wire()));
        }
    }
    Ok(Candidate::of(recipe))
}

/// The name of a problem in wisdom: everything that decides which recipe is fastest, except the
/// machine.
fn key(problem: &Problem, wanted: &Wanted<'_>) -> String {
    let Problem { kinds, precision, batch, input, output, hosts, .. } = problem;
    let kinds = kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",");
    let layouts = [input, output].map(|layout| {
        let bricks: Vec<_> = layout.bricks().iter().map(|brick| (brick.lo, brick.hi)).collect();
        (bricks, layout.order())
    });
    let scales = (problem.forward_scale as u8, problem.inverse_scale as u8);
    let lengths = [problem.zero_padded, problem.modes];
    let one_axis = problem.one_axis.as_ref().map(ToString::to_string);
    let rest = checksum(format!("{:?}", (layouts, scales, hosts, lengths, one_axis)).as_bytes());
    let numbers = if problem.complex { "complex" } else { "real" };
    let (grid, ranks, options) = (problem.grid(), input.ranks(), wanted.options.in_wisdom());
    let device = wanted.device.map_or_else(String::new, |device| format!(" on {device}"));
    format!(
        "{kinds} {grid} {precision} {numbers} batch={batch} ranks={ranks}{options}{device} \
         bricks={rest:016x}"
    )
}
