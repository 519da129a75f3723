//! The clock and the data of the benchmarks of devices.

use std::sync::Arc;
use std::time::Instant;

use thriffty::Comm;
use thriffty::gpu::cudarc::driver::{CudaSlice, CudaStream};
use thriffty::gpu::{Fft, FftPlan, FftRun, Gpu};
use thriffty::planning::Reduce;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Done = Result<(), Failure>;

/// Seconds of a run on the slowest rank: the median of `reps`, after two warm-ups.
pub(crate) fn seconds(
    reps: usize,
    stream: &Arc<CudaStream>,
    comm: Option<&dyn Comm>,
    mut run: impl FnMut() -> Done,
) -> Result<f64, Failure> {
    let mut times = Vec::new();
    for round in 0..reps + 2 {
        stream.synchronize()?;
        if let Some(comm) = comm {
            comm.barrier()?;
        }
        let start = Instant::now();
        run()?;
        stream.synchronize()?;
        let mut time = [start.elapsed().as_secs_f64()];
        if let Some(comm) = comm {
            comm.allreduce(Reduce::Max, &mut time)?;
        }
        if round >= 2 {
            times.push(time[0]);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Seconds of cuFFT's own three-dimensional plan, and of a copy of its data.
pub(crate) fn cufft_and_copy(gpu: &Gpu, n: usize) -> Result<[f64; 2], Failure> {
    let (stream, cube) = (gpu.new_stream()?, n * n * n);
    let x = stream.clone_htod(&noise(2 * cube, 0))?;
    let mut y = stream.alloc_zeros::<f64>(2 * cube)?;
    let copy = seconds(9, &stream, None, || Ok(stream.memcpy_dtod(&x, &mut y)?))?;
    let mut plan = FftPlan::<f64>::new(gpu, FftRun::Forward, &Fft::rows([n; 3], 1))?;
    let mut work: CudaSlice<u8> = stream.alloc_zeros(plan.work_bytes().max(1))?;
    let fft = seconds(9, &stream, None, || Ok(plan.run(&stream, &x, &mut y, &mut work)?))?;
    Ok([fft, copy])
}

/// Uniform numbers, repeated after 2^20.
pub(crate) fn noise(n: usize, seed: usize) -> Vec<f64> {
    let mut state = 1 + seed as u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let some: Vec<f64> = (0..n.min(1 << 20)).map(|_| next()).collect();
    some.into_iter().cycle().take(n).collect()
}
