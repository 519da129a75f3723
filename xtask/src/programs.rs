//! `cargo xtask programs`: C, C++ and Fortran programs, built against an installation and run.

use crate::packages::{self, COMPILERS};
use crate::test;
use crate::tools::{self, Result, cargo, command, output, run};
use crate::{heffte, install, kernels};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Flags of C and C++: warnings are errors. Open MPI's C++ classes, which have some, are left out.
const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-DOMPI_SKIP_MPICXX"];

/// Builds the libraries with the features of the tests, so that dependencies are not built again.
const BUILD: [&str; 4] = ["build", "--workspace", "--lib", "--examples"];

/// Examples that say in their first comment how they are built.
const SOURCES: [&str; 6] = [
    "examples/c/serial.c",
    "examples/c/transform.c",
    "examples/c/poisson.c",
    "examples/c/device.c",
    "examples/cpp/transform.cpp",
    "examples/fortran/transform.f90",
];

/// An installation, and the folder of the built programs.
struct Bench {
    prefix: PathBuf,
    folder: PathBuf,
}

/// Builds the libraries and examples.
pub(crate) fn build() -> Result {
    tools::run_shown(cargo().args(BUILD).args(["--features", test::WITH_MPI]))
}

/// Builds and installs the libraries, then builds and runs all programs.
pub(crate) fn run_all() -> Result {
    packages::ensure(&COMPILERS.iter().collect::<Vec<_>>());
    build()?;
    let prefix = install::scratch()?;
    install::lay_out(&tools::target_dir().join("debug"), &prefix, true)?;
    let bench = Bench { folder: prefix.with_file_name("built"), prefix };
    tools::make_folder(&bench.folder)?;
    bench.names()?;
    bench.headers()?;
    bench.by_their_lines()?;
    bench.by_pkg_config()?;
    bench.by_cmake()?;
    bench.of_heffte()?;
    bench.of_heffte_in_cpp()?;
    bench.under_valgrind()?;
    Ok(())
}

impl Bench {
    /// A command that finds the installation.
    fn command(&self, program: &str) -> Command {
        let mut command = command(program);
        let lib = self.prefix.join("lib");
        let path = format!("{0}:{0}/thriffty", lib.display());
        command.env("PKG_CONFIG_PATH", lib.join("pkgconfig")).env("LD_LIBRARY_PATH", path);
        command
    }

    fn built(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The flags of pkg-config.
    fn flags(&self, words: &[&str]) -> Result<Vec<String>> {
        let text = output(self.command("pkg-config").args(words))?;
        Ok(text.split_whitespace().map(String::from).collect())
    }

    fn mpirun(&self, ranks: &str, words: &[&Path]) -> Result {
        tools::run_shown(self.command("mpirun").args(["-n", ranks]).args(words))
    }

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

    /// The header compiles alone, in both languages, with and without MPI.
    fn headers(&self) -> Result {
        let include = format!("-I{}", self.prefix.join("include").display());
        let source = self.folder.join("header.c");
        tools::write(&source, "#include <thriffty.h>\n")?;
        for (compiler, words) in [
            ("mpicc", ["-std=c11", "-xc", "-DTHRIFFTY_WITH_MPI"].as_slice()),
            ("mpicxx", &["-std=c++17", "-xc++", "-DTHRIFFTY_WITH_MPI"]),
            ("cc", &["-std=c11", "-xc"]),
            ("c++", &["-std=c++17", "-xc++"]),
        ] {
            let mut compile = command(compiler);
            compile.args(words).args(STRICT).arg(&include).arg("-fsyntax-only").arg(&source);
            run(&mut compile)?;
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
            // Beside its source nothing is left.
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
        let programs: [(&str, &str, &[&str], &[&str]); 17] = [
            ("cc", "examples/c/serial.c", &serial, &["thriffty"]),
            ("cc", "crates/fft-capi/tests/serial.c", &serial, &["thriffty"]),
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
            for ranks in ["1", "2", "4"] {
                self.mpirun(ranks, &[&self.built(&name(source))])?;
            }
        }
        // With another level of MPI, of which threads other than the first make no calls.
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

    /// A program runs with `libheffte.so.2`, with and without compression.
    fn of_heffte(&self) -> Result {
        let (source, lib) = ("crates/fft-heffte/tests/heffte.c", self.prefix.join("lib/thriffty"));
        let program = self.built("heffte");
        let mut compile = self.command("mpicc");
        compile.args(["-std=c11", "-O1", "-g"]).args(STRICT).arg(source).arg("-o").arg(&program);
        compile.arg(format!("-I{}", self.prefix.join("include/thriffty").display()));
        compile.arg(format!("-L{}", lib.display())).args(["-l:libheffte.so.2", "-lfftw3", "-lm"]);
        run(&mut compile)?;
        let quiet = [("THRIFFTY_TOLERANCE", ""), ("THRIFFTY_EXCHANGE", "")];
        let lossy = [("THRIFFTY_TOLERANCE", "1e-6"), ("THRIFFTY_WIRE_EVERYWHERE", "1")];
        let p2p = [("THRIFFTY_TOLERANCE", ""), ("THRIFFTY_EXCHANGE", "p2p")];
        for (ranks, wishes) in [("1", quiet), ("2", quiet), ("4", quiet), ("2", lossy), ("4", p2p)]
        {
            let mut job = self.command("mpirun");
            job.args(["-n", ranks]).arg(&program).envs(wishes);
            let said = wishes.map(|(name, value)| format!("{name}={value}")).join(" ");
            println!("\n$ {said} {}", tools::shown(&job));
            // Its output is expected errors.
            output(&mut job)?;
        }
        Ok(())
    }

    /// Programs build with heFFTe's headers in two versions of C++, and by CMake; benchmarks run.
    fn of_heffte_in_cpp(&self) -> Result {
        let folder = Path::new("crates/fft-heffte/tests/cpp");
        let root = heffte::root(&self.prefix);
        for standard in ["c++11", "c++20"] {
            for name in ["users", "misuse", "exact", "one_way", "cache"] {
                let program = self.built(&format!("heffte_{name}_{standard}"));
                let mut compile = self.command("mpicxx");
                compile.arg(format!("-std={standard}")).arg("-O1").args(STRICT);
                compile.arg(format!("-I{}", root.join("include").display()));
                compile.arg(folder.join(name).with_extension("cpp")).arg("-o").arg(&program);
                run(compile.args(self.flags(&["--libs", "thriffty"])?))?;
                // The other version differs in types alone.
                let jobs: &[&str] = match (standard, name) {
                    // Which makes many plans.
                    ("c++11", "exact") => &["1", "2", "3", "4"],
                    (_, "exact") => &[],
                    ("c++11", _) => &["1", "2", "3", "4", "6"],
                    _ => &["2"],
                };
                jobs.iter().try_for_each(|ranks| self.mpirun(ranks, &[&program]))?;
            }
        }
        if let Some(cuda) = kernels::runtime_headers() {
            let mut compile = self.command("mpicxx");
            compile.args(["-std=c++11", "-fsyntax-only", "-DTHRIFFTY_HEFFTE_CUDA"]).args(STRICT);
            compile.arg(format!("-I{}", root.join("include").display())).arg("-isystem").arg(cuda);
            run(compile.arg(folder.join("gpu.cpp")))?;
        }
        let build = self.built("heffte_cmake");
        let mut configure = self.command("cmake");
        configure.arg("-S").arg(folder).arg("-B").arg(&build);
        configure.arg(format!("-DHeffte_ROOT={}", root.display()));
        output(&mut configure)?;
        output(self.command("cmake").arg("--build").arg(&build))?;
        self.mpirun("2", &[&build.join("misuse")])?;
        self.heffte_benchmarks(&root.join("share/heffte/benchmarks"))
    }

    /// heFFTe's benchmarks print what scripts look for, and take options from the environment.
    fn heffte_benchmarks(&self, folder: &Path) -> Result {
        let job = |name: &str, words: &str| {
            let mut job = self.command("mpirun");
            job.args(["-n", "2"]).arg(folder.join(name)).args(words.split(' '));
            job.args("20 24 16 -reorder -slabs -n1 -a2av".split(' '));
            job
        };
        for (name, words) in [
            ("speed3d_c2c", "stock double-long"),
            ("speed3d_r2c", "fftw float"),
            ("speed3d_r2r", "mkl-cos double"),
            ("convolution", "fftw float-long"),
        ] {
            let said = output(&mut job(name, words))?;
            let line = said.lines().find_map(|line| line.strip_prefix("Time per run: "));
            let time = line.and_then(|line| line.trim_end_matches(" (s)").parse::<f64>().ok());
            time.ok_or_else(|| format!("{name} does not say its time: {said}"))?;
        }
        let wisdom = self.built("heffte_wisdom.toml");
        let _ = std::fs::remove_file(&wisdom);
        let words = "fftw double";
        for settings in [&[("THRIFFTY_TUNE", "0.1")][..], &[("THRIFFTY_HEFFTE", "strict")]] {
            let mut job = job("speed3d_c2c", words);
            run(job.env("THRIFFTY_WISDOM", &wisdom).envs(settings.iter().copied()))?;
        }
        let kept = tools::read_text(&wisdom)?;
        if !kept.contains("16x24x20") {
            return Err(format!("no wisdom was saved: {kept}"));
        }
        let mut lossy = job("speed3d_c2c", words);
        lossy.envs([("THRIFFTY_TOLERANCE", "1e-6"), ("THRIFFTY_WIRE_EVERYWHERE", "1")]);
        let (said, outcome) = tools::run_and_keep(&mut lossy);
        let line = "ERROR: observed error after heFFTe benchmark exceeds the tolerance";
        match outcome.is_err() && said.lines().any(|said| said == line) {
            true => Ok(()),
            false => Err("a tolerance of 1e-6 goes unnoticed".into()),
        }
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
