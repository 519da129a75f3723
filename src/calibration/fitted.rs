//! The machine of these ranks: rates of its parts, and how whole transforms differ from their sum.
//!
//! A rate that is measured alone is the best possible one; in a transform caches are shared and
//! ranks wait for each other. A few transforms are run, and the numbers that are most in doubt are
//! chosen so that the model agrees with them.

use std::time::Instant;

use fft_comm::Signature;
use fft_core::{
    Comm, Complex, Error, Exchange, Grid, How, LineCosts, Machine, Messages, Quantity, Recipe,
    Reduce,
};

use super::agreed::measure_until_agreed;
use super::on_host;
use crate::field::C2c;
use crate::options::Tuning;
use crate::plan::Plan;

/// Points along each axis of the smaller transforms, for latencies, and of the larger, for rates.
const SMALL: usize = 64;
const LARGE: usize = 128;
/// The seconds of all repetitions of a transform, and their least and largest number.
const LONG: f64 = 0.1;
const TURNS: [usize; 2] = [7, 50];
/// The time that counts is the one after this share of all, in ascending order, because
/// disturbances only make times longer.
const COUNTS: f64 = 0.15;
/// The largest change of a number, either way: beyond it, another number is wrong.
const RANGE: f64 = 300.0;

/// Measures the parts of the machine of these ranks, and adjusts its numbers to transforms of 64³
/// and 128³ points. Collective; the same on every rank, bit by bit.
///
/// It measures until two measurements agree, at most five times, and takes the median of each
/// number. It warns if they do not agree, and if other programs kept cores busy meanwhile. On an
/// idle machine that takes 5 to 10 seconds, longer with slow links.
///
/// # Errors
/// On every rank: [`Error::OnRank`] when one lacks memory, or the transport fails.
pub fn measure(comm: &dyn Comm) -> Result<Machine, Error> {
    let lines = on_host::line_costs(comm)?;
    measure_until_agreed(comm, &mut || measure_once(comm, &lines))
}

/// One measurement of a machine that transforms lines by these costs. Collective.
fn measure_once(comm: &dyn Comm, lines: &LineCosts) -> Result<Machine, Error> {
    let mut machine = Machine { lines: lines.clone(), ..on_host::calibrate(comm)? };
    let Signature { hosts, ranks_per_host, .. } = Signature::of(comm)?;
    fit_alone(comm, &mut machine, ranks_per_host)?;
    if comm.size() == 1 {
        return Ok(machine);
    }
    if hosts == 1 {
        fit_together(comm, &mut machine)?;
    }
    fit_links(comm, &mut machine, hosts == 1)?;
    machine.check()?;
    Ok(machine)
}

/// Adjusts rates of memory and arithmetic, by transforms of one rank each. Collective.
fn fit_alone(comm: &dyn Comm, machine: &mut Machine, ranks_per_host: usize) -> Result<(), Error> {
    let slow = (ranks_per_host as f64 / machine.cores.value).max(1.0);
    let alone = fft_comm::alone();
    // Each rank gets as much data as when all share one transform, so that caches are as full.
    let share = [LARGE.div_ceil(ranks_per_host), LARGE, LARGE];
    let run = time(comm, &alone, share, Exchange::Shared, machine)?;
    // A plan of one rank does not account for the other ranks, which run at the same time.
    let mut one = machine.clone();
    one.host_memory.value /= ranks_per_host as f64;
    let factor = run.seconds / (run.recipe.predict_on(&one).seconds * slow);
    let Machine { memory, host_memory, flops, .. } = machine;
    let rates = flops.iter_mut().map(|rate| &mut rate.rate);
    for rate in rates.chain([memory, host_memory]) {
        let source = format!(
            "{:.3e} by itself; {LARGE}³ points over the ranks of a host, each alone",
            rate.value
        );
        *rate = Quantity::new(rate.value / factor, How::Fitted, source);
    }
    Ok(())
}

/// Adjusts cores and waiting, by transforms of all ranks of one host: ranks that take turns on
/// cores, or share the bandwidth of memory, do less together. Collective.
fn fit_together(comm: &dyn Comm, machine: &mut Machine) -> Result<(), Error> {
    let run = time(comm, comm, [LARGE; 3], Exchange::Shared, machine)?;
    fit(machine, &[run], |machine, factor| scale(&mut machine.cores, 1.0 / factor));
    let run = time(comm, comm, [SMALL; 3], Exchange::Shared, machine)?;
    fit(machine, &[run], |machine, factor| scale(&mut machine.barrier, factor));
    Ok(())
}

/// Adjusts messages, by transforms that send them: rates first, because the latency is what remains
/// of the time of a small transform. Collective.
fn fit_links(comm: &dyn Comm, machine: &mut Machine, one_host: bool) -> Result<(), Error> {
    let link = |machine: &mut Machine, change: &dyn Fn(&mut Messages)| {
        change(if one_host { &mut machine.near } else { &mut machine.far });
    };
    let both = |n: usize, machine: &Machine| -> Result<_, Error> {
        let run = |exchange| time(comm, comm, [n; 3], exchange, machine);
        Ok([run(Exchange::P2p)?, run(Exchange::Pipelined)?])
    };
    let runs = both(LARGE, machine)?;
    fit(machine, &runs, |machine, factor| {
        link(machine, &|messages| scale(&mut messages.bandwidth, 1.0 / factor));
    });
    let runs = both(SMALL, machine)?;
    fit(machine, &runs, |machine, factor| {
        link(machine, &|messages| {
            scale(&mut messages.latency, factor);
            scale(&mut messages.overhead, factor);
        });
    });
    Ok(())
}

struct Run {
    recipe: Recipe,
    /// Seconds on the slowest rank.
    seconds: f64,
}

/// Runs a transform on `ranks`, all of `comm`'s at the same time. Collective over both.
fn time(
    comm: &dyn Comm,
    ranks: &dyn Comm,
    shape: [usize; 3],
    exchange: Exchange,
    machine: &Machine,
) -> Result<Run, Error> {
    let draft = Plan::<C2c>::c2c(ranks, Grid::new(shape)?).exchange(exchange);
    let plan = draft.machine(machine.clone()).tuning(Tuning::Model).build();
    let mut plan = fft_core::agree(comm, plan)?;
    let src = vec![Complex::new(1.0, -1.0); plan.input_len()];
    let mut dst = vec![Complex::default(); plan.output_len()];
    let mut result = plan.forward_into(&src, &mut dst);
    let mut seconds: Vec<f64> = Vec::new();
    let mut turns = TURNS[0];
    while seconds.len() < turns {
        comm.barrier()?;
        let start = Instant::now();
        result = result.and(plan.forward_into(&src, &mut dst));
        // With more ranks than cores, the first ranks wait here for the last ones to begin.
        comm.barrier()?;
        let mut longest = [start.elapsed().as_secs_f64()];
        comm.allreduce(Reduce::Max, &mut longest)?;
        seconds.push(longest[0]);
        // The same on all ranks, as the time is.
        turns = ((LONG / longest[0]) as usize).clamp(turns, TURNS[1]);
    }
    fft_core::agree(comm, result)?;
    seconds.sort_by(f64::total_cmp);
    let counts = (COUNTS * seconds.len() as f64) as usize;
    Ok(Run { recipe: plan.recipe().clone(), seconds: seconds[counts] })
}

fn scale(quantity: &mut Quantity, factor: f64) {
    let source = format!("{:.3e} by itself; a transform of all ranks", quantity.value);
    *quantity = Quantity::new(quantity.value * factor, How::Fitted, source);
}

/// Changes a machine by the factor at which the model agrees with runs in the geometric mean; the
/// expected time grows with the factor.
fn fit(machine: &mut Machine, runs: &[Run], change: impl Fn(&mut Machine, f64)) {
    let excess = |factor: f64| -> f64 {
        let mut machine = machine.clone();
        change(&mut machine, factor);
        let of = |run: &Run| (run.recipe.predict_on(&machine).seconds / run.seconds).ln();
        runs.iter().map(of).sum()
    };
    let (mut low, mut high) = (1.0 / RANGE, RANGE);
    if excess(low) > 0.0 || excess(high) < 0.0 {
        return;
    }
    // Bisection of the logarithm.
    for _ in 0..40 {
        let middle = f64::sqrt(low * high);
        if excess(middle) < 0.0 { low = middle } else { high = middle }
    }
    change(machine, f64::sqrt(low * high));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_chosen_so_that_the_model_agrees() {
        let found = fft_comm::threads(2, |comm| {
            let machine = Machine::default();
            let mut run = time(&comm, &comm, [16; 3], Exchange::P2p, &machine).unwrap();
            run.seconds = 1.2 * run.recipe.predict().seconds;
            let mut fitted = machine.clone();
            let runs = [run];
            fit(&mut fitted, &runs, |machine, factor| scale(&mut machine.near.latency, factor));
            let again = runs[0].recipe.predict_on(&fitted).seconds;
            assert!((again / runs[0].seconds - 1.0).abs() < 1e-6, "{again}");
            assert_eq!(fitted.near.latency.how, How::Fitted);
            // If no value makes the model agree, the number does not change.
            let [mut run] = runs;
            run.seconds = 1e-12;
            let mut same = fitted.clone();
            fit(&mut same, &[run], |machine, factor| scale(&mut machine.near.latency, factor));
            assert_eq!(same, fitted);
            fitted
        });
        assert_eq!(found[0], Machine { near: found[0].near.clone(), ..Machine::default() });
    }

    #[test]
    fn all_ranks_measure_the_same_machine() {
        for ranks in [1, 3] {
            let lines = LineCosts::default();
            let found = fft_comm::threads(ranks, |comm| measure_once(&comm, &lines).unwrap());
            assert!(found.iter().all(|machine| *machine == found[0]));
            assert_eq!(found[0].memory.how, How::Fitted);
            assert!(found[0].check().is_ok());
        }
    }
}
