//! `cargo xtask install`: libraries and headers for C, C++ and Fortran programs, in a prefix.

use crate::place::{copy, shared};
use crate::tools::{self, Result, cargo, command, run};
use crate::{heffte, setup};
use std::path::{Path, PathBuf};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The folder of the interface.
const SOURCES: &str = "crates/fft-capi";
/// Its Fortran modules; later ones use earlier ones.
const MODULES: [&str; 3] = ["thriffty.F90", "thriffty_operators.F90", "thriffty_arrays.F90"];
/// System libraries of the static library.
const SYSTEM: [&str; 5] = ["gcc_s", "rt", "pthread", "m", "dl"];

/// Cargo's arguments with MPI.
const WITH_MPI: [&str; 6] = [
    "--package",
    "fft-capi",
    "--package",
    "fft-heffte",
    "--features",
    "fft-capi/mpi,fft-capi/cuda,fft-heffte/mpi",
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
    Ok(())
}

/// Copies libraries into a prefix, an absolute path, with all files that build systems look for.
pub(crate) fn lay_out(built: &Path, prefix: &Path, mpi: bool) -> Result {
    let [lib, include] = ["lib", "include"].map(|folder| prefix.join(folder));
    let (pkgconfig, cmake) = (lib.join("pkgconfig"), lib.join("cmake/thriffty"));
    for folder in [&lib, &include, &pkgconfig, &cmake] {
        tools::make_folder(folder)?;
    }
    // Of an earlier installation, and perhaps not of this one.
    for old in ["lib/thriffty", "include/thriffty"] {
        let _ = std::fs::remove_dir_all(prefix.join(old));
    }
    for old in [
        "lib/libthriffty_fortran.a",
        "lib/pkgconfig/thriffty-fortran.pc",
        "include/fortran/thriffty.mod",
        "include/fortran/thriffty_operators.mod",
        "include/fortran/thriffty_arrays.mod",
    ] {
        let _ = std::fs::remove_file(prefix.join(old));
    }
    shared(&built.join("libfft_capi.so"), &lib, ["libthriffty.so", "libthriffty.so.0"])?;
    one_object(&built.join("libfft_capi.a"), &lib.join("libthriffty.a"))?;
    copy(Path::new("include/thriffty.h"), &include.join("thriffty.h"))?;
    if mpi {
        heffte::lay_out(built, prefix)?;
    }
    for module in MODULES {
        let source = Path::new(SOURCES).join("fortran").join(module);
        copy(&source, &include.join("fortran").join(module))?;
    }
    let fortran = fortran(prefix, mpi)?;

    let templates = Path::new(SOURCES).join("package");
    let fill = |name: &str, folder: &Path| {
        let path = templates.join(format!("{name}.in"));
        tools::write(&folder.join(name), &filled(&tools::read_text(&path)?, prefix, mpi))
    };
    fill("thriffty.pc", &pkgconfig)?;
    if fortran {
        fill("thriffty-fortran.pc", &pkgconfig)?;
    }
    fill("thriffty-config.cmake", &cmake)?;
    fill("thriffty-config-version.cmake", &cmake)
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
fn one_object(from: &Path, to: &Path) -> Result {
    let object = to.with_extension("o");
    let names = tools::read_text(&Path::new(SOURCES).join("symbols.txt"))?;
    // Unused sections are left out.
    let mut link = command("ld");
    link.args(["-r", "--gc-sections"]);
    link.args(names.lines().flat_map(|name| ["-u", name]));
    run(link.arg(from).arg("-o").arg(&object))?;
    // Other tools cannot read the bitcode of Rust's library.
    let sections = ["--remove-section=.llvmbc", "--remove-section=.llvmcmd"];
    let ours = ["--strip-unneeded", "--wildcard", "--keep-global-symbol=thriffty_*"];
    run(command("objcopy").args(ours).args(sections).arg(&object))?;
    archive(to, &object)
}

fn archive(to: &Path, object: &Path) -> Result {
    // `ar` would add to an existing archive.
    let _ = std::fs::remove_file(to);
    add(to, object)
}

/// Moves an object into an archive.
fn add(to: &Path, object: &Path) -> Result {
    run(command("ar").arg("rcs").arg(to).arg(object))?;
    std::fs::remove_file(object).map_err(|e| format!("cannot remove {}: {e}", object.display()))
}

/// Compiles the Fortran modules; false without a compiler.
fn fortran(prefix: &Path, mpi: bool) -> Result<bool> {
    let compiler = if mpi { "mpif90" } else { "gfortran" };
    if !tools::succeeds(command(compiler).arg("--version")) {
        println!(
            "not installed: the Fortran modules, for want of {compiler}; programs can compile include/fortran/*.F90"
        );
        return Ok(false);
    }
    let (lib, include) = (prefix.join("lib"), prefix.join("include/fortran"));
    let archive = lib.join("libthriffty_fortran.a");
    let _ = std::fs::remove_file(&archive);
    for module in MODULES {
        let object = lib.join(module).with_extension("o");
        let mut compile = command(compiler);
        compile.args(["-std=f2008", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-J"]);
        compile.arg(&include);
        if mpi {
            compile.arg("-DTHRIFFTY_WITH_MPI");
        }
        run(compile.arg("-c").arg(include.join(module)).arg("-o").arg(&object))?;
        add(&archive, &object)?;
    }
    Ok(true)
}

/// Writes `include/thriffty.h` anew.
pub(crate) fn header() -> Result {
    let mut test = cargo();
    test.args(["test", "--package", "fft-capi", "--test", "header"]);
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
