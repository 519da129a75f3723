//! Boxes are copied as by a loop over indices: any bricks, orders of axes, batches and parts.

use super::*;
use proptest::prelude::*;

/// Copies one element at a time from the definition of a placed brick.
fn naive(part: &DynBrick, from: &Placed, to: &Placed, src: &[u64], dst: &mut [u64]) {
    let at = |p: &Placed, item: usize, index: [usize; 3]| {
        p.order
            .iter()
            .fold(item, |at, &axis| at * p.brick.len(axis) + index[axis] - p.brick.lo[axis])
    };
    for item in 0..from.batch {
        for i in part.range(0) {
            for j in part.range(1) {
                for k in part.range(2) {
                    dst[at(to, item, [i, j, k])] = src[at(from, item, [i, j, k])];
                }
            }
        }
    }
}

/// Copies panel by panel, to each place once.
fn by_panels(transfer: &Transfer, src: &[u64], len: usize) -> Vec<u64> {
    let mut dst = vec![0; len];
    let mut copy = |from: usize, to: usize| {
        assert!(from < transfer.reach() && to < transfer.span());
        assert_eq!(std::mem::replace(&mut dst[to], src[from]), 0, "{to} is written twice");
    };
    transfer.panels(|Panel { from, to, rows, columns, jump, pitch }| {
        for (row, column) in (0..rows * columns).map(|i| (i / columns, i % columns)) {
            copy(from + row * jump + column, to + column * pitch + row);
        }
    });
    dst
}

fn brick() -> impl Strategy<Value = DynBrick> {
    [(0..6usize, 0..20usize), (0..6, 0..20), (0..6, 0..20)]
        .prop_map(|sides| DynBrick::new(sides.map(|(lo, _)| lo), sides.map(|(lo, n)| lo + n)))
}

fn order() -> impl Strategy<Value = [usize; 3]> {
    Just([0, 1, 2]).prop_shuffle()
}

proptest! {
    #[test]
    fn copies_what_the_definition_says(
        a in brick(), b in brick(), oa in order(), ob in order(), batch in 1..4usize,
    ) {
        let from = Placed::new(a, oa, batch);
        let to = Placed::new(b, ob, batch);
        let part = a.intersect(&b);
        let src: Vec<u64> = (1..=(a.points() * batch) as u64).collect();
        let mut dst = vec![0; b.points() * batch];
        let mut expected = dst.clone();
        naive(&part, &from, &to, &src, &mut expected);
        let transfer = Transfer::new(&part, 0..batch, &from, &to);
        prop_assert_eq!(by_panels(&transfer, &src, dst.len()), expected.as_slice());
        transfer.run(&src, &mut dst);
        prop_assert_eq!(dst, expected);
    }

    #[test]
    fn parts_are_the_whole(
        a in brick(), b in brick(), oa in order(), ob in order(), batch in 1..4usize, size in 1..700usize,
    ) {
        let part = a.intersect(&b);
        prop_assume!(!part.is_empty());
        let from = Placed::new(a, oa, batch);
        let to = Placed::new(b, ob, batch);
        let message = Placed::new(part, ob, batch);
        let src: Vec<u64> = (1..=(a.points() * batch) as u64).collect();
        let gather = Transfer::new(&part, 0..batch, &from, &message);
        let scatter = Transfer::new(&part, 0..batch, &message, &to);
        let mut dense = vec![0; gather.elements()];
        gather.run(&src, &mut dense);
        let (mut piece, mut dst) = (vec![0; size], vec![0; b.points() * batch]);
        for (start, expected) in dense.chunks(size).enumerate() {
            let range = start * size..start * size + expected.len();
            gather.gather(range.clone(), &src, &mut piece);
            prop_assert_eq!(&piece[..expected.len()], expected);
            if let Some(at) = gather.source_run(&range) {
                prop_assert_eq!(&src[at..at + expected.len()], expected);
            }
            scatter.scatter(range.clone(), &piece, &mut dst);
            if let Some(at) = scatter.destination_run(&range) {
                prop_assert_eq!(&dst[at..at + expected.len()], expected);
            }
        }
        let mut expected = vec![0; b.points() * batch];
        naive(&part, &from, &to, &src, &mut expected);
        prop_assert_eq!(dst, expected);
    }
}

#[test]
fn whole_rows_merge_into_one_run() {
    let brick = DynBrick::new([0, 0, 0], [4, 5, 6]);
    let placed = Placed::new(brick, [0, 1, 2], 2);
    let transfer = Transfer::new(&brick, 0..2, &placed, &placed);
    assert_eq!(transfer.shape, [1, 1, 1, 1, 240]);
    let half = DynBrick::new([1, 0, 0], [3, 5, 6]);
    assert_eq!(Transfer::new(&half, 0..2, &placed, &placed).shape, [1, 1, 1, 2, 60]);
}
