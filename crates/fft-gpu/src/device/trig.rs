//! Cosine and sine transforms: cuFFT's Fourier transforms between two passes of
//! `kernels/trig.cu`.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DeviceSlice};
use fft_core::{Direction, Error, FftGroup, Kind, Pass, Problem, Trigonometric, TrigonometricType};

use super::group::LineLayout;
use crate::abi::FftRun;
use crate::abi::divisor::{Divisor, MOST_ELEMENTS};
use crate::abi::records::LinesRecord;
use crate::base::{Gpu, GpuError, GpuReal, Kernel, Source};
use crate::ffi::{DeviceMemory, FftPlan, after_trig, before_trig};

/// The alignment of parts of the work area.
const ALIGN: usize = 256;

/// Lines side by side from which on they stay so inside, where neighbours are accessed together.
const SIDE_BY_SIDE: usize = 32;
/// Runs of cuFFT, one for each array of lines side by side, that cost little.
const FEW_RUNS: usize = 8;
/// Bytes of an array from which on a run takes longer than its launch.
const LONG_RUN: usize = 4 << 20;

/// A cosine or sine transform along one axis.
pub(super) struct Trig<T> {
    kernels: [Kernel; 2],
    records: [LinesRecord; 2],
    plan: FftPlan<T>,
    /// The number of runs of the plan, and real numbers from one to the next, before and after.
    times: usize,
    steps: [usize; 2],
    /// Real numbers from the array's first to its last.
    reals: usize,
    /// Bytes of the plan's work area, of its input and of its output; 0 for that in place.
    bytes: [usize; 3],
    factor: f64,
}

/// Refuses transforms that devices have no kernels for. The same on all ranks.
pub(super) fn check_kinds(problem: &Problem) -> Result<(), Error> {
    for (axis, kind) in problem.kinds.iter().enumerate() {
        let n = problem.zero_padded[axis];
        if kind.trigonometric().is_some_and(|transform| InnerFft::new(transform, n).is_none()) {
            let what = format!("kind of axis {axis} of a plan on a device");
            return Err(Error::argument(what, kind, "one that devices have kernels for"));
        }
    }
    Ok(())
}

/// The Fourier transform inside.
struct InnerFft {
    /// The type, I to IV, and whether it is a sine transform.
    kind: u32,
    sine: bool,
    points: usize,
    run: FftRun,
}

impl InnerFft {
    /// `None` for transforms without kernels.
    fn new(Trigonometric { kind, sine }: Trigonometric, n: usize) -> Option<Self> {
        let ends = if sine { 2 * (n + 1) } else { 2 * n.saturating_sub(1) };
        let halves = if n.is_multiple_of(2) { n / 2 } else { 2 * n };
        let (kind, points, run) = match kind {
            TrigonometricType::I => (1, ends, FftRun::RealToComplex),
            TrigonometricType::II => (2, n, FftRun::RealToComplex),
            TrigonometricType::III => (3, n, FftRun::ComplexToReal),
            TrigonometricType::IV => (4, halves, FftRun::Forward),
            _ => return None,
        };
        Some(Self { kind, sine, points, run })
    }

    fn of(pass: &Pass) -> Self {
        let kind = pass.direction.choose(pass.kind, pass.kind.undone_by());
        let transform = kind.trigonometric().and_then(|transform| Self::new(transform, pass.n));
        transform.expect("plans of other kinds are refused")
    }

    /// Length and real numbers of an element, before and after.
    fn sides(&self) -> [(usize, usize); 2] {
        let (real, complex) = ((self.points, 1), (self.points / 2 + 1, 2));
        match self.run {
            FftRun::RealToComplex => [real, complex],
            FftRun::ComplexToReal => [complex, real],
            FftRun::Forward | FftRun::Inverse => [(self.points, 2); 2],
        }
    }

    /// Whether lines inside lie one after another, so that cuFFT runs once for all arrays.
    fn are_rows(&self, outer: usize, inner: usize, real: usize) -> bool {
        let [before, after] = self.sides().map(|(length, width)| length * width);
        let is_long = before.max(after) * inner * real >= LONG_RUN;
        outer > 1 && (inner < SIDE_BY_SIDE || outer > FEW_RUNS && !is_long)
    }

    /// The transforms as a group over `outer` × length × `inner` elements.
    fn group(&self, pass: &Pass, outer: usize, inner: usize) -> FftGroup {
        let sides = self.sides();
        let (kind, direction) = match self.run {
            FftRun::RealToComplex => (Kind::R2C, Direction::Forward),
            FftRun::ComplexToReal => (Kind::R2C, Direction::Inverse),
            FftRun::Forward | FftRun::Inverse => (Kind::C2C, Direction::Forward),
        };
        let pass = Pass {
            kind,
            direction,
            n: self.points,
            resized: None,
            complex_before: sides[0].1 == 2,
            complex_after: sides[1].1 == 2,
            ..pass.clone()
        };
        let lens = sides.map(|(length, _)| vec![outer, length, inner]);
        FftGroup { lens, passes: vec![(1, pass)], factor: 1.0, pitch: None }
    }

    /// The argument of the kernel before or after, for arrays of `array` real numbers each inside,
    /// perhaps in rows, and of a pitch outside.
    fn record(
        &self,
        side: usize,
        [outer, n, inner]: [usize; 3],
        ([array, pitch], rows): ([usize; 2], bool),
    ) -> Result<LinesRecord, GpuError> {
        let (length, width) = self.sides()[side];
        let elements = outer * inner * if side == 0 { length } else { n };
        let what = "the numbers of a cosine or sine transform";
        GpuError::at_most(what, elements, MOST_ELEMENTS)?;
        let [along, across] = if rows { [1, length] } else { [inner, 1] };
        Ok(LinesRecord {
            step: (array / width) as u64,
            pitch: pitch as u64,
            along: along as u32,
            across: across as u32,
            n: n as u32,
            inner: inner as u32,
            length: length as u32,
            elements: elements as u32,
            by_n: Divisor::by(n),
            by_inner: Divisor::by(inner),
            by_length: Divisor::by(length),
            kind: self.kind,
            sine: u32::from(self.sine),
        })
    }
}

impl<T: GpuReal> Trig<T> {
    /// Plans the one pass of a group.
    pub(super) fn new(gpu: &Gpu, group: &FftGroup) -> Result<Self, GpuError> {
        let (place, pass) = &group.passes[0];
        let inside = InnerFft::of(pass);
        let width = if pass.complex_before { 2 } else { 1 };
        let outer: usize = group.lens[0][..*place].iter().product();
        // Both parts of complex numbers are adjacent lines.
        let inner = group.lens[0][place + 1..].iter().product::<usize>() * width;
        let pitch = group.pitch.map_or(inner, |pitch| pitch * width);
        let (sides, complex) = (inside.sides(), inside.run == FftRun::Forward);
        let rows = inside.are_rows(outer, inner, size_of::<T>());
        let lines = LineLayout::new(&if rows {
            inside.group(pass, outer * inner, 1)
        } else {
            inside.group(pass, outer, inner)
        });
        let plan = FftPlan::new(gpu, inside.run, &lines.fft)?;
        // cuFFT requires that each real array begins where a complex number may.
        let apart = lines.times > 1 && !complex;
        let arrays = sides.map(|(length, width)| {
            let reals = length * inner * width;
            if apart { reals.next_multiple_of(2) } else { reals }
        });
        let steps =
            if apart { arrays } else { [lines.steps[0] * sides[0].1, lines.steps[1] * sides[1].1] };
        let size = |reals: usize| (outer * reals * size_of::<T>()).next_multiple_of(ALIGN);
        let after = if complex { 0 } else { size(arrays[1]) };
        // cuFFT refuses an array in place that begins where its work area does, even if unused.
        let work = plan.work_bytes().max(1).next_multiple_of(ALIGN);
        let bytes = [work, size(arrays[0]), after];
        let kernel = |name: &str| gpu.kernel(Source::Trig, &format!("{name}_{}", T::NAME));
        let lens = [outer, pass.n, inner];
        let record = |side: usize| inside.record(side, lens, ([arrays[side], pitch], rows));
        Ok(Self {
            kernels: [kernel("before")?, kernel("after")?],
            records: [record(0)?, record(1)?],
            plan,
            times: lines.times,
            steps,
            reals: (outer * pass.n - 1) * pitch + inner,
            bytes,
            factor: group.factor,
        })
    }

    pub(super) fn work_bytes(&self) -> usize {
        self.bytes.iter().sum()
    }

    /// Queues it, from one array to another or in place.
    pub(super) fn run(
        &mut self,
        stream: &Arc<CudaStream>,
        area: &mut DeviceMemory<u8>,
        src: Option<&DeviceMemory<T>>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        assert!(area.len() >= self.work_bytes(), "the work area that was asked for");
        let Self { kernels, records, plan, times, steps, reals, bytes, factor } = self;
        let [mut work, mut rest] = area.split(bytes[0]);
        let [before, after] = rest.split(bytes[1]);
        let (mut before, mut after) = (before.into_numbers::<T>(), after.into_numbers::<T>());
        before_trig(stream, &kernels[0], &records[0], (src.unwrap_or(dst), *reals), &mut before)?;
        for time in 0..*times {
            let [from, to] = steps.map(|step| time * step);
            if bytes[2] == 0 {
                let end = before.len();
                plan.run_in_place(stream, &mut *before.part_mut(from..end), &mut *work)?;
            } else {
                let (end, src) = (after.len(), before.part(from..before.len()));
                plan.run(stream, &*src, &mut *after.part_mut(to..end), &mut *work)?;
            }
        }
        let inside = if bytes[2] == 0 { &before } else { &after };
        after_trig(stream, &kernels[1], &records[1], inside, (dst, *reals), *factor)
    }
}
