//! The GPU that tests share.

use std::sync::OnceLock;

use thriffty::gpu::{C2c, Fft, FftPlan, Gpu, GpuError};

/// The first GPU, with cuFFT, or nothing and a line that says why.
pub(crate) fn gpu() -> Option<Gpu> {
    static GPU: OnceLock<Option<Gpu>> = OnceLock::new();
    let probe = || {
        let gpu = Gpu::probe(0).inspect_err(|why| println!("not run: {why}")).ok()?;
        match FftPlan::<C2c<f32>>::new(&gpu, &Fft::rows([8], 1)) {
            Err(why @ GpuError::NoCuFft) => {
                println!("not run: {why}");
                None
            }
            _ => Some(gpu),
        }
    };
    GPU.get_or_init(probe).clone()
}

/// Whether a tool is watching, which makes everything slow.
#[allow(dead_code, reason = "not every test has cases to leave out")]
pub(crate) fn few() -> bool {
    std::env::var_os("THRIFFTY_FEW").is_some()
}
