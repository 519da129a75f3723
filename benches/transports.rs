//! Ways from GPU to GPU between MPI processes, beside each other: other ranks' memory reached by CUDA IPC, MPI on device pointers,
//! and through the host. The first line of messages is the classic way: pack everything, a CUDA-aware `MPI_Alltoallv`, unpack
//! everything.
//!
//! `cargo bench --features cuda,mpi --bench transports [-- quick]` starts itself under `mpirun` with 2, 4 and 8 processes, which share
//! the GPUs there are; for what goes through the host once more, with an MPI that is told to know nothing of devices. Times are those of the slowest rank, from a barrier until its stream is idle: the median of several.
//! Processes on one GPU measure kernels and the ways of messages, no network; without CUDA's MPS they take turns on it.

mod timing;

use std::process::Command;

use thriffty::gpu::cudarc::driver::{CudaContext, CudaSlice};
use thriffty::gpu::{C2c as CuC2c, Fft, FftPlan, Gpu, GpuTransport};
use thriffty::mpi::{self, MpiComm};
use thriffty::{
    Algorithm, C2c, Comm, Complex, DevicePlan, Draft, Epochs, Grid, Plan, Reduce, Tolerance, Wire,
};
use timing::{Done, Failure, noise, seconds};

/// Told to the processes that measure: points along an axis.
const POINTS: &str = "THRIFFTY_BENCH_POINTS";
/// And that they measure what goes through the host.
const HOST: &str = "THRIFFTY_BENCH_HOST";
/// Between arrays that the ranks share.
const SHARED: &str = "reached, in shared arrays";
/// Numbers of a result that are compared.
const COMPARED: usize = 1 << 18;

/// Seconds that cuFFT's own plan of the whole grid takes, and a copy of it, by one process while the others wait.
fn own(gpu: &Gpu, n: usize) -> Result<[f64; 2], Failure> {
    let (stream, cube) = (gpu.new_stream()?, n * n * n);
    let x = stream.clone_htod(&noise(2 * cube, 0))?;
    let mut y = stream.alloc_zeros::<f64>(2 * cube)?;
    let copy = seconds(9, &stream, None, || Ok(stream.memcpy_dtod(&x, &mut y)?))?;
    let mut plan = FftPlan::<CuC2c<f64>>::new(gpu, &Fft::rows([n; 3], 1))?;
    let mut work: CudaSlice<u8> = stream.alloc_zeros(plan.work_bytes().max(1))?;
    let fft = seconds(9, &stream, None, || Ok(plan.forward(&stream, &x, &mut y, &mut work)?))?;
    Ok([fft, copy])
}

/// What a case found, on every rank.
struct Found {
    seconds: f64,
    bits: f64,
    recipe: String,
    exchange: Algorithm,
    /// The beginning of this rank's result.
    result: Vec<f64>,
}

fn measure(mut plan: DevicePlan<C2c<f64>, 3>, reps: usize) -> Result<Found, Failure> {
    let (stream, comm) = (plan.stream().clone(), plan.comm().dup()?);
    let (mut x, mut y) = match plan.recipe().problem().shared_arrays {
        true => (plan.shared_input()?, plan.shared_output()?),
        false => (plan.input(), plan.output()),
    };
    stream.memcpy_htod(&noise(2 * plan.input_len(), comm.rank()), &mut x.as_mut_slice()?)?;
    let seconds = seconds(reps, &stream, Some(comm.as_ref()), || {
        Ok(plan.forward_into(&x.as_slice()?, &mut y.as_mut_slice()?)?)
    })?;
    let result = stream.clone_dtoh(&y.as_slice()?.slice(0..COMPARED.min(2 * plan.output_len())))?;
    let mut sent = [plan.timings().sent as f64, plan.timings().reals as f64];
    comm.allreduce(Reduce::Sum, &mut sent)?;
    let bits = if sent[1] > 0.0 { 8.0 * sent[0] / sent[1] } else { 64.0 };
    let (recipe, exchange) = (plan.recipe().to_string(), plan.exchange());
    Ok(Found { seconds, bits, recipe, exchange, result })
}

/// The distance of two results over the norm of one, of all ranks together.
fn distance(comm: &dyn Comm, found: &[f64], exact: &[f64]) -> Result<f64, Failure> {
    let mut sums = [0.0; 2];
    for (a, b) in found.iter().zip(exact) {
        sums[0] += (a - b) * (a - b);
        sums[1] += b * b;
    }
    comm.allreduce(Reduce::Sum, &mut sums)?;
    Ok((sums[0] / sums[1]).sqrt())
}

/// What may be done to messages.
#[derive(Clone, Copy, PartialEq)]
enum Coding {
    Raw,
    Bits,
    Tolerance,
}

fn draft<'a>(
    comm: &'a MpiComm,
    n: usize,
    coding: Coding,
) -> Result<Draft<'a, C2c<f64>, 3>, Failure> {
    let draft = Plan::<C2c<f64>, 3>::c2c(comm, Grid::new([n; 3])?);
    Ok(match coding {
        Coding::Raw => draft,
        Coding::Bits => draft.ignore_shared_memory().wire(Wire::Bits(16)),
        Coding::Tolerance => draft.ignore_shared_memory().tolerance(Tolerance::relative(1e-6)?),
    })
}

/// All ways, on one rank of a job.
fn ranks(n: usize, host: bool) -> Done {
    let library = mpi::init()?;
    let comm = library.world()?;
    let (first, size) = (comm.rank() == 0, comm.size());
    let gpu = Gpu::probe(comm.rank() % CudaContext::device_count()?.max(1) as usize)?;
    let on_device = [
        ("messages by alltoallv, on the device", GpuTransport::GpuDirect, Algorithm::Alltoallv),
        ("reached (CUDA IPC)", GpuTransport::PeerToPeer, Algorithm::P2p),
        (SHARED, GpuTransport::PeerToPeer, Algorithm::P2p),
        ("whole messages, on the device", GpuTransport::GpuDirect, Algorithm::P2p),
        ("messages in chunks, on the device", GpuTransport::GpuDirect, Algorithm::Pipelined),
        ("puts, on the device", GpuTransport::GpuDirect, Algorithm::Ring(Epochs::Fence)),
        (
            "puts by flushing, on the device",
            GpuTransport::GpuDirect,
            Algorithm::Ring(Epochs::Flush),
        ),
    ];
    let on_host = [
        ("messages by alltoallv, through the host", GpuTransport::HostStaged, Algorithm::Alltoallv),
        ("messages in chunks, through the host", GpuTransport::HostStaged, Algorithm::Pipelined),
    ];
    let ways = if host { &on_host[..] } else { &on_device };
    let mut floor = [0.0; 2];
    if first {
        floor = own(&gpu, n)?;
        let aware = if host { "through the host" } else { "on the device" };
        println!("\n{size} processes, c2c {n}³ f64, bricks to bricks, {aware}, {}", gpu.name());
    }
    comm.allreduce(Reduce::Max, &mut floor)?;
    let bytes = (2 * n * n * n * size_of::<Complex<f64>>()) as f64;
    let mut classic = None;
    for coding in [Coding::Raw, Coding::Bits, Coding::Tolerance] {
        let mut paths = None;
        for &(what, transport, exchange) in ways {
            let draft = draft(&comm, n, coding)?.exchange(exchange);
            let draft = if what == SHARED { draft.shared_arrays() } else { draft };
            let plan = match draft.on(&gpu).transport(transport).build() {
                Ok(plan) => plan,
                Err(why) => {
                    if first {
                        println!("  {what:40} not run: {why}");
                    }
                    continue;
                }
            };
            let reps = if host { 3 } else { 7 };
            let found = measure(plan, reps)?;
            let reshapes = found.recipe.matches("(exchange").count();
            let path = found.recipe.replace(&format!(" {exchange} "), " ");
            if classic.is_none() && first {
                let [fft, copy] = floor.map(|seconds| seconds * 1e3);
                println!("  {}", found.recipe);
                println!(
                    "  floor: cuFFT's own plan, {fft:.3} ms, and {reshapes} copies of {copy:.3} ms ({:.0} GB/s): {:.3} ms",
                    bytes / floor[1] * 1e-9,
                    fft + reshapes as f64 * copy
                );
            }
            if *paths.get_or_insert_with(|| path.clone()) != path && first {
                println!("  another recipe: {}", found.recipe);
            }
            let (of, exact) = classic.get_or_insert_with(|| (found.seconds, found.result.clone()));
            let error = distance(&comm, &found.result, exact)?;
            if error.is_nan() || error >= 1e-3 {
                return Err(
                    format!("{what}: the result is {error:.1e} from that of the first").into()
                );
            }
            let coded = match coding {
                Coding::Raw => "raw",
                Coding::Bits => "bits:16",
                Coding::Tolerance => "1e-6",
            };
            if first {
                println!(
                    "  {what:40} {coded:8} {:9.3} ms  {:5.2} of the floor  {:5.2} of the first  {:5.1} bits  error {error:.1e}{}",
                    found.seconds * 1e3,
                    found.seconds / (floor[0] + reshapes as f64 * floor[1]),
                    found.seconds / *of,
                    found.bits,
                    if found.exchange == exchange {
                        String::new()
                    } else {
                        format!("  as {}", found.exchange)
                    }
                );
            }
        }
    }
    Ok(())
}

fn main() -> Done {
    if let Ok(points) = std::env::var(POINTS) {
        let done = ranks(points.parse()?, std::env::var_os(HOST).is_some());
        if let Err(why) = done {
            eprintln!("{why}");
            mpi::abort(1);
        }
        return Ok(());
    }
    if let Err(why) = Gpu::probe(0) {
        println!("not run: {why}");
        return Ok(());
    }
    let quick = std::env::args().any(|argument| argument == "quick");
    let settings = [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        // Through Open MPI's UCX windows ranks cannot put into memory of devices.
        ("OMPI_MCA_osc", "^ucx"),
    ];
    for (ranks, host) in
        [("2", false), ("2", true), ("4", false), ("4", true), ("8", false), ("8", true)]
    {
        let mut job = Command::new("mpirun");
        job.args(["-n", ranks]).arg(std::env::current_exe()?);
        job.env(POINTS, if quick { "128" } else { "512" });
        let own = |(name, _): &(&str, &str)| std::env::var_os(name).is_none();
        job.envs(settings.into_iter().filter(own));
        if host {
            job.env(HOST, "1").env("OMPI_MCA_opal_cuda_support", "0");
        }
        if !job.status()?.success() {
            return Err(format!("mpirun -n {ranks} failed").into());
        }
    }
    Ok(())
}
