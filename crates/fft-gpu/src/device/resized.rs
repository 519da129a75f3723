//! Transforms of lines that are padded or truncated.
//!
//! ```text
//! if points or modes are missing before: zeros and a copy of the others, in the work area,
//!     or in the result if both sides are complex and all of it is kept
//! transform whole lines: complex ones in place after that copy
//! if points or modes are dropped after: into the work area, and copy the others to the result
//! ```

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaStream, DeviceSlice};
use fft_core::{DynBrick, FftGroup, LineSide, Placed, Transfer};

use super::cuda::Cuda;
use super::group::product;
use super::local_fft::DeviceFft;
use crate::abi::Move;
use crate::base::{GpuError, GpuReal, tried};
use crate::ffi::DeviceMemory;
use crate::kernel::Transfers;

/// The alignment of parts of the work area.
const ALIGN: usize = 256;

/// A transform along one axis with fewer points or modes.
pub(super) struct Resized<T> {
    fft: DeviceFft<T>,
    load: Option<ResizedCopy>,
    store: Option<ResizedCopy>,
    /// Bytes of the transform's work area, of its input and of its output; 0 for parts that are
    /// elsewhere.
    bytes: [usize; 3],
}

/// A copy of the kept elements, between data and whole lines.
struct ResizedCopy {
    copy: Transfers,
    /// Real numbers of the destination, if the copy leaves out some, which become 0.
    zeros: usize,
}

/// Copies of kept elements of `outer` × length × `inner`, from data into whole lines or back.
fn kept(side: &LineSide, outer: usize, inner: usize, into_whole: bool) -> Vec<Transfer> {
    let copy = |(range, place): &(Range<usize>, usize)| {
        // In indices of whole lines, where the data of negative modes begins later.
        let lines =
            |first: usize, len: usize| DynBrick::new([0, first, 0], [outer, first + len, inner]);
        let part = lines(*place, range.len());
        let placed = |brick| Placed::new(brick, [0, 1, 2], 1);
        let [data, whole] =
            [lines(place - range.start, side.len), lines(0, side.whole)].map(placed);
        let [from, to] = if into_whole { [data, whole] } else { [whole, data] };
        Transfer::new(&part, 0..1, &from, &to)
    };
    side.kept.iter().filter(|(range, _)| !range.is_empty()).map(copy).collect()
}

impl ResizedCopy {
    /// The copy before or after a group; `None` if there is nothing to leave out.
    fn new<T: GpuReal>(
        device: &Cuda,
        group: &FftGroup,
        after: bool,
    ) -> Result<Option<Self>, GpuError> {
        let (place, pass) = &group.passes[0];
        let which = usize::from(after);
        let (side, width, lens) =
            (&pass.line_sides()[which], group.widths()[which], &group.lens[which]);
        if side.is_whole() || group.reals()[0] == 0 {
            return Ok(None);
        }
        let [outer, inner] = [product(&lens[..*place]), product(&lens[place + 1..])];
        let parts = kept(side, outer, inner, !after);
        let moves: Vec<_> =
            parts.iter().map(|transfer| Move { transfer, from: 0, to: 0 }).collect();
        let copy = Transfers::new(&device.gpu, &device.stream, width * size_of::<T>(), &moves)?;
        let elements = outer * inner * if after { side.len } else { side.whole };
        let copied: usize = parts.iter().map(Transfer::elements).sum();
        let zeros = if copied < elements { elements * width } else { 0 };
        Ok(Some(Self { copy, zeros }))
    }

    fn run<T: GpuReal>(
        &self,
        stream: &Arc<CudaStream>,
        src: &DeviceMemory<T>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        if self.zeros > 0 {
            let cleared = stream.memset_zeros(&mut *dst.part_mut(0..self.zeros));
            cleared.map_err(tried("clearing lines"))?;
        }
        self.copy.run(stream, src, dst)
    }
}

impl<T: GpuReal> Resized<T> {
    /// Plans the one pass of a group; also returns the bytes of work area that it needs.
    pub(super) fn new(device: &Cuda, group: &FftGroup) -> Result<(Self, usize), GpuError> {
        let whole = group.whole();
        let (fft, work) = DeviceFft::new(device, &whole)?;
        let load = ResizedCopy::new::<T>(device, group, false)?;
        let store = ResizedCopy::new::<T>(device, group, true)?;
        let sizes = whole.reals().map(|reals| (reals * size_of::<T>()).next_multiple_of(ALIGN));
        // cuFFT refuses an array in place that begins where its work area does, even if unused.
        let work = work.max(1).next_multiple_of(ALIGN);
        let before = if load.is_some() && whole.halved() { sizes[0] } else { 0 };
        let bytes = [work, before, if store.is_some() { sizes[1] } else { 0 }];
        Ok((Self { fft, load, store, bytes }, bytes.iter().sum()))
    }

    pub(super) fn memory(&self) -> usize {
        let copies = [&self.load, &self.store].into_iter().flatten();
        self.fft.memory() + copies.map(|copy| copy.copy.memory()).sum::<usize>()
    }

    /// Queues it, from one array to another.
    pub(super) fn run(
        &mut self,
        stream: &Arc<CudaStream>,
        area: &mut DeviceMemory<u8>,
        src: &DeviceMemory<T>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        let Self { fft, load, store, bytes } = self;
        assert!(area.len() >= bytes.iter().sum(), "the work area that was asked for");
        let [mut work, mut rest] = area.split(bytes[0]);
        let [before, after] = rest.split(bytes[1]);
        let (mut before, mut after) = (before.into_numbers::<T>(), after.into_numbers::<T>());
        let result = if store.is_some() { &mut *after } else { &mut *dst };
        let src = match load {
            None => Some(src),
            Some(load) if bytes[1] == 0 => {
                load.run(stream, src, result)?;
                None
            }
            Some(load) => {
                load.run(stream, src, &mut before)?;
                Some(&*before)
            }
        };
        fft.run(stream, &mut work, src, result)?;
        store.as_ref().map_or(Ok(()), |store| store.run(stream, &after, dst))
    }
}

#[cfg(test)]
mod tests {
    use fft_core::{Cpu, Direction, Kind, LocalFft, Pass};

    use super::*;

    /// A pass on the host.
    fn on_host(pass: &Pass, src: &[f64]) -> Vec<f64> {
        let (cached, to_cache) = (false, false);
        let shape = LocalFft { blocks: 1, passes: vec![pass.clone()], cached, to_cache };
        let mut cpu = Cpu::<f64>::default();
        let fft = cpu.plan_fft(&shape, 0).unwrap();
        let mut dst = vec![f64::NAN; shape.block_after()];
        cpu.fft(&fft, 0..1, Some(src), &mut dst);
        dst
    }

    /// Kept elements in an array of `len` numbers, with zeros around them.
    fn copied(parts: &[Transfer], src: &[f64], len: usize, is_complex: bool) -> Vec<f64> {
        let mut dst = vec![0.0; len];
        for part in parts {
            if is_complex {
                part.run::<[f64; 2]>(bytemuck::cast_slice(src), bytemuck::cast_slice_mut(&mut dst))
            } else {
                part.run(src, &mut dst)
            }
        }
        dst
    }

    /// The pass as a device performs it.
    fn by_steps(pass: &Pass, src: &[f64]) -> Vec<f64> {
        let (group, [before, after]) = (group(pass), pass.line_sides());
        let parts = |side, into_whole| kept(side, pass.outer, pass.inner, into_whole);
        let [reals, _] = group.whole().reals();
        let src = copied(&parts(&before, true), src, reals, pass.complex_before);
        let (_, whole) = &group.whole().passes[0];
        let found = on_host(whole, &src);
        copied(&parts(&after, false), &found, group.reals()[1], pass.complex_after)
    }

    fn group(pass: &Pass) -> FftGroup {
        let lens = pass.line_sides().map(|side| vec![pass.outer, side.len, pass.inner]);
        FftGroup { lens, passes: vec![(1, pass.clone())], factor: pass.factor, pitch: None }
    }

    #[test]
    fn copies_around_whole_transforms_are_resized_ones() {
        let lens = [[3, 8, 8], [4, 9, 6], [8, 8, 5], [7, 7, 6], [5, 6, 1], [9, 9, 9], [1, 5, 2]];
        let kinds = [(Kind::C2C, Direction::Forward), (Kind::R2C, Direction::Forward)];
        let kinds = kinds.into_iter().chain(kinds.map(|(kind, _)| (kind, Direction::Inverse)));
        for ((kind, direction), [points, n, modes]) in
            kinds.flat_map(|kind| lens.map(|lens| (kind, lens)))
        {
            for (outer, inner) in [(1, 1), (6, 1), (2, 5), (1, 7)] {
                let [complex_before, complex_after] = match kind {
                    Kind::C2C => [true; 2],
                    _ => direction.choose([false, true], [true, false]),
                };
                let resized = Some([points, modes]);
                let factor = 0.5;
                let pass = Pass {
                    kind,
                    direction,
                    n,
                    resized,
                    complex_before,
                    complex_after,
                    outer,
                    inner,
                    factor,
                    twiddles: None,
                    strides: [1; 2],
                };
                let src: Vec<_> =
                    (0..group(&pass).reals()[0]).map(|i| (0.7 * i as f64).sin()).collect();
                let (found, expected) = (by_steps(&pass, &src), on_host(&pass, &src));
                assert_eq!(found.len(), expected.len(), "{pass:?}");
                let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-13;
                assert!(found.iter().zip(&expected).all(close), "{pass:?}");
            }
        }
    }
}
