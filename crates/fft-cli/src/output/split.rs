//! The parts of a transform's time, and the bytes that it sends.

use serde::{Serialize, Serializer};
use thriffty::planning::{Reduce, Timings};
use thriffty::{Comm, Error};

/// Seconds and bytes of one transform.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Split {
    /// Names and seconds, each on the rank where the part takes longest.
    #[serde(rename = "split", serialize_with = "map")]
    pub(crate) parts: [(&'static str, f64); 6],
    /// Bytes sent by all ranks, including forwarded messages.
    pub(crate) bytes_sent: u64,
    /// Bytes sent by the rank that sends most.
    pub(crate) bytes_sent_busiest: u64,
    /// `None` if nothing is sent.
    pub(crate) bits_per_real: Option<f64>,
}

fn map<S: Serializer>(parts: &[(&'static str, f64); 6], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(parts.iter().copied())
}

impl Split {
    /// The mean of `reps` transforms. Collective.
    pub(crate) fn mean(comm: &dyn Comm, timings: &Timings, reps: usize) -> Result<Self, Error> {
        let Timings { pack, exchange, unpack, own, shared, fft, .. } = *timings;
        let spent = [pack, exchange, unpack, own, shared, fft];
        let mut seconds = spent.map(|time| time.as_secs_f64() / reps as f64);
        comm.allreduce(Reduce::Max, &mut seconds)?;
        let names = ["pack", "exchange", "unpack", "own", "shared", "fft"];
        let parts = std::array::from_fn(|part| (names[part], seconds[part]));
        let mean = |count: u64| count as f64 / reps as f64;
        let mut busiest = [mean(timings.sent + timings.forwarded)];
        let mut sums = [busiest[0], mean(timings.sent), mean(timings.reals)];
        comm.allreduce(Reduce::Max, &mut busiest)?;
        comm.allreduce(Reduce::Sum, &mut sums)?;
        let [bytes_sent, own, reals] = sums;
        let bits_per_real = (reals > 0.0).then(|| 8.0 * own / reals);
        let (bytes_sent, bytes_sent_busiest) = (bytes_sent as u64, busiest[0] as u64);
        Ok(Self { parts, bytes_sent, bytes_sent_busiest, bits_per_real })
    }

    /// Names and values, all on one line.
    pub(crate) fn to_line(&self) -> String {
        let Self { parts, bytes_sent, bytes_sent_busiest, .. } = self;
        let parts: String =
            parts.iter().map(|(name, seconds)| format!("{name} {seconds:e} ")).collect();
        format!("{parts}bytes_sent {bytes_sent} bytes_sent_busiest {bytes_sent_busiest}")
    }
}
