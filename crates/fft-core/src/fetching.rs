//! Orders of axes in memory where transforms fetch what they read from other ranks: on devices.
//!
//! The first transform after a reshape reads its elements where other ranks have them. Threads side by side should read side by
//! side, so the axis which was contiguous stays so. One that is transformed alone becomes the slowest, since a device does all
//! its lines at once then; of two across, the device itself has now the one and now the other there.

use crate::recipe::{Node, Step};

/// The order of axes in memory, slowest first, after a reshape from an order `before`, for transforms along `axes`, in the order in
/// which they are done.
pub(crate) fn order<const D: usize>(before: [usize; D], axes: &[usize]) -> [usize; D] {
    let last = before[D - 1];
    let Some((&first, others)) = axes.split_first() else { return before };
    let mut order = before;
    // The sort is stable: what is equal stays as it was.
    match others.last() {
        _ if axes.contains(&last) => order.sort_by_key(|axis| (*axis == last, axes.contains(axis))),
        None => order.sort_by_key(|axis| *axis != first),
        Some(_) => {}
    }
    order
}

/// Gives the layouts between reshapes such orders.
pub(crate) fn arrange<const D: usize>(nodes: &mut [Node<D>], steps: &[Step]) {
    let is_reshape = |step: &Step| matches!(step, Step::Reshape { .. });
    let reshapes: Vec<usize> = (0..steps.len()).filter(|step| is_reshape(&steps[*step])).collect();
    for pair in reshapes.windows(2) {
        let here = pair[0] + 1..=pair[1];
        let axes = steps[here.clone()].iter().filter_map(|step| match step {
            Step::Fft { axis, .. } => Some(*axis),
            _ => None,
        });
        let order = order(nodes[pair[0]].layout.order(), &axes.collect::<Vec<_>>());
        for node in &mut nodes[here] {
            node.layout = node.layout.clone().ordered(order).expect("a permutation");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Algorithm, Grid, Kind, Layout, Precision, Problem, ProcGrid, Recipe};

    #[test]
    fn the_contiguous_axis_stays_so() {
        // One axis, across or along; planes with it; two across.
        assert_eq!(order([0, 1, 2], &[0]), [0, 1, 2]);
        assert_eq!(order([0, 1, 2], &[1]), [1, 0, 2]);
        assert_eq!(order([2, 1, 0], &[2]), [2, 1, 0]);
        assert_eq!(order([0, 1, 2], &[2]), [0, 1, 2]);
        assert_eq!(order([0, 1, 2], &[2, 0]), [1, 0, 2]);
        assert_eq!(order([0, 1, 2], &[1, 0]), [0, 1, 2]);
        assert_eq!(order([0, 1, 2], &[]), [0, 1, 2]);
    }

    #[test]
    fn recipes_are_arranged_and_read_again() {
        let grid = Grid::new([512; 3]).unwrap();
        for (ranks, expected) in [(2, "[1x2x1]"), (4, "[1x1x4]"), (8, "[8x1x1]")] {
            let bricks = Layout::even(grid, ProcGrid::cubic(&grid, ranks), ranks);
            let problem =
                Problem::new([Kind::C2C; 3], true, Precision::F64, bricks.clone(), bricks);
            let mut problem = problem.unwrap();
            problem.access = Access::Fetched;
            problem.hosts = vec![0; ranks];
            problem.exchange = Algorithm::P2p;
            let recipe = Recipe::new(problem.clone()).unwrap();
            let text = recipe.to_string();
            assert!(text.contains(&format!("(exchange {expected} ")), "{text}");
            assert_eq!(Recipe::exact(problem.clone(), &text).unwrap(), recipe);
            let mut turned = problem.clone();
            turned.output = turned.output.ordered([2, 1, 0]).unwrap();
            let recipe = Recipe::new(turned.clone()).unwrap();
            assert_eq!(Recipe::exact(turned, &recipe.to_string()).unwrap(), recipe);
            assert!(Recipe::exact(problem, &text.replace(expected, "[7x1x1]")).is_err());
        }
    }
}
