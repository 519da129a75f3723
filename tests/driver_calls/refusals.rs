//! What the driver refuses to one rank is the same error on all, and afterwards all is well.

use thriffty::gpu::Gpu;
use thriffty::gpu::cudarc::driver::sys::CUresult;
use thriffty::{Comm, DevicePlan, Draft, Error, ErrorKind, Grid, Plan, R2c, Reduce};

use super::counting::refusing;
use super::ways::{FAR, NEAR, WAYS, Way};

const RANKS: usize = 3;
/// The rank to which something is refused.
const CULPRIT: usize = 1;
/// Calls of a function that are refused one after the other, before this ends.
const MANY: u64 = 1000;

/// On one rank, does work while a call is refused; on the others just so. Whether there was such a call.
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

/// Whether all ranks have the same.
fn same(comm: &dyn Comm, error: &Error) -> Result<bool, Error> {
    let mut mine = [0; 256];
    let text = error.to_string();
    mine[..text.len().min(256)].copy_from_slice(&text.as_bytes()[..text.len().min(256)]);
    let mut all = vec![0; 256 * comm.size()];
    comm.allgather(&mine, &mut all)?;
    Ok(all.chunks(256).all(|other| other == mine))
}

fn draft<'a>(comm: &'a dyn Comm, way: &Way) -> Result<Draft<'a, R2c<f64>, 3>, Error> {
    way.draft(Plan::<R2c, 3>::r2c(comm, Grid::new([32, 30, 32])?))
}

/// Memory for a plan, piece by piece.
fn memory(comm: &dyn Comm, gpu: &Gpu, way: &Way) -> Result<(), Error> {
    for name in ["cuMemAlloc_v2", "cuMemAllocAsync", "cuMemHostAlloc"] {
        let out = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        for after in 0..MANY {
            let make = || Ok::<_, Error>(draft(comm, way)?.on(gpu).build()?.memory());
            let (made, was) = refused(comm, (name, after, out), make)?;
            let what = format!("{name} {after}, {}: {made:?}", way.name);
            if !was {
                assert!(made.is_ok(), "{what}");
                if comm.rank() == 0 {
                    println!("{}: {after} calls of {name} were refused", way.name);
                }
                break;
            }
            let error = made.expect_err(&what);
            assert_eq!(error.kind(), ErrorKind::Memory, "{what}");
            assert!(same(comm, &error)?, "{what}");
        }
    }
    Ok(())
}

/// What is queued in a run, call by call.
fn runs(comm: &dyn Comm, gpu: &Gpu, way: &Way) -> Result<(), Error> {
    let mut plan: DevicePlan<R2c<f64>, 3> = draft(comm, way)?.on(gpu).build()?;
    let stream = plan.stream().clone();
    let x: Vec<f64> = (0..plan.input_len()).map(|i| (i as f64 * 0.7).sin()).collect();
    let x = stream.clone_htod(&x).unwrap();
    let mut y = stream.alloc_zeros::<f64>(2 * plan.output_len()).unwrap();
    plan.forward_into(&x, &mut y)?;
    let expected = stream.clone_dtoh(&y).unwrap();
    for name in
        ["cuLaunchKernel", "cuLaunchKernelEx", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2"]
    {
        let failed = CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        for after in 0..MANY {
            let (ran, was) =
                refused(comm, (name, after, failed), || plan.forward_into(&x, &mut y))?;
            let what = format!("{name} {after}, {}: {ran:?}", way.name);
            if !was {
                assert!(ran.is_ok(), "{what}");
                if comm.rank() == 0 {
                    println!("{}: {after} calls of {name} were refused", way.name);
                }
                break;
            }
            assert!(same(comm, &ran.expect_err(&what))?, "{what}");
            plan.forward_into(&x, &mut y)?;
            assert_eq!(stream.clone_dtoh(&y).unwrap(), expected, "after {what}");
        }
    }
    Ok(())
}

/// All of it.
pub(super) fn all(gpu: &Gpu) {
    for way in [&NEAR, &WAYS[1], &WAYS[2], &FAR, &WAYS[5], &WAYS[6]] {
        let hosts: Vec<_> = (0..RANKS).map(|rank| if way.apart { rank } else { 0 }).collect();
        for done in fft_comm::threads_on(&hosts, |comm| {
            memory(&comm, gpu, way).and_then(|()| runs(&comm, gpu, way))
        }) {
            done.unwrap();
        }
    }
}
