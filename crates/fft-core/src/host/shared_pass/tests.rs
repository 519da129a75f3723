//! Half spectra in memory of several ranks, and back, in tiles of several strips.

use super::*;
use crate::comm::{PeerMemory, SharedMemory, Work};
use crate::geometry::{DynGrid, Layout, ProcGrid};
use crate::problem::Kind;
use crate::recipe::{LocalFft, Pass};

/// Ranks that run one after the other, with their exposed memory.
#[derive(Default)]
struct OneByOne {
    reads: Vec<Vec<f64>>,
    writes: Vec<Vec<f64>>,
    partitions: Vec<WritePartition>,
}

impl NodeMemory for OneByOne {
    fn exposes_all(&self) -> bool {
        true
    }

    fn sees(&self, _memory: &[u8]) -> bool {
        true
    }

    fn allocate(&mut self, _bytes: usize) -> Result<Box<dyn SharedMemory>, Error> {
        unreachable!("all memory is here")
    }

    fn register(&mut self, partition: WritePartition) -> Result<usize, Error> {
        self.partitions.push(partition);
        Ok(self.partitions.len() - 1)
    }

    fn sync(&mut self, well: bool) -> Result<bool, Error> {
        Ok(well)
    }

    fn exposure_epoch(&mut self, show: Expose<'_>, work: Work<'_>) -> Result<(), Error> {
        let Expose::Write { partition, .. } = show else { unreachable!("memory is divided") };
        work(&mut Visit {
            partition: &self.partitions[partition],
            reads: &self.reads,
            writes: &mut self.writes,
        })
    }
}

struct Visit<'a> {
    partition: &'a WritePartition,
    reads: &'a [Vec<f64>],
    writes: &'a mut [Vec<f64>],
}

impl PeerMemory for Visit<'_> {
    fn shown(&self, peer: usize) -> &[u8] {
        bytemuck::cast_slice(&self.reads[peer])
    }

    fn fetch(&mut self, _piece: usize, _tile: &mut [u8]) {
        unreachable!("what is read is other data")
    }

    fn store(&mut self, segment: usize, tile: &[u8]) {
        let segment = &self.partition.segments()[segment];
        let (element, owner) = (self.partition.element(), segment.owner());
        let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut self.writes[owner]);
        segment.transfer().runs(|there, here, len| {
            let [there, here] = [there, here].map(|at| at * element..(at + len) * element);
            memory[there].copy_from_slice(&tile[here]);
        });
    }
}

const SHAPE: [usize; 3] = [5, 70, 66];

fn pass(axis: usize, direction: Direction) -> Pass {
    Pass {
        kind: if axis == 2 { Kind::R2C } else { Kind::C2C },
        direction,
        n: SHAPE[axis],
        resized: None,
        complex_before: axis != 2 || direction == Direction::Inverse,
        complex_after: axis != 2 || direction == Direction::Forward,
        outer: 1,
        inner: 1,
        factor: 1.0,
        twiddles: None,
        strides: [1; 2],
    }
}

/// The bricks of each rank, from an array in grid order.
fn bricks(layout: &Layout, width: usize, batch: usize, all: &[f64]) -> Vec<Vec<f64>> {
    let whole = Layout::even(layout.grid(), ProcGrid::new([1; 3]), 1).brick(0);
    let placed = |brick, order| crate::geometry::strided_copy::Placed { brick, order, batch };
    let brick = |brick: &crate::DynBrick| {
        let (from, to) = (placed(whole, [0, 1, 2].into()), placed(*brick, layout.order()));
        let transfer = Transfer::new(brick, 0..batch, &from, &to);
        let mut numbers = vec![0.0; brick.points() * batch * width];
        copy(&transfer, width, all, &mut numbers);
        numbers
    };
    layout.bricks().iter().map(brick).collect()
}

/// All arrays at once, one axis after the other.
fn expected(axes: &[usize], direction: Direction, batch: usize, from: &[f64]) -> Vec<f64> {
    let (mut cpu, mut numbers) = (Cpu::<f64>::default(), from.to_vec());
    let half = SHAPE[2] / 2 + 1;
    for &axis in axes {
        let lens = [batch, SHAPE[0], SHAPE[1], if axis == 2 { SHAPE[2] } else { half }];
        let fft = LocalFft::new(&lens, axis + 1, pass(axis, direction));
        let mut after = vec![0.0; fft.blocks * fft.block_after()];
        let plan = cpu.plan_fft(&fft, 0).unwrap();
        cpu.fft(&plan, 0..fft.blocks, Some(&numbers), &mut after);
        numbers = after;
    }
    numbers
}

/// Transforms along these axes by all ranks; returns the maximum strips of a tile.
fn transforms(
    axes: &[usize],
    direction: Direction,
    [home, work]: [[usize; 3]; 2],
    order: [usize; 3],
    batch: usize,
) -> usize {
    let ranks: usize = home.iter().product();
    let [grid, halved] =
        [SHAPE[2], SHAPE[2] / 2 + 1].map(|row| DynGrid::new([SHAPE[0], SHAPE[1], row]).unwrap());
    let layout = |grid, cut| Layout::even(grid, ProcGrid::new(cut), ranks).ordered(order).unwrap();
    let (real, half, work) = (layout(grid, home), layout(halved, home), layout(halved, work));
    let passes: Vec<_> = axes.iter().map(|&axis| (axis, pass(axis, direction))).collect();
    let forward = direction == Direction::Forward;
    let ends = [(&real, 1), (&half, 2)];
    let [(before, wide), (after, wide_after)] = if forward { ends } else { [ends[1], ends[0]] };
    let all = before.grid().points() * batch * wide;
    let mut from: Vec<f64> = (0..all).map(|i| ((i * i + 7 * i) % 1009) as f64 - 504.0).collect();
    if !forward {
        // Half a spectrum of real data.
        let undone: Vec<_> = axes.iter().rev().copied().collect();
        let numbers: Vec<f64> = from[..real.grid().points() * batch].to_vec();
        from = expected(&undone, Direction::Forward, batch, &numbers);
    }
    let result = expected(axes, direction, batch, &from);
    let zeros = vec![0.0; result.len()];
    let mut host = OneByOne {
        reads: bricks(before, wide, batch, &from),
        writes: bricks(after, wide_after, batch, &zeros),
        partitions: Vec::new(),
    };
    let mut most = 0;
    for rank in 0..ranks {
        let mut cpu = Cpu::<f64>::default();
        let tiling = Tiling {
            rank,
            home: &half,
            work: &work,
            exclusive: None,
            first: true,
            batch,
            width: 2,
            axes: &passes,
            real: Some((direction, &real)),
        };
        let mut pass = SharedPass::new(&tiling, &mut cpu).unwrap();
        pass.register(&mut host).unwrap();
        let mut unseen = vec![0.0; host.writes[rank].len()];
        let buffers = OpBuffers { src: None, dst: &mut unseen[..], window: None, spare: None };
        pass.run(&mut host, &mut cpu, buffers, &mut Timings::default()).unwrap();
        most = most.max(pass.tables.tiles.iter().map(|tile| tile.strips.len()).max().unwrap_or(0));
    }
    let expected = bricks(after, wide_after, batch, &result);
    if order == [0, 1, 2] {
        // Lines are equal, and so are their transforms.
        assert_eq!(host.writes, expected, "{axes:?} {direction:?}");
    }
    // In another order other axes are contiguous, and their transforms differ in the last digits.
    let largest = result.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    for (found, expected) in host.writes.iter().flatten().zip(expected.iter().flatten()) {
        let off = (found - expected).abs();
        assert!(off <= 8.0 * f64::EPSILON * largest, "{axes:?} {direction:?} {order:?}: {off:e}");
    }
    most
}

#[test]
fn strips_of_several_ranks_are_the_transform_of_all() {
    let (memory, columns) = ([0, 1, 2], [2, 1, 0]);
    for (direction, axes) in [(Direction::Forward, [2, 1]), (Direction::Inverse, [1, 2])] {
        for home in [[1, 3, 2], [2, 1, 3], [6, 1, 1]] {
            // One rank of six has no data.
            let layouts = [home, [6, 1, 1]];
            assert_eq!(transforms(&axes, direction, layouts, memory, 1), 2, "planes in two strips");
            assert_eq!(transforms(&axes, direction, layouts, memory, 2), 1, "batches");
            assert_eq!(transforms(&axes, direction, layouts, columns, 1), 1, "lines are not rows");
        }
        let rows = transforms(&[2], direction, [[2, 1, 3], [6, 1, 1]], memory, 1);
        assert_eq!(rows, 2, "rows alone");
        let two = if direction == Direction::Forward { [2, 0] } else { [0, 2] };
        let lines = transforms(&two, direction, [[2, 1, 3], [1, 3, 1]], memory, 1);
        assert_eq!(lines, 3, "axes apart");
    }
}
