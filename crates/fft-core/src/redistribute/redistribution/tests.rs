use super::*;
use crate::geometry::{DynGrid, Layout, ProcGrid};

#[test]
fn messages_that_are_turned_when_read_arrive_where_they_belong() {
    let (grid, batch) = (DynGrid::new([8, 6, 10]).unwrap(), 2);
    let node = |cuts, order| Node {
        layout: Layout::even(grid, ProcGrid::new(cuts), 4).ordered(order).unwrap(),
        complex: true,
    };
    let (from, to) = (node([2, 2, 1], [0, 1, 2]), node([1, 2, 2], [2, 1, 0]));
    // The elements of a brick in this order, each its own number in the grid.
    let held = |brick: DynBrick, order| {
        let all = Placed::new(grid.brick(0, 1), [0, 1, 2], batch);
        let named: Vec<usize> = (1..=grid.points() * batch).collect();
        let mut elements = vec![0; brick.points() * batch];
        let own = Placed { brick, order, batch };
        Transfer::new(&brick, 0..batch, &all, &own).run(&named, &mut elements);
        elements
    };
    let own = |node: &Node, rank| held(node.layout.brick(rank), node.layout.order());
    // Between neighbours in the receiver's order, a message has 3 rows of 5 elements. Between
    // neighbours in the sender's order, it has 3 rows of 4.
    let which = |block, short, few| Some(TransposedWhenRead { block, short, few });
    for (which, transposed) in [
        (None, false),
        (which(5, 100, 0), true),
        (which(15, 100, 9), true),
        (which(2, 11, 3), true),
        (which(2, 11, 4), false),
        (which(2, 12, 0), false),
    ] {
        let order = if transposed { from.layout.order() } else { to.layout.order() };
        let redistribution = |rank| {
            let redistribution = Redistribution::new(rank, &|_| Link::Remote, &from, &to, batch);
            match which {
                Some(which) => redistribution.transposed_when_read(which),
                None => redistribution,
            }
        };
        for receiver in 0..4 {
            let into = redistribution(receiver);
            let mut found = vec![0; into.all().points()];
            for (sender, part) in &into.recvs {
                let mut message = vec![0; part.points() * batch];
                redistribution(*sender).gather(part).run(&own(&from, *sender), &mut message);
                assert_eq!(message, held(*part, order), "{which:?}: {sender} to {receiver}");
                let scatter = into.scatter(part, &into.all()).unwrap();
                // In the order of the transfer, as codecs read it.
                scatter.scatter(0..scatter.elements(), &message, &mut found);
            }
            assert_eq!(found, own(&to, receiver), "{which:?}: {receiver}");
        }
    }
}

#[test]
fn boxes_cover_every_block_once() {
    let grid = DynGrid::new([6, 5, 4]).unwrap();
    let before = Layout::even(grid, ProcGrid::new([1, 1, 1]), 1);
    let after = before.clone().ordered([1, 0, 2]).unwrap();
    let node = |layout| Node { layout, complex: true };
    // Memory: 3 batches × 5 (y) × 6 (x) × 4 (z); blocks of points, lines, planes, arrays, all.
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let before = before.clone().ordered(order).unwrap();
        let redistribution =
            Redistribution::new(0, &|_| Link::Own, &node(before), &node(after.clone()), 3);
        for blocks in [360, 90, 15, 3, 1] {
            for (run, most) in
                [(1..1, 1), (1..8, 1), (8..8, 1), (1..1, 24), (2..4, 50), (1..8, 120), (8..8, 1000)]
            {
                let mut seen = vec![0; 360];
                for (chunk, ranges) in
                    redistribution.boxes(redistribution.all().brick, blocks, run.clone(), most)
                {
                    let mut places = redistribution
                        .take(&redistribution.local_reads[0], &chunk)
                        .unwrap()
                        .places();
                    places.iter().for_each(|place| seen[*place] += 1);
                    let block = 360 / blocks;
                    let points = |r: Range<usize>| r.start * block..r.end * block;
                    places.sort_unstable();
                    assert!(places.into_iter().eq(ranges.into_iter().flat_map(points)));
                }
                assert_eq!(seen, [1; 360], "{blocks} blocks, {run:?}, {most}");
            }
        }
    }
}
