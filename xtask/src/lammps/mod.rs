//! `cargo xtask lammps`: LAMMPS with its own FFT and with thriffty in the place of heFFTe.
//!
//! Both are built from Debian's unchanged source. They run the rhodopsin benchmark, whose output
//! must agree, and the same without thermostat, from which errors of forces and energy are read.

mod log;

use crate::packages::{self, COMPILERS, FFTW};
use crate::tools::{self, Result, command, run_shown};
use crate::{heffte, install};
use log::{Log, forces, relative_error};
use std::path::{Path, PathBuf};

/// The tolerances of messages that are tried.
const TOLERANCES: [&str; 4] = ["1e-4", "1e-5", "1e-6", "1e-7"];
const RANKS: [usize; 3] = [1, 2, 4];
/// Packages of the benchmark.
const OPTIONS: [&str; 7] = [
    "-DPKG_KSPACE=on",
    "-DPKG_MOLECULE=on",
    "-DPKG_RIGID=on",
    "-DBUILD_OMP=off",
    "-DFFT=FFTW3",
    "-DFFT_FFTW_THREADS=off",
    "-DCMAKE_BUILD_TYPE=Release",
];
/// Where Debian's source package is.
const SUITE: &str = "Types: deb-src
URIs: http://deb.debian.org/debian
Suites: trixie
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
";

/// Two programs, and where they run.
struct Lammps {
    folder: PathBuf,
    source: PathBuf,
    own: PathBuf,
    ours: PathBuf,
    steps: usize,
}

/// Builds both, and compares them.
pub(crate) fn run(archive: Option<&Path>, steps: usize) -> Result {
    packages::ensure(&COMPILERS.iter().chain([&FFTW]).collect::<Vec<_>>());
    let folder = tools::absolute(&tools::target_dir().join("lammps"))?;
    tools::make_folder(&folder)?;
    let prefix = folder.join("prefix");
    install::install(&prefix, true)?;
    let source = unpacked(&folder, archive)?;
    let own = built(&folder, &source, "own", &[])?;
    let root = format!("-DHeffte_ROOT={}", heffte::root(&prefix).display());
    let ours = built(&folder, &source, "thriffty", &["-DFFT_USE_HEFFTE=on".into(), root])?;
    let lammps = Lammps { folder, source, own, ours, steps };
    lammps.prepare()?;
    lammps.same_simulation()?;
    lammps.what_tolerances_do()
}

/// The source of LAMMPS, fetched and unpacked if it is not there.
fn unpacked(folder: &Path, archive: Option<&Path>) -> Result<PathBuf> {
    let source = folder.join("source");
    if source.join("cmake/CMakeLists.txt").is_file() {
        return Ok(source);
    }
    let archive = archive.map_or_else(|| fetched(folder), tools::absolute)?;
    tools::make_folder(&source)?;
    let mut unpack = command("tar");
    unpack.args(["--strip-components=1", "-xf"]).arg(&archive).arg("-C").arg(&source);
    run_shown(&mut unpack)?;
    Ok(source)
}

/// Fetches Debian's source package, with lists of its own.
fn fetched(folder: &Path) -> Result<PathBuf> {
    let (suite, lists) = (folder.join("trixie.sources"), folder.join("lists"));
    tools::write(&suite, SUITE)?;
    tools::make_folder(&lists.join("partial"))?;
    let apt = || {
        let mut apt = command("apt-get");
        let set = |name: &str, value: &str| format!("-o{name}={value}");
        apt.current_dir(folder)
            .arg(set("Dir::Etc::sourcelist", &suite.display().to_string()))
            .arg(set("Dir::Etc::sourceparts", "-"))
            .arg(set("Dir::State::lists", &lists.display().to_string()))
            .args([set("Dir::Cache::pkgcache", ""), set("Dir::Cache::srcpkgcache", "")]);
        apt
    };
    run_shown(apt().arg("update"))?;
    // Only the archive is needed.
    let outcome = run_shown(apt().args(["source", "--download-only", "lammps"]));
    let files = crate::place::files(folder)?;
    let is_archive = |path: &&PathBuf| path.to_string_lossy().ends_with(".orig.tar.xz");
    match files.iter().find(is_archive) {
        Some(archive) => Ok(archive.clone()),
        None => Err(outcome.err().unwrap_or_else(|| "apt-get fetched no archive".into())),
    }
}

/// The program `lmp`, built in a folder of its own.
fn built(folder: &Path, source: &Path, name: &str, options: &[String]) -> Result<PathBuf> {
    let build = folder.join(name);
    let mut configure = command("cmake");
    configure.arg("-S").arg(source.join("cmake")).arg("-B").arg(&build);
    run_shown(configure.args(OPTIONS).args(options))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    run_shown(command("cmake").arg("--build").arg(&build).args(["--parallel", &cores]))?;
    Ok(build.join("lmp"))
}

impl Lammps {
    /// Writes inputs: the benchmark, and the same at constant energy with a dump of forces.
    fn prepare(&self) -> Result {
        let input = tools::read_text(&self.source.join("bench/in.rhodo"))?;
        let data = format!("read_data       {}", self.source.join("bench/data.rhodo").display());
        let input = input.replace("read_data       data.rhodo", &data);
        let input =
            input.replace("run             100", &format!("run             {}", self.steps));
        tools::write(&self.folder.join("in.rhodo"), &input)?;
        let (before, rest) = input.split_once("fix             2").ok_or("in.rhodo is another")?;
        let (_, after) =
            rest.split_once("mtk no pchain 0 tchain 1").ok_or("in.rhodo is another")?;
        let dump = "dump 1 all custom 1000000 ${forces} id fx fy fz\n\
                    dump_modify 1 sort id format float %.17g\n";
        let constant = format!("{before}fix             2 all nve\n{dump}{after}");
        tools::write(&self.folder.join("in.energy"), &constant)
    }

    fn log(
        &self,
        program: &Path,
        ranks: usize,
        words: &[&str],
        settings: &[(&str, &str)],
    ) -> Result<Log> {
        let mut job = command("mpirun");
        job.current_dir(&self.folder).args(["-n", &ranks.to_string()]).arg(program);
        job.args(["-log", "none", "-in"]).args(words);
        job.envs(settings.iter().copied());
        let said: Vec<_> =
            settings.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        println!("\n$ {}{}", said.concat(), tools::shown(&job));
        Log::parse(&tools::output(&mut job)?)
    }

    /// Every column of the benchmark, on several numbers of ranks.
    fn same_simulation(&self) -> Result {
        let mut table =
            String::from("\nranks  k-space, own  thriffty   ratio   all, own  thriffty\n");
        for ranks in RANKS {
            let [own, ours] =
                [&self.own, &self.ours].map(|program| self.log(program, ranks, &["in.rhodo"], &[]));
            let (own, ours) = (own?, ours?);
            if let Some(difference) = own.difference(&ours) {
                return Err(format!("{ranks} ranks: {difference}"));
            }
            table += &format!(
                "{ranks:5}  {:10.2} s  {:6.2} s  {:6.2}  {:7.1} s  {:6.1} s\n",
                own.kspace,
                ours.kspace,
                ours.kspace / own.kspace,
                own.total,
                ours.total
            );
        }
        println!("{table}every column agrees but for the last digit");
        Ok(())
    }

    /// Errors of forces at the first step, and of the energy at the last.
    fn what_tolerances_do(&self) -> Result {
        let ranks = RANKS[RANKS.len() - 1];
        let found = |settings: &[(&str, &str)]| {
            let words = ["in.energy", "-var", "forces", "forces.dump"];
            let log = self.log(&self.ours, ranks, &words, settings)?;
            let dump = tools::read_text(&self.folder.join("forces.dump"))?;
            Ok::<_, String>((forces(&dump)?, log))
        };
        let drift = |log: &Log| {
            let [first, last] = log.ends("TotEng")?;
            Ok::<_, String>((last - first) / first.abs())
        };
        let (exact, log) = found(&[("THRIFFTY_IGNORE_SHARED_MEMORY", "true")])?;
        let mut table = format!(
            "\n{ranks} ranks that send messages, {} steps at constant energy\n\
             tolerance  error of forces  drift of energy   k-space\n\
             none                     -  {:15.2e}  {:6.2} s\n",
            self.steps,
            drift(&log)?,
            log.kspace
        );
        for tolerance in TOLERANCES {
            let settings =
                [("THRIFFTY_IGNORE_SHARED_MEMORY", "true"), ("THRIFFTY_TOLERANCE", tolerance)];
            let (found, log) = found(&settings)?;
            table += &format!(
                "{tolerance:9}  {:15.1e}  {:15.2e}  {:6.2} s\n",
                relative_error(&exact, &found),
                drift(&log)?,
                log.kspace
            );
        }
        println!("{table}");
        Ok(())
    }
}
