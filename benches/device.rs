//! Plans on a GPU beside cuFFT's own plan and the card's own copy. Ranks are threads that share it.
//!
//! `cargo bench --features cuda --bench device [-- quick]`. A time is the median of several on the
//! slowest rank, from a barrier until its stream is idle. No network is involved.

mod timing;

use thriffty::gpu::DevicePlan;
use thriffty::gpu::cudarc::driver::CudaSlice;
use thriffty::gpu::{Fft, FftPlan, FftRun, Gpu};
use thriffty::planning::{Direction, Element, Transform};
use thriffty::{C2c, Complex, Draft, Error, Grid, Plan, R2c, Scale, ThreadComm, Tolerance, Wire};
use timing::{Done, Failure, cufft_and_copy, noise, seconds};

/// The rate of the card's copy, and seconds of cuFFT's own plans.
struct Own {
    copy: f64,
    c2c: f64,
    r2c: f64,
    c2r: f64,
}

fn own(gpu: &Gpu, n: usize) -> Result<Own, Failure> {
    let [c2c, copy] = cufft_and_copy(gpu, n)?;
    let (stream, cube) = (gpu.new_stream()?, n * n * n);
    let mut x = stream.clone_htod(&noise(2 * cube, 0))?;
    let mut y = stream.alloc_zeros::<f64>(2 * cube)?;
    let plan = |run| FftPlan::<f64>::new(gpu, run, &Fft::rows([n; 3], 1));
    let (mut plan, mut back) = (plan(FftRun::RealToComplex)?, plan(FftRun::ComplexToReal)?);
    let bytes = plan.work_bytes().max(back.work_bytes()).max(1);
    let mut work: CudaSlice<u8> = stream.alloc_zeros(bytes)?;
    let r2c = seconds(9, &stream, None, || Ok(plan.run(&stream, &x, &mut y, &mut work)?))?;
    let c2r = seconds(9, &stream, None, || Ok(back.run(&stream, &y, &mut x, &mut work)?))?;
    Ok(Own { copy: 2.0 * x.num_bytes() as f64 / copy, c2c, r2c, c2r })
}

/// Seconds of a plan, forward and inverse.
fn plan_seconds<K: Transform<Real = f64>>(
    mut plan: DevicePlan<K, 3>,
    reps: usize,
    directions: &[Direction],
) -> Result<(Vec<f64>, DevicePlan<K, 3>), Failure> {
    let stream = plan.stream().clone();
    let lens = [plan.input_len() * K::Physical::WIDTH, plan.output_len() * K::Spectral::WIDTH];
    let mut x = stream.clone_htod(&noise(lens[0], 0))?;
    let mut y = stream.alloc_zeros::<f64>(lens[1])?;
    let comm = plan.comm().dup()?;
    let mut found = Vec::new();
    for direction in directions {
        found.push(seconds(reps, &stream, Some(comm.as_ref()), || {
            match direction {
                Direction::Forward => plan.forward_into(&x, &mut y)?,
                Direction::Inverse => plan.inverse_into(&y, &mut x)?,
            }
            Ok(())
        })?);
    }
    Ok((found, plan))
}

fn draft<'a>(comm: &'a ThreadComm, n: usize) -> Result<Draft<'a, C2c<f64>, 3>, Error> {
    Ok(Plan::<C2c<f64>, 3>::c2c(comm, Grid::new([n; 3])?))
}

const BOTH: [Direction; 2] = [Direction::Forward, Direction::Inverse];

/// One rank.
fn alone(gpu: &Gpu, n: usize) -> Result<Own, Failure> {
    let own = own(gpu, n)?;
    println!("\none rank, {n}³, f64; the card's own copy moves {:.0} GB/s", own.copy * 1e-9);
    let line = |what: &str, time: f64, other: f64| {
        println!("  {what:40} {:9.3} ms {:6.2} of cuFFT's own", time * 1e3, time / other);
    };
    let run = |comm: ThreadComm| -> Done {
        for scaled in [Scale::None, Scale::Full] {
            let said = if scaled == Scale::None { "" } else { ", scaled" };
            let plan = draft(&comm, n)?
                .forward_scale(Scale::None)
                .inverse_scale(scaled)
                .on(gpu)
                .build()?;
            let (found, _) = plan_seconds(plan, 9, &BOTH)?;
            line("c2c forward", found[0], own.c2c);
            line(&format!("c2c inverse{said}"), found[1], own.c2c);
            let plan = Plan::<R2c<f64>, 3>::r2c(&comm, Grid::new([n; 3])?);
            let plan = plan.forward_scale(Scale::None).inverse_scale(scaled).on(gpu).build()?;
            let (found, _) = plan_seconds(plan, 9, &BOTH)?;
            line("r2c forward", found[0], own.r2c);
            line(&format!("c2r{said}"), found[1], own.c2r);
        }
        Ok(())
    };
    thriffty::threads(1, run)?;
    Ok(own)
}

/// The path of messages.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Read in place.
    Reached,
    /// Encoded into the receiver's window.
    Window,
    /// Through the host.
    Staged,
}

fn shared(gpu: &Gpu, n: usize, ranks: usize, own: &Own) -> Done {
    let bytes = (n * n * n * size_of::<Complex<f64>>()) as f64;
    println!("\n{ranks} ranks share the GPU, c2c {n}³ f64, bricks to bricks");
    let tolerance = Tolerance::relative(1e-6)?;
    type Option3<'o> = &'o (dyn Fn(Draft<'_, C2c<f64>, 3>) -> Draft<'_, C2c<f64>, 3> + Sync);
    let cases: [(&str, Way, Option3<'_>); 7] = [
        ("as it is, taken from peers", Way::Reached, &|d| d),
        ("f32 into windows", Way::Window, &|d| d.wire(Wire::F32)),
        ("bits:16 into windows", Way::Window, &|d| d.wire(Wire::Bits(16))),
        ("tolerance 1e-6 into windows", Way::Window, &|d| d.tolerance(tolerance)),
        ("as it is, through the host", Way::Staged, &|d| d),
        ("bits:16, through the host", Way::Staged, &|d| d.wire(Wire::Bits(16))),
        ("tolerance 1e-6, through the host", Way::Staged, &|d| d.tolerance(tolerance)),
    ];
    for (what, way, option) in cases {
        let hosts: Vec<_> = (0..ranks).map(|r| if way == Way::Staged { r } else { 0 }).collect();
        let body = |comm: ThreadComm| -> Result<_, Failure> {
            let draft = option(draft(&comm, n)?);
            let draft = if way == Way::Reached { draft } else { draft.ignore_shared_memory(true) };
            let plan = draft.on(gpu).build()?;
            let reps = if way == Way::Staged { 3 } else { 9 };
            let (found, plan) = plan_seconds(plan, reps, &[Direction::Forward])?;
            let reshapes = plan.recipe().to_string().matches("(exchange").count();
            let bits = 8.0 * plan.timings().sent as f64 / plan.timings().reals.max(1) as f64;
            Ok((found[0], reshapes, bits, plan.recipe().to_string()))
        };
        let found: Result<Vec<_>, _> = fft_comm::threads_on(&hosts, body).into_iter().collect();
        let (time, reshapes, bits, recipe) = found?.swap_remove(0);
        let floor = own.c2c + reshapes as f64 * 2.0 * bytes / own.copy;
        if way == Way::Reached {
            println!("  {recipe}");
            println!("  floor: cuFFT's own plan and {reshapes} copies    {:9.3} ms", floor * 1e3);
        }
        let bits = if way == Way::Reached { 64.0 } else { bits };
        println!(
            "  {what:40} {:9.3} ms {:6.2} of the floor ({bits:.1} bits)",
            time * 1e3,
            time / floor
        );
    }
    Ok(())
}

fn main() -> Done {
    let gpu = match Gpu::probe(0) {
        Ok(gpu) => gpu,
        Err(why) => {
            println!("not run: {why}");
            return Ok(());
        }
    };
    let quick = std::env::args().any(|argument| argument == "quick");
    println!("{}, cuFFT and the kernels of thriffty", gpu.name());
    let n = if quick { 256 } else { 512 };
    let own = alone(&gpu, n)?;
    for ranks in [2, 4, 8] {
        shared(&gpu, n, ranks, &own)?;
    }
    if !quick {
        alone(&gpu, 1024)?;
    }
    Ok(())
}
