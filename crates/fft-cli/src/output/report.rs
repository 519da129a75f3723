//! The result of a benchmark, as a table, as JSON and as CSV. Times are in seconds, sizes in bytes,
//! and encodings in bits per real number.

use std::fmt::Write;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use thriffty::planning::WireError;

use super::split::Split;
use super::units::{bytes, time};
use crate::args::encoding::Encoding;
use crate::check::check::{Errors, RoundTrip};

#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) problem: String,
    pub(crate) field: &'static str,
    pub(crate) batch: usize,
    pub(crate) direction: &'static str,
    pub(crate) ranks: usize,
    pub(crate) communicator: &'static str,
    pub(crate) recipe: String,
    /// Why this recipe.
    pub(crate) reason: String,
    pub(crate) precision: String,
    pub(crate) exchange: String,
    /// How data gets to other ranks' GPUs, if it is on any.
    pub(crate) transport: Option<String>,
    pub(crate) reps: usize,
    pub(crate) seconds: Times,
    /// By the model, of forward transforms.
    pub(crate) predicted: Option<f64>,
    #[serde(flatten)]
    pub(crate) split: Split,
    pub(crate) gflops: f64,
    /// Bits of a real number in memory divided by the bits sent.
    pub(crate) ratio: Option<f64>,
    #[serde(flatten, serialize_with = "as_words")]
    pub(crate) encoding: Encoding,
    /// Why nothing is encoded, if so.
    #[serde(skip)]
    pub(crate) why_exact: Option<&'static str>,
    /// Bytes of the plans of all ranks, besides input and output.
    pub(crate) workspace_bytes: u64,
    #[serde(rename = "error", serialize_with = "as_numbers")]
    pub(crate) errors: Errors,
    pub(crate) version: &'static str,
}

/// Seconds of one repetition, on its slowest rank.
#[derive(Serialize)]
pub(crate) struct Times {
    pub(crate) median: f64,
    min: f64,
    max: f64,
}

impl Times {
    /// The statistics of at least one repetition.
    pub(crate) fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let (n, last) = (seconds.len(), seconds.len() - 1);
        let median = (seconds[last / 2] + seconds[n / 2]) / 2.0;
        Self { median, min: seconds[0], max: seconds[last] }
    }
}

fn as_words<S: Serializer>(encoding: &Encoding, to: S) -> Result<S::Ok, S::Error> {
    let Encoding { wire, tolerance } = encoding;
    json!({
        "wire": wire.map(|wire| wire.to_string()),
        "tolerance": tolerance.map(|tolerance| tolerance.to_string()),
    })
    .serialize(to)
}

fn as_numbers<S: Serializer>(errors: &Errors, to: S) -> Result<S::Ok, S::Error> {
    let Errors { round_trip, lost, .. } = errors;
    json!({
        "roundtrip": round_trip.map(|it| it.l2),
        "roundtrip_max": round_trip.map(|it| it.largest),
        "forward": errors.forward,
        "inverse": errors.inverse,
        "wire": lost.map(|lost| lost.error),
        "wire_estimate": lost.map(|lost| lost.forward.estimate),
        "wire_bound": lost.map(|lost| lost.forward.bound),
    })
    .serialize(to)
}

/// The numbers and texts of a value, each with its path.
fn flatten(path: String, value: &Value, columns: &mut Vec<(String, String)>) {
    let cell = match value {
        Value::Object(members) => {
            let dot = if path.is_empty() { "" } else { "." };
            return members
                .iter()
                .for_each(|(name, member)| flatten(format!("{path}{dot}{name}"), member, columns));
        }
        Value::Null => String::new(),
        Value::String(text) if text.contains([',', '"', '\n']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    columns.push((path, cell));
}

impl Report {
    pub(crate) fn to_json(&self) -> String {
        let value = serde_json::to_value(self).expect("all keys are strings");
        format!("{value}\n")
    }

    /// A line of names and a line of values. The members of objects are columns of their own.
    pub(crate) fn to_csv(&self) -> String {
        let value = serde_json::to_value(self).expect("all keys are strings");
        let mut columns = Vec::new();
        flatten(String::new(), &value, &mut columns);
        let (names, cells): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        format!("{}\n{}\n", names.join(","), cells.join(","))
    }

    /// The recipe, and a table of two columns.
    pub(crate) fn to_table(&self) -> String {
        let Times { median, min, max } = self.seconds;
        let mut rows = vec![
            ("ranks", format!("{} ({})", self.ranks, self.communicator)),
            ("exchange", self.exchange.clone()),
            ("direction", self.direction.into()),
            ("recipe", self.reason.clone()),
        ];
        rows.extend(self.transport.clone().map(|transport| ("transport", transport)));
        rows.extend([
            ("time", format!("{}  (min {}, max {})", time(median), time(min), time(max))),
            ("rate", format!("{:.3} GFlop/s", self.gflops)),
        ]);
        rows.extend(self.predicted.map(|t| ("model", format!("{}  expected", time(t)))));
        let parts = self.split.parts.iter();
        rows.extend(parts.map(|(name, t)| (*name, format!("{}  on the slowest rank", time(*t)))));
        let ratio = self.ratio.filter(|_| self.encoding.is_asked_for());
        let ratio = ratio.map_or(String::new(), |ratio| format!(", ratio {ratio:.2}"));
        let bits = self.split.bits_per_real.map(|bits| format!(", {bits:.2} bits per real{ratio}"));
        let sent = bytes(self.split.bytes_sent as f64);
        rows.push(("sent", format!("{sent}{}", bits.unwrap_or_default())));
        rows.push(("workspace", bytes(self.workspace_bytes as f64)));
        let Errors { round_trip, inverse, forward, lost, .. } = self.errors;
        rows.extend(lost.map(|lost| {
            let (error, of) = (lost.error, self.encoding);
            let WireError { estimate, bound } = lost.forward;
            let text = match self.why_exact {
                None => {
                    format!("{error:.2e} in l2, estimate {estimate:.2e}, bound {bound:.2e} ({of})")
                }
                Some(why) => format!("exact, as {why}"),
            };
            ("wire", text)
        }));
        rows.extend(round_trip.map(|RoundTrip { l2, largest }| {
            ("round trip", format!("{l2:.2e} in l2, {largest:.2e} at most"))
        }));
        let sampled = [("forward", forward), ("inverse", inverse)].into_iter();
        rows.extend(sampled.filter_map(|(name, error)| {
            Some((name, format!("{:.2e} in l2, of 32 points", error?)))
        }));
        let mut table = format!("{}\n", self.recipe);
        for (name, value) in rows {
            // Writing to a string cannot fail.
            let _ = writeln!(table, "  {name:<11}{value}");
        }
        table
    }
}
