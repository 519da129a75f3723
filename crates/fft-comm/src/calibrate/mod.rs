//! A machine measured: a few seconds of small benchmarks on all ranks, made into a [`Machine`].
//!
//! `alone.rs` has what one rank does by itself, `links.rs` what ranks do with each other. What only some ranks measure is
//! told to all as soon as it is known, bit by bit, so that every rank ends with the same machine.

mod alone;
mod links;

use std::time::{Duration, Instant};

use fft_core::{
    Codecs, Comm, Error, Expose, How, Machine, Messages, Quantity, Rate, Reduce, Wire, agree,
};

use alone::{Copying, Window};
use links::Links;

/// Lengths of lines whose transforms are timed.
const LENGTHS: [usize; 7] = [16, 32, 64, 128, 256, 512, 1024];
/// Which of them shows how many ranks compute at full speed.
const TYPICAL: usize = 4;
/// What it takes to know the rate of one rank.
const ALONE: Window = Window { turns: 9, long: Duration::from_millis(3) };
/// And of all together: several turns on the processor for each, where there are more ranks than cores.
const TOGETHER: Window = Window { turns: 1, long: Duration::from_millis(60) };
/// Turns, of which the median counts.
const REPEATS: usize = 5;
/// Visits in a row.
const VISITS: usize = 20;

/// Measures the machine that these ranks run on, with as many on each host as there are now. Collective; the result is
/// the same on every rank, bit by bit. Takes 1 to 5 seconds, longer where ranks are many more than cores, and at most 128
/// MiB on each rank.
///
/// One rank works while the others sleep, then all together. `cores` is what that comes to: the ranks of a host times
/// what is left of each one's speed. Messages between ranks of a host are measured where some host has several, and those
/// between hosts where there are several; what does not exist, and `launch` and `congestion`, keep the values of
/// [`Machine::default`], marked as assumed.
///
/// ```
/// use fft_core::How;
/// let found = fft_comm::threads(2, |comm| fft_comm::calibrate(&comm).unwrap());
/// assert_eq!(found[0], found[1]);
/// assert_eq!((found[0].memory.how, found[0].far.latency.how), (How::Measured, How::Assumed));
/// ```
///
/// # Errors
/// On every rank: [`Error::OnRank`] when one lacks memory, or the transport fails.
pub fn calibrate(comm: &dyn Comm) -> Result<Machine, Error> {
    let mut links = Links::new(comm)?;
    let (hosts, ranks_per_host) = (links.hosts(), links.ranks_per_host() as f64);
    let source = format!("{} ranks on {hosts} of these hosts, by {}", comm.size(), comm.name());
    let measured = |value| Quantity::new(value, How::Measured, source.clone());
    let mut machine = Machine { name: processor(comm)?, ..Machine::default() };

    let bytes = (1 << 27) / links.ranks_per_host();
    let mut copying = agree(comm, Copying::new(bytes.clamp(1 << 22, 1 << 26), comm.rank()))?;
    let [memory, strided] =
        links.while_others_sleep(&[0], |_| Ok([copying.rate(ALONE), alone::strided()]))?;
    machine.memory = measured(memory);
    machine.strided = measured(strided);
    let mut copied = [0.0; REPEATS];
    for rate in &mut copied {
        *rate = at_once(comm, || copying.rate(TOGETHER))?;
    }
    machine.host_memory = measured(median(&mut copied) * ranks_per_host);
    drop(copying);

    let rates = links.while_others_sleep(&[0], |_| Ok(LENGTHS.map(|n| alone::flops(n, ALONE))))?;
    let of_length = |(n, flops)| Rate { n, rate: measured(flops) };
    machine.flops = LENGTHS.into_iter().zip(rates).map(of_length).collect();
    let oversubscription = oversubscription(comm, &mut links)?;
    machine.cores = measured(ranks_per_host / oversubscription);

    let wires = [Wire::F32, Wire::Bits(16), Wire::Tolerance, Wire::Lossless];
    let found = links.while_others_sleep(&[0], |_| {
        let mut found = [0.0; 8];
        for (number, wire) in wires.into_iter().enumerate() {
            [found[number], found[4 + number]] = alone::codec(wire)?;
        }
        Ok(found)
    })?;
    let codecs = |at: usize| Codecs {
        rounded: measured(found[at]),
        bits: measured(found[at + 1]),
        tolerance: measured(found[at + 2]),
        lossless: measured(found[at + 3]),
    };
    (machine.encode, machine.decode) = (codecs(0), codecs(4));

    if let Some(meeting) = meeting(comm)? {
        machine.meeting = measured(meeting / oversubscription);
    }
    if let Some(found) = links.near(oversubscription)? {
        machine.near = messages(found, measured);
    }
    if let Some((found, host)) = links.far(oversubscription)? {
        machine.far = messages(found, measured);
        machine.host = measured(host);
    }
    machine.check()?;
    Ok(machine)
}

/// Latency, overhead and bandwidth.
fn messages(found: [f64; 3], measured: impl Fn(f64) -> Quantity) -> Messages {
    let [latency, overhead, bandwidth] = found.map(measured);
    Messages { latency, overhead, bandwidth }
}

/// How much slower ranks compute together than one of them alone, at least 1: the median of a few turns of both, so that
/// what else the machine does hits them alike. Collective.
fn oversubscription(comm: &dyn Comm, links: &mut Links<'_>) -> Result<f64, Error> {
    if comm.size() == 1 {
        return Ok(1.0);
    }
    let mut ratios = [0.0; REPEATS];
    for ratio in &mut ratios {
        let work = || alone::flops(LENGTHS[TYPICAL], TOGETHER);
        let [one] = links.while_others_sleep(&[0], |_| Ok([work()]))?;
        *ratio = one / at_once(comm, work)?;
    }
    Ok(median(&mut ratios).max(1.0))
}

/// The mean rate of all ranks, each doing the same at the same time. Collective.
fn at_once(comm: &dyn Comm, work: impl FnOnce() -> f64) -> Result<f64, Error> {
    comm.barrier()?;
    let mut sum = [work()];
    comm.allreduce(Reduce::Sum, &mut sum)?;
    Ok(sum[0] / comm.size() as f64)
}

/// Seconds in which the ranks of every host meet; `None` where each is alone. Collective.
fn meeting(comm: &dyn Comm) -> Result<Option<f64>, Error> {
    let mut node_memory = agree(comm, comm.node_memory())?;
    let ready = node_memory.as_mut().map(|node_memory| node_memory.allocate(64)).transpose();
    let mut memory = agree(comm, ready)?;
    let mut seconds = [0.0; REPEATS];
    for seconds in &mut seconds {
        comm.barrier()?;
        let start = Instant::now();
        let mut result = Ok(());
        if let (Some(node_memory), Some(memory)) = (&mut node_memory, &mut memory) {
            for _ in 0..VISITS {
                result = result
                    .and(node_memory.exposure_epoch(Expose::Read(memory.bytes()), &mut |_| Ok(())));
            }
        }
        let mine = if node_memory.is_some() { start.elapsed().as_secs_f64() } else { 0.0 };
        agree(comm, result)?;
        let mut longest = [mine / VISITS as f64];
        comm.allreduce(Reduce::Max, &mut longest)?;
        [*seconds] = longest;
    }
    Ok(Some(median(&mut seconds)).filter(|seconds| *seconds > 0.0))
}

/// The processor of rank 0, in its maker's words. Collective.
fn processor(comm: &dyn Comm) -> Result<String, Error> {
    crate::signature::broadcast_line(comm, &crate::signature::processor())
}

/// The middle one; of an even number, the larger of two.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
