//! Fortran programs whose default integers have 4 or 8 bytes.

use super::bench::Bench;
use crate::install::{FORTRAN, MODULES};
use crate::tools::{self, Result, command, run};

/// Makes default integers and logicals of 8 bytes.
const LONG: &str = "-fdefault-integer-8";

impl Bench {
    /// A program with each kind of default integers runs with the installed modules, and with
    /// modules that were compiled as it was.
    pub(super) fn with_integers_of_8_bytes(&self) -> Result {
        let source = "crates/fft-capi/tests/fortran_integers.f90";
        let own = self.built("fortran_long");
        tools::make_folder(&own)?;
        let mut modules = command("mpif90");
        modules.current_dir(&own).args([LONG, "-DTHRIFFTY_WITH_MPI", "-std=f2008", "-c"]);
        modules.args(["-Wall", "-Wextra", "-Werror"]);
        run(modules.args(MODULES.map(|module| self.prefix.join(FORTRAN).join(module))))?;
        let objects = MODULES.map(|module| own.join(module).with_extension("o"));

        let installed = self.flags(&["--cflags", "--libs", "thriffty-fortran"])?;
        let library = self.flags(&["--libs", "thriffty"])?;
        for (name, long, is_installed) in
            [("short", false, true), ("long", true, true), ("own", true, false)]
        {
            let program = self.built(&format!("fortran_integers_{name}"));
            let mut compile = self.command("mpif90");
            compile.args(["-std=f2008", "-Wall", "-Werror"]).args(long.then_some(LONG));
            compile.arg(source).arg("-o").arg(&program);
            if is_installed {
                compile.args(&installed)
            } else {
                compile.arg("-I").arg(&own).args(&objects).args(&library)
            };
            run(&mut compile)?;
            ["1", "2", "4"].iter().try_for_each(|ranks| self.mpirun(ranks, &[&program]))?;
        }
        Ok(())
    }
}
