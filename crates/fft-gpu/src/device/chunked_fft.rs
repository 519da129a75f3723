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

use cudarc::driver::DeviceSlice;
use fft_core::cost::device_chunks;
use fft_core::{Chunks, FftGroup, Machine};

use super::cuda::Cuda;
use super::group::product;
use super::local_fft::DeviceFft;
use crate::base::{GpuError, GpuReal};
use crate::ffi::{DeviceMemory, MOST_CHUNKS};

/// The alignment of chunks, in bytes.
const ALIGN: usize = 16;
/// The number of chunks from which on they gain more than transforms that load from other ranks, if
/// no measured machine decides.
const WORTHWHILE: usize = 4;
/// Ranks have events for all chunks, whatever their number.
const _: () = {
    assert!(device_chunks(usize::MAX, 2) <= MOST_CHUNKS);
    assert!(device_chunks(usize::MAX, 3) <= MOST_CHUNKS);
};

/// Whether arrays of `elements` complex numbers on each of some ranks are better copied chunk by
/// chunk than loaded by transforms: decided by the numbers of a machine of GPUs, else by the size.
pub(super) fn prefers_chunks<T>(elements: usize, ranks: usize, machine: Option<&Machine>) -> bool {
    let bytes = elements.saturating_mul(2 * size_of::<T>());
    match machine.filter(|machine| machine.gpu.is_some()) {
        Some(machine) => machine.prefers_chunks(bytes, ranks),
        None => device_chunks(bytes, ranks) >= WORTHWHILE,
    }
}

/// The transforms of a chunk.
struct Part {
    /// Its arrays, and its indices along the divided axis.
    size: [usize; 2],
    group: FftGroup,
    /// Where it begins before and after, in real numbers.
    starts: [usize; 2],
}

/// A group's chunks. `None` if it cannot be divided in this way, or if they are not aligned.
fn parts<T>(group: &FftGroup, order: &[usize], division: Chunks) -> Option<Vec<Part>> {
    let place = match division.count {
        // Whole arrays have all indices of any axis.
        1 => 1,
        _ => group.divided_place().filter(|place| order[place - 1] == division.axis)?,
    };
    let pitch = (place == 2).then(|| product(&group.lens[0][2..]));
    let part = |number| {
        let arrays = division.arrays(group.lens[0][0], number);
        let mut part = FftGroup { pitch, ..group.clone() };
        let [mut size, mut starts] = [[arrays.len(), 0], [0; 2]];
        for side in [0, 1] {
            let (whole, lens) = (&group.lens[side], &mut part.lens[side]);
            let range = division.range(whole[place], number);
            let from =
                arrays.start * product(&whole[1..]) + range.start * product(&whole[place + 1..]);
            starts[side] = from * group.widths()[side];
            (lens[0], lens[place], size[1]) = (arrays.len(), range.len(), range.len());
        }
        let is_aligned = |start: usize| (start * size_of::<T>()).is_multiple_of(ALIGN);
        starts.into_iter().all(is_aligned).then_some(Part { size, group: part, starts })
    };
    (0..division.all()).map(part).collect()
}

/// A group's transforms, chunk by chunk.
pub(super) struct ChunkedFft<T> {
    /// For each number of arrays and length of a chunk.
    plans: Vec<([usize; 2], DeviceFft<T>)>,
    chunks: Vec<Chunk>,
}

/// The number of its plan, and where it begins.
struct Chunk {
    plan: usize,
    starts: [usize; 2],
}

impl<T: GpuReal> ChunkedFft<T> {
    /// Plans a group in chunks; also returns the bytes of work area that it needs. `None` if
    /// another axis would be divided, chunks are not aligned, or their factor would take a pass.
    pub(super) fn new(
        device: &Cuda,
        group: &FftGroup,
        order: &[usize],
        division: Chunks,
    ) -> Result<Option<(Self, usize)>, GpuError> {
        let (mut plans, mut chunks, mut area) =
            (Vec::<([usize; 2], DeviceFft<T>)>::new(), Vec::new(), 0);
        let Some(parts) = parts::<T>(group, order, division) else { return Ok(None) };
        for Part { size, group, starts } in parts {
            let plan = match plans.iter().position(|(known, _)| *known == size) {
                Some(plan) => plan,
                None => {
                    let (fft, bytes) = DeviceFft::new(device, &group)?;
                    if group.pitch.is_some() && fft.is_scaled() {
                        return Ok(None);
                    }
                    area = area.max(bytes);
                    plans.push((size, fft));
                    plans.len() - 1
                }
            };
            chunks.push(Chunk { plan, starts });
        }
        Ok(Some((Self { plans, chunks }, area)))
    }

    pub(super) fn memory(&self) -> usize {
        self.plans.iter().map(|(_, plan)| plan.memory()).sum()
    }

    /// Queues the transforms, and an event after each chunk.
    pub(super) fn run(
        &mut self,
        device: &mut Cuda,
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
    use fft_core::{Direction, Kind};

    use super::super::group::tests::pass;
    use super::*;

    fn group(lens: &[usize], places: &[usize]) -> FftGroup {
        group_of(Kind::C2C, lens, places)
    }

    fn group_of(kind: Kind, lens: &[usize], places: &[usize]) -> FftGroup {
        let pass = |place: &usize| (*place, pass(kind, Direction::Forward, lens[*place]));
        let passes = places.iter().map(pass).collect();
        FftGroup { lens: [lens.to_vec(), lens.to_vec()], passes, factor: 1.0, pitch: None }
    }

    #[test]
    fn large_arrays_are_better_copied_in_chunks() {
        assert!(!prefers_chunks::<f64>(1 << 25, 4, None));
        assert!(prefers_chunks::<f64>(1 << 26, 4, None));
        let mut machine = Machine::default();
        fn by(points: usize, machine: Option<&Machine>) -> bool {
            prefers_chunks::<f64>(points, 2, machine)
        }
        assert_eq!([1 << 22, 1 << 23].map(|points| by(points, None)), [false, true]);
        // Numbers of a CPU say nothing.
        let small = 1 << 22;
        assert!(!by(small, Some(&machine)));
        machine.gpu = Some("a GPU".into());
        (machine.memory.value, machine.host_memory.value) = (3e12, 6e12);
        machine.near.bandwidth.value = 1e11;
        assert!(by(small, Some(&machine)), "a slow link");
        machine.near.bandwidth.value = 4e12;
        assert!(!by(1 << 26, Some(&machine)), "one as fast as memory");
    }

    /// Chunks of whole arrays are stored one after the other; chunks of strips are in rows.
    #[test]
    fn transforms_of_chunks_are_those_of_the_batch() {
        for (lens, places, division) in [
            ([1, 32, 8, 12], &[3, 2][..], Chunks { parts: 1, axis: 0, count: 5 }),
            ([3, 32, 8, 12], &[3], Chunks { parts: 3, axis: 0, count: 2 }),
            ([5, 32, 8, 12], &[1, 3], Chunks { parts: 2, axis: 0, count: 1 }),
        ] {
            let whole = group(&lens, places);
            let parts = parts::<f64>(&whole, &[0, 1, 2], division).unwrap();
            let mut end = [0; 2];
            for part in &parts {
                assert_eq!((part.starts, part.group.pitch), (end, None));
                assert_eq!(part.group.passes.len(), places.len());
                let reals = part.group.reals();
                end = [0, 1].map(|side| end[side] + reals[side]);
            }
            assert_eq!((parts.len(), end), (division.all(), whole.reals()));
        }
        let strips = Chunks { parts: 2, axis: 1, count: 2 };
        let found = parts::<f64>(&group(&[2, 6, 8, 5], &[1]), &[0, 1, 2], strips).unwrap();
        let starts: Vec<_> = found.iter().map(|part| part.starts[0]).collect();
        assert_eq!(starts, [0, 2 * 20, 2 * 240, 2 * 260]);
        assert!(found.iter().all(|part| part.group.pitch == Some(40)));
        assert!(found.iter().all(|part| part.group.lens[1] == [1, 6, 4, 5]));
        let real = group_of(Kind::Dct4, &[2, 6, 8, 5], &[1]);
        let found = parts::<f64>(&real, &[0, 1, 2], strips).unwrap();
        let starts: Vec<_> = found.iter().map(|part| part.starts).collect();
        assert_eq!(starts, [0, 20, 240, 260].map(|start| [start; 2]));
        // Another axis, and numbers that are not aligned.
        assert!(parts::<f64>(&group(&[2, 6, 8, 5], &[3]), &[0, 1, 2], strips).is_none());
        let halves = Chunks { parts: 2, axis: 0, count: 1 };
        assert!(parts::<f32>(&group(&[2, 3, 3], &[2]), &[0, 1], halves).is_none());
    }
}
