//! `fft-cli calibrate`: the machine of the cost model, measured.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use thriffty::Comm;
use thriffty::machine::{How, Machine};

use crate::args::choices::{Choices, Offer};
use crate::engine::place::Site;
use crate::ranks::world::{Failure, print};

/// Measure this machine for the cost model, on these ranks.
///
/// These are rates of memory, of transforms in cache and of codecs, and messages within a host and
/// between hosts, adjusted to whole transforms. They are measured until two measurements agree, at
/// most five times; there is a warning if they do not, or if other programs keep cores busy. On an
/// idle machine that takes 5 to 10 seconds. Numbers that cannot be measured here are marked as
/// assumed.
///
/// With --device cuda the processors are the host's GPUs, for `fft-cli bench --device cuda
/// --machine FILE.toml`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    place: Choices<Place>,
    /// Write the numbers into this file, signed with the processor, the ranks and the library, and
    /// for a machine of GPUs with the GPU.
    #[arg(short, long, value_name = "FILE.toml")]
    output: Option<PathBuf>,
}

/// The options for where transforms are measured.
#[derive(Clone, Debug)]
struct Place;

impl Offer for Place {
    fn takes(name: &str) -> bool {
        ["device", "transport"].contains(&name)
    }
}

pub(super) fn run(comm: &dyn Comm, options: &Options) -> Result<(), Failure> {
    let machine = Site::of(comm, &options.place.placement)?.measure(comm)?;
    if let Some(path) = &options.output {
        thriffty::machine::save(comm, &machine, path)?;
    }
    print(comm, &table(&machine))
}

/// One number on each line, with its name and its origin.
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

fn value(name: &str, value: f64) -> String {
    let times = ["launch", "barrier", "latency", "overhead"];
    match name {
        "cores" | "strided" | "congestion" => format!("{value:.2}"),
        _ if times.iter().any(|time| name.ends_with(time)) => format!("{:.2} µs", value * 1e6),
        _ if name.starts_with("flops") => format!("{:.2} GFlop/s", value / 1e9),
        _ => format!("{:.2} GB/s", value / 1e9),
    }
}
