//! The fastest of several ways to transform a group, measured once for each device and shape.

use std::time::Instant;

use fft_core::{FftGroup, Pass};

use super::cuda::Cuda;
use super::fft_parts::{Part, rows_and_columns, run_all};
use super::group::fft_run;
use crate::abi::FftRun;
use crate::base::{Gpu, GpuError, GpuReal, tried};
use crate::ffi::{Owned, compiles};
use crate::kernel::ColumnFft;

/// The least bytes of an array for which ways are measured: below, launches take longer.
pub(super) const MEASURED_BYTES: usize = 16 << 20;
/// Bytes of an array that are enough to measure with.
const ENOUGH_BYTES: usize = 256 << 20;
/// Runs of each way after a first one; the fastest counts.
const RUNS: usize = 4;

/// The fastest parts for a group: by cuFFT, or with columns by thriffty's kernels. Also returns the
/// part of the factor that remains to be applied.
pub(super) fn fastest<T: GpuReal>(
    device: &Cuda,
    group: &FftGroup,
) -> Result<(Vec<Part<T>>, f64), GpuError> {
    let bytes = bytes::<T>(group).into_iter().max().unwrap_or(0);
    if rows_and_columns(group).is_none() || bytes < MEASURED_BYTES || !compiles() {
        return Part::by_cufft(device, group);
    }
    let less = smaller(group, bytes.div_ceil(ENOUGH_BYTES));
    let pass = |(place, pass): &(usize, Pass)| format!("{place} {} {}", pass.kind, pass.n);
    let passes: Vec<_> = less.passes.iter().map(pass).collect();
    let what = format!("{} {:?} {passes:?} {:?}", T::NAME, less.lens, fft_run(&less));
    let rows = match device.gpu.modules().fastest(what, || measure::<T>(device, &less)) {
        Ok(way) => way.checked_sub(1).map(|way| ColumnFft::<T>::ROWS[way]),
        // If there is no memory for measuring, cuFFT is used.
        Err(GpuError::Memory { .. }) => None,
        Err(why) => return Err(why),
    };
    let columns = rows.map(|rows| Part::with_columns(device, group, rows)).transpose()?.flatten();
    columns.map_or_else(|| Part::by_cufft(device, group), |parts| Ok((parts, 1.0)))
}

/// Whether there are kernels for columns of these lengths on a device.
pub fn has_columns<T: GpuReal>(gpu: &Gpu, lens: &[usize]) -> bool {
    lens.iter().all(|n| ColumnFft::<T>::has_length(gpu, *n))
}

/// Bytes before and after.
fn bytes<T: GpuReal>(group: &FftGroup) -> [usize; 2] {
    group.reals().map(|reals| reals * size_of::<T>())
}

/// The group on an array that is shorter by the factor `times`, along its longest axis without a
/// pass.
fn smaller(group: &FftGroup, times: usize) -> FftGroup {
    // Gaps between its rows make little difference.
    let mut less = FftGroup { pitch: None, ..group.clone() };
    let has_pass = |axis: &usize| group.passes.iter().any(|(place, _)| place == axis);
    let others = (0..group.lens[0].len()).filter(|axis| !has_pass(axis));
    if let Some(axis) = others.max_by_key(|axis| group.lens[0][*axis]) {
        less.lens.iter_mut().for_each(|lens| lens[axis] = lens[axis].div_ceil(times));
    }
    less
}

/// The number of the fastest way: 0 for cuFFT, then the ways of [`ColumnFft::ROWS`].
fn measure<T: GpuReal>(device: &Cuda, group: &FftGroup) -> Result<usize, GpuError> {
    let (stream, context) = (&device.stream, device.gpu.context());
    let mut ways = vec![Some(Part::by_cufft(device, group)?.0)];
    for rows in ColumnFft::<T>::ROWS {
        // Where the compiler refuses the kernel, cuFFT's is left.
        ways.push(Part::with_columns(device, group, rows).unwrap_or(None));
    }
    let work = ways.iter().flatten().flatten().map(Part::work_bytes).max().unwrap_or(0);
    let [before, after] = bytes::<T>(group);
    let [mut src, mut dst] = [
        Owned::<T>::allocated(context, before, stream)?,
        Owned::allocated(context, after, stream)?,
    ];
    let mut work = Owned::<u8>::allocated(context, work.max(1), stream)?;
    let halves = fft_run(group) == FftRun::RealToComplex;
    let mut once = |parts: &mut [Part<T>]| {
        let waited = || stream.synchronize().map_err(tried("waiting for a measured transform"));
        waited()?;
        let start = Instant::now();
        let src = Some(&*src.memory_mut());
        run_all(parts, stream, work.memory_mut(), src, dst.memory_mut(), halves)?;
        waited()?;
        Ok::<_, GpuError>(start.elapsed())
    };
    let mut fastest = None;
    for (number, parts) in ways.iter_mut().enumerate() {
        let Some(parts) = parts else { continue };
        once(parts)?;
        for _ in 0..RUNS {
            let found = (once(parts)?, number);
            fastest = Some(fastest.map_or(found, |fastest: (_, usize)| found.min(fastest)));
        }
    }
    Ok(fastest.map_or(0, |(_, number)| number))
}
