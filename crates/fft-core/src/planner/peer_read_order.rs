//! Orders of axes in memory for transforms that read from other ranks, on devices.
//!
//! The first transform after a reshape reads its elements from peers. Adjacent threads should read
//! adjacent elements, so the contiguous axis stays contiguous. A single transformed axis becomes
//! the slowest, because a device transforms all its lines at once. If two strided axes are
//! transformed, the device reorders them itself.

use crate::geometry::PerAxis;
use crate::recipe::{Node, Step};

/// The time of reading or storing complex data in peers, relative to a pass.
pub(crate) const SHARE: f64 = 0.1;

/// The order of axes after a reshape from the order `before`, for transforms along `axes`.
pub(crate) fn order(before: PerAxis<usize>, axes: &[usize]) -> PerAxis<usize> {
    let last = before.contiguous();
    let Some((&first, others)) = axes.split_first() else { return before };
    let mut order = before;
    // The sort is stable: equal entries keep their order.
    match others.last() {
        _ if axes.contains(&last) => order.sort_by_key(|axis| (*axis == last, axes.contains(axis))),
        None => order.sort_by_key(|axis| *axis != first),
        Some(_) => {}
    }
    order
}

/// Whether the transforms along `axes` can read an output in this order from peers.
pub(crate) fn suits(output: PerAxis<usize>, axes: &[usize]) -> bool {
    order(output, axes) == output
}

/// Sets the orders of layouts between reshapes.
pub(crate) fn arrange(nodes: &mut [Node], steps: &[Step]) {
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
    use crate::base::Precision;
    use crate::geometry::{DynGrid, Layout, ProcGrid};
    use crate::problem::Exchange;
    use crate::problem::{Access, Kind, Problem};
    use crate::recipe::Recipe;

    #[test]
    fn the_contiguous_axis_stays_so() {
        // One axis, strided or contiguous; planes with the contiguous axis; two strided axes.
        assert_eq!(order([0, 1, 2].into(), &[0]), [0, 1, 2]);
        assert_eq!(order([0, 1, 2].into(), &[1]), [1, 0, 2]);
        assert_eq!(order([2, 1, 0].into(), &[2]), [2, 1, 0]);
        assert_eq!(order([0, 1, 2].into(), &[2]), [0, 1, 2]);
        assert_eq!(order([0, 1, 2].into(), &[2, 0]), [1, 0, 2]);
        assert_eq!(order([0, 1, 2].into(), &[1, 0]), [0, 1, 2]);
        assert_eq!(order([0, 1, 2].into(), &[]), [0, 1, 2]);
    }

    #[test]
    fn recipes_are_arranged_and_read_again() {
        let grid = DynGrid::new([512; 3]).unwrap();
        for (ranks, expected) in [(2, "[1x2x1]"), (4, "[1x1x4]"), (8, "[8x1x1]")] {
            let bricks = Layout::even(grid, ProcGrid::cubic(grid, ranks), ranks);
            let problem =
                Problem::new([Kind::C2C; 3], true, Precision::F64, bricks.clone(), bricks);
            let mut problem = problem.unwrap();
            problem.options.access = Access::Fetched;
            problem.hosts = vec![0; ranks];
            problem.options.exchange = Exchange::P2p;
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

    #[test]
    fn real_data_is_not_moved_where_complex_data_is_fetched_and_stored() {
        let kinds = [Kind::C2C, Kind::C2C, Kind::R2C];
        let real = DynGrid::new([512; 3]).unwrap();
        let even = |grid: DynGrid| Layout::even(grid, ProcGrid::cubic(grid, 2), 2);
        let (input, output) = (even(real), even(Problem::spectral_grid(real, kinds)));
        let mut problem = Problem::new(kinds, false, Precision::F64, input, output).unwrap();
        (problem.hosts, problem.options.exchange) = (vec![0; 2], Exchange::P2p);
        // Real data is slightly smaller.
        let text = Recipe::new(problem.clone()).unwrap().to_string();
        assert!(text.contains("[2x1x1] (exchange [1x2x1] p2p raw) (r2c z)"), "{text}");
        problem.options.access = Access::Fetched;
        let text = Recipe::new(problem).unwrap().to_string();
        let steps = "(r2c z) (fft y) (exchange [1x2x1] p2p raw) (fft x)";
        assert!(text.contains(steps), "{text}");
        assert!(text.ends_with("(exchange [2x1x1] p2p raw))"), "{text}");
    }

    #[test]
    fn recipes_with_any_order_of_axes_at_the_ends_are_read_again() {
        use Kind::{C2C, R2C};
        const ORDERS: [[usize; 3]; 6] =
            [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        const SHAPES: [[usize; 3]; 5] = [[2, 1, 1], [1, 2, 1], [1, 1, 2], [2, 2, 1], [1, 2, 2]];
        let grid = DynGrid::new([12, 10, 8]).unwrap();
        for kinds in [[C2C; 3], [Kind::None, C2C, C2C], [C2C, C2C, R2C], [R2C, Kind::None, C2C]] {
            let spectral = Problem::spectral_grid(grid, kinds);
            let recipe = |(from, first): ([usize; 3], _), (to, last): ([usize; 3], _)| {
                let ranks = from.iter().product();
                let even = |grid, shape, order| {
                    Layout::even(grid, ProcGrid::new(shape), ranks).ordered(order).unwrap()
                };
                let ends = (even(grid, from, first), even(spectral, to, last));
                let complex = spectral == grid;
                let problem = Problem::new(kinds, complex, Precision::F64, ends.0, ends.1);
                let mut problem = problem.unwrap();
                (problem.options.access, problem.hosts) = (Access::Fetched, vec![0; ranks]);
                problem.options.exchange = Exchange::P2p;
                let recipe = Recipe::new(problem.clone()).unwrap();
                assert_eq!(Recipe::exact(problem, &recipe.to_string()).unwrap(), recipe);
            };
            let all = || SHAPES.into_iter().flat_map(|shape| ORDERS.map(|order| (shape, order)));
            for (from, to) in all().flat_map(|from| all().map(move |to| (from, to))) {
                if from.0.iter().product::<usize>() == to.0.iter().product() {
                    recipe(from, to);
                }
            }
        }
    }

    #[test]
    fn what_the_output_has_across_is_not_fetched_there() {
        assert!(
            suits([0, 1, 2].into(), &[])
                && suits([0, 1, 2].into(), &[0])
                && suits([1, 0, 2].into(), &[1])
        );
        assert!(!suits([0, 1, 2].into(), &[1]) && !suits([1, 0, 2].into(), &[2, 1]));
    }
}
