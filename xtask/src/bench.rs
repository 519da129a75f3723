//! `cargo xtask bench`: thriffty against FFTW.
//!
//! A shared machine drifts within minutes. So all programs stay alive, each round times every
//! program once, and the ratios within rounds count. The order rotates from round to round.

use crate::contender::{Contender, MemoryCopy, Server};
use crate::demo::{build_cli, mpirun};
use crate::machine::{self, Description};
use crate::options::Options;
use crate::packages::FFTW;
use crate::quiet;
use crate::record::{self, RankCase, Series};
use crate::setup;
use crate::tools::{self, Result, command, shown};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const WARM_UP: usize = 2;

/// Runs every case, prints the tables, writes the record.
pub(crate) fn run(options: &Options) -> Result {
    let binaries = Binaries::prepare(options)?;
    println!("\n{} {}, {} rounds", options.kind, options.size_text(), options.rounds);
    let machine = binaries.machine()?;
    let cases = cases(options, &binaries, |name| options.wants(name))?;
    cases.iter().for_each(|case| println!("{}", case.table()));
    println!("by round: the median of the ratios within one round; below 1 thriffty is faster");
    let name = if options.exchanges.is_empty() { "" } else { "-exchanges" };
    record::write(options, name, record::of_cases(options, &machine, &cases))
}

/// The programs that can be timed.
pub(crate) struct Binaries {
    pub(crate) mpi: bool,
    /// FFTW's program, if FFTW is there.
    pub(crate) peer: Option<PathBuf>,
    /// Our program.
    pub(crate) cli: PathBuf,
}

impl Binaries {
    /// Compiles both.
    pub(crate) fn prepare(options: &Options) -> Result<Self> {
        let mpi = setup::prepare(&[&FFTW]).mpi;
        let has_peer = mpi && (FFTW.present)();
        let peer = if has_peer { Some(compile_peer(&options.precision)?) } else { None };
        let cli = options.cli.clone().map_or_else(|| build_cli(mpi), Ok)?;
        Ok(Self { mpi, peer, cli })
    }

    /// Describes the machine and prints it.
    pub(crate) fn machine(&self) -> Result<Description> {
        let fftw = self.peer.as_deref().map(fftw_version).transpose()?;
        let machine = machine::describe(fftw.as_deref());
        for (name, value) in &machine {
            println!("  {name:8} {value}");
        }
        Ok(machine)
    }
}

/// Times the requested programs at each number of ranks.
pub(crate) fn cases(
    options: &Options,
    binaries: &Binaries,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<RankCase>> {
    let mut copy = MemoryCopy::new(options.bytes());
    let mut cases = Vec::new();
    for &ranks in &options.ranks {
        let mut servers = Vec::new();
        let mut all = programs(options, ranks, binaries);
        all.retain(|(name, _)| wanted(name));
        for (name, mut command) in all {
            println!("starting {name}: {}", shown(&command));
            servers.push(Server::start(&name, &mut command)?);
        }
        let mut contenders: Vec<&mut dyn Contender> = vec![&mut copy];
        contenders.extend(servers.iter_mut().map(|server| server as &mut dyn Contender));
        let (series, busy) = take_turns(&mut contenders, options.rounds, options.patience())?;
        cases.push(RankCase { ranks, series, busy });
    }
    Ok(cases)
}

/// Times every contender once per round, and measures the share of the cores that other processes
/// used. A round counts if the cores were idle before and after it, or if the time for waiting is
/// used up.
pub(crate) fn take_turns(
    contenders: &mut [&mut dyn Contender],
    rounds: usize,
    patience: Duration,
) -> Result<(Vec<Series>, Vec<f64>)> {
    let series = |c: &&mut dyn Contender| Series { name: c.name().into(), seconds: Vec::new() };
    let mut all: Vec<Series> = contenders.iter().map(series).collect();
    let mut others = Vec::new();
    let n = contenders.len();
    let mut played = 0;
    let mut spent = Duration::ZERO;
    while others.len() < rounds {
        let start = Instant::now();
        quiet::wait(patience.saturating_sub(spent));
        let before = quiet::busy();
        let mut seconds = vec![0.0; n];
        for turn in 0..n {
            let who = (played + turn) % n;
            seconds[who] = contenders[who].turn()?;
        }
        played += 1;
        let busy = before.max(quiet::busy());
        if played > WARM_UP && (busy <= quiet::QUIET || spent >= patience) {
            others.push(busy);
            all.iter_mut().zip(seconds).for_each(|(series, s)| series.seconds.push(s));
        } else {
            spent += start.elapsed();
        }
    }
    Ok((all, others))
}

/// The programs of one case, all out of place. FFTW-MPI also overwrites its input, or leaves its
/// output transposed.
fn programs(options: &Options, ranks: usize, binaries: &Binaries) -> Vec<(String, Command)> {
    let Binaries { mpi, peer, cli } = binaries;
    let count = ranks.to_string();
    let mut programs = Vec::new();
    let mut add = |name: &str, by_mpi: bool, program: &Path, verb: &str, words: &str| {
        let mut start = if by_mpi { mpirun(&count, program) } else { command(program) };
        start.args([verb, &options.kind, &options.size_text(), "--serve"]);
        start.args(words.split_whitespace());
        if options.precision == "f32" && verb == "bench" {
            start.args(["--precision", "f32"]);
        }
        programs.push((name.to_string(), start));
    };
    let threads = format!("--ranks {ranks}");
    if let Some(peer) = peer {
        add("fftw-mpi", true, peer, "mpi", "");
        add("fftw-mpi-destroying", true, peer, "mpi", "--destroy-input");
        add("fftw-mpi-transposed", true, peer, "mpi", "--transposed");
        add("fftw-threads", false, peer, "threads", &ranks.to_string());
    }
    if *mpi {
        add("thriffty-mpi", true, cli, "bench", "");
        for exchange in &options.exchanges {
            let name = format!("thriffty-mpi-{exchange}");
            add(&name, true, cli, "bench", &way(exchange).join(" "));
        }
        let is_line = options.size.0.len() == 1;
        if is_line {
            let cyclic = format!("--input-cyclic {ranks} --output-cyclic {ranks}");
            add("thriffty-mpi-transposed", true, cli, "bench", "--transposed-output");
            add("thriffty-mpi-cyclic", true, cli, "bench", &cyclic);
        }
        // From four ranks on, even bricks are not FFTW-MPI's slabs.
        let slabs = format!("--input-grid {ranks}x1x1 --output-grid {ranks}x1x1");
        let both = format!("{slabs} --shared-arrays");
        for (name, least, words) in [
            ("thriffty-mpi-slabs", 4, slabs.as_str()),
            ("thriffty-mpi-shared-arrays", 2, "--shared-arrays"),
            ("thriffty-mpi-slabs-shared-arrays", 4, &both),
        ] {
            if ranks >= least && !is_line {
                add(name, true, cli, "bench", words);
            }
        }
    }
    add("thriffty-threads", false, cli, "bench", &threads);
    if let Some(older) = &options.beside {
        add("older-threads", false, older, "bench", &threads);
        if *mpi {
            add("older-mpi", true, older, "bench", "");
        }
    }
    programs
}

/// The options of fft-cli for an exchange, or for the tuner's choice.
pub(crate) fn way(exchange: &str) -> Vec<&str> {
    match exchange {
        "tuned" => vec!["--tuning", "measure"],
        exchange => vec!["--exchange", exchange],
    }
}

fn compile_peer(precision: &str) -> Result<PathBuf> {
    let folder = tools::target_dir().join("peers");
    tools::make_folder(&folder)?;
    let (name, define, suffix) = match precision {
        "f32" => ("fftw_peer_f32", "-DSINGLE", "f"),
        _ => ("fftw_peer", "-DDOUBLE", ""),
    };
    let peer = folder.join(name);
    let mut mpicc = command("mpicc");
    mpicc.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", define]);
    mpicc.args(["benches/peers/fftw.c", "-o"]).arg(&peer);
    for part in ["_mpi", "_threads", ""] {
        mpicc.arg(format!("-lfftw3{suffix}{part}"));
    }
    mpicc.args(["-lpthread", "-lm"]);
    tools::run_shown(&mut mpicc)?;
    Ok(peer)
}

/// FFTW's version, from a tiny run.
fn fftw_version(peer: &Path) -> Result<String> {
    let report = tools::output(command(peer).args(["threads", "c2c", "2x2x2", "1", "1"]))?;
    let found: Option<Value> = report.lines().find_map(|line| serde_json::from_str(line).ok());
    let version = found.as_ref().and_then(|found| found["version"].as_str());
    version.map(String::from).ok_or(format!("no version in `{report}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::parse;

    struct Counter {
        name: String,
        turns: f64,
    }

    impl Contender for Counter {
        fn name(&self) -> &str {
            &self.name
        }
        fn turn(&mut self) -> Result<f64> {
            self.turns += 1.0;
            Ok(self.turns)
        }
    }

    #[test]
    fn everyone_is_timed_once_per_round_after_warming_up() {
        let mut a = Counter { name: "a".into(), turns: 0.0 };
        let mut b = Counter { name: "b".into(), turns: 10.0 };
        let players: &mut [&mut dyn Contender] = &mut [&mut a, &mut b];
        let (series, busy) = take_turns(players, 3, Duration::ZERO).unwrap();
        assert_eq!(busy.len(), 3);
        assert_eq!(series[0].name, "a");
        assert_eq!(series[0].seconds, [3.0, 4.0, 5.0]);
        assert_eq!(series[1].seconds, [13.0, 14.0, 15.0]);
    }

    #[test]
    fn the_programs_follow_what_is_there() {
        let lines = |line: &str, ranks, mpi, peer: Option<&str>| -> Vec<String> {
            let binaries = Binaries { mpi, peer: peer.map(PathBuf::from), cli: "cli".into() };
            programs(&parse(line).unwrap(), ranks, &binaries)
                .iter()
                .map(|(_, command)| shown(command))
                .collect()
        };
        let all = lines("", 4, true, Some("peer"));
        assert_eq!(all.len(), 9);
        assert_eq!(all[0], "mpirun -n 4 peer mpi c2c 256x256x256 --serve");
        assert_eq!(all[1], "mpirun -n 4 peer mpi c2c 256x256x256 --serve --destroy-input");
        assert_eq!(all[3], "peer threads c2c 256x256x256 --serve 4");
        let ours = "mpirun -n 4 cli bench c2c 256x256x256 --serve";
        assert_eq!(all[4], ours);
        let slabs = "--input-grid 4x1x1 --output-grid 4x1x1";
        assert_eq!(all[5], format!("{ours} {slabs}"));
        assert_eq!(all[6], format!("{ours} --shared-arrays"));
        assert_eq!(all[7], format!("{ours} {slabs} --shared-arrays"));
        let all = lines("--beside old", 2, true, None);
        let last =
            ["--serve --ranks 2", "--serve"].map(|end| format!("old bench c2c 256x256x256 {end}"));
        assert_eq!(all[all.len() - 2..], [last[0].clone(), format!("mpirun -n 2 {}", last[1])]);
        assert_eq!(lines("", 4, false, None), ["cli bench c2c 256x256x256 --serve --ranks 4"]);
    }
}
