//! The static library in a program that has another Rust library.
//!
//! A linker keeps one of the section groups that have the same name, and Rust's libraries all have
//! one that unwinding needs. So the installed libraries have none.

use super::bench::{Bench, STRICT};
use crate::install::SYSTEM;
use crate::place::files;
use crate::tools::{Result, command, output, run};
use std::path::Path;

/// The sources of the program and of the other library.
const FOLDER: &str = "crates/fft-capi/tests/unwind";

impl Bench {
    /// Both libraries unwind, in either order on the link line, in programs at fixed addresses and
    /// at others.
    pub(super) fn with_another_rust_library(&self) -> Result {
        let lib = self.prefix.join("lib");
        for archive in files(&lib)?.iter().filter(|file| file.extension() == Some("a".as_ref())) {
            let said = output(command("readelf").arg("--section-groups").arg(archive))?;
            if said.contains("group section [") {
                return Err(format!("{} has section groups:\n{said}", archive.display()));
            }
        }
        let (ours, other) = (lib.join("libthriffty.a"), self.built("libother.a"));
        let mut rustc = command("rustc");
        rustc.args(["--edition=2024", "--crate-type=staticlib", "-o"]).arg(&other);
        run(rustc.arg(Path::new(FOLDER).join("other.rs")))?;
        for (order, libraries) in [("before", [&ours, &other]), ("after", [&other, &ours])] {
            for address in ["-pie", "-no-pie"] {
                let program = self.built(&format!("unwind_{order}{address}"));
                let mut compile = self.command("mpicc");
                compile.args(["-std=c11", "-O1", address]).args(STRICT);
                compile.args(self.flags(&["--cflags", "thriffty"])?);
                compile.arg(Path::new(FOLDER).join("unwind.c")).arg("-o").arg(&program);
                compile.args(libraries).args(SYSTEM.map(|name| format!("-l{name}")));
                run(&mut compile)?;
                // It prints panics.
                output(&mut self.command(&program.to_string_lossy()))?;
            }
        }
        Ok(())
    }
}
