//! What stands in for heFFTe in an installation: its C library, and its C++ headers with a CMake
//! package and benchmarks.

use crate::place::files;
use crate::prefix::Prefix;
use crate::tools::{self, Result, command, run};
use std::path::{Path, PathBuf};

const SOURCES: &str = "crates/fft-heffte";
/// The C++ headers, in the repository and in a prefix.
const HEADERS: &str = "include/thriffty/heffte";
/// The names of the benchmarks, which are one program.
const BENCHMARKS: [&str; 4] = ["speed3d_c2c", "speed3d_r2c", "speed3d_r2r", "convolution"];

/// The prefix of heFFTe inside ours. Build systems find it only if you point to it.
const ROOT: &str = "lib/thriffty/heffte";

/// [`ROOT`] in a prefix.
pub(crate) fn root(prefix: &Path) -> PathBuf {
    prefix.join(ROOT)
}

/// Copies the library, headers and package into a prefix, and builds benchmarks.
pub(crate) fn lay_out(built: &Path, prefix: &mut Prefix) -> Result {
    let (sources, root) = (Path::new(SOURCES), Path::new(ROOT));
    let names = ["libthriffty_heffte.so", "libheffte.so.2"];
    prefix.shared(&built.join("libfft_heffte.so"), "lib/thriffty", names)?;
    prefix.copy(&sources.join("heffte.h"), "include/thriffty/heffte.h")?;
    for header in files(Path::new(HEADERS))? {
        prefix.copy(&header, &header)?;
    }
    for file in files(&sources.join("package"))? {
        let name = file.file_name().unwrap_or_default();
        prefix.copy(&file, root.join("lib/cmake/Heffte").join(name))?;
    }
    prefix.link(&format!("../../../{HEADERS}"), root.join("include"))?;
    benchmarks(prefix, &root.join("share/heffte/benchmarks"))
}

/// A program with several names.
fn benchmarks(prefix: &mut Prefix, folder: &Path) -> Result {
    let source = Path::new(SOURCES).join("benchmarks/speed3d.cpp");
    prefix.copy(&source, folder.join("speed3d.cpp"))?;
    if !tools::succeeds(command("mpicxx").arg("--version")) {
        println!(
            "not installed: benchmarks of heFFTe's, for want of mpicxx; the source is in {}",
            prefix.path(folder).display()
        );
        return Ok(());
    }
    let (program, lib) = (prefix.file(folder.join(BENCHMARKS[0]))?, prefix.path("lib"));
    let mut compile = command("mpicxx");
    compile.args(["-std=c++11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-DOMPI_SKIP_MPICXX"]);
    compile.arg(format!("-I{}", prefix.path(HEADERS).display())).arg(&source).arg("-o");
    compile.arg(&program).arg(format!("-L{}", lib.display())).arg("-lthriffty");
    run(compile.arg(format!("-Wl,-rpath,{}", lib.display())))?;
    BENCHMARKS[1..].iter().try_for_each(|name| prefix.copy(&program, folder.join(name)))
}
