//! What was found out, for people and as JSON. Seconds, bytes, and operations per second.

use std::fmt::Write;

use serde_json::{Value, json};
use thriffty::machine::{How, Machine};

use super::ask::Ask;
use super::forecast::{Forecast, Guess, Reshape, Sensitivity};
use crate::output::report::{bytes, time};

/// The recipe, its reshapes, and what it takes.
pub(super) fn text(ask: &Ask, found: &Forecast) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(ask, found, &mut text);
    text
}

fn write(ask: &Ask, found: &Forecast, to: &mut String) -> std::fmt::Result {
    writeln!(to, "{}", found.recipe)?;
    writeln!(to, "{}", on(ask))?;
    for (number, reshape) in found.reshapes.iter().enumerate() {
        write_reshape(number + 1, reshape, to)?;
    }
    let Forecast { time: whole, memory, limits, .. } = found;
    let rate = |seconds: f64| ask.flops() / seconds;
    writeln!(to, "\n{:<26}{:>14}{:>14}", "time", "predicted", "simulated")?;
    writeln!(to, "{}", row("as it is", *whole))?;
    let simulated = whole.simulated.expect("what is chosen is simulated");
    let gflops = [whole.predicted, simulated].map(|seconds| rate(seconds) / 1e9);
    writeln!(to, "{:<26}{:>14.1}{:>14.1}", "GFlop/s", gflops[0], gflops[1])?;
    for Sensitivity { name, half, twice } in &found.sensitivities {
        writeln!(to, "{}", row(&format!("{name} halved"), *half))?;
        writeln!(to, "{}", row(&format!("{name} doubled"), *twice))?;
    }
    writeln!(to, "\n{:<26}{:>14}{:>14}", "instead", "predicted", "simulated")?;
    for (name, time) in &found.others {
        match time {
            Ok(guess) => writeln!(to, "{}", row(name, *guess))?,
            Err(why) => writeln!(to, "{name:<26}{why}")?,
        }
    }
    writeln!(to, "\nof the limits, by simulation")?;
    let share = |limit: f64| 100.0 * rate(simulated) / limit;
    let line = |name: &str, limit: f64| {
        format!("{name:<26}{:>14.1} GFlop/s, {:.0}% of it", limit / 1e9, share(limit))
    };
    if let Some(network) = limits.network {
        writeln!(to, "{}", line("network, all of the data", network))?;
    }
    if let Some(leaving) = limits.leaving {
        writeln!(to, "{}", line("network, what leaves hosts", leaving))?;
    }
    writeln!(to, "{}", line("memory", limits.memory))?;
    writeln!(
        to,
        "\nmemory of the fullest rank: {} of data in and out, {} between steps, {} of messages if all are held",
        bytes(memory.data),
        bytes(memory.between),
        bytes(memory.messages)
    )?;
    let others = found.others.iter().flat_map(|(_, guess)| guess);
    if whole.rough || others.into_iter().any(|guess| guess.rough) {
        writeln!(
            to,
            "±4×: where ranks wait for each other step by step, or pass on messages, no better than that"
        )?;
    }
    Ok(())
}

/// Where it would run, and how well that is known.
fn on(ask: &Ask) -> String {
    let (machine, hosts) = (&ask.machine, ask.hosts());
    let [measured, fitted, assumed] = counts(machine);
    let per =
        if hosts == 1 { "one host".into() } else { format!("{hosts} hosts of {}", ask.per_host) };
    format!(
        "{} ranks on {per} of {}, known by {measured} numbers measured, {fitted} fitted, {assumed} assumed",
        ask.ranks, machine.name
    )
}

fn counts(machine: &Machine) -> [usize; 3] {
    let quantities = machine.quantities();
    [How::Measured, How::Fitted, How::Assumed]
        .map(|how| quantities.iter().filter(|(_, quantity)| quantity.how == how).count())
}

fn row(name: &str, found: Guess) -> String {
    let Guess { predicted, simulated, rough } = found;
    let rough = if rough { " ±4×" } else { "" };
    let simulated = simulated.map_or("-".into(), time);
    format!("{name:<26}{:>14}{simulated:>14}{rough}", time(predicted))
}

fn write_reshape(number: usize, reshape: &Reshape, to: &mut String) -> std::fmt::Result {
    let Reshape { to: layout, wire, exchange, summary, expected, simulated } = reshape;
    let (predicted, simulated) = (time(expected.seconds), time(*simulated));
    writeln!(
        to,
        "\n{number}. to {layout} by {exchange}, {wire}: {predicted} predicted, {simulated} simulated"
    )?;
    let moved = [
        ("stay with their ranks", summary.own),
        ("read on the host", summary.read),
        ("sent on the host", summary.near),
        ("sent to other hosts", summary.far),
    ];
    let moved = moved.iter().filter(|(_, moved)| *moved > 0);
    let moved: Vec<_> =
        moved.map(|(what, moved)| format!("{} {what}", bytes(*moved as f64))).collect();
    writeln!(to, "   {}", moved.join(", "))?;
    if summary.messages == 0 {
        return Ok(());
    }
    let [min, median, max] = [summary.min, summary.median, summary.max].map(|it| bytes(it as f64));
    writeln!(
        to,
        "   {} messages of {min} to {max}, median {median}; of a rank to at most {} others",
        summary.messages, summary.peers
    )?;
    write!(to, "   in one step at most {} aim at a rank", summary.incast)?;
    if summary.far > 0 {
        let most = summary.host_most as f64 / summary.host_mean;
        write!(
            to,
            ", {} at a host from others; the busiest host has {most:.2} of the mean",
            summary.host_incast
        )?;
    }
    writeln!(to)
}

/// One object.
pub(super) fn json(ask: &Ask, found: &Forecast) -> Value {
    let seconds = |time: &Guess| json!({ "predicted": time.predicted, "simulated": time.simulated, "rough": time.rough });
    let reshapes: Vec<_> = found.reshapes.iter().map(reshape).collect();
    let sensitivities: serde_json::Map<_, _> = (found.sensitivities.iter())
        .map(|it| {
            (it.name.into(), json!({ "half": seconds(&it.half), "twice": seconds(&it.twice) }))
        })
        .collect();
    let others: Vec<_> = (found.others.iter())
        .map(|(name, time)| match time {
            Ok(guess) => json!({ "name": name, "seconds": seconds(guess) }),
            Err(why) => json!({ "name": name, "error": why }),
        })
        .collect();
    let [measured, fitted, assumed] = counts(&ask.machine);
    let gflops = |seconds: f64| ask.flops() / seconds / 1e9;
    json!({
        "problem": format!("{} {}", ask.kind, ask.shape),
        "precision": ask.precision.to_string(),
        "howmany": ask.howmany,
        "ranks": ask.ranks,
        "hosts": ask.hosts(),
        "machine": {
            "name": ask.machine.name, "measured": measured, "fitted": fitted, "assumed": assumed,
        },
        "recipe": found.recipe,
        "reshapes": reshapes,
        "seconds": seconds(&found.time),
        "gflops": {
            "predicted": gflops(found.time.predicted), "simulated": found.time.simulated.map(gflops),
        },
        "sensitivities": sensitivities,
        "limits": {
            "network": found.limits.network.map(|limit| limit / 1e9),
            "leaving": found.limits.leaving.map(|limit| limit / 1e9),
            "memory": found.limits.memory / 1e9,
        },
        "memory": {
            "data": found.memory.data, "between": found.memory.between, "messages": found.memory.messages,
        },
        "instead": others,
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn reshape(reshape: &Reshape) -> Value {
    let Reshape { to, wire, exchange, summary, expected, simulated } = reshape;
    json!({
        "to": to,
        "wire": wire.to_string(),
        "exchange": exchange.to_string(),
        "bytes": {
            "own": summary.own, "read": summary.read, "near": summary.near, "far": summary.far,
        },
        "messages": {
            "count": summary.messages,
            "min": summary.min, "median": summary.median, "max": summary.max,
            "peers": summary.peers,
            "incast": summary.incast, "host_incast": summary.host_incast,
        },
        "host": { "most": summary.host_most, "mean": summary.host_mean },
        "seconds": { "predicted": expected.seconds, "simulated": simulated },
    })
}
