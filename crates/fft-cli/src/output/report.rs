//! What a benchmark found, for people and as JSON. Seconds, bytes and bits per real number.

use std::fmt::Write;

use serde_json::{Value, json};
use thriffty::planning::{Algorithm, Direction, Precision, Reduce, Timings, WireError};
use thriffty::{Comm, Error};

use crate::check::check::Errors;
use crate::check::wires::Encoding;
use crate::data::fields::Field;

/// The result of a benchmark.
pub(crate) struct Report {
    pub(crate) problem: String,
    pub(crate) howmany: usize,
    pub(crate) recipe: String,
    pub(crate) ranks: usize,
    pub(crate) transport: &'static str,
    pub(crate) precision: Precision,
    pub(crate) field: Field,
    pub(crate) encoding: Encoding,
    pub(crate) exchange: Algorithm,
    /// How data gets to other ranks' GPUs, where it is on any.
    pub(crate) gpu_transport: Option<String>,
    pub(crate) direction: Direction,
    /// Operations that one transform counts for.
    pub(crate) flops: f64,
    /// What the model expected, of forward transforms.
    pub(crate) predicted: Option<f64>,
    /// Of each repetition, on its slowest rank.
    pub(crate) seconds: Vec<f64>,
    pub(crate) split: Split,
    /// Bytes that the plans of all ranks hold beside input and output.
    pub(crate) memory: f64,
    pub(crate) errors: Errors,
}

/// Where the time of one transform goes, and what it sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    /// Seconds of each part on the rank where it takes longest, so that they may add up to more than the whole.
    parts: [f64; 6],
    /// Bytes sent by all ranks to other ranks, those passed on for others among them.
    bytes_sent: f64,
    /// Bytes sent by the rank that sends most.
    bytes_sent_busiest: f64,
    /// Of what is sent; `None` when nothing is.
    bits_per_real: Option<f64>,
}

const PARTS: [&str; 6] = ["pack", "exchange", "unpack", "own", "shared", "fft"];

impl Split {
    /// What the clocks say about one of `reps` transforms. Collective.
    pub(crate) fn mean(comm: &dyn Comm, timings: &Timings, reps: usize) -> Result<Self, Error> {
        let spent = [
            timings.pack,
            timings.exchange,
            timings.unpack,
            timings.own,
            timings.shared,
            timings.fft,
        ];
        let mut parts = spent.map(|time| time.as_secs_f64() / reps as f64);
        comm.allreduce(Reduce::Max, &mut parts)?;
        let mean = |count: u64| count as f64 / reps as f64;
        let mut busiest = [mean(timings.sent + timings.forwarded)];
        let mut sums = [busiest[0], mean(timings.sent), mean(timings.reals)];
        comm.allreduce(Reduce::Max, &mut busiest)?;
        comm.allreduce(Reduce::Sum, &mut sums)?;
        let ([bytes_sent_busiest], [bytes_sent, own, reals]) = (busiest, sums);
        let bits_per_real = (reals > 0.0).then(|| 8.0 * own / reals);
        Ok(Self { parts, bytes_sent, bytes_sent_busiest, bits_per_real })
    }

    /// Names and values, all on one line.
    pub(crate) fn to_line(self) -> String {
        let parts =
            PARTS.iter().zip(self.parts).map(|(name, seconds)| format!("{name} {seconds:e}"));
        let Self { bytes_sent, bytes_sent_busiest, .. } = self;
        let bytes = format!("bytes_sent {bytes_sent} bytes_sent_busiest {bytes_sent_busiest}");
        parts.chain([bytes]).collect::<Vec<_>>().join(" ")
    }
}

impl Report {
    /// `[median, min, max]`
    fn times(&self) -> [f64; 3] {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        let (n, last) = (sorted.len(), sorted.len() - 1);
        [(sorted[last / 2] + sorted[n / 2]) / 2.0, sorted[0], sorted[last]]
    }

    fn gflops(&self) -> f64 {
        self.flops / self.times()[0] / 1e9
    }

    /// How many times as many bits the numbers sent have in memory.
    fn ratio(&self) -> Option<f64> {
        let full = 8.0 * self.precision.bytes() as f64;
        self.split.bits_per_real.map(|bits| full / bits)
    }

    fn direction(&self) -> &'static str {
        match self.direction {
            Direction::Forward => "forward",
            Direction::Inverse => "inverse",
        }
    }

    /// One object.
    pub(crate) fn to_json(&self) -> Value {
        let [median, min, max] = self.times();
        let split: serde_json::Map<_, _> = PARTS
            .iter()
            .zip(self.split.parts)
            .map(|(name, t)| ((*name).into(), t.into()))
            .collect();
        let lost = self.errors.lost;
        json!({
            "problem": self.problem,
            "field": self.field.name(),
            "howmany": self.howmany,
            "direction": self.direction(),
            "ranks": self.ranks,
            "transport": self.transport,
            "recipe": self.recipe,
            "precision": self.precision.to_string(),
            "exchange": self.exchange.to_string(),
            "gpu_transport": self.gpu_transport,
            "reps": self.seconds.len(),
            "seconds": { "median": median, "min": min, "max": max },
            "predicted": self.predicted,
            "split": split,
            "gflops": self.gflops(),
            "bytes_sent": self.split.bytes_sent as u64,
            "bytes_sent_busiest": self.split.bytes_sent_busiest as u64,
            "bits_per_real": self.split.bits_per_real,
            "ratio": self.ratio(),
            "wire": self.encoding.wire.map(|wire| wire.to_string()),
            "tolerance": self.encoding.tolerance.map(|it| it.value()),
            "strict": self.encoding.tolerance.is_some_and(|it| it.is_strict()),
            "memory": self.memory as u64,
            "error": {
                "roundtrip": self.errors.roundtrip,
                "roundtrip_max": self.errors.roundtrip_max,
                "forward": self.errors.forward,
                "wire": lost.map(|lost| lost.error),
                "wire_estimate": lost.map(|lost| lost.forward.estimate),
                "wire_bound": lost.map(|lost| lost.forward.bound),
            },
            "version": env!("CARGO_PKG_VERSION"),
        })
    }

    /// The recipe, and a table of two columns.
    pub(crate) fn to_table(&self) -> String {
        let [median, min, max] = self.times();
        let mut rows = vec![
            ("ranks", format!("{} ({})", self.ranks, self.transport)),
            ("algorithm", self.exchange.to_string()),
            ("direction", self.direction().into()),
        ];
        rows.extend(self.gpu_transport.clone().map(|way| ("transport", way)));
        rows.extend([
            ("time", format!("{}  (min {}, max {})", time(median), time(min), time(max))),
            ("rate", format!("{:.3} GFlop/s", self.gflops())),
        ]);
        rows.extend(self.predicted.map(|t| ("model", format!("{}  expected", time(t)))));
        let parts = PARTS.iter().zip(self.split.parts).map(|(name, t)| (*name, time(t)));
        rows.extend(parts.map(|(name, t)| (name, format!("{t}  on the slowest rank"))));
        let ratio = self.ratio().filter(|_| self.encoding.is_asked_for());
        let ratio = ratio.map_or(String::new(), |ratio| format!(", ratio {ratio:.2}"));
        let bits = self.split.bits_per_real.map(|bits| format!(", {bits:.2} bits per real{ratio}"));
        let sent = bytes(self.split.bytes_sent);
        rows.push(("sent", format!("{sent}{}", bits.unwrap_or_default())));
        rows.push(("memory", format!("{} in plans", bytes(self.memory))));
        let Errors { roundtrip, roundtrip_max, forward, lost, .. } = self.errors;
        rows.extend(lost.map(|lost| {
            let (error, of) = (lost.error, self.encoding);
            let WireError { estimate, bound } = lost.forward;
            (
                "wire",
                format!("{error:.2e} in l2, estimate {estimate:.2e}, bound {bound:.2e} ({of})"),
            )
        }));
        rows.push(("round trip", format!("{roundtrip:.2e} in l2, {roundtrip_max:.2e} at most")));
        rows.extend(forward.map(|error| ("forward", format!("{error:.2e} in l2, of 32 points"))));
        let mut table = format!("{}\n", self.recipe);
        for (name, value) in rows {
            // Writing to a string cannot fail.
            let _ = writeln!(table, "  {name:<11}{value}");
        }
        table
    }
}

/// A time with a unit that suits it.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}

/// Bytes with a unit that suits them.
pub(crate) fn bytes(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (0..units.len()).rev().find(|&power| bytes >= 1024f64.powi(power as i32));
    match power.unwrap_or(0) {
        0 => format!("{bytes} B"),
        power => format!("{:.1} {}", bytes / 1024f64.powi(power as i32), units[power]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_suit_the_size() {
        assert_eq!(
            [0.0, 1023.0, 1024.0, 3.5e9].map(bytes),
            ["0 B", "1023 B", "1.0 KiB", "3.3 GiB"]
        );
        assert_eq!([5e-5, 0.25, 2.0].map(time), ["50.00 µs", "250.00 ms", "2.000 s"]);
    }
}
