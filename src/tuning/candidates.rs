//! The candidates: recipes in the order of predicted times.

use super::units::time;
use fft_core::{Error, Exchange, How, Layouts, Machine, Memory, Problem, Recipe, Wire};

/// A recipe and its predicted time.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The recipe, with its problem: exchange, chunks, wire.
    pub recipe: Recipe,
    /// Seconds of a forward transform, from [`Recipe::predict`].
    pub predicted: f64,
}

impl Candidate {
    /// The cheapest recipe with these layouts for this problem.
    ///
    /// # Errors
    /// The errors of [`Recipe::with_layouts`].
    pub fn new(problem: Problem, layouts: Layouts) -> Result<Self, Error> {
        Ok(Self::of(Recipe::with_layouts(problem, layouts)?))
    }

    /// A given recipe.
    pub fn of(recipe: Recipe) -> Self {
        let predicted = recipe.predict().seconds;
        Self { recipe, predicted }
    }

    /// The exchange of its reshapes.
    pub fn exchange(&self) -> Exchange {
        self.recipe.problem().options.exchange
    }

    /// Bytes of a chunk, if messages are in chunks.
    pub fn chunk(&self) -> Option<usize> {
        let problem = self.recipe.problem();
        let policy = problem.policy();
        (policy.chunking.is_some() && !policy.all_near).then_some(problem.options.chunk)
    }

    /// Whether another candidate does the same under another name.
    fn is(&self, other: &Self) -> bool {
        let same = self.recipe.steps() == other.recipe.steps();
        same && self.recipe.nodes() == other.recipe.nodes() && self.chunk() == other.chunk()
    }
}

/// The options to choose from, each in the order in which ties are broken.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Exchanges.
    pub exchanges: Vec<Exchange>,
    /// Layouts between input and output; layouts after the first are combined only with the first
    /// chunk and wire.
    pub layouts: Vec<Layouts>,
    /// Bytes of a chunk, for exchanges that have chunks.
    pub chunks: Vec<usize>,
    /// Wires.
    pub wires: Vec<Wire>,
}

/// Chunks that are timed.
const CHUNKS: [usize; 3] = [1 << 19, 1 << 17, 1 << 21];

impl Choice {
    /// The options of a choice by the model: exchanges, unless one is given.
    pub fn of_model(problem: &Problem, exchange: Option<Exchange>) -> Self {
        Self {
            exchanges: exchange
                .map_or_else(|| problem.suited_exchanges(false), |given| vec![given]),
            layouts: vec![Layouts::Any],
            chunks: vec![problem.options.chunk],
            wires: vec![problem.options.wire],
        }
    }

    /// The options of a choice by timings: also chunks, layouts, and raw messages
    /// unless the wire is `fixed`. `can_put` is whether ranks can put into each other's memory.
    pub fn of_clock(
        problem: &Problem,
        exchange: Option<Exchange>,
        can_put: bool,
        fixed: bool,
    ) -> Self {
        let mut wires = vec![problem.options.wire];
        // If padding or truncation refuses a tolerance, raw messages do not replace it.
        if !fixed && problem.options.wire == Wire::Tolerance && !problem.is_any_resized() {
            wires.push(Wire::Raw);
        }
        let mut chunks = vec![problem.options.chunk];
        // With least memory chunks are small anyway.
        if problem.options.memory == Memory::Ample {
            chunks.extend(CHUNKS.into_iter().filter(|chunk| *chunk != problem.options.chunk));
        }
        Self {
            exchanges: exchange
                .map_or_else(|| problem.suited_exchanges(can_put), |given| vec![given]),
            layouts: vec![Layouts::Any, Layouts::Slabs, Layouts::Pencils],
            chunks,
            wires,
        }
    }

    /// The same for a communicator that may have no [messages](fft_core::Comm::has_messages). A
    /// given exchange stays, so that the error names it.
    pub fn of_messages(mut self, has_messages: bool) -> Self {
        if !has_messages && self.exchanges.contains(&Exchange::Alltoallv) {
            self.exchanges = vec![Exchange::Alltoallv];
        }
        self
    }

    /// The same with these layouts alone, unless they are [`Layouts::Any`].
    pub fn with_layouts(self, layouts: Layouts) -> Self {
        if layouts == Layouts::Any { self } else { Self { layouts: vec![layouts], ..self } }
    }
}

/// The recipes of all combinations of a choice, without duplicates, in the order of predicted
/// times; ties keep the order of the choice. Pure: equal arguments give equal lists on every rank.
///
/// # Errors
/// The errors of [`Recipe::new`]; layouts without a way to the output are left out.
pub fn candidates(problem: &Problem, choice: &Choice) -> Result<Vec<Candidate>, Error> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut refused = None;
    for (wire_number, &wire) in choice.wires.iter().enumerate() {
        for &exchange in &choice.exchanges {
            for (layouts_number, &layouts) in choice.layouts.iter().enumerate() {
                for (chunk_number, &chunk) in choice.chunks.iter().enumerate() {
                    let mut one = problem.clone();
                    (one.options.wire, one.options.exchange, one.options.chunk) =
                        (wire, exchange, chunk);
                    let policy = one.policy();
                    let chunked = policy.chunking.is_some() && !policy.all_near;
                    let plain = wire_number == 0 && chunk_number == 0;
                    if chunk_number > 0 && !chunked || layouts_number > 0 && !plain {
                        continue;
                    }
                    match Candidate::new(one, layouts) {
                        Ok(new) if found.iter().any(|old| old.is(&new)) => {}
                        Ok(new) => found.push(new),
                        // Another exchange may have as many reshapes as there are wires chosen by
                        // hand.
                        Err(error) => refused = refused.or(Some(error)),
                    }
                }
            }
        }
    }
    if let (true, Some(error)) = (found.is_empty(), refused) {
        return Err(error);
    }
    // As in the search, differences below a picosecond are ties on every machine.
    found.sort_by_key(|candidate| (candidate.predicted * 1e12).round() as u64);
    Ok(found)
}

/// The error of a prediction in seconds, in addition to a fraction of the time.
const DOUBT: f64 = 2e-5;

/// The error of a prediction as a fraction of the time. It is smaller if the bandwidth between
/// hosts, or within a single host, was measured or fitted.
fn doubt(problem: &Problem) -> f64 {
    let Machine { near, far, .. } = &*problem.machine;
    let link = if problem.all_near() { near } else { far };
    if link.bandwidth.how == How::Assumed { 0.25 } else { 0.1 }
}

/// The model's choice among candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Favourite {
    /// Its place in the list.
    pub place: usize,
    /// Why it was chosen, in some words.
    pub reason: String,
}

/// The model's choice in a list of [`candidates`]: the cheapest, unless the first exchange of the
/// choice is as cheap within the error of predictions.
///
/// # Panics
/// If there are no candidates.
pub fn favourite(all: &[Candidate], choice: &Choice) -> Favourite {
    let cheapest = &all[0];
    let doubt = doubt(cheapest.recipe.problem());
    let most = cheapest.predicted * (1.0 + doubt) + DOUBT;
    let usual = choice.exchanges[0];
    let is_usual = |candidate: &Candidate| candidate.exchange() == usual;
    let as_cheap = |candidate: &Candidate| is_usual(candidate) && candidate.predicted <= most;
    let place = all.iter().position(as_cheap).unwrap_or(0);
    let reason = if all.len() == 1 {
        "the only candidate".into()
    } else if place == 0 {
        "predicted to be the fastest".into()
    } else {
        let [own, least] = [&all[place], cheapest].map(|candidate| time(candidate.predicted));
        let (other, percent, margin) = (cheapest.exchange(), 100.0 * doubt, time(DOUBT));
        format!(
            "{usual} is predicted to take {own} and {other} {least}, but another exchange must be \
             faster by {percent:.0}% and {margin}"
        )
    };
    Favourite { place, reason }
}

/// The first `most` candidates, with at most three of each exchange and wire, because the model may
/// be wrong about an exchange.
pub(crate) fn shortlist(mut all: Vec<Candidate>, most: usize) -> Vec<Candidate> {
    let mut taken: Vec<(Exchange, Wire)> = Vec::new();
    all.retain(|candidate| {
        let problem = candidate.recipe.problem();
        let group = (problem.options.exchange, problem.options.wire);
        let stays = taken.len() < most && taken.iter().filter(|other| **other == group).count() < 3;
        if stays {
            taken.push(group);
        }
        stays
    });
    all
}
