//! `cargo xtask kernels`: the CUDA kernels as binaries, which are checked in: builds need no nvcc.

use crate::place;
use crate::tools::{self, FNV, Result, command, fnv1a};
use crate::venv;
use std::path::{Path, PathBuf};

const SOURCES: &str = "kernels";
const BINARIES: &str = "crates/fft-gpu/kernels";
/// The hash of the sources of the binaries.
const STAMP: &str = "sources.fnv";

/// NVIDIA's compiler, of the oldest driver that is supported.
const NVCC: &str = "cuda-toolkit[nvcc,cudart,cccl,crt,nvvm]==13.0.2";
/// Without fused multiply-add, messages have the same bits as the CPU's. Spilled registers are
/// reported.
const FLAGS: [&str; 13] = [
    "-O3",
    "-std=c++17",
    "-fmad=false",
    "-Xptxas",
    "-warn-spills",
    "--fatbin",
    "-compress-mode=size",
    "-gencode",
    "arch=compute_80,code=sm_80",
    "-gencode",
    "arch=compute_90,code=sm_90",
    "-gencode",
    "arch=compute_90,code=compute_90",
];

/// The sources that cuFFT links into its own kernels.
const LINKED: [&str; 3] = ["gather.cu", "scaled.cu", "scatter.cu"];
const LINKED_FLAGS: [&str; 9] = [
    "-O3",
    "-std=c++17",
    "-fmad=false",
    "-dc",
    "--fatbin",
    "-gencode",
    "arch=compute_80,code=lto_80",
    "-gencode",
    "arch=compute_90,code=lto_90",
];

/// A source that is compiled for each length when a plan is made.
const COMPILED_LATER: &str = "column_fft.cuh";

/// Compiles every source, and writes their hash.
pub(crate) fn run() -> Result {
    let nvcc = nvcc()?;
    tools::make_folder(Path::new(BINARIES))?;
    for source in sources()?.iter().filter(|path| path.extension().is_some_and(|e| e == "cu")) {
        let name = source.with_extension("fatbin");
        let binary = Path::new(BINARIES).join(name.file_name().unwrap_or_default());
        let linked = LINKED.iter().any(|linked| source.ends_with(linked));
        let flags = if linked { &LINKED_FLAGS[..] } else { &FLAGS };
        tools::run_shown(command(&nvcc).args(flags).arg("-o").arg(binary).arg(source))?;
    }
    let stamp = Path::new(BINARIES).join(STAMP);
    tools::write(&stamp, &format!("{:016x}\n", fingerprint()?))
}

/// The compiler, fetched into the target folder unless it is there.
fn nvcc() -> Result<PathBuf> {
    let folder = folder();
    if fetched("bin/nvcc").is_none() {
        println!("fetching nvcc into {}", folder.display());
        venv::make(&folder, &[NVCC])?;
    }
    fetched("bin/nvcc").ok_or(format!("no nvcc in {} after all", folder.display()))
}

fn folder() -> PathBuf {
    tools::target_dir().join("nvcc")
}

/// A file of the package that has been fetched.
fn fetched(name: &str) -> Option<PathBuf> {
    let pythons = std::fs::read_dir(folder().join("lib")).ok()?.flatten();
    let inside = Path::new("site-packages/nvidia/cu13").join(name);
    pythons.map(|python| python.path().join(&inside)).find(|path| path.exists())
}

/// The headers of CUDA's runtime, if they have been fetched with the compiler.
pub(crate) fn runtime_headers() -> Option<PathBuf> {
    Some(fetched("include/cuda_runtime_api.h")?.parent()?.to_owned())
}

/// The sources of binaries and their headers, sorted.
fn sources() -> Result<Vec<PathBuf>> {
    let mut sources = place::files(Path::new(SOURCES))?;
    sources.retain(|path| path.extension().is_some_and(|e| e == "cu" || e == "cuh"));
    sources.retain(|path| !path.ends_with(COMPILED_LATER));
    Ok(sources)
}

/// A hash of names and contents of sources, the compiler and its flags.
fn fingerprint() -> Result<u64> {
    let mut hash = FNV;
    let mut add = |bytes: &[u8]| {
        hash = fnv1a(fnv1a(hash, &(bytes.len() as u64).to_le_bytes()), bytes);
    };
    add(NVCC.as_bytes());
    FLAGS.iter().chain(&LINKED_FLAGS).for_each(|flag| add(flag.as_bytes()));
    for path in sources()? {
        add(path.to_string_lossy().as_bytes());
        add(&tools::read(&path)?);
    }
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binaries_are_of_these_sources() {
        tools::enter_workspace().unwrap();
        let stamp = std::fs::read_to_string(Path::new(BINARIES).join(STAMP)).unwrap();
        let now = format!("{:016x}", fingerprint().unwrap());
        assert_eq!(stamp.trim(), now, "kernels/ has changed since `cargo xtask kernels`");
        for source in sources().unwrap().iter().filter(|path| path.extension().unwrap() == "cu") {
            let binary =
                Path::new(BINARIES).join(source.with_extension("fatbin").file_name().unwrap());
            assert!(
                std::fs::metadata(&binary).is_ok_and(|it| it.len() > 0),
                "{}",
                binary.display()
            );
        }
    }
}
