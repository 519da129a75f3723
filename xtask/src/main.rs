//! Set-up, tests, demo and benchmarks of thriffty, in one command each: `cargo xtask TASK`.
//!
//! Tasks install what they need where they may, print how to install it where they may not, and
//! use threads as ranks without MPI.

mod bench;
mod contender;
mod demo;
mod install;
mod kernels;
mod machine;
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

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// Set-up, tests, demo and benchmarks of thriffty.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", arg_required_else_help = true, max_term_width = 100)]
enum Task {
    /// Install MPI, libclang, compilers, FFTW and a Python with NumPy and SciPy, or print how to.
    Setup,
    /// Check format, lints, tests, programs in other languages and documentation.
    Test {
        /// Only format, lints and tests without MPI, of the packages with uncommitted changes and
        /// of those that depend on them.
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
    /// Write include/thriffty.h anew.
    Header,
    /// Build and run C, C++ and Fortran programs with the libraries; a part of test.
    Programs,
    /// Show which folders of each crate use which, and circles of modules.
    Modules,
    /// Count lines of Rust, and functions of more than 50.
    Lines,
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
        Task::Header => install::header(),
        Task::Programs => programs::run_all(),
        Task::Modules => sources::modules(),
        Task::Lines => sources::lines(),
        Task::Kernels => kernels::run(),
        Task::Bench(options) if options.net => net::run(&options),
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
}
