//! Programs of heFFTe: linked with its C library, or compiled with its C++ headers.

use super::bench::{Bench, STRICT};
use crate::place::files;
use crate::tools::{self, Result, output, run};
use crate::{heffte, kernels};
use std::path::Path;

/// Tests of the C++ headers.
const CPP: &str = "crates/fft-heffte/tests/cpp";

impl Bench {
    /// A program runs with `libheffte.so.2`, with and without compression.
    pub(super) fn of_heffte(&self) -> Result {
        let (source, lib) = ("crates/fft-heffte/tests/heffte.c", self.prefix.join("lib/thriffty"));
        let program = self.built("heffte");
        let mut compile = self.command("mpicc");
        compile.args(["-std=c11", "-O1", "-g"]).args(STRICT).arg(source).arg("-o").arg(&program);
        compile.arg(format!("-I{}", self.prefix.join("include/thriffty").display()));
        compile.arg(format!("-L{}", lib.display())).args(["-l:libheffte.so.2", "-lfftw3", "-lm"]);
        run(&mut compile)?;
        let quiet = [("THRIFFTY_TOLERANCE", ""), ("THRIFFTY_EXCHANGE", "")];
        let lossy = [("THRIFFTY_TOLERANCE", "1e-6"), ("THRIFFTY_IGNORE_SHARED_MEMORY", "true")];
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
    pub(super) fn of_heffte_in_cpp(&self) -> Result {
        let folder = Path::new(CPP);
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
                    ("c++11", _) => &["1", "2", "3", "6"],
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
        self.alone_with_heffte_h()?;
        self.heffte_benchmarks(&root.join("share/heffte/benchmarks"))
    }

    /// Compiles a program that has no other headers than heFFTe's, and runs it on these ranks.
    fn heffte_program(&self, source: &Path, jobs: &[&str]) -> Result {
        let include = heffte::root(&self.prefix).join("include");
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let program = self.built(&format!("only_{stem}"));
        let mut compile = self.command("mpicxx");
        compile.args(["-std=c++11", "-O1", "-DOMPI_SKIP_MPICXX"]);
        compile.arg(format!("-I{}", include.display())).arg(source).arg("-o").arg(&program);
        run(compile.args(self.flags(&["--libs", "thriffty"])?))?;
        jobs.iter().try_for_each(|ranks| self.mpirun(ranks, &[&program]))
    }

    /// Programs like heFFTe's examples, which include heffte.h and nothing else.
    fn alone_with_heffte_h(&self) -> Result {
        for source in files(&Path::new(CPP).join("examples"))? {
            let two = source.ends_with("arrays.cpp");
            self.heffte_program(&source, if two { &["2"] } else { &["1", "4"] })?;
        }
        Ok(())
    }

    /// heFFTe's own examples and the test of its header, unchanged, from a copy of its sources.
    pub(super) fn examples_of_heffte(&self, sources: &Path) -> Result {
        for (example, ranks) in
            [("fftw", "2"), ("options", "4"), ("r2c", "3"), ("r2r", "4"), ("vectors", "3")]
        {
            let source = sources.join(format!("examples/heffte_example_{example}.cpp"));
            self.heffte_program(&source, &[ranks])?;
        }
        self.heffte_program(&sources.join("test/test_heffte_header.cpp"), &["1"])
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
        for tuning in ["measure:100ms".into(), format!("wisdom:{}", wisdom.display())] {
            let mut job = job("speed3d_c2c", words);
            job.env("THRIFFTY_WISDOM", &wisdom).env("THRIFFTY_HEFFTE", "strict");
            run(job.env("THRIFFTY_TUNING", tuning))?;
        }
        let kept = tools::read_text(&wisdom)?;
        if !kept.contains("16x24x20") {
            return Err(format!("no wisdom was saved: {kept}"));
        }
        let mut lossy = job("speed3d_c2c", words);
        lossy.envs([("THRIFFTY_TOLERANCE", "1e-6"), ("THRIFFTY_IGNORE_SHARED_MEMORY", "true")]);
        let expected = "ERROR: observed error after heFFTe benchmark exceeds the tolerance";
        let mut is_reported = false;
        let outcome = tools::run_by_line(&mut lossy, |line| is_reported |= line == expected);
        if outcome.is_err() && is_reported {
            Ok(())
        } else {
            Err("a tolerance of 1e-6 goes unnoticed".into())
        }
    }
}
