//! The GPU that tests share.

use std::sync::OnceLock;

use thriffty::gpu::cudarc::cufft;
use thriffty::gpu::cudarc::driver::CudaContext;
use thriffty::gpu::{Fft, FftPlan, FftRun, Gpu, GpuError};

/// The first GPU, if cuFFT is available; otherwise prints why not.
pub(crate) fn gpu() -> Option<Gpu> {
    static GPU: OnceLock<Option<Gpu>> = OnceLock::new();
    let probe = || {
        let gpu = Gpu::probe(0).inspect_err(|why| println!("not run: {why}")).ok()?;
        match FftPlan::<f32>::new(&gpu, FftRun::Forward, &Fft::rows([8], 1)) {
            Err(why @ GpuError::NoCuFft) => {
                println!("not run: {why}");
                None
            }
            _ => Some(gpu),
        }
    };
    GPU.get_or_init(probe).clone()
}

/// A rank's GPU, in round-robin order.
#[allow(dead_code, reason = "not every test has ranks on several")]
pub(crate) fn gpu_of(rank: usize) -> Option<Gpu> {
    let first = gpu()?;
    let count = CudaContext::device_count().expect("there is a driver").max(1) as usize;
    if rank.is_multiple_of(count) {
        return Some(first);
    }
    Some(Gpu::probe(rank % count).expect("as good as the first"))
}

/// Whether to run few cases, under a tool that makes everything slow.
#[allow(dead_code, reason = "not every test has cases to leave out")]
pub(crate) fn few() -> bool {
    std::env::var_os("THRIFFTY_FEW").is_some()
}

/// Whether cuFFT links functions, so that it can load its input from other ranks.
#[allow(dead_code, reason = "not every test has plans that fetch")]
pub(crate) fn links(gpu: &Gpu) -> bool {
    static LINKS: OnceLock<bool> = OnceLock::new();
    *LINKS.get_or_init(|| tried(gpu))
}

#[allow(dead_code, reason = "as above")]
fn tried(gpu: &Gpu) -> bool {
    let version = cufft::result::get_version().expect("there is a cuFFT");
    let some = FftPlan::<f64>::scaled(gpu, FftRun::Forward, &Fft::rows([64], 1), 0.5);
    let links = version >= 12_000 && some.expect("a plan or none").is_some();
    if !links {
        println!(
            "not run: cuFFT {version} does not link what it is given, so that nothing is fetched"
        );
    }
    links
}

/// Reshapes that take no pass, because the transforms after them read from other ranks.
#[allow(dead_code, reason = "as above")]
pub(crate) fn fetched(operations: &[String]) -> usize {
    let takes_none = |text: &&String| text.contains("fused by load") || text.contains("; exchange");
    operations.iter().filter(takes_none).count()
}

/// Whether a reshape takes no pass, because the transforms before it write to other ranks.
#[allow(dead_code, reason = "as above")]
pub(crate) fn stores(operations: &[String]) -> bool {
    operations.iter().any(|text| text.contains("fused by store"))
}
