//! Cosine and sine transforms: a Fourier transform by cuFFT, and what is done before and after it (`kernels/trig.cu`).

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use cudarc::driver::{CudaStream, DeviceSlice};
use fft_core::{Direction, Kind, Pass};

use super::local_fft::{Group, Lines, Plan};
use crate::abi::boxes::Divisor;
use crate::base::{Gpu, GpuError, GpuReal};
use crate::ffi::{DeviceMemory, Kernel, Source, after_trig, before_trig};

/// Elements must be counted in 31 bits, as [`Divisor`] wants it.
const MOST: usize = (1 << 31) - 1;
/// What is in the work area begins at multiples of this many bytes.
const ALIGN: usize = 256;

/// The fields are those of `Lines` in `kernels/trig.cu`, where `kind` is the type.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct LinesRecord {
    step: u64,
    n: u32,
    inner: u32,
    length: u32,
    pub(crate) elements: u32,
    by_n: Divisor,
    by_inner: Divisor,
    by_length: Divisor,
    kind: u32,
    sine: u32,
}

/// A cosine or sine transform along one axis.
pub(crate) struct Trig<T> {
    kernels: [Kernel; 2],
    records: [LinesRecord; 2],
    plan: Plan<T>,
    /// How often the plan is run, and real numbers from one time to the next, before and after.
    times: usize,
    steps: [usize; 2],
    /// Real numbers of the array; bytes of the plan's work area, and of what it transforms, before and after: nothing after, if it
    /// does that in place.
    reals: usize,
    bytes: [usize; 3],
    factor: f64,
}

/// Which transform is inside: the type I to IV, whether it is of sines; the points of the Fourier transform, and whether that
/// is of complex numbers, or which way it goes of real ones.
struct Inside {
    kind: u32,
    sine: bool,
    points: usize,
    how: How,
}

#[derive(Clone, Copy, PartialEq)]
enum How {
    Halving,
    Doubling,
    Complex,
}

impl Inside {
    fn of(pass: &Pass) -> Self {
        let kind = match pass.direction {
            Direction::Forward => pass.kind,
            Direction::Inverse => pass.kind.undone_by(),
        };
        let n = pass.n;
        let four = if n.is_multiple_of(2) { n / 2 } else { 2 * n };
        let (kind, sine, points, how) = match kind {
            Kind::Dct1 => (1, false, 2 * (n - 1), How::Halving),
            Kind::Dst1 => (1, true, 2 * (n + 1), How::Halving),
            Kind::Dct2 => (2, false, n, How::Halving),
            Kind::Dst2 => (2, true, n, How::Halving),
            Kind::Dct3 => (3, false, n, How::Doubling),
            Kind::Dst3 => (3, true, n, How::Doubling),
            Kind::Dct4 => (4, false, four, How::Complex),
            Kind::Dst4 => (4, true, four, How::Complex),
            other => unreachable!("{other} is none of cosines or sines"),
        };
        Self { kind, sine, points, how }
    }
}

impl<T: GpuReal> Trig<T> {
    /// Plans the one pass of a group; tells how many bytes of work area it wants.
    ///
    /// # Errors
    /// As [`crate::FftPlan::new`]; [`GpuError::TooLarge`] for 2^31 numbers or more.
    pub(super) fn new(gpu: &Gpu, group: &Group) -> Result<(Self, usize), GpuError> {
        let (place, pass) = &group.passes[0];
        let inside = Inside::of(pass);
        let width = if pass.complex_before { 2 } else { 1 };
        let outer: usize = group.lens[0][..*place].iter().product();
        // Both parts of complex numbers are lines side by side.
        let inner = group.lens[0][place + 1..].iter().product::<usize>() * width;
        let half = inside.points / 2 + 1;
        let (real, complex) = ((inside.points, 1), (half, 2));
        let (sides, kind, direction) = match inside.how {
            How::Halving => ([real, complex], Kind::R2C, Direction::Forward),
            How::Doubling => ([complex, real], Kind::R2C, Direction::Inverse),
            How::Complex => ([(inside.points, 2); 2], Kind::C2C, Direction::Forward),
        };
        let pass_inside = Pass {
            kind,
            direction,
            n: inside.points,
            complex_before: sides[0].1 == 2,
            complex_after: sides[1].1 == 2,
            ..pass.clone()
        };
        let lens = sides.map(|(length, _)| vec![outer, length, inner]);
        let inside_group = Group { lens, passes: vec![(1, pass_inside)], factor: 1.0 };
        let lines = Lines::new(&inside_group);
        let plan = Plan::new(gpu, &inside_group, &lines.fft)?;
        // From one array to the next: cuFFT wants real ones to begin where complex numbers may.
        let apart = lines.times > 1 && inside.how != How::Complex;
        let arrays = sides.map(|(length, width)| {
            let reals = length * inner * width;
            if apart { reals.next_multiple_of(2) } else { reals }
        });
        let steps = match apart {
            true => arrays,
            false => [lines.steps[0] * sides[0].1, lines.steps[1] * sides[1].1],
        };
        let record = |side: usize| {
            let (length, width) = sides[side];
            let elements = outer * inner * if side == 0 { length } else { pass.n };
            if elements > MOST {
                let what = "the numbers of a cosine or sine transform";
                return Err(GpuError::TooLarge { what, found: elements, expected: MOST });
            }
            Ok(LinesRecord {
                step: (arrays[side] / width) as u64,
                n: pass.n as u32,
                inner: inner as u32,
                length: length as u32,
                elements: elements as u32,
                by_n: Divisor::by(pass.n),
                by_inner: Divisor::by(inner),
                by_length: Divisor::by(length),
                kind: inside.kind,
                sine: u32::from(inside.sine),
            })
        };
        let size = |reals: usize| (outer * reals * size_of::<T>()).next_multiple_of(ALIGN);
        let after = if inside.how == How::Complex { 0 } else { size(arrays[1]) };
        // cuFFT refuses to transform in place where its work area begins, even if it uses none.
        let work = plan.work_bytes().max(1).next_multiple_of(ALIGN);
        let bytes = [work, size(arrays[0]), after];
        let kernel = |name: &str| gpu.kernel(Source::Trig, &format!("{name}_{}", T::NAME));
        let trig = Self {
            kernels: [kernel("before")?, kernel("after")?],
            records: [record(0)?, record(1)?],
            plan,
            times: lines.times,
            steps,
            reals: outer * pass.n * inner,
            bytes,
            factor: group.factor,
        };
        Ok((trig, bytes.iter().sum()))
    }

    /// Queues it, from one array to another or in place.
    ///
    /// # Errors
    /// [`GpuError::Short`], [`GpuError::Driver`].
    pub(super) fn run(
        &mut self,
        stream: &Arc<CudaStream>,
        area: &mut DeviceMemory<u8>,
        src: Option<&DeviceMemory<T>>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        let Self { kernels, records, plan, times, steps, reals, bytes, factor } = self;
        assert!(area.len() >= bytes.iter().sum(), "the work area that was asked for");
        let [mut work, mut rest] = area.split(bytes[0]);
        let [before, after] = rest.split(bytes[1]);
        let (mut before, mut after) = (before.into_numbers::<T>(), after.into_numbers::<T>());
        before_trig(stream, &kernels[0], &records[0], (src.unwrap_or(dst), *reals), &mut before)?;
        for time in 0..*times {
            let [from, to] = steps.map(|step| time * step);
            if bytes[2] == 0 {
                let end = before.len();
                plan.run(stream, None, &mut before.part_mut(from..end), &mut work)?;
            } else {
                let (end, src) = (after.len(), before.part(from..before.len()));
                plan.run(stream, Some(&src), &mut after.part_mut(to..end), &mut work)?;
            }
        }
        let inside = if bytes[2] == 0 { &before } else { &after };
        after_trig(stream, &kernels[1], &records[1], inside, (dst, *reals), *factor)
    }
}
