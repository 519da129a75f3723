//! Transforms before a reshape in chunks: copy engines move a chunk while later ones are
//! transformed.
//!
//! ```text
//! transforms, on the plan's stream:
//!     record `begun`
//!     for each chunk: transform it, record its event
//! reshape, on the stream of copies:
//!     wait for `begun`; it is recorded again if the transforms have read the destination
//!     for each chunk and each rank: wait for the rank's event of the chunk, copy what is in it
//! ```
//!
//! All ranks divide the same axis, which is not transformed, into as many chunks.

use std::ops::Range;

use cudarc::driver::DeviceSlice;
use fft_core::{BufferRequirement, Kind};

use super::cuda::Cuda;
use super::group::{Group, product};
use super::local_fft::DeviceFft;
use crate::base::{GpuError, GpuReal};
use crate::ffi::{DeviceMemory, MOST_CHUNKS};

/// The alignment of chunks, in bytes.
const ALIGN: usize = 16;
/// The least bytes of a chunk, found by measurement.
const LEAST_BYTES: usize = 32 << 20;
/// Chunks begin at multiples of so many indices, so that they are aligned.
const STEP: usize = 4;
/// The number of chunks from which on they gain more than transforms that load from other ranks.
const WORTHWHILE: usize = 4;

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunks {
    pub(super) axis: usize,
    pub(super) count: usize,
}

impl Chunks {
    /// The indices of a chunk along an axis of this length.
    pub(super) fn range(&self, len: usize, number: usize) -> Range<usize> {
        let begin = |number: usize| match number == self.count {
            true => len,
            false => len * number / self.count / STEP * STEP,
        };
        begin(number)..begin(number + 1)
    }

    /// How a group's axes of memory, in this order, are divided best. `None` where chunks would not
    /// be transformed by one plan each, and for small arrays.
    pub(super) fn of<T>(group: &Group, order: &[usize]) -> Option<Self> {
        let bytes = group.reals().map(|reals| reals * size_of::<T>());
        let place = place(group)?;
        let most = (bytes[0].min(bytes[1]) / LEAST_BYTES).min(MOST_CHUNKS);
        let count = most.min(group.lens[0][place] / STEP);
        (count > 1).then_some(Self { axis: order[place - 1], count })
    }
}

/// The place in memory of the axis that is divided: the slowest that is not transformed.
fn place(group: &Group) -> Option<usize> {
    let place = match &group.passes[..] {
        passes if passes.iter().all(|(place, _)| *place != 1) => 1,
        [(1, pass)] if pass.kind == Kind::C2C => 2,
        _ => return None,
    };
    // The chunks of a batch lie apart.
    (group.lens[0][0] == 1 && place < group.lens[0].len()).then_some(place)
}

/// Whether arrays of so many complex numbers are better copied chunk by chunk than loaded by
/// transforms.
pub fn prefers_chunks<T>(elements: usize) -> bool {
    elements.saturating_mul(2 * size_of::<T>()) >= WORTHWHILE * LEAST_BYTES
}

/// A group's transforms, chunk by chunk.
pub(super) struct ChunkedFft<T> {
    /// For each length of a chunk.
    plans: Vec<(usize, DeviceFft<T>)>,
    chunks: Vec<Chunk>,
    buffers: BufferRequirement,
}

/// The number of its plan, and where it begins before and after, in real numbers.
struct Chunk {
    plan: usize,
    starts: [usize; 2],
}

impl<T: GpuReal> ChunkedFft<T> {
    /// Plans a group in chunks; also returns the bytes of work area that it needs. `None` where
    /// another axis would be divided, chunks are not aligned, or their factor would take a pass.
    pub(super) fn new(
        device: &Cuda<T>,
        group: &Group,
        order: &[usize],
        division: Chunks,
    ) -> Result<Option<(Self, usize)>, GpuError> {
        let is_divided = |place: &usize| order[place - 1] == division.axis;
        let Some(place) = place(group).filter(is_divided) else { return Ok(None) };
        let (mut plans, mut chunks, mut area) =
            (Vec::<(usize, DeviceFft<T>)>::new(), Vec::new(), 0);
        let pitch = (place == 2).then(|| product(&group.lens[0][2..]));
        for number in 0..division.count {
            let range = division.range(group.lens[0][place], number);
            let widths = group.widths();
            let step = |side: usize| product(&group.lens[side][place + 1..]) * widths[side];
            let starts = [0, 1].map(|side| range.start * step(side));
            if starts.iter().any(|start| !(start * size_of::<T>()).is_multiple_of(ALIGN)) {
                return Ok(None);
            }
            let found = plans.iter().position(|(len, _)| *len == range.len());
            let plan = match found {
                Some(plan) => plan,
                None => {
                    let mut part = Group { pitch, ..group.clone() };
                    part.lens.iter_mut().for_each(|lens| lens[place] = range.len());
                    let (fft, bytes) = DeviceFft::new(device, &part)?;
                    if pitch.is_some() && fft.is_scaled() {
                        return Ok(None);
                    }
                    area = area.max(bytes);
                    plans.push((range.len(), fft));
                    plans.len() - 1
                }
            };
            chunks.push(Chunk { plan, starts });
        }
        let buffers = plans[0].1.buffer_requirement();
        Ok(Some((Self { plans, chunks, buffers }, area)))
    }

    pub(super) fn buffer_requirement(&self) -> BufferRequirement {
        self.buffers
    }

    pub(super) fn memory(&self) -> usize {
        self.plans.iter().map(|(_, plan)| plan.memory()).sum()
    }

    /// Queues the transforms, and an event behind each chunk.
    pub(super) fn run(
        &mut self,
        device: &mut Cuda<T>,
        src: Option<&DeviceMemory<T>>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        let own = device.connections().own.clone().expect("made with the plan's memory");
        device.begun.record(&device.stream)?;
        let bytes = |memory: &DeviceMemory<T>| {
            memory.address()..memory.address() + memory.num_bytes() as u64
        };
        device.chunks_of = Some(src.map_or(0..0, bytes));
        let end = dst.len();
        for (number, Chunk { plan, starts: [from, to] }) in self.chunks.iter().enumerate() {
            let (stream, area) = device.stream_and_area();
            let src = src.map(|src| src.part(*from..src.len()));
            let mut dst = dst.part_mut(*to..end);
            self.plans[*plan].1.run(stream, area, src.as_deref(), &mut dst)?;
            own.chunks[number].record(stream)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fft_core::Direction;

    use super::super::group::tests::pass;
    use super::*;

    fn group(lens: &[usize], places: &[usize]) -> Group {
        let pass = |place: &usize| (*place, pass(Kind::C2C, Direction::Forward, lens[*place]));
        let passes = places.iter().map(pass).collect();
        Group { lens: [lens.to_vec(), lens.to_vec()], passes, factor: 1.0, pitch: None }
    }

    #[test]
    fn chunks_are_of_the_slowest_axis_that_is_not_transformed() {
        let axis = |lens: &[usize], places: &[usize]| {
            Chunks::of::<f64>(&group(lens, places), &[2, 0, 1]).map(|it| (it.axis, it.count))
        };
        // 512 MiB: planes of the first axis of memory, or columns along it.
        assert_eq!(axis(&[1, 128, 512, 512], &[3, 2]), Some((2, 16)));
        assert_eq!(axis(&[1, 128, 512, 512], &[3]), Some((2, 16)));
        assert_eq!(axis(&[1, 128, 512, 512], &[1]), Some((0, 16)));
        assert_eq!(axis(&[1, 16, 2048, 1024], &[3]), Some((2, 4)), "of few indices");
        assert_eq!(axis(&[1, 16, 512, 512], &[3]), Some((2, 2)), "of 64 MiB");
        assert_eq!(axis(&[1, 8, 512, 512], &[3]), None, "small arrays");
        assert_eq!(axis(&[2, 128, 512, 512], &[3]), None, "batches");
        assert_eq!(axis(&[1, 512, 4096], &[1, 2]), None, "both axes are transformed");
    }

    #[test]
    fn ranges_are_aligned_and_have_each_index_once() {
        for (len, count) in [(100, 7), (64, 16), (5, 3), (0, 4), (1, 2)] {
            let chunks = Chunks { axis: 0, count };
            let all: Vec<_> = (0..count).flat_map(|number| chunks.range(len, number)).collect();
            assert_eq!(all, (0..len).collect::<Vec<_>>());
            assert!(
                (0..count).all(
                    |it| chunks.range(len, it).start.is_multiple_of(STEP) || len < STEP * count
                )
            );
        }
    }
}
