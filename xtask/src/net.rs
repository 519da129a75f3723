//! `cargo xtask bench --net`: exchanges against FFTW-MPI, with each rank on a host of its own.
//!
//! The hosts are network namespaces, made by a script that is not in this repository. The
//! environment variable THRIFFTY_NETLAB is its path; its calls are `netlab up HOSTS RATE`, `netlab
//! run RANKS -- COMMAND` and `netlab down`. NETLAB_MTU, the bytes of a packet, is written into the
//! record.
//!
//! The floor of a time is the bytes of the busiest rank over the rate of its link. Our programs
//! count their bytes; FFTW's follow from its algorithm.

use crate::bench::{self, Binaries};
use crate::contender::{Contender, Server};
use crate::machine;
use crate::options::Options;
use crate::record::{self, Series, all_rounded, rounded};
use crate::stats::{median, min};
use crate::tools::{self, Result, command, shown};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const VARIABLE: &str = "THRIFFTY_NETLAB";
const PACKET: &str = "NETLAB_MTU";
const PARTS: [&str; 5] = ["exchange", "pack", "unpack", "own", "fft"];

/// The hosts, removed on drop.
struct Lab {
    script: PathBuf,
}

impl Lab {
    fn new(hosts: usize, rate: &str) -> Result<Self> {
        let script = std::env::var_os(VARIABLE).map(PathBuf::from);
        let script = script.ok_or(format!("--net needs {VARIABLE}, the path of netlab"))?;
        let lab = Self { script: tools::absolute(&script)? };
        let words = ["up", &hosts.to_string(), rate];
        println!("$ {} {}", lab.script.display(), words.join(" "));
        println!("{}", tools::output(lab.command().args(words))?);
        Ok(lab)
    }

    /// The script, with names of hosts of its own.
    fn command(&self) -> Command {
        let mut netlab = command(&self.script);
        if std::env::var_os("NETLAB_PREFIX").is_none() {
            netlab.env("NETLAB_PREFIX", "thriffty");
        }
        netlab
    }

    /// A program with a rank on each host, to be completed.
    fn run(&self, hosts: usize, program: &Path) -> Command {
        let mut netlab = self.command();
        netlab.args(["run", &hosts.to_string(), "--"]).arg(program);
        netlab
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Err(why) = tools::output(self.command().arg("down")) {
            eprintln!("xtask: the hosts are still there: {why}");
        }
    }
}

struct Found {
    series: Series,
    /// Bytes that the busiest rank sends in a transform.
    busiest: f64,
    /// Seconds of each part, on the rank where it takes longest; empty for FFTW.
    parts: Vec<(&'static str, f64)>,
}

impl Found {
    /// The least seconds of a transform with these bytes.
    fn floor(&self, bits_per_second: f64) -> f64 {
        8.0 * self.busiest / bits_per_second
    }
}

/// Starts the hosts, times all contenders, prints the table, writes the record.
pub(crate) fn run(options: &Options) -> Result {
    let bits = bits_per_second(&options.rate)?;
    let binaries = Binaries::prepare(options)?;
    if !binaries.mpi {
        return Err("bench --net needs MPI".into());
    }
    let machine = binaries.machine()?;
    let lab = Lab::new(options.hosts, &options.rate)?;
    let mut servers = start_all(&lab, options, &binaries)?;
    let mut contenders: Vec<&mut dyn Contender> =
        servers.iter_mut().map(|server| server as &mut dyn Contender).collect();
    let (all, busy) = bench::take_turns(&mut contenders, options.rounds, options.patience())?;
    let mut found = Vec::new();
    for (server, series) in servers.iter_mut().zip(all) {
        found.push(account(server, series, options)?);
    }
    print!("{}{}", table(&found, bits), record::noise(&busy));
    let packet = std::env::var(PACKET).ok().and_then(|bytes| bytes.parse::<u32>().ok());
    let record = record_of(options, &found, &busy, bits, packet);
    let record = record::with_problem(options, &machine, record);
    record::write(options, &record_name(options, &machine), record)
}

/// FFTW's programs and ours, each with a rank on every host.
fn start_all(lab: &Lab, options: &Options, binaries: &Binaries) -> Result<Vec<Server>> {
    let Binaries { peer, cli, .. } = binaries;
    let mut servers = Vec::new();
    let problem = [options.kind.clone(), options.size_text()];
    let both = [("fftw-mpi", None), ("fftw-mpi-transposed", Some("--transposed"))];
    let wanted = |name: &str| options.wants(name) && options.wires.is_empty();
    if let Some(peer) = peer {
        for (name, freedom) in both.into_iter().filter(|(name, _)| wanted(name)) {
            let mut fftw = lab.run(options.hosts, &tools::absolute(peer)?);
            fftw.arg("mpi").args(&problem).arg("--serve").args(freedom);
            servers.push(start(name, &mut fftw)?);
        }
    }
    // FFTW-MPI's slabs.
    let slabs = format!("{}x1x1", options.hosts);
    // Exchanges that do not run here are left out.
    let known = tools::output(command(cli).args(["list", "exchanges"]))?;
    // Names with a number are a range, whose first value is measured.
    let first = |line: &str| line.split_whitespace().next().map(String::from);
    let known: Vec<_> = known.lines().filter_map(first).collect();
    for (name, words) in ours(options, &known) {
        let mut ours = lab.run(options.hosts, &tools::absolute(cli)?);
        ours.arg("bench").args(&problem).args(["--input-grid", &slabs, "--output-grid", &slabs]);
        match start(&name, ours.arg("--serve").args(words)) {
            Ok(server) => servers.push(server),
            Err(why) if !options.exchanges.is_empty() => return Err(why),
            Err(why) => println!("left out: {why}"),
        }
    }
    Ok(servers)
}

/// The end of the record's name, so that different MPIs have separate records.
fn record_name(options: &Options, machine: &machine::Description) -> String {
    let mut name = format!("-net-{}x{}", options.hosts, options.rate);
    if !options.wires.is_empty() {
        name.push_str("-wires");
    }
    if std::env::var_os(machine::LAUNCHER).is_some() {
        let mpi = machine.iter().find(|(name, _)| *name == "mpi").map_or("", |(_, said)| said);
        name.push_str(if mpi.starts_with("MPICH") { "-mpich" } else { "-openmpi" });
    }
    name
}

/// Names and options of our contenders: `known` exchanges, unless some are named. With wires, one
/// exchange with raw messages and with each wire.
fn ours(options: &Options, known: &[String]) -> Vec<(String, Vec<String>)> {
    let words = |words: &[&str]| words.iter().map(|word| String::from(*word)).collect::<Vec<_>>();
    let field = options.field.as_deref().map_or(vec![], |field| words(&["--field", field]));
    let mut all = Vec::new();
    if options.wires.is_empty() {
        let asked = if options.exchanges.is_empty() { known } else { &options.exchanges };
        for exchange in asked {
            all.push((format!("thriffty-{exchange}"), words(&bench::way(exchange))));
        }
    } else {
        let exchange = options.exchanges.first().map_or("pipelined", String::as_str);
        all.push((format!("thriffty-{exchange}"), words(&["--exchange", exchange])));
        for wire in &options.wires {
            let option = if wire.parse::<f64>().is_ok() { "--tolerance" } else { "--wire" };
            let name = format!("thriffty-{exchange} {wire}");
            all.push((name, words(&["--exchange", exchange, option, wire])));
        }
    }
    all.retain(|(name, _)| options.wants(name));
    all.iter_mut().for_each(|(_, words)| words.extend(field.clone()));
    all
}

fn start(name: &str, command: &mut Command) -> Result<Server> {
    println!("starting {name}: {}", shown(command));
    Server::start(name, command)
}

/// The bytes and parts of a program.
fn account(server: &mut Server, series: Series, options: &Options) -> Result<Found> {
    if series.name.starts_with("fftw") {
        let transposed = series.name.ends_with("transposed");
        let busiest = slab_bytes(options, if transposed { 1 } else { 2 });
        return Ok(Found { series, busiest, parts: Vec::new() });
    }
    let line = server.ask("timings")?;
    let words: Vec<&str> = line.split(' ').collect();
    let value = |name: &str| -> Result<f64> {
        let pair = words.chunks_exact(2).find(|pair| pair[0] == name);
        let number = pair.and_then(|pair| pair[1].parse().ok());
        number.ok_or(format!("{}: no {name} in `{line}`", series.name))
    };
    let parts = PARTS.iter().map(|&name| Ok((name, value(name)?))).collect::<Result<_>>()?;
    Ok(Found { busiest: value("bytes_sent_busiest")?, parts, series })
}

/// Bytes that a rank sends in transpositions of equal slabs.
fn slab_bytes(options: &Options, transpositions: usize) -> f64 {
    let mut lengths = options.size.0.clone();
    lengths[0] = lengths[0].div_ceil(options.hosts);
    if let ("r2c", Some(last)) = (options.kind.as_str(), lengths.last_mut()) {
        *last = *last / 2 + 1;
    }
    let slab = (lengths.iter().product::<usize>() * 16) as f64;
    slab * transpositions as f64 * (options.hosts - 1) as f64 / options.hosts as f64
}

/// `2.5gbit` as bits per second.
fn bits_per_second(rate: &str) -> Result<f64> {
    let units = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)];
    let read =
        |(unit, factor): (&str, f64)| Some(rate.strip_suffix(unit)?.parse::<f64>().ok()? * factor);
    let bits = units.into_iter().find_map(read).filter(|bits| bits.is_finite() && *bits > 0.0);
    bits.ok_or(format!("--rate is like 100mbit or 2.5gbit, not {rate}"))
}

fn table(found: &[Found], bits: f64) -> String {
    let mut text = format!(
        "\n{:<26} {:>9} {:>9} {:>10} {:>9} {:>7}   parts, each on the rank where it takes longest\n",
        "", "median s", "min s", "busiest MB", "floor s", "floor %"
    );
    for one in found {
        let (seconds, floor) = (&one.series.seconds, one.floor(bits));
        let parts: Vec<_> = one.parts.iter().map(|(name, s)| format!("{name} {s:.3}")).collect();
        let _ = writeln!(
            text,
            "{:<26} {:9.4} {:9.4} {:10.1} {:9.4} {:7.1}   {}",
            one.series.name,
            median(seconds),
            min(seconds),
            one.busiest / 1e6,
            floor,
            100.0 * floor / median(seconds),
            parts.join(", ")
        );
    }
    text
}

fn record_of(
    options: &Options,
    found: &[Found],
    busy: &[f64],
    bits: f64,
    packet: Option<u32>,
) -> Value {
    let series = found.iter().map(|one| {
        let (seconds, floor) = (&one.series.seconds, one.floor(bits));
        let split = one.parts.iter().map(|(name, s)| ((*name).into(), rounded(*s).into()));
        let mut record = one.series.record();
        record["bytes_sent_busiest"] = one.busiest.round().into();
        record["floor"] = rounded(floor).into();
        record["floor_percent"] = rounded(100.0 * floor / median(seconds)).into();
        record["split"] = split.collect::<Map<_, _>>().into();
        record
    });
    json!({
        "network": {
            "hosts": options.hosts,
            "ranks": options.hosts,
            "bits_per_second": bits.round(),
            "mtu": packet,
        },
        "others_busy": all_rounded(busy),
        "series": series.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::parse;

    #[test]
    fn rates_are_bits_per_second() {
        assert_eq!(bits_per_second("2.5gbit"), Ok(2.5e9));
        assert_eq!(bits_per_second("100mbit"), Ok(1e8));
        for rate in ["fast", "1", "gbit", "-1gbit", "0kbit", "infgbit"] {
            assert!(bits_per_second(rate).unwrap_err().contains(rate), "{rate}");
        }
    }

    #[test]
    fn wires_are_timed_beside_raw_messages() {
        let options = parse("--net --wires bits:16,1e-6 --field smooth").unwrap();
        let lines: Vec<_> = ours(&options, &[])
            .iter()
            .map(|(name, w)| format!("{name}: {}", w.join(" ")))
            .collect();
        assert_eq!(
            lines,
            [
                "thriffty-pipelined: --exchange pipelined --field smooth",
                "thriffty-pipelined bits:16: --exchange pipelined --wire bits:16 --field smooth",
                "thriffty-pipelined 1e-6: --exchange pipelined --tolerance 1e-6 --field smooth",
            ]
        );
        let known = ["p2p", "ring"].map(String::from);
        assert_eq!(ours(&parse("--net").unwrap(), &known).len(), 2);
    }

    #[test]
    fn slabs_send_all_but_what_stays() {
        let options = parse("--net --hosts 4").unwrap();
        assert_eq!(slab_bytes(&options, 1), 256.0 * 256.0 * 64.0 * 16.0 * 0.75);
        assert_eq!(slab_bytes(&options, 2), 2.0 * slab_bytes(&options, 1));
    }

    #[test]
    fn times_are_told_as_shares_of_the_floor() {
        let series = Series { name: "thriffty-p2p".into(), seconds: vec![2.0, 4.0, 2.0] };
        let found = [Found { series, busiest: 125e6, parts: vec![("fft", 0.25)] }];
        assert_eq!(found[0].floor(1e9), 1.0);
        let table = table(&found, 1e9);
        assert!(table.contains("125.0    1.0000    50.0   fft 0.250"), "{table}");
        let found = record_of(&parse("--net").unwrap(), &found, &[0.0], 1e9, Some(32000));
        let series = json!({
            "name": "thriffty-p2p", "median": 2.0, "min": 2.0, "bytes_sent_busiest": 125e6,
            "floor": 1.0, "floor_percent": 50.0, "split": { "fft": 0.25 },
            "seconds": [2.0, 4.0, 2.0],
        });
        let network = json!({ "hosts": 4, "ranks": 4, "bits_per_second": 1e9, "mtu": 32000 });
        let expected = json!({ "network": network, "others_busy": [0.0], "series": [series] });
        assert_eq!(found, expected);
    }
}
