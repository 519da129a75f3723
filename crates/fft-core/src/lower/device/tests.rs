//! Tests of groups, chunks and rules.

use super::Chunks;
use super::group::FftGroup;
use crate::base::Precision;
use crate::geometry::{DynGrid, Layout, ProcGrid};
use crate::problem::{Direction, Kind, Link};
use crate::recipe::{Node, Pass};
use crate::redistribute::{LocalRead, Redistribution};

fn pass(kind: Kind, direction: Direction, n: usize) -> Pass {
    let (halved, real) = (kind == Kind::R2C, kind.is_real());
    let forward = direction == Direction::Forward;
    Pass {
        kind,
        direction,
        n,
        resized: None,
        complex_before: !(real || halved && forward),
        complex_after: !real && (!halved || forward),
        outer: 1,
        inner: 1,
        factor: 1.0,
        twiddles: None,
        strides: [1; 2],
    }
}

fn group(lens: &[usize], place: usize, pass: Pass) -> FftGroup {
    let (lens, passes) = ([lens.to_vec(), lens.to_vec()], vec![(place, pass)]);
    FftGroup { lens, passes, factor: 1.0, pitch: None }
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
    let padded = |n| Pass { resized: Some([n - 1, n]), ..c2c(to, n) };
    assert!(!group(&lens, 3, c2c(to, 6)).joins(2, &padded(5)));
    assert!(!group(&lens, 3, padded(6)).joins(2, &c2c(to, 5)));
    let cosines = |n| pass(Kind::Dct2, to, n);
    assert!(group(&lens, 3, cosines(6)).joins(2, &pass(Kind::Dst4, to, 5)));
    assert!(!group(&lens, 2, cosines(5)).joins(1, &cosines(4)));
    assert!(!group(&lens, 3, cosines(6)).joins(2, &c2c(to, 5)));
    assert!(!group(&lens, 3, r2c(to, 6)).joins(2, &cosines(5)));
}

#[test]
fn the_last_of_passes_apart_has_the_factor() {
    let cosines = |n| pass(Kind::Dct2, Direction::Forward, n);
    let mut both = FftGroup { factor: 0.5, ..group(&[1, 4, 5, 6], 3, cosines(6)) };
    let factors = |group: &FftGroup| -> Vec<_> {
        group.clone().apart().iter().map(|alone| (alone.passes[0].0, alone.factor)).collect()
    };
    assert_eq!(factors(&both), [(3, 0.5)]);
    both.passes.push((2, cosines(5)));
    assert_eq!(factors(&both), [(3, 1.0), (2, 0.5)]);
}

#[test]
fn whole_lines_are_those_of_the_data() {
    let pass = Pass { resized: Some([3, 4]), ..pass(Kind::R2C, Direction::Forward, 6) };
    let lens = |lens: [usize; 2]| lens.map(|len| vec![2, len, 5]);
    let group = |lens, pass: &Pass| FftGroup {
        lens,
        passes: vec![(1, pass.clone())],
        factor: 1.0,
        pitch: None,
    };
    let padded = group(lens([3, 3]), &pass);
    assert_eq!(padded.whole().lens, lens([6, 4]));
    let empty = group([vec![1, 0], vec![1, 0]], &pass);
    assert_eq!(empty.whole().reals(), [0; 2]);
}

fn planes(lens: &[usize], places: &[usize]) -> FftGroup {
    planes_of(Kind::C2C, lens, places)
}

fn planes_of(kind: Kind, lens: &[usize], places: &[usize]) -> FftGroup {
    let pass = |place: &usize| (*place, pass(kind, Direction::Forward, lens[*place]));
    let passes = places.iter().map(pass).collect();
    FftGroup { lens: [lens.to_vec(), lens.to_vec()], passes, factor: 1.0, pitch: None }
}

#[test]
fn chunks_are_of_the_slowest_axis_that_is_not_transformed() {
    let axis = |lens: &[usize], places: &[usize]| {
        let found = Chunks::of(&planes(lens, places), Precision::F64, &[2, 0, 1], 2)?;
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

/// With more ranks, several others read from each, so that there are fewer and longer copies.
#[test]
fn more_ranks_have_fewer_chunks() {
    let counts = |count: usize| {
        let group = planes(&[1, count, 512, 512], &[3, 2]);
        [2, 3, 8].map(|ranks| {
            Chunks::of(&group, Precision::F64, &[0, 1, 2], ranks).map_or(1, |chunks| chunks.count)
        })
    };
    assert_eq!([64, 128, 512].map(counts), [[8, 1, 1], [16, 2, 2], [16, 4, 4]]);
}

/// Cosine transforms are divided like complex ones; half spectra of columns are not divided.
#[test]
fn real_transforms_are_divided_by_their_bytes() {
    let of = |kind: Kind, places: &[usize]| {
        let found =
            Chunks::of(&planes_of(kind, &[1, 64, 512, 512], places), Precision::F64, &[0, 1, 2], 2);
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
        Chunks::of(&planes(lens, places), Precision::F64, &[0, 1, 2], 2)
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

/// Copies in chunks move the same elements as one copy.
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
            let copy =
                |read: &LocalRead, wanted: &crate::redistribute::Chunk, dst: &mut [usize]| {
                    all.take(read, wanted).into_iter().for_each(|part| part.run(&src, dst));
                };
            copy(read, &all.all(), &mut at_once);
            for (part, batches) in chunks.of_read(read, &brick, batch) {
                let wanted = crate::redistribute::Chunk { batches, ..all.all() };
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
            (0..count).all(|it| chunks.range(len, it).start.is_multiple_of(4) || len < 4 * count)
        );
    }
}
