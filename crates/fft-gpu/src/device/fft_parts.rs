//! Ways to transform a group: by cuFFT, the last two axes of memory together and others as columns;
//! or with columns by a kernel of thriffty. Cosine and sine transforms are done one after the
//! other.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DeviceSlice};
use fft_core::{Direction, DynBrick, FftGroup, Kind, Pass, Placed, Transfer};

use super::cuda::Cuda;
use super::group::{LineLayout, fft_run, product};
use super::trig::Trig;
use crate::abi::{Fft, FftRun, Move};
use crate::base::{GpuError, GpuReal};
use crate::ffi::{DeviceMemory, FftPlan, Owned};
use crate::kernel::{ColumnFft, Transfers};

/// The longest lines whose factor is linked into cuFFT's kernels; longer ones slow them down.
const LINKED_POINTS: usize = 512;

/// Transforms that run in one go; all but the first in place.
pub(super) enum Part<T> {
    CuFft(Box<PlannedLines<T>>),
    /// By a kernel of our own, with a factor.
    Columns(ColumnFft<T>, Direction, f64),
    /// With a factor.
    Trig(Box<Trig<T>>),
}

/// A plan that runs several times, and real numbers from one run to the next, before and after.
pub(super) struct PlannedLines<T> {
    plan: FftPlan<T>,
    times: usize,
    steps: [usize; 2],
    aligned: Option<AlignedCopy<T>>,
}

/// A copy of real arrays of odd length in which each begins at the alignment of complex numbers, as
/// cuFFT requires. It is rare, and slow.
struct AlignedCopy<T> {
    copy: Transfers,
    buffer: Owned<T>,
}

impl<T: GpuReal> AlignedCopy<T> {
    /// A copy of `times` arrays of `reals` numbers, before a transform or of its result.
    fn new(device: &Cuda, times: usize, reals: usize, before: bool) -> Result<Self, GpuError> {
        let (gpu, stream) = (&device.gpu, &device.stream);
        let placed = |reals| Placed {
            brick: DynBrick::new([0; 2], [times, reals]),
            order: [0, 1].into(),
            batch: 1,
        };
        let (dense, apart) = (placed(reals), placed(reals + 1));
        let (from, to) = if before { (&dense, &apart) } else { (&apart, &dense) };
        let transfer = Transfer::new(&dense.brick, 0..1, from, to);
        let moves = [Move { transfer: &transfer, from: 0, to: 0 }];
        let copy = Transfers::new(gpu, stream, size_of::<T>(), &moves)?;
        let bytes = times * (reals + 1) * size_of::<T>();
        let buffer = Owned::allocated(gpu.context(), bytes, stream)?;
        Ok(Self { copy, buffer })
    }
}

impl<T: GpuReal> PlannedLines<T> {
    /// Plans a group; also returns the part of its factor that remains to be applied.
    fn new(device: &Cuda, group: &FftGroup) -> Result<(Self, f64), GpuError> {
        let [_] = &group.passes[..] else { return Self::planes(device, group) };
        let lines = LineLayout::new(group);
        let [before, after] = group.widths();
        let (times, mut aligned) = (lines.times, None);
        let mut steps = [lines.steps[0] * before, lines.steps[1] * after];
        let real = usize::from(before == 2);
        if group.halved() && times > 1 && !steps[real].is_multiple_of(2) {
            aligned = Some(AlignedCopy::new(device, times, steps[real], real == 0)?);
            steps[real] += 1;
        }
        let (plan, factor) = planned(device, group, &lines.fft)?;
        Ok((Self { plan, times, steps, aligned }, factor))
    }

    /// Both last axes in one run.
    fn planes(device: &Cuda, group: &FftGroup) -> Result<(Self, f64), GpuError> {
        let n = |place: usize| {
            let pass = group.passes.iter().find(|(at, _)| *at == place);
            pass.expect("both last axes").1.n
        };
        let last = group.lens[0].len() - 1;
        let rows = product(&group.lens[0][..last - 1]);
        let fft = Fft::rows([n(last - 1), n(last)], rows);
        let (plan, factor) = planned(device, group, &fft)?;
        Ok((Self { plan, times: 1, steps: [0; 2], aligned: None }, factor))
    }

    fn run(
        &mut self,
        stream: &Arc<CudaStream>,
        work: &mut DeviceMemory<u8>,
        src: Option<&DeviceMemory<T>>,
        dst: &mut DeviceMemory<T>,
        halves: bool,
    ) -> Result<(), GpuError> {
        let Self { plan, times, steps, aligned } = self;
        let mut each = |src: Option<&DeviceMemory<T>>, dst: &mut DeviceMemory<T>| {
            (0..*times).try_for_each(|time| {
                let [from, to] = steps.map(|step| time * step);
                let end = dst.len();
                let mut dst = dst.part_mut(to..end);
                match src {
                    Some(src) => plan.run(stream, &*src.part(from..src.len()), &mut *dst, work),
                    None => plan.run_in_place(stream, &mut *dst, work),
                }
            })
        };
        match (aligned, src) {
            (None, src) => each(src, dst),
            (Some(AlignedCopy { copy, buffer }), Some(src)) if halves => {
                copy.run(stream, src, buffer.memory_mut())?;
                each(Some(buffer.memory_mut()), dst)
            }
            (Some(AlignedCopy { copy, buffer }), src) => {
                each(src, buffer.memory_mut())?;
                copy.run(stream, &*buffer.memory_mut(), dst)
            }
        }
    }
}

/// Plans transforms with a group's factor if cuFFT supports it; also returns the part that remains.
fn planned<T: GpuReal, const D: usize>(
    device: &Cuda,
    group: &FftGroup,
    fft: &Fft<D>,
) -> Result<(FftPlan<T>, f64), GpuError> {
    let (gpu, run) = (&device.gpu, fft_run(group));
    if group.factor != 1.0
        && group.is_large(T::PRECISION)
        && fft.n.iter().all(|n| *n <= LINKED_POINTS)
        && let Some(scaled) = FftPlan::scaled(gpu, run, fft, T::of(group.factor))?
    {
        return Ok((scaled, 1.0));
    }
    Ok((FftPlan::new(gpu, run, fft)?, group.factor))
}

impl<T: GpuReal> Part<T> {
    /// cuFFT's plan of a group; also returns the part of its factor that remains to be applied.
    pub(super) fn by_cufft(device: &Cuda, group: &FftGroup) -> Result<(Vec<Self>, f64), GpuError> {
        let (lines, factor) = PlannedLines::new(device, group)?;
        Ok((vec![Self::CuFft(Box::new(lines))], factor))
    }

    /// The same with columns by a kernel of thriffty: the group's columns, or the columns of its
    /// planes after cuFFT's rows. `None` if there is no such kernel.
    pub(super) fn with_columns(
        device: &Cuda,
        group: &FftGroup,
        row_bytes: usize,
    ) -> Result<Option<Vec<Self>>, GpuError> {
        let Some((rows, columns)) = rows_and_columns(group) else { return Ok(None) };
        let (place, pass) = &columns.passes[0];
        let lens = &columns.lens[0];
        let shape = [product(&lens[..*place]), pass.n, product(&lens[place + 1..])];
        let columns = ColumnFft::new(&device.gpu, &device.stream, shape, row_bytes)?;
        let columns = match group.pitch {
            Some(pitch) => columns.and_then(|columns| columns.with_pitch(pitch)),
            None => columns,
        };
        let Some(columns) = columns else { return Ok(None) };
        let columns = Self::Columns(columns, pass.direction, group.factor);
        Ok(Some(match rows {
            None => vec![columns],
            Some(rows) => vec![Self::CuFft(Box::new(PlannedLines::new(device, &rows)?.0)), columns],
        }))
    }

    /// Cosine and sine transforms; also returns the part of the group's factor that remains.
    pub(super) fn trig(device: &Cuda, group: &FftGroup) -> Result<(Vec<Self>, f64), GpuError> {
        let passes = group.clone().apart().into_iter();
        let part = |pass| Ok(Self::Trig(Box::new(Trig::new(&device.gpu, &pass)?)));
        Ok((passes.map(part).collect::<Result<_, GpuError>>()?, 1.0))
    }

    pub(super) fn work_bytes(&self) -> usize {
        match self {
            Self::CuFft(lines) => lines.plan.work_bytes(),
            Self::Columns(..) => 0,
            Self::Trig(trig) => trig.work_bytes(),
        }
    }

    pub(super) fn memory(&self) -> usize {
        match self {
            Self::CuFft(lines) => {
                let aligned = lines.aligned.as_ref();
                aligned.map_or(0, |aligned| aligned.copy.memory() + aligned.buffer.bytes())
            }
            Self::Columns(columns, ..) => columns.memory(),
            Self::Trig(_) => 0,
        }
    }

    fn run(
        &mut self,
        stream: &Arc<CudaStream>,
        work: &mut DeviceMemory<u8>,
        src: Option<&DeviceMemory<T>>,
        dst: &mut DeviceMemory<T>,
        halves: bool,
    ) -> Result<(), GpuError> {
        match self {
            Self::CuFft(lines) => lines.run(stream, work, src, dst, halves),
            Self::Columns(columns, direction, factor) => {
                columns.run(stream, *direction, src, dst, *factor)
            }
            Self::Trig(trig) => trig.run(stream, work, src, dst),
        }
    }
}

/// A group's columns, which come last, and the rows before them; `None` if columns are not complex,
/// or come first.
pub(super) fn rows_and_columns(group: &FftGroup) -> Option<(Option<FftGroup>, FftGroup)> {
    let last = group.lens[0].len() - 1;
    let alone = |pass: &(usize, Pass), lens: [Vec<usize>; 2]| FftGroup {
        lens,
        passes: vec![pass.clone()],
        factor: 1.0,
        pitch: group.pitch,
    };
    let is_column = |(place, pass): &(usize, Pass)| *place < last && pass.kind == Kind::C2C;
    match &group.passes[..] {
        [column] if is_column(column) => Some((None, alone(column, group.lens.clone()))),
        // Either of two complex passes may be the first.
        [a, b] => {
            let (column, row) = if is_column(a) { (a, b) } else { (b, a) };
            let after = group.lens[1].clone();
            let order = row.1.kind == Kind::C2C || fft_run(group) == FftRun::RealToComplex;
            (is_column(column) && row.0 == last && order).then(|| {
                let rows = alone(row, group.lens.clone());
                (Some(rows), alone(column, [after.clone(), after]))
            })
        }
        _ => None,
    }
}

/// Queues parts one after the other.
pub(super) fn run_all<T: GpuReal>(
    parts: &mut [Part<T>],
    stream: &Arc<CudaStream>,
    work: &mut DeviceMemory<u8>,
    src: Option<&DeviceMemory<T>>,
    dst: &mut DeviceMemory<T>,
    halves: bool,
) -> Result<(), GpuError> {
    let mut src = src;
    for part in parts {
        part.run(stream, work, src.take(), dst, halves)?;
    }
    Ok(())
}
