//! Copies between arrays on devices, and fields loaded from them.

use thriffty::arrays::{CopyPlan, FieldCopy, Ghosts, GridData, Subarray, bind_on_device};
use thriffty::gpu::DeviceOptions;
use thriffty::{Brick, Complex, Grid};

use super::*;
use crate::subarrays::{Item, Runner, copies, halos};

/// Runs copies on a device, by a transport.
pub(super) struct OnDevice<'g>(pub(super) &'g Gpu, pub(super) GpuTransport);

impl OnDevice<'_> {
    fn options(&self) -> DeviceOptions {
        DeviceOptions { transport: self.1, ..DeviceOptions::from(self.0) }
    }
}

/// There are no arrays of nothing on a device.
fn upload<E: Item>(stream: &std::sync::Arc<CudaStream>, array: &[E]) -> CudaSlice<u8> {
    let bytes: &[u8] = bytemuck::cast_slice(array);
    stream.clone_htod(&[bytes, &[0; 16]].concat()).unwrap()
}

fn download<E: Item>(stream: &std::sync::Arc<CudaStream>, from: &CudaSlice<u8>, to: &mut [E]) {
    let bytes = stream.clone_dtoh(from).unwrap();
    stream.synchronize().unwrap();
    let to: &mut [u8] = bytemuck::cast_slice_mut(to);
    to.copy_from_slice(&bytes[..to.len()]);
}

impl Runner for OnDevice<'_> {
    /// Twice, from other addresses.
    fn run<E: Item>(
        &self,
        comm: &dyn Comm,
        plan: CopyPlan,
        sources: &[Vec<E>],
        targets: &mut [Vec<E>],
    ) -> Done {
        let mut copy = bind_on_device(comm, self.options(), plan)?;
        let stream = copy.stream().clone();
        let from: Vec<_> = sources.iter().map(|it| upload(&stream, it)).collect();
        let from: Vec<_> = from.iter().collect();
        let before = targets.to_vec();
        for _ in 0..2 {
            let mut to: Vec<_> = before.iter().map(|it| upload(&stream, it)).collect();
            copy.run(&from, &mut to.iter_mut().collect::<Vec<_>>())?;
            to.iter().zip(&mut *targets).for_each(|(from, to)| download(&stream, from, to));
        }
        Ok(())
    }

    fn run_in_place<E: Item>(
        &self,
        comm: &dyn Comm,
        plan: CopyPlan,
        arrays: &mut [Vec<E>],
    ) -> Done {
        let mut copy = bind_on_device(comm, self.options(), plan)?;
        let stream = copy.stream().clone();
        let mut there: Vec<_> = arrays.iter().map(|it| upload(&stream, it)).collect();
        copy.run_in_place(&mut there.iter_mut().collect::<Vec<_>>())?;
        there.iter().zip(arrays).for_each(|(from, to)| download(&stream, from, to));
        Ok(())
    }
}

/// Random copies, ghost points and fields. Collective.
pub(super) fn cases(
    comm: &dyn Comm,
    gpu: &Gpu,
    transport: GpuTransport,
    seeds: std::ops::Range<u64>,
) -> Done {
    let runner = OnDevice(gpu, transport);
    for seed in seeds {
        copies::<u32, 1>(comm, &runner, seed)?;
        copies::<u64, 2>(comm, &runner, seed)?;
        copies::<[u64; 2], 3>(comm, &runner, seed)?;
        copies::<u32, 4>(comm, &runner, seed)?;
        halos::<u32, 1>(comm, &runner, seed)?;
        halos::<u64, 2>(comm, &runner, seed)?;
        halos::<[u64; 2], 3>(comm, &runner, seed)?;
    }
    fields(comm, &runner)
}

/// A field loaded from an array with ghost points, and stored there. Collective.
fn fields(comm: &dyn Comm, runner: &OnDevice<'_>) -> Done {
    let (rank, ranks, shape) = (comm.rank(), comm.size(), [12, 9, 10]);
    let draft = thriffty::c2c(comm, shape).transposed_input(true).on(runner.options());
    let mut plan = draft.build()?;
    let here = Subarray::with_ghosts(Grid::new(shape)?.brick(rank, ranks), [1, 2, 0], [2, 0, 1]);
    let data: Vec<C64> = random(here.distance, 7 + rank as u64);
    let stream = plan.stream().clone();
    let mut array = stream.clone_htod(bytemuck::cast_slice::<_, f64>(&data)).unwrap();
    let mut copy = FieldCopy::input(&plan, &[here])?;
    let mut field = plan.input();
    copy.load(&[&array], &mut field)?;
    let spectrum = plan.forward(field)?;
    let field = plan.inverse(spectrum)?;
    stream.memset_zeros(&mut array).unwrap();
    copy.store(&field, &mut [&mut array])?;
    let found = stream.clone_dtoh(&array).unwrap();
    stream.synchronize().unwrap();
    let brick: Brick<3> = here.brick.typed();
    let found: &[C64] = bytemuck::cast_slice(&found);
    let inside: Vec<_> = (0..brick.points())
        .map(|at| {
            let [_, b, c] = brick.shape();
            let index = [at / (b * c), at / c % b, at % c];
            here.offset + index.iter().zip(&*here.strides).map(|(i, step)| i * step).sum::<usize>()
        })
        .collect();
    let at = |array: &[C64]| inside.iter().map(|at| array[*at]).collect::<Vec<_>>();
    let (there, before) = (at(found), at(&data));
    assert!(distance(&there, &before) <= 1e-13 * norm(&before));
    let zero = Complex::new(0.0, 0.0);
    let others = (0..found.len()).filter(|at| !inside.contains(at));
    assert!(others.map(|at| found[at]).all(|value| value == zero), "ghost points stay as they are");
    Ok(())
}

#[test]
fn arrays_on_devices_are_copied_as_on_the_host() {
    let Some(gpu) = gpu() else { return };
    let gpus: Vec<_> = (0..4).map(|rank| gpu_of(rank).unwrap_or_else(|| gpu.clone())).collect();
    let seeds = 0..if few() { 2 } else { 12 };
    for ranks in [1, 2, 3, 4] {
        thriffty::threads(ranks, |comm| {
            let gpu = &gpus[comm.rank()];
            cases(&comm, gpu, GpuTransport::PeerToPeer, seeds.clone())?;
            cases(&comm, gpu, GpuTransport::HostStaged, seeds.clone())
        })
        .unwrap();
    }
    on_hosts(&[0, 1, 1], |comm| cases(&comm, &gpu, GpuTransport::PeerToPeer, 20..24));
}

/// Short arrays on one rank are an error on all, and the copy still works.
#[test]
fn short_arrays_on_a_device_are_refused_on_all_ranks() {
    let Some(gpu) = gpu() else { return };
    thriffty::threads(3, |comm| {
        let grid = Grid::new([6, 4])?;
        let here = Subarray::with_ghosts(grid.brick(comm.rank(), 3), [1, 1], [1, 1]);
        let ghosts = Ghosts::new([1, 1], [1, 1], [true; 2]);
        let plan = CopyPlan::halo(&comm, GridData::of::<f64>(grid), ghosts, &[here])?;
        let mut halo = bind_on_device(&comm, &gpu, plan)?;
        let stream = halo.stream().clone();
        for culprit in 0..3 {
            let len = here.distance - if comm.rank() == culprit { 2 } else { 0 };
            let mut array = stream.alloc_zeros::<f64>(len).unwrap();
            let error = halo.run_in_place(&mut [&mut array]).unwrap_err().to_string();
            assert!(error.contains(&format!("rank {culprit}")), "{error}");
            let mut array = stream.alloc_zeros::<f64>(here.distance).unwrap();
            halo.run_in_place(&mut [&mut array])?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}
