//! `cargo xtask bench`: thriffty beside FFTW.
//!
//! A shared machine drifts by tens of percent within minutes, so times of one program after the other mean little.
//! Here all programs stay alive and take turns: in each round everyone is timed once, noise hits all alike, and it is
//! the ratios within the rounds that count. The first of a round changes from round to round, so that nobody always
//! follows the same neighbour.

use crate::contender::{Contender, MemoryCopy, Server};
use crate::demo::{build_cli, mpirun};
use crate::machine;
use crate::options::Options;
use crate::packages::FFTW;
use crate::quiet;
use crate::record::{self, Heat, Series};
use crate::setup;
use crate::tools::{self, Result, command, shown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const WARM_UP: usize = 2;

/// Runs every heat, prints the tables, writes the record.
pub(crate) fn run(options: &Options) -> Result {
    let mpi = setup::prepare(&[&FFTW]).mpi;
    let (peer, cli) = compile(options, mpi)?;
    let fftw = peer.as_deref().map(fftw_version).transpose()?;

    let machine = machine::describe(fftw.as_deref());
    println!("\n{} {}, {} rounds", options.kind, options.size_text(), options.rounds);
    for (name, value) in &machine {
        println!("  {name:8} {value}");
    }

    let mut copy = MemoryCopy::new(options.bytes());
    let mut heats = Vec::new();
    for &ranks in &options.ranks {
        let mut servers = Vec::new();
        let mut all = programs(options, ranks, mpi, peer.as_deref(), &cli);
        all.retain(|(name, _)| options.wants(name));
        for (name, mut command) in all {
            println!("starting {name}: {}", shown(&command));
            servers.push(Server::start(&name, &mut command)?);
        }
        let mut contenders: Vec<&mut dyn Contender> = vec![&mut copy];
        contenders.extend(servers.iter_mut().map(|server| server as &mut dyn Contender));
        let (series, busy) = take_turns(&mut contenders, options.rounds, options.patience())?;
        let heat = Heat { ranks, series, busy };
        println!("{}", heat.table());
        heats.push(heat);
    }
    println!("by round: the median of the ratios within one round; below 1 thriffty is faster");

    let date = tools::output(command("date").args(["-u", "+%F"]))?;
    let path = record_path(options, &date, "")?;
    std::fs::write(&path, record::json(&date, options, &machine, &heats))
        .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    println!("record: {}", path.display());
    Ok(())
}

/// Times everyone once per round. A round counts if nobody else was at work before and after it, or when the patience
/// is used up. Also tells, for each round, the share of the cores that others had.
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

/// The programs of one heat. All work out of place and keep their input, as our slices are kept; beside that, what
/// FFTW-MPI gains when it may overwrite its input, and when it may leave its output transposed.
fn programs(
    options: &Options,
    ranks: usize,
    mpi: bool,
    peer: Option<&Path>,
    cli: &Path,
) -> Vec<(String, Command)> {
    // From four ranks on, even bricks are not slabs.
    let cut_both_ways = ranks >= 4;
    let ranks = ranks.to_string();
    let problem = [options.kind.clone(), options.size_text()];
    let mut programs = Vec::new();
    if let Some(peer) = peer {
        for (name, freedom) in [
            ("fftw-mpi", None),
            ("fftw-mpi-destroying", Some("--destroy-input")),
            ("fftw-mpi-transposed", Some("--transposed")),
        ] {
            let mut fftw = mpirun(&ranks, peer);
            fftw.arg("mpi").args(&problem).arg("--serve").args(freedom);
            programs.push((name.into(), fftw));
        }
        let mut fftw = command(peer);
        fftw.arg("threads").args(&problem).args(["--serve", &ranks]);
        programs.push(("fftw-threads".into(), fftw));
    }
    if mpi {
        let mut ours = mpirun(&ranks, cli);
        ours.arg("bench").args(&problem).arg("--serve");
        programs.push(("thriffty-mpi".into(), ours));
        for exchange in &options.exchanges {
            let mut ours = mpirun(&ranks, cli);
            ours.arg("bench").args(&problem).arg("--serve").args(way(exchange));
            programs.push((format!("thriffty-mpi-{exchange}"), ours));
        }
        // FFTW-MPI's parts, where ours are not the same by themselves; and data where other processes reach it.
        let slabs = format!("{ranks}x1x1");
        let slabs = ["--in-grid", &slabs, "--out-grid", &slabs];
        let shared = ["--shared-arrays"];
        let ways: [(&str, bool, &[&str]); 3] = [
            ("slabs", cut_both_ways, &slabs),
            ("shared-arrays", ranks != "1", &shared),
            ("slabs-shared-arrays", cut_both_ways, &[&slabs[..], &shared].concat()),
        ];
        for (name, _, words) in ways.into_iter().filter(|(_, differs, _)| *differs) {
            let mut ours = mpirun(&ranks, cli);
            ours.arg("bench").args(&problem).args(words).arg("--serve");
            programs.push((format!("thriffty-mpi-{name}"), ours));
        }
    }
    let mut ours = command(cli);
    ours.arg("bench").args(&problem).args(["--serve", "--ranks", &ranks]);
    programs.push(("thriffty-threads".into(), ours));
    if let Some(cli) = &options.beside {
        let mut older = command(cli);
        older.arg("bench").args(&problem).args(["--serve", "--ranks", &ranks]);
        programs.push(("older-threads".into(), older));
        if mpi {
            let mut older = mpirun(&ranks, cli);
            older.arg("bench").args(&problem).arg("--serve");
            programs.push(("older-mpi".into(), older));
        }
    }
    programs
}

/// What fft-cli is told so that an exchange is used; or, for `tuned`, what the tuner finds best.
pub(crate) fn way(exchange: &str) -> Vec<&str> {
    match exchange {
        // Open MPI's launcher takes `--tune` for an option of its own wherever it stands.
        "tuned" => vec!["--tune=measure"],
        exchange => vec!["--exchange", exchange],
    }
}

/// FFTW's program, where FFTW is, and ours.
pub(crate) fn compile(options: &Options, mpi: bool) -> Result<(Option<PathBuf>, PathBuf)> {
    let peer = if mpi && (FFTW.present)() { Some(compile_peer()?) } else { None };
    let cli = match &options.cli {
        Some(cli) => cli.clone(),
        None => build_cli(mpi)?,
    };
    Ok((peer, cli))
}

fn compile_peer() -> Result<PathBuf> {
    let folder = tools::target_dir().join("peers");
    tools::make_folder(&folder)?;
    let peer = folder.join("fftw_peer");
    let mut mpicc = command("mpicc");
    mpicc.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "benches/peers/fftw.c", "-o"]);
    mpicc.arg(&peer).args(["-lfftw3_mpi", "-lfftw3_threads", "-lfftw3", "-lpthread", "-lm"]);
    tools::run_shown(&mut mpicc)?;
    Ok(peer)
}

/// The library's own word for its version, from a run that costs nothing.
pub(crate) fn fftw_version(peer: &Path) -> Result<String> {
    let report = tools::output(command(peer).args(["threads", "c2c", "2x2x2", "1", "1"]))?;
    let version = report.split("\"version\":\"").nth(1).and_then(|rest| rest.split('"').next());
    version.map(String::from).ok_or(format!("no version in `{report}`"))
}

/// Where records go: beside the sources where they are to be kept.
pub(crate) fn record_folder(options: &Options) -> Result<PathBuf> {
    let folder = match options.record {
        true => PathBuf::from("benches/records"),
        false => tools::target_dir(),
    };
    tools::make_folder(&folder)?;
    Ok(folder)
}

/// One file per day, machine, problem and network (empty for none): a later run of the same replaces it.
pub(crate) fn record_path(options: &Options, date: &str, network: &str) -> Result<PathBuf> {
    let folder = record_folder(options)?;
    let mut problem = format!("{}-{}", options.kind, options.size_text());
    if !options.net && !options.exchanges.is_empty() {
        problem.push_str("-exchanges");
    }
    if !network.is_empty() {
        problem = format!("{problem}-{network}");
    }
    Ok(folder.join(format!("{date}-{}-{problem}.json", machine::short_id())))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let options = Options::default();
        let lines = |mpi, peer: Option<&str>| -> Vec<String> {
            programs(&options, 4, mpi, peer.map(Path::new), Path::new("cli"))
                .iter()
                .map(|(_, command)| shown(command))
                .collect()
        };
        let all = lines(true, Some("peer"));
        assert_eq!(all.len(), 9);
        assert_eq!(all[0], "mpirun -n 4 peer mpi c2c 256x256x256 --serve");
        assert_eq!(all[1], "mpirun -n 4 peer mpi c2c 256x256x256 --serve --destroy-input");
        assert_eq!(all[3], "peer threads c2c 256x256x256 --serve 4");
        assert_eq!(all[4], "mpirun -n 4 cli bench c2c 256x256x256 --serve");
        let slabs = "--in-grid 4x1x1 --out-grid 4x1x1 --serve";
        assert_eq!(all[5], format!("mpirun -n 4 cli bench c2c 256x256x256 {slabs}"));
        let shared = "--shared-arrays --serve";
        assert_eq!(all[6], format!("mpirun -n 4 cli bench c2c 256x256x256 {shared}"));
        let slabs = slabs.replace("--serve", shared);
        assert_eq!(all[7], format!("mpirun -n 4 cli bench c2c 256x256x256 {slabs}"));
        let beside = Options { beside: Some("old".into()), ..Options::default() };
        let all = programs(&beside, 2, true, None, Path::new("cli"));
        let lines_of: Vec<_> =
            all.iter().rev().take(2).map(|(_, command)| shown(command)).collect();
        assert_eq!(lines_of[1], "old bench c2c 256x256x256 --serve --ranks 2");
        assert_eq!(lines_of[0], "mpirun -n 2 old bench c2c 256x256x256 --serve");
        assert_eq!(lines(false, None), ["cli bench c2c 256x256x256 --serve --ranks 4"]);
    }
}
