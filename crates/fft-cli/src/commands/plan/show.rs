//! Forecasts as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};
use thriffty::machine::{How, Machine};
use thriffty::planning::BytesMoved;

use super::ask::Ask;
use super::forecast::{AS_IT_IS, Forecast, Guess, Limits, Reshape, Sensitivity};
use crate::output::units::{bytes, time};

/// The recipe, its reshapes, times, limits and memory.
pub(super) fn text(ask: &Ask, found: &Forecast) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(ask, found, &mut text);
    text
}

fn write(ask: &Ask, found: &Forecast, to: &mut String) -> std::fmt::Result {
    writeln!(to, "{}", found.recipe)?;
    writeln!(to, "{}", on(ask))?;
    writeln!(to, "chosen by the model: {}", found.reason)?;
    writeln!(to, "\n{} passes over memory, with the places of rank 0's data", found.program.len())?;
    for pass in &found.program {
        writeln!(to, "   {pass}")?;
    }
    for (number, reshape) in found.reshapes.iter().enumerate() {
        write_reshape(number + 1, reshape, to)?;
    }
    write_times(ask, found, to)?;
    write_limits(ask, found, to)?;
    let memory = &found.memory;
    writeln!(
        to,
        "\nmemory of the fullest rank: {} of data in and out, {} between steps, {} of messages if all are held",
        bytes(memory.data),
        bytes(memory.between),
        bytes(memory.messages)
    )?;
    let others = found.others.iter().flat_map(|(_, guess)| guess);
    if found.time.approximate || others.into_iter().any(|guess| guess.approximate) {
        writeln!(
            to,
            "±4×: where ranks wait for each other step by step, or pass on messages, no better than that"
        )?;
    }
    Ok(())
}

/// The times of the recipe, on changed machines and of alternatives.
fn write_times(ask: &Ask, found: &Forecast, to: &mut String) -> std::fmt::Result {
    writeln!(to, "\n{:<26}{:>14}{:>14}", "time", "predicted", "simulated")?;
    let fastest = Fastest::of(found);
    writeln!(to, "{}{}", row(AS_IT_IS, found.time), fastest.mark(AS_IT_IS))?;
    let gflops = |seconds: f64| ask.flops() / seconds / 1e9;
    let predicted = gflops(found.time.predicted);
    let simulated = found.time.simulated.map_or("-".into(), |it| format!("{:.1}", gflops(it)));
    writeln!(to, "{:<26}{predicted:>14.1}{simulated:>14}", "GFlop/s")?;
    for Sensitivity { name, half, twice } in &found.sensitivities {
        writeln!(to, "{}", row(&format!("{name} halved"), *half))?;
        writeln!(to, "{}", row(&format!("{name} doubled"), *twice))?;
    }
    writeln!(to, "\n{:<26}{:>14}{:>14}", "instead", "predicted", "simulated")?;
    for (name, time) in &found.others {
        match time {
            Ok(guess) => writeln!(to, "{}{}", row(name, *guess), fastest.mark(name))?,
            Err(why) => writeln!(to, "{name:<26}{why}")?,
        }
    }
    Ok(())
}

/// The names of the rows with the least times.
struct Fastest<'a> {
    predicted: Option<&'a str>,
    simulated: Option<&'a str>,
}

impl<'a> Fastest<'a> {
    fn of(found: &'a Forecast) -> Self {
        Self {
            predicted: found.fastest(|guess| Some(guess.predicted)),
            simulated: found.fastest(|guess| guess.simulated),
        }
    }

    /// The mark at the end of a row.
    fn mark(&self, name: &str) -> &'static str {
        match [self.predicted, self.simulated].map(|fastest| fastest == Some(name)) {
            [true, true] => "  fastest",
            [true, false] => "  fastest predicted",
            [false, true] => "  fastest simulated",
            [false, false] => "",
        }
    }
}

/// Limits of network and memory, and their used shares.
fn write_limits(ask: &Ask, found: &Forecast, to: &mut String) -> std::fmt::Result {
    let how = if found.time.simulated.is_some() { "simulation" } else { "prediction" };
    writeln!(to, "\nof the limits, by {how}")?;
    let Limits { network, leaving, memory } = found.limits;
    for (name, limit) in [
        ("network, all of the data", network),
        ("network, what leaves hosts", leaving),
        ("memory", Some(memory)),
    ] {
        let Some(limit) = limit else { continue };
        let share = 100.0 * (ask.flops() / found.seconds()) / limit;
        writeln!(to, "{name:<26}{:>14.1} GFlop/s, {share:.0}% of it", limit / 1e9)?;
    }
    Ok(())
}

/// The ranks, the hosts and the machine.
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
    let Guess { predicted, simulated, approximate } = found;
    let mark = if approximate { " ±4×" } else { "" };
    let simulated = simulated.map_or("-".into(), time);
    format!("{name:<26}{:>14}{simulated:>14}{mark}", time(predicted))
}

fn write_reshape(number: usize, reshape: &Reshape, to: &mut String) -> std::fmt::Result {
    let Reshape { to: layout, wire, exchange, summary, expected, simulated } = reshape;
    let simulated = simulated.map_or("not".into(), time);
    let predicted = time(expected.seconds);
    writeln!(
        to,
        "\n{number}. to {layout} by {exchange}, {wire}: {predicted} predicted, {simulated} simulated"
    )?;
    let Some(summary) = summary else { return write_volume(&expected.volume, to) };
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

/// The volume of the busiest rank, if messages are too many to list.
fn write_volume(volume: &BytesMoved, to: &mut String) -> std::fmt::Result {
    let [own, near, far] = [volume.own, volume.near, volume.far].map(bytes);
    let peers = (volume.near_messages + volume.far_messages) / 2.0;
    writeln!(
        to,
        "   the busiest rank keeps {own}, moves {near} on its host and sends {far} to other hosts"
    )?;
    writeln!(to, "   it has {peers:.0} peers; the messages are too many to be listed")
}

pub(super) fn json(ask: &Ask, found: &Forecast) -> Value {
    let reshapes: Vec<_> = found.reshapes.iter().map(reshape).collect();
    let sensitivities: BTreeMap<_, _> =
        found.sensitivities.iter().map(|sensitivity| (sensitivity.name, sensitivity)).collect();
    let others = found.others.iter().map(|(name, time)| match time {
        Ok(guess) => json!({ "name": name, "seconds": guess }),
        Err(why) => json!({ "name": name, "error": why }),
    });
    let [measured, fitted, assumed] = counts(&ask.machine);
    let gflops = |seconds: f64| ask.flops() / seconds / 1e9;
    let Forecast { recipe, reason, program, time, limits, memory, .. } = found;
    let Fastest { predicted, simulated } = Fastest::of(found);
    json!({
        "problem": ask.transform.name(),
        "precision": ask.precision().to_string(),
        "batch": ask.options().batch,
        "ranks": ask.ranks,
        "hosts": ask.hosts(),
        "machine": {
            "name": ask.machine.name, "measured": measured, "fitted": fitted, "assumed": assumed,
        },
        "recipe": recipe,
        "reason": reason,
        "fastest": { "predicted": predicted, "simulated": simulated },
        "program": program,
        "reshapes": reshapes,
        "seconds": time,
        "gflops": {
            "predicted": gflops(time.predicted), "simulated": time.simulated.map(gflops),
        },
        "sensitivities": sensitivities,
        "limits": {
            "network": limits.network.map(|limit| limit / 1e9),
            "leaving": limits.leaving.map(|limit| limit / 1e9),
            "memory": limits.memory / 1e9,
        },
        "memory": memory,
        "instead": others.collect::<Vec<_>>(),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// `bytes`, `messages` and `host` are null if messages are too many to list.
fn reshape(reshape: &Reshape) -> Value {
    let Reshape { to, wire, exchange, summary, expected, simulated } = reshape;
    let volume = &expected.volume;
    json!({
        "to": to,
        "wire": wire.to_string(),
        "exchange": exchange.to_string(),
        "busiest": {
            "own": volume.own, "near": volume.near, "far": volume.far,
            "near_messages": volume.near_messages, "far_messages": volume.far_messages,
        },
        "bytes": summary.map(|it| json!({
            "own": it.own, "read": it.read, "near": it.near, "far": it.far,
        })),
        "messages": summary.map(|it| json!({
            "count": it.messages, "min": it.min, "median": it.median, "max": it.max,
            "peers": it.peers, "incast": it.incast, "host_incast": it.host_incast,
        })),
        "host": summary.map(|it| json!({ "most": it.host_most, "mean": it.host_mean })),
        "seconds": { "predicted": expected.seconds, "simulated": simulated },
    })
}
