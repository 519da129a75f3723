//! `cargo xtask bench --net`: the exchanges beside FFTW-MPI where ranks are on hosts of their own, joined by links of a
//! known rate.
//!
//! The hosts are network namespaces of this machine. A script that is not part of this repository makes them; the
//! environment variable THRIFFTY_NETLAB says where it is. It is called as `netlab up HOSTS RATE`, `netlab run RANKS --
//! COMMAND` and `netlab down`. Of the environment that it looks at, NETLAB_MTU is written into the record: bytes of a packet.
//!
//! A transform cannot be faster than its busiest rank can send: those bytes over the rate are the floor, and every time
//! is told as a share of it. The bytes are those that our programs count themselves; FFTW's follow from its algorithm.

use crate::bench;
use crate::contender::{Contender, Server};
use crate::machine;
use crate::options::Options;
use crate::packages::FFTW;
use crate::quiet::QUIET;
use crate::record::{Series, listed, number, numbers, quoted};
use crate::setup;
use crate::stats::{median, min};
use crate::tools::{self, Result, command, shown};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const VARIABLE: &str = "THRIFFTY_NETLAB";
const PACKET: &str = "NETLAB_MTU";
/// All that fft-cli knows; those that it cannot run here are left out.
const EXCHANGES: [&str; 7] =
    ["p2p", "pipelined", "alltoallv", "kway2", "kway4", "ring", "ring-flush"];
const PARTS: [&str; 5] = ["exchange", "pack", "unpack", "own", "fft"];

/// The hosts; gone when dropped.
pub(crate) struct Lab {
    script: PathBuf,
}

impl Lab {
    /// With the script that the environment names.
    pub(crate) fn new(hosts: usize, rate: &str) -> Result<Self> {
        let script = std::env::var_os(VARIABLE).map(PathBuf::from);
        let script = script.ok_or(format!("--net needs {VARIABLE}, the path of netlab"))?;
        Self::up(absolute(&script)?, hosts, rate)
    }

    fn up(script: PathBuf, hosts: usize, rate: &str) -> Result<Self> {
        let lab = Self { script };
        let words = ["up", &hosts.to_string(), rate];
        println!("$ {} {}", lab.script.display(), words.join(" "));
        println!("{}", tools::output(lab.command().args(words))?);
        Ok(lab)
    }

    /// The script, with names of hosts that are nobody else's.
    fn command(&self) -> Command {
        let mut netlab = command(&self.script);
        if std::env::var_os("NETLAB_PREFIX").is_none() {
            netlab.env("NETLAB_PREFIX", "thriffty");
        }
        netlab
    }

    /// A program with a rank on each host, to be completed.
    pub(crate) fn run(&self, hosts: usize, program: &Path) -> Command {
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

/// What one contender did.
struct Found {
    series: Series,
    /// Bytes that the busiest rank sends in one transform.
    busiest: f64,
    /// Seconds of each part, on the rank where it takes longest; none for programs that do not tell.
    parts: Vec<(&'static str, f64)>,
}

impl Found {
    /// Seconds that no transform with these bytes can be below.
    fn floor(&self, bits_per_second: f64) -> f64 {
        8.0 * self.busiest / bits_per_second
    }
}

/// Brings the hosts up, times everyone in turn, prints the table, writes the record.
pub(crate) fn run(options: &Options) -> Result {
    let bits = bits_per_second(&options.rate)?;
    if !setup::prepare(&[&FFTW]).mpi {
        return Err("bench --net needs MPI".into());
    }
    let (peer, cli) = bench::compile(options, true)?;
    let fftw = peer.as_deref().map(bench::fftw_version).transpose()?;
    let machine = machine::describe(fftw.as_deref());
    let lab = Lab::new(options.hosts, &options.rate)?;

    let mut servers = Vec::new();
    let problem = [options.kind.clone(), options.size_text()];
    if let Some(peer) = &peer {
        let both = [("fftw-mpi", None), ("fftw-mpi-transposed", Some("--transposed"))];
        let wanted = |name: &str| options.wants(name) && options.wires.is_empty();
        for (name, freedom) in both.into_iter().filter(|(name, _)| wanted(name)) {
            let mut fftw = lab.run(options.hosts, &absolute(peer)?);
            fftw.arg("mpi").args(&problem).arg("--serve").args(freedom);
            servers.push(start(name, &mut fftw)?);
        }
    }
    for (name, words) in ours(options) {
        let mut cli = lab.run(options.hosts, &absolute(&cli)?);
        // The same parts as FFTW-MPI's.
        let slabs = format!("{}x1x1", options.hosts);
        cli.arg("bench").args(&problem).args(["--in-grid", &slabs, "--out-grid", &slabs]);
        cli.arg("--serve").args(words);
        match start(&name, &mut cli) {
            Ok(server) => servers.push(server),
            Err(why) if !options.exchanges.is_empty() => return Err(why),
            Err(why) => println!("left out: {why}"),
        }
    }
    let mut contenders: Vec<&mut dyn Contender> =
        servers.iter_mut().map(|server| server as &mut dyn Contender).collect();
    let (all, busy) = bench::take_turns(&mut contenders, options.rounds, options.patience())?;
    let mut found = Vec::new();
    for (server, series) in servers.iter_mut().zip(all) {
        found.push(account(server, series, options)?);
    }
    print!("{}", table(&found, bits));
    let noisy = busy.iter().filter(|share| **share > QUIET).count();
    if noisy > 0 {
        println!("  {noisy} of {} rounds beside other work: NOT TO BE TRUSTED", busy.len());
    }

    let date = tools::output(command("date").args(["-u", "+%F"]))?;
    let mut net = format!("net-{}x{}", options.hosts, options.rate);
    if !options.wires.is_empty() {
        net.push_str("-wires");
    }
    if std::env::var_os(machine::LAUNCHER).is_some() {
        // Another MPI's record stands beside the system's.
        let mpi = machine.iter().find(|(name, _)| *name == "mpi").map_or("", |(_, said)| said);
        net.push_str(if mpi.starts_with("MPICH") { "-mpich" } else { "-openmpi" });
    }
    let path = bench::record_path(options, &date, &net)?;
    let net = network(options, bits, std::env::var(PACKET).ok());
    std::fs::write(&path, json(&date, options, &machine, &found, &busy, bits, &net))
        .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    println!("record: {}", path.display());
    Ok(())
}

/// Our contenders: their names, and what fft-cli is told. With wires, one exchange with raw messages and with each.
fn ours(options: &Options) -> Vec<(String, Vec<String>)> {
    let words = |words: &[&str]| words.iter().map(|word| String::from(*word)).collect::<Vec<_>>();
    let field = options.field.as_deref().map_or(vec![], |field| words(&["--field", field]));
    let mut all = Vec::new();
    if options.wires.is_empty() {
        let known = EXCHANGES.map(String::from);
        let asked = if options.exchanges.is_empty() { &known[..] } else { &options.exchanges };
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

/// The same path from everywhere.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))
}

/// What a program says about itself, or what is known of it.
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

/// Bytes that a rank with slabs of equal size sends in so many transpositions.
fn slab_bytes(options: &Options, transpositions: usize) -> f64 {
    let [n0, n1, n2] = options.size;
    let last = if options.kind == "r2c" { n2 / 2 + 1 } else { n2 };
    let slab = (n0.div_ceil(options.hosts) * n1 * last * 16) as f64;
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

/// The network in the record; without bytes of a packet, where the script chooses them.
fn network(options: &Options, bits: f64, packet: Option<String>) -> String {
    let packet = packet.and_then(|bytes| bytes.parse::<u32>().ok());
    format!(
        "{{\"hosts\": {0}, \"ranks\": {0}, \"bits_per_second\": {1}, \"mtu\": {2}}}",
        options.hosts,
        bits.round(),
        packet.map_or("null".into(), |bytes| bytes.to_string())
    )
}

fn json(
    date: &str,
    options: &Options,
    machine: &machine::Description,
    found: &[Found],
    busy: &[f64],
    bits: f64,
    network: &str,
) -> String {
    let machine =
        machine.iter().map(|(name, value)| format!("{}: {}", quoted(name), quoted(value)));
    let series = found.iter().map(|one| {
        let seconds = &one.series.seconds;
        let parts = one.parts.iter().map(|(name, s)| format!("{}: {}", quoted(name), number(*s)));
        format!(
            "{{\"name\": {}, \"median\": {}, \"min\": {}, \"bytes_sent_busiest\": {}, \"floor\": {}, \
             \"floor_percent\": {}, \"split\": {{{}}}, \"seconds\": [{}]}}",
            quoted(&one.series.name),
            number(median(seconds)),
            number(min(seconds)),
            one.busiest.round(),
            number(one.floor(bits)),
            number(100.0 * one.floor(bits) / median(seconds)),
            parts.collect::<Vec<_>>().join(", "),
            numbers(seconds)
        )
    });
    format!(
        "{{\n  \"date\": {},\n  \"problem\": {},\n  \"rounds\": {},\n  \"machine\": {{\n    {}\n  }},\n  \
         \"network\": {},\n  \
         \"others_busy\": [{}],\n  \"series\": {}\n}}\n",
        quoted(date),
        quoted(&format!("{} {}", options.kind, options.size_text())),
        options.rounds,
        machine.collect::<Vec<_>>().join(",\n    "),
        network,
        numbers(busy),
        listed(series, 4)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let options = Options {
            wires: vec!["bits:16".into(), "1e-6".into()],
            field: Some("smooth".into()),
            ..Options::default()
        };
        let lines: Vec<_> =
            ours(&options).iter().map(|(name, w)| format!("{name}: {}", w.join(" "))).collect();
        assert_eq!(
            lines,
            [
                "thriffty-pipelined: --exchange pipelined --field smooth",
                "thriffty-pipelined bits:16: --exchange pipelined --wire bits:16 --field smooth",
                "thriffty-pipelined 1e-6: --exchange pipelined --tolerance 1e-6 --field smooth",
            ]
        );
        assert_eq!(ours(&Options::default()).len(), EXCHANGES.len());
    }

    #[test]
    fn slabs_send_all_but_what_stays() {
        let options = Options { hosts: 4, ..Options::default() };
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
        let options = Options { rounds: 3, ..Options::default() };
        let machine = vec![("cpu", "one".to_string())];
        let expected = r#"{
  "date": "2026-01-02",
  "problem": "c2c 256x256x256",
  "rounds": 3,
  "machine": {
    "cpu": "one"
  },
  "network": {"hosts": 4, "ranks": 4, "bits_per_second": 1000000000, "mtu": 32000},
  "others_busy": [0.000000],
  "series": [
    {"name": "thriffty-p2p", "median": 2.000000, "min": 2.000000, "bytes_sent_busiest": 125000000, "floor": 1.000000, "floor_percent": 50.000000, "split": {"fft": 0.250000}, "seconds": [2.000000, 4.000000, 2.000000]}
  ]
}
"#;
        let net = network(&options, 1e9, Some("32000".into()));
        assert_eq!(json("2026-01-02", &options, &machine, &found, &[0.0], 1e9, &net), expected);
        assert!(network(&options, 1e9, None).ends_with("\"mtu\": null}"));
    }
}
