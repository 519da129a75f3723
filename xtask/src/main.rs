//! Set-up, tests, demo and benchmarks of thriffty, in one command each: `cargo xtask <task>`.
//!
//! A fresh clone on a bare Debian with Rust must be green in two commands, so the tasks install what they need where
//! they may, say in one line what to install where they may not, and fall back to ranks as threads without MPI.

mod bench;
mod contender;
mod demo;
mod install;
mod kernels;
mod machine;
mod model;
mod net;
mod options;
mod packages;
mod programs;
mod quiet;
mod record;
mod setup;
mod sources;
mod stats;
mod test;
mod tools;
mod venv;

use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask <task>

  setup   install MPI, libclang, compilers, FFTW and a Python with NumPy and SciPy, or say how to
  test    format, lints, tests, programs in other languages, and documentation: all that must hold
          --quick           the loop of a developer: format, lints, and tests without MPI, of the
                            packages with uncommitted changes and of those that depend on them
  demo    transform a Taylor-Green vortex on 4 ranks and draw its energy spectrum
  install for C, C++ and Fortran programs: libraries, header, module, pkg-config and CMake files
          --prefix P        where                   --no-mpi          plans of one process
  header  write include/thriffty.h anew
  programs  build C, C++ and Fortran programs against the libraries, and run them; a part of test
  modules show which folders of each crate use which, and circles of modules
  lines   count lines of Rust, and functions of more than 50
  kernels compile kernels/ for GPUs, with an nvcc fetched into target/; needed when they change
  bench   time thriffty beside FFTW, turn by turn
          --size N0xN1xN2   grid (256x256x256)      --kind c2c|r2c    transform (c2c)
          --ranks P,P,...   rank counts (1,2,4)     --rounds N        measured rounds (10)
          --record          keep the result in benches/records, not in target/
          --cli PATH        time this fft-cli, say of an older commit, instead of building one
          --beside PATH     time this fft-cli of an older commit, too, turn by turn
          --patience SEC    how long to wait for idle cores; then rounds are marked (600)
          --exchanges A,B   time these exchanges, too: p2p, alltoallv, kway4, ..., and what is `tuned`
          --only A,B        time these programs alone: fftw-mpi, thriffty-mpi, ...
  bench --net   the same with each rank on a host of its own, of a network that the script netlab
          makes (its path in THRIFFTY_NETLAB; as root), beside what the links allow
          --hosts H         hosts, one rank on each (4) --rate RATE     of their links (1gbit)
          --exchanges A,B   p2p, alltoallv, kway4, tuned, ... (all); --size, --kind, --rounds, --record, --cli, --only;
          --wires A,B       one exchange with raw and with these messages: bits:16, f32, ...; a number is a
                            tolerance; of --field uniform, smooth, ...
          NETLAB_MPIEXEC    another launcher than mpirun, with a --cli built for its MPI
  model   the cost model, calibrated here, beside the timings: threads, processes, with --net hosts
          --net, --rounds, --patience, --record, --cli as for bench
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> tools::Result {
    tools::enter_workspace()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["setup"] => setup::run(),
        ["test", words @ ..] => test::run(words),
        ["demo"] => demo::run(),
        ["kernels"] => kernels::run(),
        ["modules"] => sources::modules(),
        ["lines"] => sources::lines(),
        ["install", words @ ..] => install::install(words),
        ["header"] => install::header(),
        ["programs"] => programs::run_all(),
        ["bench", options @ ..] => {
            let options = options::Options::parse(options)?;
            if options.net { net::run(&options) } else { bench::run(&options) }
        }
        ["model", options @ ..] => model::run(&options::Options::parse(options)?),
        [] | ["help" | "-h" | "--help"] => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("no task `{}`\n\n{HELP}", other.join(" "))),
    }
}
