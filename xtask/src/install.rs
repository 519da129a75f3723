//! `cargo xtask install`: libraries and headers for C, C++ and Fortran programs, in a prefix.

use crate::place::files;
use crate::prefix::Prefix;
use crate::tools::{self, Result, cargo, command, run};
use crate::{heffte, manifest, setup};
use std::path::{Path, PathBuf};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The folder of the interface.
const SOURCES: &str = "crates/fft-capi";
/// Its Fortran modules; later ones use earlier ones.
pub(crate) const MODULES: [&str; 5] = [
    "thriffty_types.F90",
    "thriffty_c.F90",
    "thriffty_settings.F90",
    "thriffty_calls.F90",
    "thriffty.F90",
];
/// Their folder in a prefix.
pub(crate) const FORTRAN: &str = "include/thriffty/fortran";
/// System libraries of the static library.
pub(crate) const SYSTEM: [&str; 5] = ["gcc_s", "rt", "pthread", "m", "dl"];

/// Cargo's arguments with MPI.
const WITH_MPI: [&str; 6] = [
    "--package",
    "fft-capi",
    "--package",
    "fft-heffte",
    "--features",
    "fft-capi/mpi,fft-capi/cuda,fft-capi/nvtx,fft-heffte/mpi",
];
/// The same without MPI. CUDA is loaded when a program runs.
const WITHOUT_MPI: [&str; 4] = ["--package", "fft-capi", "--features", "fft-capi/cuda"];

/// Builds the libraries in release and installs them.
pub(crate) fn install(prefix: &Path, mpi: bool) -> Result {
    if mpi && !setup::prepare(&[]).mpi {
        return Err("plans over MPI need one; with --no-mpi plans are of one process".into());
    }
    let packages = if mpi { WITH_MPI.as_slice() } else { &WITHOUT_MPI };
    tools::run_shown(cargo().args(["build", "--release"]).args(packages))?;
    let prefix = tools::absolute(prefix)?;
    lay_out(&tools::target_dir().join("release"), &prefix, mpi)?;
    println!(
        "\ninstalled into {0}; pkg-config finds it with PKG_CONFIG_PATH={0}/lib/pkgconfig",
        prefix.display()
    );
    println!("files are listed in {}", prefix.join(manifest::PLACE).display());
    Ok(())
}

/// Copies libraries into a prefix, an absolute path, with all files that build systems look for and
/// a list of the installed files.
pub(crate) fn lay_out(built: &Path, prefix: &Path, mpi: bool) -> Result {
    let mut prefix = Prefix::open(prefix)?;
    let outcome = fill(built, &mut prefix, mpi);
    prefix.close(outcome)
}

fn fill(built: &Path, prefix: &mut Prefix, mpi: bool) -> Result {
    prefix.shared(&built.join("libfft_capi.so"), "lib", ["libthriffty.so", "libthriffty.so.0"])?;
    one_object(&built.join("libfft_capi.a"), prefix)?;
    prefix.copy(Path::new("include/thriffty.h"), "include/thriffty.h")?;
    if mpi {
        heffte::lay_out(built, prefix)?;
    }
    for source in files(&Path::new(SOURCES).join("fortran"))? {
        let name = source.file_name().unwrap_or_default();
        prefix.copy(&source, Path::new(FORTRAN).join(name))?;
    }
    let mut packages = vec!["pkgconfig/thriffty.pc"];
    if fortran(prefix, mpi)? {
        packages.push("pkgconfig/thriffty-fortran.pc");
    }
    packages.push("cmake/thriffty/thriffty-config.cmake");
    packages.push("cmake/thriffty/thriffty-config-version.cmake");
    for package in packages {
        let path = Path::new(package);
        let mut template = path.file_name().unwrap_or_default().to_owned();
        template.push(".in");
        let text = tools::read_text(&Path::new(SOURCES).join("package").join(template))?;
        let text = filled(&text, prefix.root(), mpi);
        prefix.write(Path::new("lib").join(path), &text)?;
    }
    Ok(())
}

/// A template with the names between at signs replaced.
fn filled(text: &str, prefix: &Path, mpi: bool) -> String {
    let define = if mpi { "THRIFFTY_WITH_MPI" } else { "" };
    let private = SYSTEM.iter().chain(mpi.then_some(&"mpi"));
    let flags: Vec<_> = private.map(|name| format!("-l{name}")).collect();
    text.replace("@PREFIX@", &prefix.display().to_string())
        .replace("@VERSION@", VERSION)
        .replace("@DEFINES@", &if mpi { format!(" -D{define}") } else { String::new() })
        .replace("@CMAKE_DEFINES@", define)
        .replace("@PRIVATE@", &flags.join(" "))
        .replace("@CMAKE_PRIVATE@", &SYSTEM.join(";"))
}

/// Makes a static library of one object that exports only our names: other libraries of a program
/// may have the same dependencies.
fn one_object(from: &Path, prefix: &mut Prefix) -> Result {
    prefix.folder("lib")?;
    let object = prefix.path("lib/libthriffty.o");
    let names = tools::read_text(&Path::new(SOURCES).join("symbols.txt"))?;
    // Unused sections are left out. Groups are dissolved: of groups with the same name, a linker
    // keeps one and discards the others, and Rust's libraries all have one that unwinding needs.
    let mut link = command("ld");
    link.args(["-r", "--gc-sections", "--force-group-allocation"]);
    link.args(names.lines().flat_map(|name| ["-u", name]));
    run(link.arg(from).arg("-o").arg(&object))?;
    // Other tools cannot read the bitcode of Rust's library.
    let sections = ["--remove-section=.llvmbc", "--remove-section=.llvmcmd"];
    let ours = ["--strip-unneeded", "--wildcard", "--keep-global-symbol=thriffty_*"];
    run(command("objcopy").args(ours).args(sections).arg(&object))?;
    prefix.archive(&[object], "lib/libthriffty.a")
}

/// Compiles the Fortran modules; false without a compiler.
fn fortran(prefix: &mut Prefix, mpi: bool) -> Result<bool> {
    let compiler = if mpi { "mpif90" } else { "gfortran" };
    if !tools::succeeds(command(compiler).arg("--version")) {
        println!(
            "not installed: Fortran's modules, for want of {compiler}; sources are in {FORTRAN}"
        );
        return Ok(false);
    }
    let mut objects = Vec::new();
    for module in MODULES {
        let object = prefix.path("lib").join(module).with_extension("o");
        let mut compile = command(compiler);
        compile.args(["-std=f2008", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-J"]);
        compile.arg(prefix.path(FORTRAN));
        if mpi {
            compile.arg("-DTHRIFFTY_WITH_MPI");
        }
        run(compile.arg("-c").arg(prefix.path(FORTRAN).join(module)).arg("-o").arg(&object))?;
        objects.push(object);
    }
    for file in files(&prefix.path(FORTRAN))? {
        prefix.file(Path::new(FORTRAN).join(file.file_name().unwrap_or_default()))?;
    }
    prefix.archive(&objects, "lib/libthriffty_fortran.a")?;
    Ok(true)
}

/// Writes the files that are generated from the source of the C library: its header, and the texts
/// of options in Python and in `docs/options.md`.
pub(crate) fn header() -> Result {
    let mut test = cargo();
    test.args(["test", "--package", "fft-capi", "--test", "header", "--test", "options"]);
    run(test.env("THRIFFTY_WRITE_HEADER", "1"))
}

/// The prefix of the tests.
pub(crate) fn scratch() -> Result<PathBuf> {
    tools::absolute(&tools::target_dir().join("programs/prefix"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled() {
        let text = "@PREFIX@ @VERSION@ -I@DEFINES@ @PRIVATE@";
        let with = filled(text, Path::new("/opt"), true);
        assert_eq!(
            with,
            format!("/opt {VERSION} -I -DTHRIFFTY_WITH_MPI -lgcc_s -lrt -lpthread -lm -ldl -lmpi")
        );
        let without = filled(text, Path::new("/opt"), false);
        assert_eq!(without, format!("/opt {VERSION} -I -lgcc_s -lrt -lpthread -lm -ldl"));
    }

    #[test]
    fn every_template_is_filled_completely() {
        for entry in std::fs::read_dir(Path::new("..").join(SOURCES).join("package")).unwrap() {
            let path = entry.unwrap().path();
            let text = filled(&std::fs::read_to_string(&path).unwrap(), Path::new("/opt"), true);
            assert!(!text.contains('@'), "{}: {text}", path.display());
        }
    }
}
