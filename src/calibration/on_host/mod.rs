//! The machine measured by small benchmarks on all ranks.
//!
//! Values that only some ranks measure are broadcast at once, bit by bit, so that every rank ends
//! with the same machine.

mod alone;
mod lines;
mod links;
mod rates;

#[cfg(test)]
mod tests;

use std::time::Instant;

use fft_comm::Signature;
use fft_core::{
    Codecs, Comm, Error, Expose, How, LineCosts, Machine, Messages, Quantity, Rate, Reduce, Wire,
    agree, median,
};

use alone::Copying;
use links::Links;
use rates::{ALONE, REPEATS, TOGETHER, least};

/// Lengths of lines whose transforms are timed.
const LENGTHS: [usize; 7] = [16, 32, 64, 128, 256, 512, 1024];
/// The index of the length that is used to measure how much ranks slow each other down.
const TYPICAL: usize = 4;
const EPOCHS: usize = 20;

/// Measures the machine that these ranks run on, once, except how it transforms lines
/// ([`line_costs`]). Collective; the result is bitwise the same on every rank. Takes about a second
/// and at most 128 MiB on each rank.
///
/// One rank works while the others sleep, then all work together: `cores` is the number of ranks of
/// a host times the fraction of its speed that each rank keeps. Links that do not exist, `launch`
/// and `congestion` keep the values of [`Machine::default`], marked as assumed.
///
/// # Errors
/// On every rank: [`Error::OnRank`] when one lacks memory, or the transport fails.
pub(super) fn calibrate(comm: &dyn Comm) -> Result<Machine, Error> {
    let links = Links::new(comm)?;
    let (hosts, ranks_per_host) = (links.hosts.hosts(), links.hosts.ranks_per_host() as f64);
    let source = format!("{} ranks on {hosts} of these hosts, by {}", comm.size(), comm.name());
    let machine = Machine { name: Signature::of(comm)?.processor, ..Machine::default() };
    let mut calibration = Calibration { comm, links, ranks_per_host, source, machine };
    calibration.memory()?;
    let oversubscription = calibration.flops()?;
    calibration.codecs()?;
    calibration.links(oversubscription)?;
    calibration.machine.check()?;
    Ok(calibration.machine)
}

/// Measures how the processor transforms lines: the costs of radices, and the lengths that are
/// faster one line after the other. Collective; the result is bitwise the same on every rank. Takes
/// a few seconds.
///
/// # Errors
/// On every rank: [`Error::OnRank`] when one lacks memory, or the transport fails.
pub(super) fn line_costs(comm: &dyn Comm) -> Result<LineCosts, Error> {
    lines::lines(&mut Links::new(comm)?)
}

/// A machine, as far as it has been measured. Every method is collective.
struct Calibration<'a> {
    comm: &'a dyn Comm,
    links: Links<'a>,
    /// The number of ranks of the fullest host.
    ranks_per_host: f64,
    source: String,
    machine: Machine,
}

impl Calibration<'_> {
    fn measured(&self, value: f64) -> Quantity {
        Quantity::new(value, How::Measured, self.source.clone())
    }

    fn memory(&mut self) -> Result<(), Error> {
        let (comm, bytes) = (self.comm, (1 << 27) / self.links.hosts.ranks_per_host());
        let mut copying = agree(comm, Copying::new(bytes.clamp(1 << 22, 1 << 26), comm.rank()))?;
        let [memory, strided] =
            self.links.while_others_sleep(&[0], |_| Ok([copying.rate(ALONE), alone::strided()]))?;
        self.machine.memory = self.measured(memory);
        self.machine.strided = self.measured(strided);
        let mut copied = [0.0; REPEATS];
        for rate in &mut copied {
            *rate = at_once(comm, || Ok(copying.rate(TOGETHER)))?;
        }
        self.machine.host_memory = self.measured(median(&mut copied) * self.ranks_per_host);
        Ok(())
    }

    /// Returns how much slower ranks compute together.
    fn flops(&mut self) -> Result<f64, Error> {
        let rates = self.links.while_others_sleep(&[0], |_| {
            let mut rates = [0.0; LENGTHS.len()];
            for (rate, n) in rates.iter_mut().zip(LENGTHS) {
                *rate = alone::flops(n, ALONE)?;
            }
            Ok(rates)
        })?;
        let of_length = |(n, flops)| Rate { n, rate: self.measured(flops) };
        self.machine.flops = LENGTHS.into_iter().zip(rates).map(of_length).collect();
        let oversubscription = oversubscription(self.comm, &mut self.links)?;
        self.machine.cores = self.measured(self.ranks_per_host / oversubscription);
        Ok(oversubscription)
    }

    fn codecs(&mut self) -> Result<(), Error> {
        let wires = [Wire::F32, Wire::Bits(16), Wire::Tolerance, Wire::Lossless];
        let found = self.links.while_others_sleep(&[0], |_| {
            let mut found = [0.0; 8];
            for (number, wire) in wires.into_iter().enumerate() {
                [found[number], found[4 + number]] = alone::codec(wire)?;
            }
            Ok(found)
        })?;
        let codecs = |at: usize| Codecs {
            rounded: self.measured(found[at]),
            bits: self.measured(found[at + 1]),
            tolerance: self.measured(found[at + 2]),
            lossless: self.measured(found[at + 3]),
        };
        (self.machine.encode, self.machine.decode) = (codecs(0), codecs(4));
        Ok(())
    }

    fn links(&mut self, oversubscription: f64) -> Result<(), Error> {
        let messages = |this: &Self, found: [f64; 3]| {
            let [latency, overhead, bandwidth] = found.map(|value| this.measured(value));
            Messages { latency, overhead, bandwidth }
        };
        if let Some(epoch) = epoch(self.comm)? {
            self.machine.barrier = self.measured(epoch / oversubscription);
        }
        if let Some(found) = self.links.near(oversubscription)? {
            self.machine.near = messages(self, found);
        }
        if let Some((found, host)) = self.links.far(oversubscription)? {
            self.machine.far = messages(self, found);
            self.machine.host = self.measured(host);
        }
        Ok(())
    }
}

/// How much slower ranks compute together than one alone, at least 1. Both are timed alternately,
/// so that other load affects both alike. Collective.
fn oversubscription(comm: &dyn Comm, links: &mut Links<'_>) -> Result<f64, Error> {
    if comm.size() == 1 {
        return Ok(1.0);
    }
    let mut ratios = [0.0; REPEATS];
    for ratio in &mut ratios {
        let work = || alone::flops(LENGTHS[TYPICAL], TOGETHER);
        let [one] = links.while_others_sleep(&[0], |_| Ok([work()?]))?;
        *ratio = one / at_once(comm, work)?;
    }
    Ok(median(&mut ratios).max(1.0))
}

/// The mean rate of all ranks at the same time. Collective.
fn at_once(comm: &dyn Comm, work: impl FnOnce() -> Result<f64, Error>) -> Result<f64, Error> {
    comm.barrier()?;
    let mut sum = [agree(comm, work())?];
    comm.allreduce(Reduce::Sum, &mut sum)?;
    Ok(sum[0] / comm.size() as f64)
}

/// Seconds of an exposure epoch; `None` where each rank is alone on its host. Collective.
fn epoch(comm: &dyn Comm) -> Result<Option<f64>, Error> {
    let mut node_memory = agree(comm, comm.node_memory())?;
    let ready = node_memory.as_mut().map(|node_memory| node_memory.allocate(64)).transpose();
    let mut memory = agree(comm, ready)?;
    let mut seconds = [0.0; REPEATS];
    for seconds in &mut seconds {
        comm.barrier()?;
        let start = Instant::now();
        let mut result = Ok(());
        if let (Some(node_memory), Some(memory)) = (&mut node_memory, &mut memory) {
            for _ in 0..EPOCHS {
                result = result
                    .and(node_memory.exposure_epoch(Expose::Read(memory.bytes()), &mut |_| Ok(())));
            }
        }
        let mine = if node_memory.is_some() { start.elapsed().as_secs_f64() } else { 0.0 };
        agree(comm, result)?;
        let mut longest = [mine / EPOCHS as f64];
        comm.allreduce(Reduce::Max, &mut longest)?;
        [*seconds] = longest;
    }
    Ok(Some(least(&seconds)).filter(|seconds| *seconds > 0.0))
}
