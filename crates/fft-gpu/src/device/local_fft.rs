//! Local transforms by cuFFT: the last two axes of memory together, others as columns.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DeviceSlice};
use fft_core::{BufferRequirement, Direction, DynBrick, Error, Kind, Pass, Placed, Transfer};

use crate::base::{Gpu, GpuError, GpuReal};
use crate::device::Cuda;
use crate::ffi::{Block, DeviceMemory, Owned};
use crate::kernel::{C2c, C2r, Fft, FftPlan, Move, R2c, Scaling, Spread, Transfers};

/// One or two transforms, along neighbouring axes.
pub(crate) struct Local<T> {
    plan: Option<Plan<T>>,
    /// How often the plan is run, and real numbers from one time to the next, before and after.
    times: usize,
    steps: [usize; 2],
    /// Real numbers after.
    reals: usize,
    scale: Option<(Scaling<T>, T)>,
    buffer_requirement: BufferRequirement,
    apart: Option<Apart<T>>,
}

/// Real numbers whose arrays of lines do not all begin where a complex number may, as cuFFT wants it: a copy in which they do.
/// Seldom, and slow.
struct Apart<T> {
    copy: Transfers,
    buffer: Owned<T>,
}

impl<T: GpuReal> Apart<T> {
    /// So many arrays of so many real numbers, with one more in between in the copy; which is made before a transform, or of
    /// its result.
    fn new(device: &Cuda<T>, times: usize, reals: usize, before: bool) -> Result<Self, GpuError> {
        let (gpu, stream) = (&device.gpu, &device.stream);
        let placed = |reals| Placed {
            brick: DynBrick::new([0; 2], [times, reals]),
            order: [0, 1].into(),
            howmany: 1,
        };
        let (dense, apart) = (placed(reals), placed(reals + 1));
        let (from, to) = if before { (&dense, &apart) } else { (&apart, &dense) };
        let transfer = Transfer::new(&dense.brick, 0..1, from, to);
        let redistribution = [Move { transfer: &transfer, from: 0, to: 0 }];
        let copy = Transfers::new(gpu, stream, size_of::<T>(), &redistribution)?;
        let bytes = times * (reals + 1) * size_of::<T>();
        let buffer = Owned::new(Arc::new(Block::new(gpu.context(), bytes)?), stream);
        Ok(Self { copy, buffer })
    }
}

pub(super) enum Plan<T> {
    Forward(FftPlan<C2c<T>>),
    Inverse(FftPlan<C2c<T>>),
    Halving(FftPlan<R2c<T>>),
    Doubling(FftPlan<C2r<T>>),
}

/// Transforms that are still to become an operation: of an array with these lengths in memory, before the first and after
/// the last; with the place of each axis.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) lens: [Vec<usize>; 2],
    pub(crate) passes: Vec<(usize, Pass)>,
    pub(crate) factor: f64,
}

impl Group {
    /// Whether another pass, which follows, can be done together: on the last two axes of memory, where the halved one must be
    /// the last.
    pub(crate) fn joins(&self, place: usize, pass: &Pass) -> bool {
        let [(earlier, before)] = &self.passes[..] else { return false };
        let last = self.lens[0].len() - 1;
        // Of planes with one point along the last axis cuFFT halves the other.
        let halves =
            |place: usize, pass: &Pass| pass.kind != Kind::R2C || (place == last && pass.n > 1);
        // Halving comes first, and doubling last.
        let in_order = match pass.direction {
            Direction::Forward => pass.kind != Kind::R2C,
            Direction::Inverse => before.kind != Kind::R2C,
        };
        let both = [*earlier, place];
        let real = before.kind.is_real() || pass.kind.is_real();
        (both == [last - 1, last] || both == [last, last - 1])
            && !real
            && halves(*earlier, before)
            && halves(place, pass)
            && in_order
    }

    /// Whether it is two passes along the first two of three axes ([`FusedAcross`](super::fused_fetch::FusedAcross)).
    pub(super) fn is_across(&self) -> bool {
        let last = self.lens[0].len() - 1;
        self.passes.len() == 2 && self.passes.iter().all(|(place, _)| *place != last)
    }

    /// Each pass by itself.
    pub(super) fn apart(self) -> Vec<Self> {
        let Self { lens, passes, factor } = self;
        let factors = [1.0, factor];
        let alone = |(pass, factor)| Self { lens: lens.clone(), passes: vec![pass], factor };
        passes.into_iter().zip(factors).map(alone).collect()
    }

    /// Whether it is a cosine or sine transform, of something.
    pub(super) fn is_trig(&self) -> bool {
        self.passes[0].1.kind.is_real() && self.reals()[0] > 0
    }

    pub(super) fn halved(&self) -> bool {
        self.passes.iter().any(|(_, pass)| pass.kind == Kind::R2C)
    }

    pub(super) fn direction(&self) -> Direction {
        self.passes[0].1.direction
    }

    fn widths(&self) -> [usize; 2] {
        let width = |complex| if complex { 2 } else { 1 };
        let (first, last) = (&self.passes[0].1, &self.passes[self.passes.len() - 1].1);
        [width(first.complex_before), width(last.complex_after)]
    }

    /// Real numbers, before and after.
    pub(super) fn reals(&self) -> [usize; 2] {
        let [before, after] = self.widths();
        [before * product(&self.lens[0]), after * product(&self.lens[1])]
    }
}

fn product(lens: &[usize]) -> usize {
    lens.iter().product()
}

/// Bytes from which on a factor is linked into cuFFT's kernels, which takes some 200 ms when a plan is made. A pass over fewer takes
/// some microseconds.
const LINKED_BYTES: usize = 1 << 20;
/// The longest lines of which it is: with a product cuFFT 12.0 took as long as without at 512³ on an H200, and at 1024³ a tenth longer
/// than with a pass.
const LINKED_POINTS: usize = 512;

/// Whether arrays of so many real numbers are worth what linking takes.
pub(super) fn is_large<T>(reals: usize) -> bool {
    reals.saturating_mul(size_of::<T>()) >= LINKED_BYTES
}

impl<T: GpuReal> Plan<T> {
    /// Plans a group without its factor.
    pub(super) fn new<const D: usize>(
        gpu: &Gpu,
        group: &Group,
        fft: &Fft<D>,
    ) -> Result<Self, GpuError> {
        Ok(match (group.halved(), group.direction()) {
            (false, Direction::Forward) => Self::Forward(FftPlan::new(gpu, fft)?),
            (false, Direction::Inverse) => Self::Inverse(FftPlan::new(gpu, fft)?),
            (true, Direction::Forward) => Self::Halving(FftPlan::new(gpu, fft)?),
            (true, Direction::Inverse) => Self::Doubling(FftPlan::new(gpu, fft)?),
        })
    }

    /// Plans a group with its factor, if cuFFT can.
    fn scaled<const D: usize>(
        gpu: &Gpu,
        group: &Group,
        fft: &Fft<D>,
    ) -> Result<Option<Self>, GpuError> {
        let by = T::of(group.factor);
        Ok(match (group.halved(), group.direction()) {
            (false, Direction::Forward) => FftPlan::scaled(gpu, fft, by)?.map(Self::Forward),
            (false, Direction::Inverse) => FftPlan::scaled(gpu, fft, by)?.map(Self::Inverse),
            (true, Direction::Forward) => FftPlan::scaled(gpu, fft, by)?.map(Self::Halving),
            (true, Direction::Inverse) => FftPlan::scaled(gpu, fft, by)?.map(Self::Doubling),
        })
    }

    /// Plans a group; tells what is left of its factor.
    fn whole<const D: usize>(
        gpu: &Gpu,
        group: &Group,
        fft: &Fft<D>,
    ) -> Result<(Self, f64), GpuError> {
        if group.factor != 1.0
            && is_large::<T>(group.reals()[1])
            && fft.n.iter().all(|n| *n <= LINKED_POINTS)
            && let Some(scaled) = Self::scaled(gpu, group, fft)?
        {
            return Ok((scaled, 1.0));
        }
        Ok((Self::new(gpu, group, fft)?, group.factor))
    }

    pub(super) fn run(
        &mut self,
        stream: &Arc<CudaStream>,
        src: Option<&DeviceMemory<T>>,
        dst: &mut DeviceMemory<T>,
        work: &mut DeviceMemory<u8>,
    ) -> Result<(), GpuError> {
        match (self, src) {
            (Self::Forward(plan), Some(src)) => plan.forward(stream, src, dst, work),
            (Self::Forward(plan), None) => plan.forward_in_place(stream, dst, work),
            (Self::Inverse(plan), Some(src)) => plan.inverse(stream, src, dst, work),
            (Self::Inverse(plan), None) => plan.inverse_in_place(stream, dst, work),
            (Self::Halving(plan), src) => {
                plan.run(stream, src.expect("from one place to another"), dst, work)
            }
            (Self::Doubling(plan), src) => {
                plan.spend(stream, src.expect("from one place to another"), dst, work)
            }
        }
    }

    pub(super) fn work_bytes(&self) -> usize {
        match self {
            Self::Forward(plan) | Self::Inverse(plan) => plan.work_bytes(),
            Self::Halving(plan) => plan.work_bytes(),
            Self::Doubling(plan) => plan.work_bytes(),
        }
    }
}

/// A line along one axis, in elements: those of `batch` transforms side by side or one after the other; and how often that
/// must be done, with the distance, before and after.
pub(super) struct Lines {
    pub(super) fft: Fft<1>,
    pub(super) times: usize,
    pub(super) steps: [usize; 2],
}

impl Lines {
    pub(super) fn new(group: &Group) -> Self {
        let (place, pass) = &group.passes[0];
        let outer = product(&group.lens[0][..*place]);
        let inner = product(&group.lens[0][place + 1..]);
        let lens = [pass.len_before(), pass.len_after()];
        if inner == 1 {
            return Self { fft: Fft::rows([pass.n], outer), times: 1, steps: [0; 2] };
        }
        // Of two loops cuFFT does one: the longer, unless that would begin between real numbers that make a complex one.
        let side_by_side = outer <= inner || group.halved();
        let spread = |len: usize| match side_by_side {
            true => Spread { embed: [len], stride: inner, distance: 1 },
            false => Spread { embed: [len], stride: inner, distance: len * inner },
        };
        let [input, output] = lens.map(|len| Some(spread(len)));
        let (times, batch) = if side_by_side { (outer, inner) } else { (inner, outer) };
        let steps = lens.map(|len| if side_by_side { len * inner } else { 1 });
        Self { fft: Fft { n: [pass.n], batch, input, output }, times, steps }
    }
}

impl<T: GpuReal> Local<T> {
    /// Plans a group; tells how many bytes of work area it wants.
    ///
    /// # Errors
    /// As [`FftPlan::new`].
    pub(crate) fn new(device: &Cuda<T>, group: &Group) -> Result<(Self, usize), GpuError> {
        let gpu = &device.gpu;
        let buffer_requirement = match (group.halved(), group.direction()) {
            (false, _) => BufferRequirement::Either,
            (true, Direction::Forward) => BufferRequirement::OutOfPlace,
            (true, Direction::Inverse) => BufferRequirement::DestroysInput,
        };
        let [before, reals] = group.reals();
        let (mut plan, mut times, mut steps, mut apart) = (None, 0, [0; 2], None);
        if before.min(reals) > 0 {
            plan = Some(match &group.passes[..] {
                [_] => {
                    let lines = Lines::new(group);
                    let [before, after] = group.widths();
                    times = lines.times;
                    steps = [lines.steps[0] * before, lines.steps[1] * after];
                    let real = usize::from(before == 2);
                    if group.halved() && times > 1 && !steps[real].is_multiple_of(2) {
                        apart = Some(Apart::new(device, times, steps[real], real == 0)?);
                        steps[real] += 1;
                    }
                    Plan::whole(gpu, group, &lines.fft)?
                }
                passes => {
                    let n = |place: usize| {
                        let pass = passes.iter().find(|(at, _)| *at == place);
                        pass.expect("both last axes").1.n
                    };
                    let last = group.lens[0].len() - 1;
                    let batch = product(&group.lens[0][..last - 1]);
                    times = 1;
                    Plan::whole(gpu, group, &Fft::rows([n(last - 1), n(last)], batch))?
                }
            });
        }
        let (plan, factor) = plan.map_or((None, 1.0), |(plan, factor)| (Some(plan), factor));
        let work = plan.as_ref().map_or(0, Plan::work_bytes);
        let scale = match factor != 1.0 {
            true => Some((Scaling::new(gpu)?, T::of(factor))),
            false => None,
        };
        Ok((Self { plan, times, steps, reals, scale, buffer_requirement, apart }, work))
    }

    pub(crate) fn buffer_requirement(&self) -> BufferRequirement {
        self.buffer_requirement
    }

    /// Bytes of memory held beside the work area.
    pub(crate) fn memory(&self) -> usize {
        let apart = self.apart.as_ref();
        apart.map_or(0, |apart| apart.copy.memory() + apart.buffer.bytes())
    }

    /// Queues it.
    pub(crate) fn run(
        &mut self,
        device: &mut Cuda<T>,
        src: Option<&DeviceMemory<T>>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), Error> {
        let result = self.queue(device, src, dst);
        device.record_error(result);
        Ok(())
    }

    fn queue(
        &mut self,
        device: &mut Cuda<T>,
        src: Option<&DeviceMemory<T>>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        let Self { plan: Some(plan), times, steps, apart, .. } = self else { return Ok(()) };
        let (stream, work) = device.stream_and_area();
        let mut each = |src: Option<&DeviceMemory<T>>, dst: &mut DeviceMemory<T>| {
            (0..*times).try_for_each(|time| {
                let [from, to] = steps.map(|step| time * step);
                let src = src.map(|src| src.part(from..src.len()));
                let end = dst.len();
                plan.run(stream, src.as_deref(), &mut dst.part_mut(to..end), work)
            })
        };
        let halving = self.buffer_requirement == BufferRequirement::OutOfPlace;
        match (apart, src) {
            (None, src) => each(src, dst)?,
            (Some(Apart { copy, buffer }), Some(src)) if halving => {
                copy.run(stream, src, buffer.memory_mut())?;
                each(Some(buffer.memory_mut()), dst)?;
            }
            (Some(Apart { copy, buffer }), src) => {
                each(src, buffer.memory_mut())?;
                copy.run(stream, &*buffer.memory_mut(), dst)?;
            }
        }
        match &self.scale {
            Some((scaling, factor)) => {
                scaling.run(stream, &mut *dst.part_mut(0..self.reals), *factor)
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(kind: Kind, direction: Direction, n: usize) -> Pass {
        let halved = kind == Kind::R2C;
        let forward = direction == Direction::Forward;
        Pass {
            kind,
            direction,
            n,
            complex_before: !(halved && forward),
            complex_after: !halved || forward,
            outer: 1,
            inner: 1,
            factor: 1.0,
        }
    }

    fn group(lens: &[usize], place: usize, pass: Pass) -> Group {
        Group { lens: [lens.to_vec(), lens.to_vec()], passes: vec![(place, pass)], factor: 1.0 }
    }

    #[test]
    fn planes_are_joined_with_the_halved_axis_last() {
        let (to, from) = (Direction::Forward, Direction::Inverse);
        let lens = [1, 4, 5, 6];
        let c2c = |direction, n| pass(Kind::C2C, direction, n);
        let r2c = |direction, n| pass(Kind::R2C, direction, n);
        assert!(group(&lens, 3, c2c(to, 6)).joins(2, &c2c(to, 5)));
        assert!(group(&lens, 2, c2c(to, 5)).joins(3, &c2c(to, 6)));
        assert!(group(&lens, 3, r2c(to, 6)).joins(2, &c2c(to, 5)));
        assert!(group(&lens, 2, c2c(from, 5)).joins(3, &r2c(from, 6)));
        assert!(!group(&lens, 2, r2c(to, 5)).joins(3, &c2c(to, 6)));
        assert!(!group(&lens, 1, c2c(to, 4)).joins(2, &c2c(to, 5)));
        assert!(!group(&lens, 3, c2c(to, 6)).joins(1, &c2c(to, 4)));
        let mut both = group(&lens, 3, c2c(to, 6));
        both.passes.push((2, c2c(to, 5)));
        assert!(!both.joins(1, &c2c(to, 4)));
    }

    #[test]
    fn of_a_middle_axis_the_longer_loop_is_cufft_s() {
        let lines = Lines::new(&group(&[1, 3, 5, 7], 2, pass(Kind::C2C, Direction::Forward, 5)));
        assert_eq!((lines.times, lines.steps, lines.fft.batch), (3, [35, 35], 7));
        let lines = Lines::new(&group(&[2, 9, 5, 7], 2, pass(Kind::C2C, Direction::Forward, 5)));
        assert_eq!((lines.times, lines.steps, lines.fft.batch), (7, [1, 1], 18));
        assert_eq!(lines.fft.input.unwrap().distance, 35);
        let lines = Lines::new(&group(&[2, 9, 5, 7], 3, pass(Kind::C2C, Direction::Forward, 7)));
        assert_eq!((lines.times, lines.fft.batch, lines.fft.input), (1, 90, None));
    }
}
