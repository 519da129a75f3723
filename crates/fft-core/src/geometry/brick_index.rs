//! Finds the bricks that intersect a box without examining all of them.
//!
//! A bounding-volume tree: bricks are split at the median of their longest axis until few remain. A
//! query visits only nodes whose hull intersects the box. For P bricks, building takes O(P log P)
//! time and O(P) memory. A query takes O(log P + found) for the disjoint bricks of a layout.

use super::brick::DynBrick;

/// Bricks per leaf, because comparing a few is faster than another level.
const LEAF: usize = 8;

#[derive(Debug)]
pub(crate) struct BrickIndex {
    /// In tree order.
    items: Vec<(usize, DynBrick)>,
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    hull: DynBrick,
    /// A leaf has the items `first..last`. The left child of an inner node is the next node.
    first: usize,
    last: usize,
    right: Option<usize>,
}

impl BrickIndex {
    pub(crate) fn new(bricks: &[DynBrick]) -> Self {
        let items = bricks.iter().copied().enumerate().filter(|(_, b)| !b.is_empty()).collect();
        let mut index = Self { items, nodes: Vec::new() };
        if !index.items.is_empty() {
            index.grow(0, index.items.len());
        }
        index
    }

    fn grow(&mut self, first: usize, last: usize) {
        let items = &mut self.items[first..last];
        let hull = items.iter().map(|(_, b)| *b).reduce(|a, b| a.hull(&b)).expect("not empty");
        let me = self.nodes.len();
        self.nodes.push(Node { hull, first, last, right: None });
        if last - first <= LEAF {
            return;
        }
        let axis = (0..hull.axes()).max_by_key(|&axis| hull.len(axis)).expect("at least one axis");
        let half = (last - first) / 2;
        items.select_nth_unstable_by_key(half, |(rank, b)| (b.lo[axis] + b.hi[axis], *rank));
        self.grow(first, first + half);
        self.nodes[me].right = Some(self.nodes.len());
        self.grow(first + half, last);
    }

    /// Calls `found(rank, common)` for every brick that intersects `query`, in tree order.
    pub(crate) fn intersections(&self, query: &DynBrick, mut found: impl FnMut(usize, DynBrick)) {
        if query.is_empty() || self.nodes.is_empty() {
            return;
        }
        // The depth is at most log2(items / LEAF) + 1, far below 64.
        let mut todo = [0usize; 64];
        let mut waiting = 1;
        while waiting > 0 {
            waiting -= 1;
            let at = todo[waiting];
            let node = &self.nodes[at];
            if node.hull.intersect(query).is_empty() {
                continue;
            }
            match node.right {
                Some(right) => {
                    (todo[waiting], todo[waiting + 1]) = (right, at + 1);
                    waiting += 2;
                }
                None => {
                    for (rank, brick) in &self.items[node.first..node.last] {
                        let common = brick.intersect(query);
                        if !common.is_empty() {
                            found(*rank, common);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{grid::DynGrid, process_grid::ProcGrid};

    #[test]
    fn finds_what_comparing_all_finds() {
        let grid = DynGrid::new([37, 21, 16]).unwrap();
        for shape in [[1, 1, 1], [5, 1, 3], [7, 4, 4], [37, 21, 2]] {
            let ranks = ProcGrid::new(shape);
            let bricks: Vec<_> = (0..ranks.ranks()).map(|r| ranks.part(&grid, r)).collect();
            let index = BrickIndex::new(&bricks);
            for query in [
                grid.whole(),
                DynBrick::new([3, 4, 5], [4, 5, 6]),
                DynBrick::new([0, 10, 0], [37, 12, 16]),
                DynBrick::empty(3),
            ] {
                let mut found = Vec::new();
                index.intersections(&query, |rank, common| found.push((rank, common)));
                found.sort_by_key(|(rank, _)| *rank);
                let all: Vec<_> = (bricks.iter().map(|b| b.intersect(&query)).enumerate())
                    .filter(|(_, common)| !common.is_empty())
                    .collect();
                assert_eq!(found, all);
            }
        }
    }
}
