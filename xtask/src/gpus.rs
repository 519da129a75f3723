//! `cargo xtask bench --gpu`: cubes on several GPUs, compared with cuFFT and cuFFTMp, and with the
//! limits of any transform.
//!
//! Programs run one after the other, because GPUs have no memory for all of them.

use crate::contender::{Contender, Server};
use crate::machine;
use crate::options::Options;
use crate::record::{self, Series};
use crate::stats::median;
use crate::tools::{self, Result, cargo, command};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const WARM_UP: usize = 3;

/// Lengths of cubes unless others are given.
const SIZES: [usize; 7] = [256, 384, 500, 512, 768, 1000, 1024];

/// Times each cube on each number of GPUs, prints the table, writes the record.
pub(crate) fn run(options: &Options) -> Result {
    let gpus = ask("name")?;
    let binaries = Binaries::prepare(options)?;
    let mut machine = machine::describe(None);
    machine.retain(|(name, _)| *name != "fftw");
    machine.push(("gpus", format!("{} {}", gpus.len(), gpus[0])));
    machine.push(("driver", ask("driver_version")?.swap_remove(0)));
    machine.iter().for_each(|(name, value)| println!("  {name:8} {value}"));
    let sizes = if options.sizes.is_empty() { &SIZES[..] } else { &options.sizes };
    let counts: Vec<_> = options.ranks.iter().filter(|ranks| **ranks <= gpus.len()).collect();
    if counts.is_empty() {
        return Err(format!("--ranks {:?}: this host has {} GPUs", options.ranks, gpus.len()));
    }
    let mut cases = Vec::new();
    for &ranks in counts {
        for &n in sizes {
            let mut case = GpuCase { gpus: ranks, n, series: Vec::new() };
            for (name, mut program) in binaries.programs(options, ranks, n) {
                match timed(name, &mut program, options.rounds) {
                    Ok(series) => case.series.push(series),
                    // Some do not fit into memory.
                    Err(why) => println!("{name}, {n} on {ranks}: {why}"),
                }
            }
            println!("{}", case.line());
            cases.push(case);
        }
    }
    println!("\n{} {}, median ms; ratios are ours over cuFFT's\n", options.kind, options.precision);
    println!("{}", heading());
    cases.iter().for_each(|case| println!("{}", case.line()));
    let cases: Vec<_> = cases.iter().map(GpuCase::record).collect();
    let record = record::with_problem(options, &machine, json!({ "cases": cases }));
    record::write(options, &format!("-{}-gpus", options.precision), record)
}

/// What nvidia-smi says of each GPU of this host.
fn ask(what: &str) -> Result<Vec<String>> {
    let query = format!("--query-gpu={what}");
    let list = tools::output(command("nvidia-smi").args([&query, "--format=csv,noheader"]))?;
    let found: Vec<_> = list.lines().map(|line| line.trim().to_string()).collect();
    if found.is_empty() { Err("nvidia-smi names no GPU".into()) } else { Ok(found) }
}

struct Binaries {
    cli: PathBuf,
    /// cuFFT's program, if there is an nvcc.
    peer: Option<PathBuf>,
    /// Whether cuFFTMp is installed.
    has_cufftmp: bool,
}

impl Binaries {
    fn prepare(options: &Options) -> Result<Self> {
        let cli = match &options.cli {
            Some(cli) => cli.clone(),
            None => {
                let build =
                    ["build", "--release", "--package", "fft-cli", "--features", "fft-cli/cuda"];
                tools::run_shown(cargo().args(build))?;
                tools::target_dir().join("release/fft-cli")
            }
        };
        let peer = compile_peer().inspect_err(|why| println!("not available: cuFFT: {why}")).ok();
        let has_cufftmp = tools::succeeds(command("python3").args([CUFFTMP, "check"]));
        if !has_cufftmp {
            println!("not available: cuFFTMp: python3 {CUFFTMP} check tells why");
        }
        Ok(Self { cli: tools::absolute(&cli)?, peer, has_cufftmp })
    }

    /// The programs for a cube, with their names.
    fn programs(&self, options: &Options, gpus: usize, n: usize) -> Vec<(&'static str, Command)> {
        let (count, shape) = (gpus.to_string(), format!("{n}x{n}x{n}"));
        let ours = |words: &str| {
            let mut ours = command(&self.cli);
            ours.args(["bench", &options.kind, &shape, "--serve", "--device", "cuda"]);
            ours.args(["--ranks", &count, "--precision", &options.precision]);
            ours.args(words.split_whitespace());
            ours
        };
        let mut programs =
            vec![(XY, ours(&format!("--input-grid {count}x1x1 --output-grid 1x{count}x1")))];
        if gpus > 1 {
            programs
                .push((XX, ours(&format!("--input-grid {count}x1x1 --output-grid {count}x1x1"))));
        }
        if gpus > 3 {
            programs.push((BRICKS, ours("")));
        }
        if self.has_cufftmp && gpus > 1 {
            for (name, order) in [(MP_SHUFFLED, "shuffled"), (MP_NATURAL, "natural")] {
                let mut theirs = command("python3");
                theirs.args([CUFFTMP, order, &count, &n.to_string()]);
                theirs.args([&options.precision, &options.kind]);
                programs.push((name, theirs));
            }
        }
        let Some(peer) = &self.peer else { return programs };
        let theirs = |what: &str| {
            let mut theirs = command(peer);
            theirs.args([what, &count, &n.to_string(), &options.precision, &options.kind]);
            theirs
        };
        programs.push((PASS, theirs("pass")));
        if gpus > 1 {
            programs.push((LINKS, theirs("links")));
        }
        programs.push((SHUFFLED, theirs("shuffled")));
        if gpus > 1 {
            programs.push((NATURAL, theirs("natural")));
        }
        programs
    }
}

const XY: &str = "thriffty X to Y";
const XX: &str = "thriffty X to X";
const BRICKS: &str = "thriffty bricks";
const PASS: &str = "pass";
const LINKS: &str = "links";
const SHUFFLED: &str = "cufft shuffled";
const NATURAL: &str = "cufft natural";
const MP_SHUFFLED: &str = "cufftmp shuffled";
const MP_NATURAL: &str = "cufftmp natural";
/// Times cuFFTMp, if it is installed.
const CUFFTMP: &str = "benches/peers/cufftmp.py";

fn compile_peer() -> Result<PathBuf> {
    let folder = tools::target_dir().join("peers");
    tools::make_folder(&folder)?;
    let peer = tools::absolute(&folder.join("gpus"))?;
    let source = Path::new("benches/peers/gpus.cu");
    let mut nvcc = command("nvcc");
    nvcc.args(["-O2", "-arch=native"]).arg(source).arg("-o").arg(&peer).arg("-lcufft");
    tools::run_shown(&mut nvcc)?;
    Ok(peer)
}

/// Times a program alone.
fn timed(name: &str, program: &mut Command, rounds: usize) -> Result<Series> {
    let mut server = Server::start(name, program)?;
    (0..WARM_UP).try_for_each(|_| server.turn().map(drop))?;
    let seconds = (0..rounds).map(|_| server.turn()).collect::<Result<_>>()?;
    Ok(Series { name: name.into(), seconds })
}

/// All programs for one cube.
struct GpuCase {
    gpus: usize,
    n: usize,
    series: Vec<Series>,
}

fn heading() -> String {
    let names = [
        "X to Y", "cuFFT", "ratio", "cuFFTMp", "X to X", "cuFFT", "ratio", "cuFFTMp", "bricks",
        "passes", "links",
    ];
    format!("gpus    n{}", names.map(|name| format!("{name:>9}")).concat())
}

impl GpuCase {
    fn milliseconds(&self, name: &str) -> Option<f64> {
        let found = self.series.iter().find(|series| series.name == name);
        found.map(|series| 1e3 * median(&series.seconds))
    }

    /// Medians in milliseconds. Two passes over memory, and the links, are bounds from below.
    fn line(&self) -> String {
        let [xy, shuffled, xx, natural, bricks, pass, links] =
            [XY, SHUFFLED, XX, NATURAL, BRICKS, PASS, LINKS].map(|name| self.milliseconds(name));
        let ratio = |ours: Option<f64>, theirs: Option<f64>| Some(ours? / theirs?);
        let passes = pass.map(|pass| 2.0 * pass);
        let cells = [
            xy,
            shuffled,
            ratio(xy, shuffled),
            self.milliseconds(MP_SHUFFLED),
            xx,
            natural,
            ratio(xx, natural),
            self.milliseconds(MP_NATURAL),
            bricks,
            passes,
            links,
        ];
        let cell = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.3}"));
        let cells = cells.map(|value| format!("{:>9}", cell(value))).concat();
        format!("{:4} {:4}{cells}", self.gpus, self.n)
    }

    fn record(&self) -> Value {
        let series = self.series.iter().map(Series::record);
        json!({ "gpus": self.gpus, "n": self.n, "series": series.collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::parse;
    use crate::tools::shown;
    use std::collections::BTreeMap;

    /// The program of each name.
    fn lines(
        options: &str,
        gpus: usize,
        peer: bool,
        has_cufftmp: bool,
    ) -> BTreeMap<&'static str, String> {
        let peer = peer.then(|| PathBuf::from("peer"));
        let binaries = Binaries { cli: "cli".into(), peer, has_cufftmp };
        let programs = binaries.programs(&parse(options).unwrap(), gpus, 500);
        programs.iter().map(|(name, program)| (*name, shown(program))).collect()
    }

    #[test]
    fn programs_follow_the_gpus_and_the_kind() {
        let found = lines("--gpu", 4, true, true);
        assert_eq!(
            found[XY],
            "cli bench c2c 500x500x500 --serve --device cuda --ranks 4 --precision f64 \
             --input-grid 4x1x1 --output-grid 1x4x1"
        );
        assert_eq!(found[NATURAL], "peer natural 4 500 f64 c2c");
        let real = lines("--gpu --kind r2c", 2, true, true);
        assert_eq!(real[SHUFFLED], "peer shuffled 2 500 f64 r2c");
        let cufftmp = "python3 benches/peers/cufftmp.py natural 2 500 f64 r2c";
        assert_eq!(real[MP_NATURAL], cufftmp);
        assert!(found.contains_key(BRICKS) && !real.contains_key(BRICKS));
        let names = |gpus, peer, has_cufftmp| {
            lines("--gpu", gpus, peer, has_cufftmp).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(names(1, true, true), [SHUFFLED, PASS, XY]);
        assert_eq!(names(2, false, false), [XX, XY]);
        assert_eq!(names(2, false, true), [MP_NATURAL, MP_SHUFFLED, XX, XY]);
    }

    #[test]
    fn a_line_has_what_was_timed() {
        let series = |name: &str, seconds| Series { name: name.into(), seconds: vec![seconds; 3] };
        let all = [(XY, 0.004), (SHUFFLED, 0.008), (MP_NATURAL, 0.016), (PASS, 0.001)];
        let series = all.map(|(name, seconds)| series(name, seconds)).into();
        let case = GpuCase { gpus: 2, n: 500, series };
        let found: Vec<_> = case.line().split_whitespace().map(String::from).collect();
        assert_eq!(
            found,
            [
                "2", "500", "4.000", "8.000", "0.500", "-", "-", "-", "-", "16.000", "-", "2.000",
                "-"
            ]
        );
        assert_eq!(heading().len(), case.line().len());
        assert_eq!(case.record()["series"][3]["median"], 0.001);
    }
}
