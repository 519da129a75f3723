//! Compiles the few lines of C that name what only C can: values that MPI libraries define as macros.

fn main() {
    println!("cargo::rerun-if-changed=src/mpi/shim.c");
    println!("cargo::rerun-if-env-changed=MPICC");
    #[cfg(feature = "mpi")]
    {
        let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
        cc::Build::new()
            .compiler(mpicc)
            .warnings(true)
            .file("src/mpi/shim.c")
            .compile("thriffty_shim");
    }
}
