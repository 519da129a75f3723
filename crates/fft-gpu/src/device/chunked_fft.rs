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
//! A chunk is a part of one array of a batch, or several whole ones. All ranks divide the batch,
//! and the same axis, which is not transformed, into as many parts.

use std::ops::Range;

use cudarc::driver::DeviceSlice;
use fft_core::cost::device_chunks;
use fft_core::{DynBrick, Kind, LocalRead, Machine, MemoryUse};

use super::cuda::Cuda;
use super::group::{Group, product};
use super::local_fft::DeviceFft;
use crate::base::{GpuError, GpuReal};
use crate::ffi::{DeviceMemory, MOST_CHUNKS};

/// The alignment of chunks, in bytes.
const ALIGN: usize = 16;
/// Chunks begin at multiples of so many indices, so that they are aligned.
const STEP: usize = 4;
/// The number of chunks from which on they gain more than transforms that load from other ranks,
/// where no machine tells.
const WORTHWHILE: usize = 4;
/// Ranks have events for all chunks, whatever their number.
const _: () = {
    assert!(device_chunks(usize::MAX, 2) <= MOST_CHUNKS);
    assert!(device_chunks(usize::MAX, 3) <= MOST_CHUNKS);
};

/// How a batch of arrays is divided: into parts of whole arrays, and each array along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunks {
    /// Parts of the batch: as many as arrays, if these are divided.
    pub(super) parts: usize,
    pub(super) axis: usize,
    /// Parts of an array along the axis.
    pub(super) count: usize,
}

impl Chunks {
    /// The number of chunks.
    pub(super) fn all(&self) -> usize {
        self.parts * self.count
    }

    /// The arrays of a chunk, of so many.
    pub(super) fn arrays(&self, batch: usize, number: usize) -> Range<usize> {
        let part = number / self.count;
        batch * part / self.parts..batch * (part + 1) / self.parts
    }

    /// The indices of a chunk along an axis of this length.
    pub(super) fn range(&self, len: usize, number: usize) -> Range<usize> {
        let begin = |number: usize| match number == self.count {
            true => len,
            false => len * number / self.count / STEP * STEP,
        };
        let number = number % self.count;
        begin(number)..begin(number + 1)
    }

    /// The chunks of a box of a rank's brick, and the arrays of each.
    pub(super) fn of_read(
        &self,
        read: &LocalRead,
        brick: &DynBrick,
        batch: usize,
    ) -> Vec<(LocalRead, Range<usize>)> {
        let axis = self.axis;
        let chunk = |number| {
            let Range { start, end } = self.range(brick.len(axis), number);
            let part = read.within(axis, brick.lo[axis] + start..brick.lo[axis] + end);
            (part, self.arrays(batch, number))
        };
        (0..self.all()).map(chunk).collect()
    }

    /// How a group's arrays, with axes of memory in this order, are divided best between so many
    /// ranks. `None` where chunks would not be transformed by one plan each, and for small arrays.
    pub(super) fn of<T>(group: &Group, order: &[usize], ranks: usize) -> Option<Self> {
        let bytes = group.reals().map(|reals| reals * size_of::<T>());
        let most = device_chunks(bytes[0].min(bytes[1]), ranks);
        let (batch, place) = (group.lens[0][0], place(group));
        let parts = batch.clamp(1, most);
        let len = place.map_or(0, |place| group.lens[0][place]);
        let count = (most / parts).min(len / STEP).max(1);
        let chunks = Self { parts, axis: order[place.unwrap_or(1) - 1], count };
        (chunks.all() > 1).then_some(chunks)
    }
}

/// The place in memory of the axis that is divided: the slowest that is not transformed.
fn place(group: &Group) -> Option<usize> {
    let place = match &group.passes[..] {
        passes if passes.iter().all(|(place, _)| *place != 1) => 1,
        [(1, pass)] if pass.kind != Kind::R2C => 2,
        _ => return None,
    };
    (place < group.lens[0].len()).then_some(place)
}

/// Whether arrays of so many complex numbers on each of some ranks are better copied chunk by chunk
/// than loaded by transforms: on a machine of GPUs by its numbers, else by their size.
pub fn prefers_chunks<T>(elements: usize, ranks: usize, machine: Option<&Machine>) -> bool {
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
    group: Group,
    /// Where it begins before and after, in real numbers.
    starts: [usize; 2],
}

/// A group's chunks. `None` where it cannot be divided so, or they are not aligned.
fn parts<T>(group: &Group, order: &[usize], division: Chunks) -> Option<Vec<Part>> {
    let place = match division.count {
        // Whole arrays have all indices of any axis.
        1 => 1,
        _ => place(group).filter(|place| order[place - 1] == division.axis)?,
    };
    let pitch = (place == 2).then(|| product(&group.lens[0][2..]));
    let part = |number| {
        let arrays = division.arrays(group.lens[0][0], number);
        let mut part = Group { pitch, ..group.clone() };
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
    /// Plans a group in chunks; also returns the bytes of work area that it needs. `None` where
    /// another axis would be divided, chunks are not aligned, or their factor would take a pass.
    pub(super) fn new(
        device: &Cuda<T>,
        group: &Group,
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

    pub(super) fn memory_use(&self) -> MemoryUse {
        self.plans[0].1.memory_use()
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
    use fft_core::{Direction, DynGrid, Layout, Link, Node, ProcGrid, Redistribution};

    use super::super::group::tests::pass;
    use super::*;

    fn group(lens: &[usize], places: &[usize]) -> Group {
        group_of(Kind::C2C, lens, places)
    }

    fn group_of(kind: Kind, lens: &[usize], places: &[usize]) -> Group {
        let pass = |place: &usize| (*place, pass(kind, Direction::Forward, lens[*place]));
        let passes = places.iter().map(pass).collect();
        Group { lens: [lens.to_vec(), lens.to_vec()], passes, factor: 1.0, pitch: None }
    }

    #[test]
    fn chunks_are_of_the_slowest_axis_that_is_not_transformed() {
        let axis = |lens: &[usize], places: &[usize]| {
            let found = Chunks::of::<f64>(&group(lens, places), &[2, 0, 1], 2)?;
            assert_eq!(found.parts, 1);
            Some((found.axis, found.count))
        };
        // 512 MiB: planes of the first axis of memory, or columns along it.
        assert_eq!(axis(&[1, 128, 512, 512], &[3, 2]), Some((2, 16)));
        assert_eq!(axis(&[1, 128, 512, 512], &[3]), Some((2, 16)));
        assert_eq!(axis(&[1, 128, 512, 512], &[1]), Some((0, 16)));
        assert_eq!(axis(&[1, 16, 2048, 1024], &[3]), Some((2, 4)), "of few indices");
        assert_eq!(axis(&[1, 16, 512, 512], &[3]), Some((2, 2)), "of 64 MiB");
        assert_eq!(axis(&[1, 8, 512, 512], &[3]), None, "small arrays");
        assert_eq!(axis(&[1, 512, 4096], &[1, 2]), None, "both axes are transformed");
    }

    /// Of more ranks each is read by several others, so that there are fewer and longer copies.
    #[test]
    fn more_ranks_have_fewer_chunks() {
        let counts = |planes: usize| {
            let group = group(&[1, planes, 512, 512], &[3, 2]);
            [2, 3, 8].map(|ranks| {
                Chunks::of::<f64>(&group, &[0, 1, 2], ranks).map_or(1, |chunks| chunks.count)
            })
        };
        assert_eq!([64, 128, 512].map(counts), [[8, 1, 1], [16, 2, 2], [16, 4, 4]]);
        assert!(!prefers_chunks::<f64>(1 << 25, 4, None));
        assert!(prefers_chunks::<f64>(1 << 26, 4, None));
    }

    /// Of cosine transforms as of complex ones; half spectra of columns are not divided.
    #[test]
    fn real_transforms_are_divided_by_their_bytes() {
        let of = |kind: Kind, places: &[usize]| {
            let found =
                Chunks::of::<f64>(&group_of(kind, &[1, 64, 512, 512], places), &[0, 1, 2], 2);
            found.map(|it| (it.axis, it.count))
        };
        assert_eq!(of(Kind::C2C, &[3, 2]), Some((0, 8)));
        assert_eq!(of(Kind::Dct2, &[3, 2]), Some((0, 4)));
        assert_eq!(of(Kind::Dst1, &[1]), Some((1, 4)));
        assert_eq!(of(Kind::R2C, &[1]), None);
    }

    #[test]
    fn batches_are_divided_into_arrays_and_few_arrays_into_chunks() {
        let found = |lens: &[usize], places: &[usize]| {
            Chunks::of::<f64>(&group(lens, places), &[0, 1, 2], 2)
                .map(|it| (it.parts, it.axis, it.count))
        };
        // Arrays of 128 MiB.
        assert_eq!(found(&[2, 32, 512, 512], &[3, 2]), Some((2, 0, 4)));
        assert_eq!(found(&[3, 32, 512, 512], &[3]), Some((3, 0, 4)));
        assert_eq!(found(&[3, 512, 32, 512], &[1]), Some((3, 1, 4)));
        assert_eq!(found(&[20, 32, 512, 512], &[3]), Some((16, 0, 1)));
        // Of 16 MiB.
        assert_eq!(found(&[8, 4, 512, 512], &[3]), Some((4, 0, 1)));
        assert_eq!(found(&[3, 4, 512, 512], &[3]), None);
        // All axes are transformed.
        assert_eq!(found(&[3, 512, 16384], &[1, 2]), Some((3, 0, 1)));
    }

    #[test]
    fn large_arrays_are_better_copied_in_chunks() {
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

    /// Memory of whole arrays is in the chunks one after the other; that of strips is in rows.
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

    /// What is copied in chunks is what is copied at once.
    #[test]
    fn reads_of_chunks_are_those_of_the_batch() {
        let grid = DynGrid::new([9, 10, 6]).unwrap();
        let node = |ranks: [usize; 3]| {
            let ranks = ProcGrid::new(ranks);
            let bricks: Vec<_> = (0..3).map(|rank| ranks.part(&grid, rank)).collect();
            Node { layout: Layout::new(grid, bricks, 3).unwrap(), complex: true }
        };
        let (from, to) = (node([3, 1, 1]), node([1, 3, 1]));
        for (batch, parts, count) in [(1, 1, 2), (2, 2, 3), (3, 2, 1)] {
            let chunks = Chunks { parts, axis: 0, count };
            let all = Redistribution::new(1, &|_| Link::Shared, &from, &to, batch);
            let points = to.layout.brick(1).points() * batch;
            let [mut at_once, mut by_chunks] = [vec![0; points], vec![0; points]];
            for read in &all.local_reads {
                let brick = from.layout.brick(read.owner);
                let points = 0..brick.points() * batch;
                let src: Vec<_> = points.map(|point| 1000 * (1 + read.owner) + point).collect();
                let copy = |read: &LocalRead, wanted: &fft_core::Chunk, dst: &mut [usize]| {
                    all.take(read, wanted).into_iter().for_each(|part| part.run(&src, dst));
                };
                copy(read, &all.all(), &mut at_once);
                for (part, batches) in chunks.of_read(read, &brick, batch) {
                    let wanted = fft_core::Chunk { batches, ..all.all() };
                    copy(&part, &wanted, &mut by_chunks);
                }
            }
            assert!(at_once.iter().all(|point| *point > 0));
            assert_eq!(by_chunks, at_once);
        }
    }

    #[test]
    fn chunks_have_each_point_of_a_batch_once() {
        for (batch, parts, count) in [(1, 1, 5), (3, 3, 4), (20, 16, 1), (5, 2, 1)] {
            let chunks = Chunks { parts, axis: 0, count };
            let points = |number| {
                let range = chunks.range(50, number);
                chunks
                    .arrays(batch, number)
                    .flat_map(move |array| range.clone().map(move |i| 50 * array + i))
            };
            let all: Vec<_> = (0..chunks.all()).flat_map(points).collect();
            assert_eq!(all, (0..50 * batch).collect::<Vec<_>>());
        }
    }

    #[test]
    fn ranges_are_aligned_and_have_each_index_once() {
        for (len, count) in [(100, 7), (64, 16), (5, 3), (0, 4), (1, 2)] {
            let chunks = Chunks { parts: 1, axis: 0, count };
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
