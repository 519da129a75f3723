//! Parameters of a machine for the cost model.

use fft_lines::{Costs, LineCosts, RADICES};
use serde::{Deserialize, Serialize};

use crate::codec::CodecRate;

/// Parameters of a machine. Rates are per second, sizes in bytes. The processor of a rank is a core
/// or a GPU.
///
/// Every number is measured, fitted or assumed. [`Machine::default`] is assumed throughout.
///
/// ```
/// use fft_core::Machine;
/// let machine = Machine::default();
/// assert!(machine.far.bandwidth.value < machine.memory.value);
/// assert!(machine.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its name in messages.
    pub name: String,
    /// The GPU that was measured; `None` for CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Ranks of a host that compute at full speed together, at most the number of cores.
    pub cores: Quantity,
    /// Memory bandwidth of one rank, reads and writes counted.
    pub memory: Quantity,
    /// Memory bandwidth of all ranks of a host together.
    pub host_memory: Quantity,
    /// The factor by which strided lines take longer than contiguous ones.
    pub strided: Quantity,
    /// Seconds to launch an operation, such as a kernel.
    pub launch: Quantity,
    /// Seconds of a barrier among ranks of a host.
    pub meeting: Quantity,
    /// Operations per second by ascending length `n` of complex double-precision transforms, which
    /// are `5 n log₂ n` operations each. Memory accesses are counted apart.
    pub flops: Vec<Rate>,
    /// Messages between ranks of a host. Between GPUs packing and unpacking are included.
    pub near: Messages,
    /// Messages between hosts.
    pub far: Messages,
    /// Bandwidth of a host's network interface in each direction.
    pub host: Quantity,
    /// The share of that bandwidth lost at each doubling of the number of hosts.
    pub congestion: Quantity,
    /// Bytes of unencoded data that one rank encodes per second.
    pub encode: Codecs,
    /// Bytes of decoded data per second.
    pub decode: Codecs,
    /// How the CPU transforms lines, which no prediction reads.
    #[serde(default)]
    pub lines: LineCosts,
}

/// A number and its origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// In the unit of its field.
    pub value: f64,
    /// Its origin.
    pub how: How,
    /// A document, a benchmark or a reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

/// The origin of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Measured by a benchmark of its own.
    Measured,
    /// Fitted to measurements of something else.
    Fitted,
    /// Taken from a data sheet, or typical.
    Assumed,
}

/// The rate of transforms of one length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// The length of a transform.
    pub n: usize,
    /// Operations per second.
    pub rate: Quantity,
}

/// Parameters of messages between two ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Messages {
    /// Seconds until an empty message arrives.
    pub latency: Quantity,
    /// Seconds of processor time per message, for the sender and for the receiver.
    pub overhead: Quantity,
    /// Bandwidth of one rank in each direction.
    pub bandwidth: Quantity,
}

/// Rates of encoding or decoding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Codecs {
    /// Floating-point formats of lower precision.
    pub rounded: Quantity,
    /// Block integers of fixed width.
    pub bits: Quantity,
    /// Block integers whose width follows from the tolerance.
    pub tolerance: Quantity,
    /// Byte shuffling and compression.
    pub lossless: Quantity,
}

impl Codecs {
    pub(crate) fn of(&self, rate: CodecRate) -> &Quantity {
        match rate {
            CodecRate::Rounded => &self.rounded,
            CodecRate::Bits => &self.bits,
            CodecRate::Tolerance => &self.tolerance,
            CodecRate::Lossless => &self.lossless,
        }
    }
}

impl Quantity {
    /// A number with its origin.
    pub fn new(value: f64, how: How, source: impl Into<String>) -> Self {
        Self { value, how, source: source.into() }
    }

    /// A measured number.
    pub fn measured(value: f64) -> Self {
        Self::new(value, How::Measured, "")
    }
}

impl Machine {
    /// Checks that all numbers are finite, and positive where 0 makes no sense.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) with the name and value of a wrong number.
    pub fn check(&self) -> Result<(), crate::Error> {
        for (name, quantity) in self.quantities() {
            let nil = ["launch", "meeting", "congestion", "latency", "overhead"];
            let least =
                if nil.iter().any(|free| name.ends_with(free)) { 0.0 } else { f64::MIN_POSITIVE };
            if !(quantity.value.is_finite() && quantity.value >= least) {
                let what = format!("{name} of machine {}", self.name);
                let expected = if least == 0.0 { "at least 0" } else { "above 0" };
                return Err(crate::Error::argument(what, quantity.value, expected));
            }
        }
        let ascending = self.flops.is_sorted_by(|a, b| a.n < b.n);
        if self.flops.is_empty() || !ascending || self.flops[0].n < 2 {
            let what = format!("lengths in flops of machine {}", self.name);
            let found = self.flops.iter().map(|rate| rate.n.to_string()).collect::<Vec<_>>();
            return Err(crate::Error::argument(
                what,
                found.join(", "),
                "at least one, from 2, ascending",
            ));
        }
        let radices = |costs: &Costs| costs.radices.clone();
        let radices = [&self.lines.f32, &self.lines.f64].map(radices).concat();
        match radices
            .into_iter()
            .find(|(radix, cost)| !(RADICES.contains(radix) && cost.is_finite() && *cost > 0.0))
        {
            None => Ok(()),
            Some((radix, cost)) => Err(crate::Error::argument(
                format!("radix and cost in lines of machine {}", self.name),
                format!("{radix}, {cost}"),
                format!("one of {RADICES:?}, above 0"),
            )),
        }
    }

    /// All numbers with their names.
    pub fn quantities(&self) -> Vec<(String, &Quantity)> {
        let mut all: Vec<(String, &Quantity)> = vec![
            ("cores".into(), &self.cores),
            ("memory".into(), &self.memory),
            ("host_memory".into(), &self.host_memory),
            ("strided".into(), &self.strided),
            ("launch".into(), &self.launch),
            ("meeting".into(), &self.meeting),
            ("host".into(), &self.host),
            ("congestion".into(), &self.congestion),
        ];
        all.extend(self.flops.iter().map(|rate| (format!("flops.{}", rate.n), &rate.rate)));
        for (name, link) in [("near", &self.near), ("far", &self.far)] {
            all.push((format!("{name}.latency"), &link.latency));
            all.push((format!("{name}.overhead"), &link.overhead));
            all.push((format!("{name}.bandwidth"), &link.bandwidth));
        }
        for (name, codecs) in [("encode", &self.encode), ("decode", &self.decode)] {
            all.push((format!("{name}.rounded"), &codecs.rounded));
            all.push((format!("{name}.bits"), &codecs.bits));
            all.push((format!("{name}.tolerance"), &codecs.tolerance));
            all.push((format!("{name}.lossless"), &codecs.lossless));
        }
        all
    }

    /// All numbers, mutable.
    pub fn quantities_mut(&mut self) -> Vec<&mut Quantity> {
        let Self { cores, memory, host_memory, strided, launch, meeting, host, congestion, .. } =
            self;
        let mut all = vec![cores, memory, host_memory, strided, launch, meeting, host, congestion];
        all.extend(self.flops.iter_mut().map(|rate| &mut rate.rate));
        for link in [&mut self.near, &mut self.far] {
            all.extend([&mut link.latency, &mut link.overhead, &mut link.bandwidth]);
        }
        for codecs in [&mut self.encode, &mut self.decode] {
            let Codecs { rounded, bits, tolerance, lossless } = codecs;
            all.extend([rounded, bits, tolerance, lossless]);
        }
        all
    }

    /// Operations per second of transforms of length `n`, interpolated by its logarithm.
    pub(crate) fn flops_of(&self, n: usize) -> f64 {
        let (first, last) = (&self.flops[0], &self.flops[self.flops.len() - 1]);
        let at = self.flops.iter().position(|rate| rate.n >= n);
        let rate = match at {
            None => last.rate.value,
            Some(0) => first.rate.value,
            Some(at) => {
                let (a, b) = (&self.flops[at - 1], &self.flops[at]);
                let share = (n as f64 / a.n as f64).ln() / (b.n as f64 / a.n as f64).ln();
                a.rate.value + share * (b.rate.value - a.rate.value)
            }
        };
        rate / length_slowdown(n)
    }

    /// Bandwidth of a host while this many hosts communicate.
    pub(crate) fn host_rate(&self, hosts: usize) -> f64 {
        let doublings = (hosts.max(1) as f64).log2();
        self.host.value / (1.0 + self.congestion.value * doublings)
    }
}

/// The slowdown of lengths with other prime factors than 2 and 3: assumed.
fn length_slowdown(n: usize) -> f64 {
    let mut rest = n.max(1);
    let mut factor: f64 = 1.0;
    for (prime, slower) in [(2, 1.0), (3, 1.0), (5, 1.3), (7, 1.5), (11, 2.0)] {
        while rest.is_multiple_of(prime) {
            rest /= prime;
            factor = factor.max(slower);
        }
    }
    if rest > 1 { factor.max(3.0) } else { factor }
}

/// An assumed node of 16 cores.
///
/// Memory and arithmetic are such that transforms of 64³ and 256³ points take the time that they
/// took on a Xeon, a Zen 3 and a Zen 4 of the 2020s, within a factor of 1.5
/// (`tests/core_tests/machine.rs`). The arithmetic of longer lines is slower because their data
/// does not stay in caches.
impl Default for Machine {
    fn default() -> Self {
        let assumed =
            |value| Quantity::new(value, How::Assumed, "of the order of a node of the 2020s");
        let rate = |n, flops| Rate { n, rate: assumed(flops) };
        let messages = |latency, overhead, bandwidth| Messages {
            latency: assumed(latency),
            overhead: assumed(overhead),
            bandwidth: assumed(bandwidth),
        };
        let codecs = |rounded, bits, tolerance, lossless| Codecs {
            rounded: assumed(rounded),
            bits: assumed(bits),
            tolerance: assumed(tolerance),
            lossless: assumed(lossless),
        };
        Self {
            name: "default".into(),
            gpu: None,
            cores: assumed(16.0),
            memory: assumed(2.5e10),
            host_memory: assumed(1e11),
            strided: assumed(1.1),
            launch: assumed(0.0),
            meeting: assumed(5e-6),
            flops: vec![rate(64, 2.8e10), rate(256, 1.55e10), rate(1 << 20, 5e9)],
            near: messages(1e-6, 5e-7, 4e9),
            far: messages(2e-6, 1e-6, 2.5e9),
            host: assumed(1.25e10),
            congestion: assumed(0.0),
            encode: codecs(7e9, 6e9, 3e9, 4e8),
            decode: codecs(7e9, 6e9, 3e9, 8e8),
            lines: LineCosts::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_lie_between_those_that_are_known() {
        let rate = |n, value| Rate { n, rate: Quantity::measured(value) };
        let machine = Machine { flops: vec![rate(16, 1.0), rate(64, 3.0)], ..Machine::default() };
        let found = [2, 16, 32, 64, 4096].map(|n| machine.flops_of(n));
        assert_eq!(found, [1.0, 1.0, 2.0, 3.0, 3.0]);
        assert!(machine.flops_of(4093) < machine.flops_of(4000));
    }

    #[test]
    fn a_number_that_cannot_be_is_refused_by_name_and_value() {
        let mut machine = Machine::default();
        machine.far.bandwidth.value = 0.0;
        let text = machine.check().unwrap_err().to_string();
        assert_eq!(text, "far.bandwidth of machine default: found 0, expected above 0");
        machine.far.bandwidth.value = 1.0;
        machine.far.latency.value = f64::NAN;
        let text = machine.check().unwrap_err().to_string();
        assert_eq!(text, "far.latency of machine default: found NaN, expected at least 0");
        let names = machine.quantities().len();
        assert_eq!(machine.quantities_mut().len(), names);
        machine.far.latency.value = 0.0;
        for wrong in [(14, 1.0), (2, 0.0), (3, f64::INFINITY)] {
            let lines = LineCosts::default();
            machine.lines.f32.radices.push(wrong);
            let text = machine.check().unwrap_err().to_string();
            assert!(text.contains(&format!("found {}, {}, expected one of", wrong.0, wrong.1)));
            machine.lines = lines;
        }
        machine.flops.clear();
        assert!(machine.check().is_err());
    }
}
