//! `cargo xtask wheel`: the Python package with a library for each MPI, tried where nothing else
//! is installed.

use crate::packages::{self, MPI, PYTHON};
use crate::place::{files, stripped};
use crate::tools::{self, Result, cargo, command, run_shown};
use crate::venv;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What one process runs.
const ALONE: &str = "\
import numpy, thriffty
x = numpy.random.default_rng(0).random((8, 6, 4)) + 1j
assert numpy.allclose(thriffty.fftn(x), numpy.fft.fftn(x), rtol=1e-13, atol=1e-13)
";

/// What each rank runs.
const RANK: &str = "\
from mpi4py import MPI
import numpy, thriffty
comm = MPI.COMM_WORLD
whole = numpy.random.default_rng(0).random((8, 6, 4)) + 1j
plan = thriffty.Plan((8, 6, 4), complex, comm=comm)
x = plan.empty_input()
x[...] = whole[plan.input_slices]
y = plan.forward(x)
expected = numpy.fft.fftn(whole)[plan.output_slices]
assert comm.size == 4 and y.shape == expected.shape
assert numpy.allclose(y, expected, rtol=1e-13, atol=1e-13)
comm.Barrier()
if comm.rank == 0:
    print('4 ranks equal NumPy under', *MPI.get_vendor())
";

/// 4 ranks, before the interpreter.
const RANKS: [&str; 2] = ["-n", "4"];
/// An exception of one rank ends all.
const MODULE: [&str; 2] = ["-m", "mpi4py"];

/// Handles of MPI that rsmpi converts to Fortran's and back.
const HANDLES: [&str; 10] =
    ["Comm", "Errhandler", "File", "Group", "Info", "Message", "Op", "Request", "Type", "Win"];

/// Builds the wheel and tries it.
pub(crate) fn run() -> Result {
    let needs: Vec<_> = MPI.iter().chain([&PYTHON]).collect();
    packages::ensure(&needs);
    if let Some(need) = needs.iter().find(|need| !(need.present)()) {
        return Err(format!("a wheel with all MPIs needs {}", need.name));
    }
    let folder = tools::absolute(&tools::target_dir().join("wheel"))?;
    let wheel = build(&folder)?;
    let bytes = std::fs::metadata(&wheel).map_or(0, |file| file.len());
    println!("\n{}: {:.1} MB", wheel.display(), bytes as f64 / 1e6);

    let [alone, rank] = ["alone.py", "rank.py"].map(|name| folder.join(name));
    tools::write(&alone, ALONE)?;
    tools::write(&rank, RANK)?;
    let python = install(&folder, "alone", &wheel, &[])?;
    run_shown(command(python).arg(alone))?;
    let python = install(&folder, "with-openmpi", &wheel, &["mpi4py"])?;
    run_shown(command("mpirun").args(RANKS).arg(python).args(MODULE).arg(&rank))?;
    let python = install(&folder, "with-mpich", &wheel, &["mpi4py", "mpich"])?;
    let launcher = python.with_file_name("mpiexec");
    run_shown(command(launcher).args(RANKS).arg(python).args(MODULE).arg(&rank))
}

/// Builds all libraries, and the wheel of them.
fn build(folder: &Path) -> Result<PathBuf> {
    let bin = folder.join("venv/bin");
    let python = bin.join("python");
    let has_all = bin.join("mpicc").is_file()
        && tools::succeeds(command(&python).args(["-c", "import hatchling"]));
    if !has_all {
        venv::make(&folder.join("venv"), &["hatchling", "mpich"])?;
    }
    let libraries = folder.join("libraries");
    // Left by an earlier run, whose libraries may not be in this one.
    let _ = std::fs::remove_dir_all(&libraries);
    let add = |mpi: &str, cargo: &mut Command| {
        // Each MPI has a folder of its own, because the bindings are not made anew for another MPI.
        let target = folder.join(mpi);
        run_shown(cargo.arg("--target-dir").arg(&target))?;
        let library = libraries.join(mpi).join("libthriffty.so");
        stripped(&target.join("release/libfft_capi.so"), &library)
    };
    add("serial", &mut compile("fft-capi/cuda"))?;
    add("openmpi", &mut with_mpi(Path::new("mpicc")))?;
    add("mpich", &mut with_mpi(&bin.join("mpicc")))?;
    let compiler = bin.join("mpicc_abi");
    if compiler.is_file() {
        let defines = standard_abi();
        let mut cargo = with_mpi(&compiler);
        add("mpi_abi", cargo.env("CFLAGS", &defines).env("BINDGEN_EXTRA_CLANG_ARGS", &defines))?;
    }

    let wheels = tools::absolute(&tools::target_dir().join("wheels"))?;
    let _ = std::fs::remove_dir_all(&wheels);
    let mut package = command(python);
    package.args(["-m", "hatchling", "build", "--target", "wheel", "--directory"]).arg(&wheels);
    run_shown(package.env("THRIFFTY_LIBRARIES", &libraries))?;
    files(&wheels)?.pop().ok_or_else(|| format!("no wheel in {}", wheels.display()))
}

/// A build of the C library, to be completed.
fn compile(features: &str) -> Command {
    let mut cargo = cargo();
    cargo.args(["build", "--release", "--locked", "--package", "fft-capi", "--features", features]);
    cargo
}

fn with_mpi(compiler: &Path) -> Command {
    let mut cargo = compile("fft-capi/mpi,fft-capi/cuda,fft-capi/nvtx");
    cargo.env("MPICC", compiler);
    cargo
}

/// Flags for the MPI standard's ABI, which has no `MPI_Fint`, and converts handles by other names.
fn standard_abi() -> String {
    let conversions = HANDLES.map(|handle| {
        format!("-DMPI_{handle}_c2f=MPI_{handle}_toint -DMPI_{handle}_f2c=MPI_{handle}_fromint")
    });
    format!("-DMPI_ABI -DMPI_Fint=int {}", conversions.join(" "))
}

/// Installs the wheel and further packages in a fresh environment, and returns its interpreter.
fn install(folder: &Path, name: &str, wheel: &Path, further: &[&str]) -> Result<PathBuf> {
    let environment = folder.join(name);
    let wheel = wheel.to_string_lossy();
    venv::make(&environment, &[&[&*wheel], further].concat())?;
    Ok(environment.join("bin/python"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_abi_has_other_names() {
        let flags = standard_abi();
        assert!(flags.starts_with("-DMPI_ABI -DMPI_Fint=int -DMPI_Comm_c2f=MPI_Comm_toint "));
        assert!(flags.ends_with(" -DMPI_Win_f2c=MPI_Win_fromint"), "{flags}");
    }
}
