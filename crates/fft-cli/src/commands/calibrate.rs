//! `fft-cli calibrate`: what these ranks run on, in numbers.

use std::fmt::Write;

use thriffty::Comm;
use thriffty::machine::{How, Machine};

use crate::args::cli;
use crate::ranks::world::{Failure, print};

/// Runs the command. Collective.
pub(crate) fn run(comm: &dyn Comm, options: &cli::Calibrate) -> Result<(), Failure> {
    let machine = thriffty::machine::measure(comm)?;
    if let Some(path) = &options.output {
        thriffty::machine::save(comm, &machine, path)?;
    }
    print(comm, &table(&machine))
}

/// One number on each line, with what it is a number of.
fn table(machine: &Machine) -> String {
    let mut text = format!("{}\n", machine.name);
    for (name, quantity) in machine.quantities() {
        let how = match quantity.how {
            How::Measured => "",
            How::Fitted => "  fitted",
            How::Assumed => "  assumed",
        };
        let line = format!("  {name:<18}{:>11}{how}", value(&name, quantity.value));
        writeln!(text, "{}", line.trim_end()).expect("text grows");
    }
    text
}

/// With the unit of its place.
fn value(name: &str, value: f64) -> String {
    let times = ["launch", "meeting", "latency", "overhead"];
    match name {
        "cores" | "strided" | "congestion" => format!("{value:.2}"),
        _ if times.iter().any(|time| name.ends_with(time)) => format!("{:.2} µs", value * 1e6),
        _ if name.starts_with("flops") => format!("{:.2} GFlop/s", value / 1e9),
        _ => format!("{:.2} GB/s", value / 1e9),
    }
}
