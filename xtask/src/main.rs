//! Set-up, tests, demo and benchmarks of thriffty, in one command each: `cargo xtask TASK`.
//!
//! Tasks install what they need if they may, and otherwise print how to install it. Without MPI
//! they use threads as ranks.

mod bench;
mod contender;
mod demo;
mod gpus;
mod heffte;
mod install;
mod kernels;
mod lammps;
mod lines;
mod machine;
mod manifest;
mod net;
mod options;
mod packages;
mod place;
mod prefix;
mod programs;
mod python;
mod quiet;
mod record;
mod setup;
mod sizes;
mod stats;
mod test;
mod tools;
mod venv;
mod wheel;

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// Set-up, tests, demo and benchmarks of thriffty.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    arg_required_else_help = true,
    max_term_width = 100
)]
enum Task {
    /// Install MPI, libclang, compilers, FFTW and a Python with NumPy and SciPy, or print how to.
    Setup,
    /// Check format, lints, tests, programs in other languages and documentation.
    Test {
        /// Only format, lints, unit tests, and test programs that are as short.
        #[arg(long)]
        quick: bool,
    },
    /// Transform a Taylor-Green vortex on 4 ranks and draw its energy spectrum.
    Demo,
    /// Install libraries, header, Fortran module, pkg-config and CMake files for C, C++ and
    /// Fortran.
    Install {
        #[arg(long, value_name = "P")]
        prefix: PathBuf,
        /// Plans of one process alone.
        #[arg(long)]
        no_mpi: bool,
    },
    /// Remove the files that `install` has put into a prefix, and folders that are then empty.
    Uninstall {
        #[arg(long, value_name = "P")]
        prefix: PathBuf,
    },
    /// Build the Python package with a library for each MPI, into target/wheels, and try it under
    /// Open MPI and MPICH.
    Wheel,
    /// Write the generated files: include/thriffty.h, and the options in Python and in
    /// docs/options.md.
    Header,
    /// Build and run C, C++ and Fortran programs with the libraries; a part of test.
    Programs {
        /// A copy of heFFTe's sources, whose examples are built and run, too.
        #[arg(long, value_name = "DIR")]
        heffte: Option<PathBuf>,
    },
    /// Test the Python package, alone and over MPI; a part of test.
    Python,
    /// Build LAMMPS with its own FFT and with thriffty in the place of heFFTe, and compare a
    /// simulation of a protein; half an hour.
    Lammps {
        /// The archive of LAMMPS, which is otherwise fetched as Debian's source package.
        #[arg(long, value_name = "TAR.XZ")]
        source: Option<PathBuf>,
        /// Steps of the simulations.
        #[arg(long, default_value_t = 100)]
        steps: usize,
    },
    /// Count lines of code, without comments, blank lines and tests, by folder and language.
    Lines {
        /// Count the lines of this commit.
        #[arg(long, value_name = "COMMIT")]
        at: Option<String>,
    },
    /// Compile kernels/ for GPUs, with an nvcc fetched into target/; needed when they change.
    Kernels,
    Bench(Box<options::Options>),
}

fn main() -> ExitCode {
    match run(Task::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> tools::Result {
    tools::enter_workspace()?;
    match task {
        Task::Setup => setup::run(),
        Task::Test { quick } => test::run(quick),
        Task::Demo => demo::run(),
        Task::Install { prefix, no_mpi } => install::install(&prefix, !no_mpi),
        Task::Uninstall { prefix } => manifest::uninstall(&tools::absolute(&prefix)?),
        Task::Wheel => wheel::run(),
        Task::Header => install::header(),
        Task::Programs { heffte } => programs::run_all(heffte.as_deref()),
        Task::Python => python::run(),
        Task::Lammps { source, steps } => lammps::run(source.as_deref(), steps),
        Task::Lines { at } => lines::run(at.as_deref()),
        Task::Kernels => kernels::run(),
        Task::Bench(options) if options.gpu => gpus::run(&options),
        Task::Bench(options) if options.net => net::run(&options),
        Task::Bench(options) if !options.sizes.is_empty() => sizes::run(&options),
        Task::Bench(options) => bench::run(&options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_defined() {
        <Task as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn every_task_has_help() {
        let tasks = <Task as clap::CommandFactory>::command();
        for task in tasks.get_subcommands() {
            let name = task.get_name();
            let help = Task::try_parse_from(["cargo xtask", name, "--help"]).unwrap_err();
            assert_eq!(help.kind(), clap::error::ErrorKind::DisplayHelp, "{name}");
            assert!(help.to_string().contains(&format!("Usage: cargo xtask {name}")), "{help}");
        }
    }
}
