//! Every kernel against its CPU twin. Where there is no GPU, each test prints why and passes.

#[path = "gpu/codecs.rs"]
mod codecs;
#[path = "gpu/data.rs"]
mod data;
#[path = "gpu/fft.rs"]
mod fft;
#[path = "gpu/noise.rs"]
mod noise;
#[path = "gpu/spectral.rs"]
mod spectral;
#[path = "gpu/transfers.rs"]
mod transfers;

use std::sync::OnceLock;

use fft_gpu::Gpu;

/// The first GPU, or nothing and a line that says why.
fn gpu() -> Option<Gpu> {
    static GPU: OnceLock<Option<Gpu>> = OnceLock::new();
    let probe = || Gpu::probe(0).inspect_err(|why| println!("not run: {why}")).ok();
    GPU.get_or_init(probe).clone()
}

#[test]
fn a_device_that_is_not_there_has_a_reason() {
    let why = Gpu::probe(4096).err().expect("no machine has so many").to_string();
    assert!(why.contains("no CUDA driver") || why.contains("CUDA device 4096"), "{why}");
}
