//! Transports between the GPUs of MPI processes.
//!
//! `cargo bench --features cuda,mpi --bench transports [-- quick]` starts itself under `mpirun`
//! with 2, 4 and 8 processes that share the GPUs. It does so once more with an MPI that is told to
//! know no devices. The first row is the classic way: pack all, a CUDA-aware `MPI_Alltoallv`,
//! unpack all. A time is the median of several on the slowest rank, from a barrier until its stream
//! is idle.
//!
//! Without CUDA's MPS, processes take turns on a GPU.

mod timing;

use std::process::Command;

use thriffty::gpu::DevicePlan;
use thriffty::gpu::cudarc::driver::CudaContext;
use thriffty::gpu::{Gpu, GpuTransport};
use thriffty::mpi::{self, MpiComm};
use thriffty::planning::{Exchange, Reduce};
use thriffty::{C2c, Comm, Complex, Draft, Grid, Plan, Tolerance, Wire};
use timing::{Done, Failure, cufft_and_copy, noise, seconds};

/// Told to the processes that measure: points along an axis.
const POINTS: &str = "THRIFFTY_BENCH_POINTS";
/// And that they measure what goes through the host.
const HOST: &str = "THRIFFTY_BENCH_HOST";
/// Between arrays that the ranks share.
const SHARED: &str = "peer to peer, in shared arrays";
/// Numbers of a result that are compared.
const COMPARED: usize = 1 << 18;

/// What a case found, on every rank.
struct Found {
    seconds: f64,
    bits: f64,
    recipe: String,
    exchange: Exchange,
    /// The beginning of this rank's result.
    result: Vec<f64>,
}

impl Found {
    fn reshapes(&self) -> usize {
        self.recipe.matches("(exchange").count()
    }
}

fn measure(mut plan: DevicePlan<C2c<f64>, 3>, reps: usize) -> Result<Found, Failure> {
    let (stream, comm) = (plan.stream().clone(), plan.comm().dup()?);
    let (mut x, mut y) = if plan.recipe().problem().options.shared_arrays {
        (plan.shared_input()?, plan.shared_output()?)
    } else {
        (plan.input(), plan.output())
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
        Coding::Bits => draft.ignore_shared_memory(true).wire(Wire::Bits(16)),
        Coding::Tolerance => draft.ignore_shared_memory(true).tolerance(Tolerance::relative(1e-6)?),
    })
}

/// A row of the table: what it is called, and how messages travel.
type Way = (&'static str, GpuTransport, Exchange);

const ON_DEVICE: [Way; 5] = [
    ("messages by alltoallv, on the device", GpuTransport::GpuDirect, Exchange::Alltoallv),
    ("peer to peer (CUDA IPC)", GpuTransport::PeerToPeer, Exchange::P2p),
    (SHARED, GpuTransport::PeerToPeer, Exchange::P2p),
    ("whole messages, on the device", GpuTransport::GpuDirect, Exchange::P2p),
    ("messages in chunks, on the device", GpuTransport::GpuDirect, Exchange::Pipelined),
];
const ON_HOST: [Way; 2] = [
    ("messages by alltoallv, through the host", GpuTransport::HostStaged, Exchange::Alltoallv),
    ("messages in chunks, through the host", GpuTransport::HostStaged, Exchange::Pipelined),
];

/// The table of one job, on one of its ranks.
struct Table<'a> {
    comm: &'a MpiComm,
    gpu: Gpu,
    n: usize,
    /// Seconds of cuFFT's own plan of the whole grid, and of a copy of it, by one process.
    floor: [f64; 2],
    /// The first row.
    classic: Option<Found>,
}

impl Table<'_> {
    /// All rows, on every rank.
    fn rows(&mut self, host: bool) -> Done {
        for coding in [Coding::Raw, Coding::Bits, Coding::Tolerance] {
            let mut paths = None;
            for way in if host { &ON_HOST[..] } else { &ON_DEVICE } {
                let (what, transport, exchange) = *way;
                let draft = draft(self.comm, self.n, coding)?.exchange(exchange);
                let draft = if what == SHARED { draft.shared_arrays(true) } else { draft };
                let plan = match draft.on(&self.gpu).transport(transport).build() {
                    Ok(plan) => plan,
                    Err(why) => {
                        self.say(&format!("  {what:40} not run: {why}"));
                        continue;
                    }
                };
                let found = measure(plan, if host { 3 } else { 7 })?;
                let path = found.recipe.replace(&format!(" {exchange} "), " ");
                if self.classic.is_none() {
                    self.print_floor(&found);
                }
                if *paths.get_or_insert_with(|| path.clone()) != path {
                    self.say(&format!("  another recipe: {}", found.recipe));
                }
                self.print_row(what, coding, exchange, found)?;
            }
        }
        Ok(())
    }

    /// Prints on the first rank.
    fn say(&self, line: &str) {
        if self.comm.rank() == 0 {
            println!("{line}");
        }
    }

    fn print_floor(&self, found: &Found) {
        let [fft, copy] = self.floor.map(|seconds| seconds * 1e3);
        let bytes = (2 * self.n.pow(3) * size_of::<Complex<f64>>()) as f64;
        let (rate, copies) = (bytes / self.floor[1] * 1e-9, found.reshapes());
        let all = fft + copies as f64 * copy;
        self.say(&format!("  {}", found.recipe));
        self.say(&format!(
            "  floor: cuFFT's own plan, {fft:.3} ms, and {copies} copies of {copy:.3} ms ({rate:.0} GB/s): {all:.3} ms"
        ));
    }

    /// Compares a result with that of the first row.
    fn print_row(&mut self, what: &str, coding: Coding, asked: Exchange, found: Found) -> Done {
        let first = self.classic.as_ref().unwrap_or(&found);
        let error = distance(self.comm, &found.result, &first.result)?;
        if error.is_nan() || error >= 1e-3 {
            return Err(format!("{what}: the result is {error:.1e} from that of the first").into());
        }
        let coded = match coding {
            Coding::Raw => "raw",
            Coding::Bits => "bits:16",
            Coding::Tolerance => "1e-6",
        };
        let (seconds, exchange) = (found.seconds, found.exchange);
        let floor = self.floor[0] + found.reshapes() as f64 * self.floor[1];
        let other = if exchange == asked { String::new() } else { format!("  as {exchange}") };
        self.say(&format!(
            "  {what:40} {coded:8} {:9.3} ms  {:5.2} of the floor  {:5.2} of the first  {:5.1} bits  error {error:.1e}{other}",
            seconds * 1e3,
            seconds / floor,
            seconds / first.seconds,
            found.bits,
        ));
        self.classic.get_or_insert(found);
        Ok(())
    }
}

/// All ways, on one rank of a job.
fn ranks(n: usize, host: bool) -> Done {
    let library = mpi::init()?;
    let comm = library.world()?;
    let gpu = Gpu::probe(comm.rank() % CudaContext::device_count()?.max(1) as usize)?;
    let mut floor = [0.0; 2];
    if comm.rank() == 0 {
        floor = cufft_and_copy(&gpu, n)?;
        let (size, aware) = (comm.size(), if host { "through the host" } else { "on the device" });
        println!("\n{size} processes, c2c {n}³ f64, bricks to bricks, {aware}, {}", gpu.name());
    }
    comm.allreduce(Reduce::Max, &mut floor)?;
    Table { comm: &comm, gpu, n, floor, classic: None }.rows(host)
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
