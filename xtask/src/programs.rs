//! `cargo xtask programs`: C, C++ and Fortran programs, built against an installation and run.

mod bench;
mod fortran;
mod headers;
mod heffte;
mod rust_libraries;

use crate::packages::{self, COMPILERS};
use crate::tools::{self, Result, cargo, command, output, run};
use crate::{install, manifest, test};
use bench::{Bench, STRICT};
use std::path::Path;

/// Builds the libraries with the features of the tests, and a target that needs cbindgen, because
/// otherwise Cargo compiles the dependencies of macros differently, and then everything that uses
/// them.
const BUILD: [&str; 6] = ["build", "--workspace", "--lib", "--examples", "--test", "header"];

/// Examples that say in their first comment how they are built.
const SOURCES: [&str; 6] = [
    "examples/c/serial.c",
    "examples/c/transform.c",
    "examples/c/poisson.c",
    "examples/c/device.c",
    "examples/cpp/transform.cpp",
    "examples/fortran/transform.f90",
];

/// Builds the libraries and examples.
pub(crate) fn build() -> Result {
    tools::run_shown(cargo().args(BUILD).args(["--features", test::WITH_MPI]))
}

/// Builds and installs the libraries, builds and runs all programs, and removes the installation.
/// With a copy of heFFTe's sources, its examples are among the programs.
pub(crate) fn run_all(heffte: Option<&Path>) -> Result {
    packages::ensure(&COMPILERS.iter().collect::<Vec<_>>());
    let heffte = heffte.map(tools::absolute).transpose()?;
    build()?;
    let prefix = install::scratch()?;
    // A failed earlier run may have left its installation.
    let _ = std::fs::remove_dir_all(&prefix);
    install::lay_out(&tools::target_dir().join("debug"), &prefix, true)?;
    let bench = Bench { folder: prefix.with_file_name("built"), prefix };
    tools::make_folder(&bench.folder)?;
    bench.names()?;
    bench.headers()?;
    bench.by_their_lines()?;
    bench.by_pkg_config()?;
    bench.by_cmake()?;
    bench.with_integers_of_8_bytes()?;
    bench.with_another_rust_library()?;
    bench.of_heffte()?;
    bench.of_heffte_in_cpp()?;
    if let Some(sources) = heffte {
        bench.examples_of_heffte(&sources)?;
    }
    bench.under_valgrind()?;
    bench.uninstalled()
}

impl Bench {
    /// The libraries export exactly the listed names.
    fn names(&self) -> Result {
        for (library, options, names) in [
            ("libthriffty.so", "-D", "crates/fft-capi/symbols.txt"),
            ("libthriffty.a", "-g", "crates/fft-capi/symbols.txt"),
            ("thriffty/libthriffty_heffte.so", "-D", "crates/fft-heffte/symbols.txt"),
        ] {
            let path = self.prefix.join("lib").join(library);
            let listed = output(command("nm").args([options, "--defined-only"]).arg(path))?;
            let mut found: Vec<_> =
                listed.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
            found.sort_unstable();
            if found != tools::read_text(Path::new(names))?.lines().collect::<Vec<_>>() {
                return Err(format!("{library} has other names than {names}: {found:?}"));
            }
        }
        Ok(())
    }

    /// Examples build by the commands in their first comments, word by word. The commands in the
    /// documentation are among these.
    fn by_their_lines(&self) -> Result {
        let mut known = Vec::new();
        for source in SOURCES {
            let source = Path::new(source);
            let text = tools::read_text(source)?;
            let folder = source.parent().unwrap_or(Path::new("."));
            let line = text.lines().find_map(line_of).ok_or("an example has no command")?;
            let built = self.built("lines");
            tools::make_folder(&built)?;
            // No file is left next to the source.
            let words =
                format!("cp {0}/* {1} && cd {1} && {line}", folder.display(), built.display());
            run(self.command("sh").args(["-ec", &words]))?;
            known.push(line.to_owned());
        }
        for page in ["docs/c-and-fortran.md", "README.md"] {
            let text = tools::read_text(Path::new(page))?;
            for line in text.lines().filter_map(line_of) {
                let line = line.replace("examples/c/", "");
                if !known.contains(&line) {
                    return Err(format!("{page}: no example has the command `{line}`"));
                }
            }
        }
        Ok(())
    }

    /// Programs build with pkg-config, without warnings.
    fn by_pkg_config(&self) -> Result {
        let c = ["-std=c11", "-O1", "-g"];
        let threads = [c[0], c[1], c[2], "-pthread"];
        let serial = ["-std=c11", "-UTHRIFFTY_WITH_MPI", "-pthread"];
        let (cxx, fortran) = (["-std=c++17", "-O1"], ["-std=f2008"]);
        let programs: [(&str, &str, &[&str], &[&str]); 19] = [
            ("cc", "examples/c/serial.c", &serial, &["thriffty"]),
            ("cc", "crates/fft-capi/tests/serial.c", &serial, &["thriffty"]),
            ("cc", "crates/fft-capi/tests/group.c", &serial, &["thriffty"]),
            ("mpicc", "examples/c/transform.c", &c, &["thriffty"]),
            ("mpicc", "examples/c/poisson.c", &c, &["thriffty"]),
            ("mpicc", "examples/c/device.c", &[c[0], c[1], c[2], "-ldl"], &["thriffty"]),
            ("mpicxx", "examples/cpp/transform.cpp", &cxx, &["thriffty"]),
            ("mpif90", "examples/fortran/transform.f90", &fortran, &["thriffty-fortran"]),
            ("mpicc", "crates/fft-capi/tests/abi.c", &c, &["thriffty"]),
            ("mpicc", "crates/fft-capi/tests/operators.c", &c, &["thriffty"]),
            ("mpicc", "crates/fft-capi/tests/arrays.c", &c, &["thriffty"]),
            ("mpicc", "crates/fft-capi/tests/life.c", &threads, &["thriffty"]),
            ("mpif90", "crates/fft-capi/tests/fortran_arrays.f90", &fortran, &["thriffty-fortran"]),
            ("mpif90", "crates/fft-capi/tests/fortran_group.f90", &fortran, &["thriffty-fortran"]),
            (
                "mpif90",
                "crates/fft-capi/tests/fortran_operators.f90",
                &fortran,
                &["thriffty-fortran"],
            ),
            ("cc", "crates/fft-capi/tests/fftw/serial.c", &serial, &["thriffty", "fftw3"]),
            ("mpicc", "crates/fft-capi/tests/fftw/c.c", &c, &["thriffty", "fftw3"]),
            ("mpicxx", "crates/fft-capi/tests/fftw/cpp.cpp", &cxx, &["thriffty", "fftw3"]),
            (
                "mpif90",
                "crates/fft-capi/tests/fftw/fortran.f90",
                &fortran,
                &["thriffty-fortran", "fftw3"],
            ),
        ];
        for (compiler, source, options, packages) in programs {
            let mut compile = self.command(compiler);
            compile.arg(source).arg("-o").arg(self.built(&name(source)));
            if compiler == "mpif90" {
                // Where the modules of a program go.
                compile.arg("-J").arg(&self.folder);
                let fftw = self.flags(&["--variable=includedir", "fftw3"])?;
                compile.args(["-Wall", &format!("-I{}", fftw.concat())]);
            } else {
                compile.args(STRICT);
            }
            compile.args(self.flags(&[&["--cflags", "--libs"], packages].concat())?).arg("-lm");
            // Last, as one of them undefines the header's macro for MPI.
            run(compile.args(options))?;
            if compiler == "cc" {
                tools::run_shown(&mut self.command(&self.built(&name(source)).to_string_lossy()))?;
                continue;
            }
            // By CMake and under valgrind some run on two.
            for ranks in ["1", "4"] {
                self.mpirun(ranks, &[&self.built(&name(source))])?;
            }
        }
        // With another level of MPI: threads other than the first make no calls.
        self.mpirun("2", &[&self.built("tests_life"), Path::new("funneled")])
    }

    /// Programs build with CMake, one of them with the static library.
    fn by_cmake(&self) -> Result {
        let build = self.built("cmake");
        let mut configure = self.command("cmake");
        configure.args(["-S", "examples", "-B"]).arg(&build);
        configure.arg(format!("-DCMAKE_PREFIX_PATH={}", self.prefix.display()));
        output(&mut configure)?;
        output(self.command("cmake").arg("--build").arg(&build))?;
        for program in ["c_transform", "c_poisson", "cpp_transform", "fortran_transform"] {
            self.mpirun("2", &[&build.join(program)])?;
        }
        Ok(())
    }

    /// A removed installation leaves nothing.
    fn uninstalled(&self) -> Result {
        manifest::uninstall(&self.prefix)?;
        std::fs::remove_dir(&self.prefix)
            .map_err(|e| format!("uninstalling has left files in {}: {e}", self.prefix.display()))
    }

    /// Valgrind finds no invalid access but MPI's own, and without MPI no leak.
    fn under_valgrind(&self) -> Result {
        // Open MPI's own list, if installed, and ours.
        let lists = ["/usr/share/openmpi/openmpi-valgrind.supp", "crates/fft-capi/tests/pmix.supp"];
        let lists = lists.iter().filter(|list| Path::new(list).is_file());
        let suppressions: Vec<_> = lists.map(|list| format!("--suppressions={list}")).collect();
        let mut serial = self.command("valgrind");
        serial.args(["--quiet", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
        tools::run_shown(serial.arg("--error-exitcode=99").arg(self.built("c_serial")))?;
        for name in ["c_transform", "fftw_c", "tests_abi", "heffte"] {
            let mut job = self.command("mpirun");
            job.args(["-n", "2", "valgrind", "--quiet", "--error-exitcode=99"]);
            job.args(&suppressions).arg(self.built(name));
            println!("\n$ {}", tools::shown(&job));
            output(&mut job)?;
        }
        Ok(())
    }
}

/// The command in a line of a comment or a page, if it calls a compiler.
fn line_of(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(['/', '*', '!', ' ']);
    let compilers = ["cc ", "mpicc ", "mpicxx ", "mpif90 "];
    compilers.iter().any(|compiler| line.starts_with(compiler)).then_some(line)
}

/// `examples/c/transform.c` is built as `c_transform`.
fn name(source: &str) -> String {
    let path = Path::new(source);
    let part =
        |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    format!("{}_{}", part(path.parent().and_then(Path::file_name)), part(path.file_stem()))
}
