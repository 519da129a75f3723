//! `cargo xtask model`: what the cost model expects beside what the timings says.
//!
//! Every place, threads, processes, and with `--net` hosts joined by links, is calibrated first, by `fft-cli calibrate`;
//! then transforms of several shapes, exchanges and wires run there, and tell what the model expected of them. Of each
//! problem, the exchange that a plan takes without being told is judged by the time of the one that was fastest.

use crate::bench;
use crate::demo::mpirun;
use crate::machine;
use crate::net::{self, Lab};
use crate::options::Options;
use crate::quiet;
use crate::record::{listed, number, quoted};
use crate::setup;
use crate::stats::median;
use crate::tools::{self, Result, command, shown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where transforms run.
struct Place {
    name: String,
    ranks: usize,
    how: How,
}

enum How {
    Threads,
    Processes,
    Hosts,
}

/// One transform and how long it took.
struct Case {
    place: String,
    /// Shape and wire.
    problem: String,
    exchange: String,
    predicted: f64,
    measured: f64,
    /// Whether this exchange is taken where none is asked for.
    chosen: bool,
}

impl Case {
    /// The share by which the prediction is too high, or too low.
    fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}

const SHAPES: [&str; 3] = ["64x64x64", "128x128x128", "200x96x150"];
const NEAR: [&str; 4] = ["shared", "p2p", "pipelined", "alltoallv"];
const FAR: [&str; 4] = ["pipelined", "p2p", "alltoallv", "kway2"];
const WIRES: [&str; 2] = ["raw", "bits:16"];
const RATES: [&str; 2] = ["100mbit", "1gbit"];
/// How far the first choice may be from the best.
const GOOD: f64 = 1.1;

/// Calibrates and measures everything, prints the table, writes the record.
pub(crate) fn run(options: &Options) -> Result {
    let mpi = setup::prepare(&[]).mpi;
    let cli = absolute(&bench::compile(options, mpi)?.1)?;
    let folder = tools::target_dir().join("model");
    tools::make_folder(&folder)?;
    let folder = absolute(&folder)?;
    let mut cases = Vec::new();
    for place in places(mpi) {
        measure(&place, None, (&cli, &folder), options, &mut cases)?;
    }
    if options.net {
        for rate in RATES {
            let lab = Lab::new(options.hosts, rate)?;
            let name = format!("{} hosts {rate}", options.hosts);
            let place = Place { name, ranks: options.hosts, how: How::Hosts };
            measure(&place, Some(&lab), (&cli, &folder), options, &mut cases)?;
        }
    }
    println!("{}", table(&cases));
    let date = tools::output(command("date").args(["-u", "+%F"]))?;
    let path =
        bench::record_folder(options)?.join(format!("{date}-{}-model.json", machine::short_id()));
    std::fs::write(&path, json(&date, &cases))
        .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    println!("record: {}", path.display());
    Ok(())
}

fn places(mpi: bool) -> Vec<Place> {
    let threads =
        [1, 2, 4].map(|ranks| Place { name: format!("{ranks} threads"), ranks, how: How::Threads });
    let processes = [2, 4].map(|ranks| Place {
        name: format!("{ranks} processes"),
        ranks,
        how: How::Processes,
    });
    threads.into_iter().chain(processes.into_iter().filter(|_| mpi)).collect()
}

/// The program with ranks at a place, to be completed.
fn start(place: &Place, lab: Option<&Lab>, cli: &Path) -> Command {
    match (&place.how, lab) {
        (How::Hosts, Some(lab)) => lab.run(place.ranks, cli),
        (How::Processes, _) => mpirun(&place.ranks.to_string(), cli),
        _ => {
            let mut threads = command(cli);
            threads.args(["--ranks", &place.ranks.to_string()]);
            threads
        }
    }
}

fn measure(
    place: &Place,
    lab: Option<&Lab>,
    (cli, folder): (&Path, &Path),
    options: &Options,
    cases: &mut Vec<Case>,
) -> Result {
    let file = folder.join(format!("{}.toml", place.name.replace(' ', "-")));
    let mut calibrate = start(place, lab, cli);
    calibrate.arg("calibrate").arg("-o").arg(&file);
    quiet::wait(options.patience());
    println!("{}\n{}", shown(&calibrate), tools::output(&mut calibrate)?);
    let far = lab.is_some();
    let exchanges = if far { FAR } else { NEAR };
    let wires = if far { &WIRES[..] } else { &WIRES[..1] };
    let shapes = if far { &SHAPES[..2] } else { &SHAPES[..] };
    for shape in shapes {
        for wire in wires {
            let run = |exchange: &[&str]| -> Result<String> {
                let mut bench = start(place, lab, cli);
                let reps = options.rounds.to_string();
                bench.args(["bench", "c2c", shape, "--json", "--reps", &reps, "--wire", wire]);
                bench.args(exchange).arg("--machine").arg(&file);
                quiet::wait(options.patience());
                tools::output(&mut bench)
            };
            let untold = run(&[])?;
            let taken = word(&untold, "exchange").ok_or(format!("no exchange in `{untold}`"))?;
            let most = if place.ranks == 1 { 1 } else { exchanges.len() };
            for exchange in exchanges.iter().take(most) {
                let said = run(&["--exchange", exchange])?;
                let value = |name: &str| -> Result<f64> {
                    value(&said, name).ok_or(format!("no {name} in `{said}`"))
                };
                let case = Case {
                    place: place.name.clone(),
                    problem: format!("{shape} {wire}"),
                    exchange: (*exchange).into(),
                    predicted: value("predicted")?,
                    measured: value("median")?,
                    // Between hosts, sharing comes to a pipeline.
                    chosen: *exchange == taken
                        || far && taken == "shared" && *exchange == "pipelined",
                };
                println!("{}", line(&case));
                cases.push(case);
            }
        }
    }
    Ok(())
}

/// The number of this name in an object, wherever it is.
fn value(json: &str, name: &str) -> Option<f64> {
    let rest = after(json, name)?;
    let end = rest.find([',', '}', '\n']).unwrap_or(rest.len());
    rest[..end].trim().parse().ok()
}

/// The text of this name.
fn word<'t>(json: &'t str, name: &str) -> Option<&'t str> {
    after(json, name)?.strip_prefix('"')?.split('"').next()
}

/// What stands behind this name.
fn after<'t>(json: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = json.split_once(&format!("\"{name}\":"))?;
    Some(rest.trim_start())
}

fn line(case: &Case) -> String {
    let Case { place, problem, exchange, predicted, measured, .. } = case;
    let error = 100.0 * case.error();
    format!(
        "{place:<18} {problem:<22} {exchange:<10} {predicted:10.5} {measured:10.5} {error:+7.1} %"
    )
}

/// The median of the errors' sizes.
fn median_error(cases: &[Case]) -> f64 {
    median(&cases.iter().map(|case| case.error().abs()).collect::<Vec<_>>())
}

/// For each problem with several exchanges: the time of the one that is taken over that of the best.
fn choices(cases: &[Case]) -> Vec<(String, f64)> {
    let mut found: Vec<(String, f64)> = Vec::new();
    for case in cases {
        let name = format!("{}, {}", case.place, case.problem);
        let same: Vec<_> = cases
            .iter()
            .filter(|other| other.place == case.place && other.problem == case.problem)
            .collect();
        if same.len() < 2 || found.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let chosen = same.iter().find(|case| case.chosen);
        let best = same.iter().map(|case| case.measured).fold(f64::INFINITY, f64::min);
        // One that is not among these has not been timed.
        found.push((name, chosen.map_or(f64::INFINITY, |chosen| chosen.measured / best)));
    }
    found
}

fn table(cases: &[Case]) -> String {
    let mut text = String::from(
        "\nplace              problem                exchange    expected s measured s   error\n",
    );
    cases.iter().for_each(|case| text.push_str(&format!("{}\n", line(case))));
    let choices = choices(cases);
    for (name, ratio) in choices.iter().filter(|(_, ratio)| *ratio > GOOD) {
        text.push_str(&format!("  what is chosen took {ratio:.2} times the best: {name}\n"));
    }
    let good = choices.iter().filter(|(_, ratio)| *ratio <= GOOD).count();
    let (count, all, error) = (cases.len(), choices.len(), 100.0 * median_error(cases));
    text.push_str(&format!(
        "{count} cases, median error {error:.1} %; what is chosen is within 10 % of the best in {good} of {all} problems"
    ));
    text
}

fn json(date: &str, cases: &[Case]) -> String {
    let machine = machine::describe(None);
    let machine =
        machine.iter().map(|(name, value)| format!("{}: {}", quoted(name), quoted(value)));
    let rows = cases.iter().map(|case| {
        format!(
            "{{\"place\": {}, \"problem\": {}, \"exchange\": {}, \"chosen\": {}, \"predicted\": {}, \"measured\": {}}}",
            quoted(&case.place),
            quoted(&case.problem),
            quoted(&case.exchange),
            case.chosen,
            number(case.predicted),
            number(case.measured)
        )
    });
    let choices = choices(cases);
    let good = choices.iter().filter(|(_, ratio)| *ratio <= GOOD).count();
    format!(
        "{{\n  \"date\": {},\n  \"machine\": {{\n    {}\n  }},\n  \"median_error\": {},\n  \
         \"problems\": {},\n  \"choice_within_a_tenth\": {good},\n  \"cases\": {}\n}}\n",
        quoted(date),
        machine.collect::<Vec<_>>().join(",\n    "),
        number(median_error(cases)),
        choices.len(),
        listed(rows, 4)
    )
}

/// The same path from everywhere.
fn absolute(path: &Path) -> Result<PathBuf> {
    net::absolute(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(exchange: &str, predicted: f64, measured: f64) -> Case {
        let (place, problem) = ("here".into(), "8x8x8 raw".into());
        let chosen = exchange == "a";
        Case { place, problem, exchange: exchange.into(), predicted, measured, chosen }
    }

    #[test]
    fn the_choice_is_judged_by_the_best() {
        let cases = [case("a", 1.0, 2.0), case("b", 1.5, 1.0), case("c", 3.0, 3.0)];
        assert_eq!(choices(&cases), [("here, 8x8x8 raw".to_string(), 2.0)]);
        assert_eq!(median_error(&cases), 0.5);
        let text = table(&cases);
        assert!(text.contains("what is chosen took 2.00 times the best"), "{text}");
        assert!(text.ends_with("3 cases, median error 50.0 %; what is chosen is within 10 % of the best in 0 of 1 problems"));
        // One exchange alone is no choice.
        assert!(choices(&cases[..1]).is_empty());
    }

    #[test]
    fn numbers_are_found_by_name() {
        let json = "{\"algorithm\": \"p2p\", \"seconds\": {\"max\": 2.0, \"median\": 1.5e-3, \"min\": 1.0}, \"predicted\":0.25}";
        assert_eq!(value(json, "median"), Some(1.5e-3));
        assert_eq!(value(json, "predicted"), Some(0.25));
        assert_eq!(value(json, "none"), None);
        assert_eq!((word(json, "algorithm"), word(json, "median")), (Some("p2p"), None));
    }
}
