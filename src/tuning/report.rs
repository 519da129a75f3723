//! The report on a choice: candidates, predictions, timings.

use std::fmt;

use fft_core::{Error, Exchange, Wire};
use serde::{Deserialize, Serialize};

use super::units::time;
use super::{Candidate, Choice, Favourite, Outcome, favourite};

/// How a recipe was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Source {
    /// By the model's prediction.
    Model,
    /// By timings.
    Measured,
    /// By timings of an earlier run.
    Wisdom,
    /// Given by the caller.
    Recipe,
}

/// The candidates of a plan, with predicted and measured times; the same on all ranks. Prints as
/// the reason for the choice and a table that marks it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How it was chosen.
    pub source: Source,
    /// Why, in one line.
    pub reason: String,
    /// The candidates, cheapest first by the model.
    pub rows: Vec<ReportRow>,
    /// The index of the choice.
    pub chosen: usize,
}

/// One candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportRow {
    /// The recipe as text.
    pub recipe: String,
    /// Its exchange.
    #[serde(with = "text")]
    pub exchange: Exchange,
    /// Its wire.
    #[serde(with = "text")]
    pub wire: Wire,
    /// Bytes of a chunk, if messages are in chunks.
    pub chunk: Option<usize>,
    /// Predicted seconds of a forward transform.
    pub predicted: f64,
    /// The outcome of timing it.
    pub outcome: Outcome,
}

impl ReportRow {
    fn new(candidate: &Candidate, outcome: Outcome) -> Self {
        Self {
            recipe: candidate.recipe.to_string(),
            exchange: candidate.exchange(),
            wire: candidate.recipe.problem().wire(),
            chunk: candidate.chunk(),
            predicted: candidate.predicted,
            outcome,
        }
    }

    /// The median of its times in seconds, if it was timed.
    pub fn measured(&self) -> Option<f64> {
        self.outcome.seconds()
    }
}

impl Report {
    /// The report on the model's choice among candidates.
    ///
    /// # Panics
    /// If there are no candidates.
    pub fn of_model(candidates: &[Candidate], choice: &Choice) -> Self {
        let Favourite { place, reason } = favourite(candidates, choice);
        let reason = format!("chosen by the model: {reason}");
        let row = |candidate| ReportRow::new(candidate, Outcome::NotTried);
        let rows = candidates.iter().map(row).collect();
        Self { source: Source::Model, reason, rows, chosen: place }
    }

    /// The report on a recipe that the caller gave.
    pub fn given(candidate: &Candidate) -> Self {
        let rows = vec![ReportRow::new(candidate, Outcome::NotTried)];
        Self { source: Source::Recipe, reason: "given as a recipe".into(), rows, chosen: 0 }
    }

    /// The report on a recipe that took this long in an earlier run.
    pub fn remembered(candidate: &Candidate, seconds: f64) -> Self {
        let rows = vec![ReportRow::new(candidate, Outcome::Remembered(seconds))];
        let reason = format!("from wisdom, measured {}", time(seconds));
        Self { source: Source::Wisdom, reason, rows, chosen: 0 }
    }

    /// A report on a race: the fastest that stayed to the end is chosen.
    pub(super) fn measured(
        candidates: &[Candidate],
        outcomes: Vec<Outcome>,
    ) -> Result<Self, Error> {
        let finished = outcomes.iter().enumerate().filter_map(|(number, outcome)| match outcome {
            Outcome::Timed(_) => Some((outcome.seconds()?, number)),
            _ => None,
        });
        let fastest = finished.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let Some((_, chosen)) = fastest else {
            let why = match &outcomes[0] {
                Outcome::Failed(why) => why.clone(),
                other => format!("{other:?}"),
            };
            return Err(Error::argument("candidates that work", why, "at least one"));
        };
        let rows = candidates
            .iter()
            .zip(outcomes)
            .map(|(candidate, outcome)| ReportRow::new(candidate, outcome));
        let rows: Vec<_> = rows.collect();
        let timed = rows.iter().filter(|row| row.measured().is_some()).count();
        let reason = format!("chosen by the clock: the fastest of {timed} that were timed");
        Ok(Self { source: Source::Measured, reason, rows, chosen })
    }

    /// The row of the choice.
    pub fn chosen(&self) -> &ReportRow {
        &self.rows[self.chosen]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.reason)?;
        writeln!(
            f,
            "  {:>10} {:>10} {:>5}  {:<10} {:<10} {:>6}  recipe",
            "model", "measured", "runs", "exchange", "wire", "chunk"
        )?;
        for (number, row) in self.rows.iter().enumerate() {
            let mark = if number == self.chosen { '*' } else { ' ' };
            let measured = row.measured().map_or_else(|| "-".into(), time);
            let runs = match &row.outcome {
                Outcome::NotTried | Outcome::Remembered(_) => "-".into(),
                Outcome::Failed(_) => "fails".into(),
                Outcome::Dropped(times) | Outcome::Timed(times) => times.len().to_string(),
            };
            let chunk = row.chunk.map_or_else(|| "-".into(), |bytes| format!("{}K", bytes >> 10));
            let (exchange, wire) = (row.exchange.to_string(), row.wire.to_string());
            writeln!(
                f,
                "{mark} {:>10} {measured:>10} {runs:>5}  {exchange:<10} {wire:<10} {chunk:>6}  {}",
                time(row.predicted),
                row.recipe
            )?;
            if let Outcome::Failed(why) = &row.outcome {
                writeln!(f, "    {why}")?;
            }
        }
        Ok(())
    }
}

/// Values as their text.
mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(
        value: &impl Display,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, V: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<V, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
