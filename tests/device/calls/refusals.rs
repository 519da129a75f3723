//! A call that the driver refuses to one rank is the same error on all, and later runs work.
//!
//! Only this crate's calls are refused, because cuFFT looks up the driver's functions in another
//! way.

use thriffty::gpu::DevicePlan;
use thriffty::gpu::Gpu;
use thriffty::gpu::cudarc::driver::sys::CUresult;
use thriffty::planning::Reduce;
use thriffty::{Comm, Draft, Error, ErrorKind, Grid, Plan, R2c};

use super::counting::refusing;
use super::ways::{FAR, NEAR, WAYS, Way};

const RANKS: usize = 3;
/// The rank whose calls are refused.
const CULPRIT: usize = 1;
/// More calls of a function than any plan or run makes.
const MANY: u64 = 1000;

/// Runs `work` on all ranks while a call of one is refused; returns whether it was called.
fn refused<R>(
    comm: &dyn Comm,
    (name, after, code): (&str, u64, CUresult),
    work: impl FnOnce() -> R,
) -> Result<(R, bool), Error> {
    let (found, refused) = match comm.rank() {
        CULPRIT => refusing(name, after, code as i32, work),
        _ => (work(), false),
    };
    let mut any = [f64::from(u8::from(refused))];
    comm.allreduce(Reduce::Max, &mut any)?;
    Ok((found, any != [0.0]))
}

/// Whether all ranks have the same outcome: no error, or one with the same text.
fn same<R>(comm: &dyn Comm, found: &Result<R, Error>) -> Result<bool, Error> {
    let text = found.as_ref().err().map(Error::to_string).unwrap_or_default();
    let (mut mine, len) = ([0; 256], text.len().min(256));
    mine[..len].copy_from_slice(&text.as_bytes()[..len]);
    let mut all = vec![0; 256 * comm.size()];
    comm.allgather(&mine, &mut all)?;
    Ok(all.chunks(256).all(|other| other == mine))
}

fn draft<'a>(comm: &'a dyn Comm, way: &Way) -> Result<Draft<'a, R2c<f64>, 3>, Error> {
    way.draft(Plan::<R2c, 3>::r2c(comm, Grid::new([32, 30, 32])?))
}

/// Allocations of a plan, one by one. A rank that cannot export memory still makes a plan.
fn memory(comm: &dyn Comm, gpu: &Gpu, way: &Way) -> Result<(), Error> {
    for name in ["cuMemAlloc_v2", "cuMemAllocAsync", "cuMemHostAlloc"] {
        let (out, mut errors) = (CUresult::CUDA_ERROR_OUT_OF_MEMORY, 0);
        for after in 0.. {
            assert!(after < MANY, "{name} is called without end, {}", way.name);
            let make = || {
                let mut plan = draft(comm, way)?.on(gpu).build()?;
                // Also of shared arrays.
                plan.shared_input()?.as_slice()?;
                Ok::<_, Error>(plan.workspace_bytes())
            };
            let (made, was) = refused(comm, (name, after, out), make)?;
            let what = format!("{name} {after}, {}: {made:?}", way.name);
            assert!(same(comm, &made)?, "{what}");
            match made {
                Ok(_) if was => {}
                Ok(_) => break,
                Err(error) => {
                    assert!(was && error.kind() == ErrorKind::Memory, "{what}");
                    errors += 1;
                }
            }
        }
        assert!(errors > 0 || name != "cuMemAlloc_v2", "a plan has memory, {}", way.name);
        if comm.rank() == 0 {
            println!("{}: {errors} errors of {name}", way.name);
        }
    }
    Ok(())
}

/// Queued calls of a run, one by one, with data that differ from run to run.
fn runs(comm: &dyn Comm, gpu: &Gpu, way: &Way) -> Result<(), Error> {
    let mut plan: DevicePlan<R2c<f64>, 3> = draft(comm, way)?.on(gpu).build()?;
    let (stream, reals) = (plan.stream().clone(), plan.input_len());
    let inputs = [0.7, 1.1].map(|by| {
        let x: Vec<f64> = (0..reals).map(|i| (i as f64 * by).sin()).collect();
        stream.clone_htod(&x).unwrap()
    });
    let mut y = stream.alloc_zeros::<f64>(2 * plan.output_len()).unwrap();
    plan.forward_into(&inputs[1], &mut y)?;
    let expected = stream.clone_dtoh(&y).unwrap();
    for name in ["cuLaunchKernel", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2"] {
        let (failed, mut errors) = (CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 0);
        for after in 0.. {
            assert!(after < MANY, "{name} is called without end, {}", way.name);
            let run = || plan.forward_into(&inputs[0], &mut y);
            let (ran, was) = refused(comm, (name, after, failed), run)?;
            let what = format!("{name} {after}, {}: {ran:?}", way.name);
            assert_eq!(ran.is_err(), was, "{what}");
            assert!(same(comm, &ran)?, "{what}");
            plan.forward_into(&inputs[1], &mut y)?;
            assert!(stream.clone_dtoh(&y).unwrap() == expected, "after {what}");
            if !was {
                break;
            }
            errors += 1;
        }
        assert!(errors > 0 || name != "cuLaunchKernel", "a run launches, {}", way.name);
        if comm.rank() == 0 {
            println!("{}: {errors} errors of {name}", way.name);
        }
    }
    Ok(())
}

/// All of it.
pub(super) fn all(gpu: &Gpu) {
    // In windows and through the host, raw and with a tolerance, which makes all calls that other
    // wires make.
    for way in [&NEAR, &WAYS[2], &FAR, &WAYS[6]] {
        let hosts: Vec<_> = (0..RANKS).map(|rank| if way.apart { rank } else { 0 }).collect();
        for done in fft_comm::threads_on(&hosts, |comm| {
            memory(&comm, gpu, way).and_then(|()| runs(&comm, gpu, way))
        }) {
            done.unwrap();
        }
    }
}
