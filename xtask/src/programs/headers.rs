//! Headers compile alone, in each version of C and C++, without warnings.

use super::bench::{Bench, STRICT};
use crate::place::files;
use crate::tools::{self, Result, run};
use std::path::Path;

const C: [&str; 4] = ["c89", "c99", "c11", "c17"];
/// thriffty.h has C++98 as well.
const CPP: [&str; 4] = ["c++11", "c++14", "c++17", "c++20"];

/// mpi.h has `long long`, which C89 and C++98 lack.
const WITH_MPI: [&str; 2] = ["-DTHRIFFTY_WITH_MPI", "-Wno-long-long"];

impl Bench {
    pub(super) fn headers(&self) -> Result {
        for standard in C {
            self.compiles("cc", standard, "thriffty.h", &[])?;
            self.compiles("mpicc", standard, "thriffty.h", &WITH_MPI)?;
            self.compiles("mpicc", standard, "thriffty/heffte.h", &WITH_MPI)?;
        }
        self.compiles("c++", "c++98", "thriffty.h", &[])?;
        for standard in CPP {
            self.compiles("c++", standard, "thriffty.h", &[])?;
            self.compiles("mpicxx", standard, "thriffty.h", &WITH_MPI)?;
            self.compiles("mpicxx", standard, "thriffty/heffte.h", &WITH_MPI)?;
        }
        let folder = Path::new("thriffty/heffte");
        for header in files(&self.prefix.join("include").join(folder))? {
            let name = folder.join(header.file_name().unwrap_or_default());
            self.compiles("mpicxx", CPP[0], &name.to_string_lossy(), &[])?;
        }
        // It includes the others.
        for standard in &CPP[1..] {
            self.compiles("mpicxx", standard, "thriffty/heffte/heffte.h", &[])?;
        }
        Ok(())
    }

    /// Compiles a program of one header, with warnings as errors.
    fn compiles(&self, compiler: &str, standard: &str, header: &str, more: &[&str]) -> Result {
        let language = if standard.contains("++") { "-xc++" } else { "-xc" };
        let source = self.built("header.c");
        tools::write(&source, &format!("#include <{header}>\n"))?;
        let mut compile = self.command(compiler);
        compile.arg(format!("-std={standard}")).arg(language).args(STRICT).arg("-Wundef");
        compile.arg(format!("-I{}", self.prefix.join("include").display())).args(more);
        run(compile.arg("-fsyntax-only").arg(&source))
    }
}
