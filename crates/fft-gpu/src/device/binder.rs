//! Binding: each operation of a program becomes one operation of this rank's device.

use fft_core::{
    AcrossFft, AxisFft, Chunks, DeviceOp, Error, ExchangePass, FftGroup, Program, swapped,
};

use super::chunked_fft::ChunkedFft;
use super::cuda::Cuda;
use super::fused_fetch::plan;
use super::fused_store::Store;
use super::local_fft::DeviceFft;
use super::op::{CudaOp, Op};
use super::reshape::Reshape;
use super::resized::Resized;
use crate::base::{GpuError, GpuReal};
use crate::ffi::Gathering;

/// The operations of one direction.
pub(super) struct Bound<T> {
    pub(super) ops: Vec<CudaOp<T>>,
    /// The transforms for which cuFFT has no plan, although programs expect one.
    pub(super) refused: Refused,
}

/// Whether cuFFT has no plan for some transforms that load their input themselves, or that store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refused {
    pub(super) loads: bool,
    pub(super) stores: bool,
}

/// Binds the operations of a direction.
pub(super) fn bind<T: GpuReal>(
    device: &mut Cuda,
    program: &Program<'_>,
) -> Result<Bound<T>, Error> {
    let mut bound = Bound { ops: Vec::new(), refused: Refused::default() };
    for op in program.device_ops() {
        let op = match op {
            DeviceOp::LocalFft(ffts, chunks) => Some(local_fft(device, program, ffts, chunks)?),
            DeviceOp::Across(across) => across_fft(device, program, across)?,
            DeviceOp::Exchange(pass) => exchange(device, program, pass)?,
            DeviceOp::Store(pass) => {
                let store = Store::new::<T>(device, program, pass)?;
                bound.refused.stores |= store.is_none();
                bound.ops.extend(store.map(|store| CudaOp(Op::Store(Box::new(store)))));
                continue;
            }
        };
        bound.refused.loads |= op.is_none();
        bound.ops.extend(op.map(CudaOp));
    }
    Ok(bound)
}

/// Local transforms, in the chunks of the exchange after them if this rank's can be divided so.
fn local_fft<T: GpuReal>(
    device: &mut Cuda,
    program: &Program<'_>,
    ffts: &[AxisFft],
    chunks: Option<Chunks>,
) -> Result<Op<T>, Error> {
    let group = program.group(ffts, device.rank);
    let [from, _] = program.fft_ends(&ffts[0]);
    let order = from.layout.order();
    let make = || -> Result<(Op<T>, usize), GpuError> {
        if group.is_resized() {
            let (resized, area) = Resized::new(device, &group)?;
            return Ok((Op::Resized(Box::new(resized)), area));
        }
        if let Some(chunks) = chunks
            && let Some((chunked, area)) = ChunkedFft::new(device, &group, &order, chunks)?
        {
            return Ok((Op::Chunked(Box::new(chunked)), area));
        }
        let (local, area) = DeviceFft::new(device, &group)?;
        Ok((Op::Local(Box::new(local)), area))
    };
    let (op, area) = make().map_err(|why| why.on(device.rank))?;
    device.area_bytes = device.area_bytes.max(area);
    Ok(op)
}

/// One of two transforms across; `None` if cuFFT has no such plan.
fn across_fft<T: GpuReal>(
    device: &mut Cuda,
    program: &Program<'_>,
    across: &AcrossFft,
) -> Result<Option<Op<T>>, Error> {
    let both = program.group(&across.both, device.rank);
    let (group, source) = if across.last {
        (both.across_last(), both.across_source())
    } else {
        (both.across_first(), both.across_whole())
    };
    let plan = plan::<T>(&device.gpu, &group, (&[source], 1), None);
    let plan = plan.map_err(|why| why.on(device.rank))?;
    if let Some(plan) = &plan {
        device.area_bytes = device.area_bytes.max(plan.work_bytes());
    }
    Ok(plan.map(|plan| Op::Fetch(Box::new(plan))))
}

/// An exchange, or the transforms that do it; `None` if cuFFT has no plan for them.
fn exchange<T: GpuReal>(
    device: &mut Cuda,
    program: &Program<'_>,
    pass: &ExchangePass<'_>,
) -> Result<Option<Op<T>>, Error> {
    let mut loads = None;
    if !pass.fuse_after.is_empty() {
        let group = program.group(&pass.fuse_after, device.rank);
        let plan =
            loading::<T>(device, program, pass, &group).map_err(|why| why.on(device.rank))?;
        let Some(plan) = plan else { return Ok(None) };
        device.area_bytes = device.area_bytes.max(plan.work_bytes());
        loads = Some(plan);
    }
    let reshape = Reshape::new(device, program, pass, loads)?;
    Ok(Some(Op::Reshape(Box::new(reshape))))
}

/// Transforms that load the data of an exchange.
fn loading<T: GpuReal>(
    device: &Cuda,
    program: &Program<'_>,
    pass: &ExchangePass<'_>,
    group: &FftGroup,
) -> Result<Option<Gathering>, GpuError> {
    let redistribution = device.redistribution::<T>(program.recipe().problem(), pass);
    let (pieces, ranks) = (redistribution.pieces(), pass.from.layout.ranks());
    if group.is_across() {
        plan::<T>(&device.gpu, &group.across_first(), (&swapped(&pieces), ranks), None)
    } else {
        plan::<T>(&device.gpu, group, (&pieces, ranks), None)
    }
}
