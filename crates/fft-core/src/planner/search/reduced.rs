//! The cost of systems along an axis that ranks divide.

use super::{Costs, State};
use crate::codec::Wire;
use crate::geometry::Layout;
use crate::planner::cost::Order;
use crate::planner::volume::Volume;
use crate::problem::Exchange;

/// Bytes of a number in the rows of reduced systems.
const NUMBER: f64 = 8.0;
/// Passes over memory in the time that the second elimination takes, which reads rows that are far
/// apart: `benches/records/2026-12-01-xeon-reduced.txt`.
const PASSES: f64 = 2.0;

impl Costs<'_> {
    /// Half of the time that a solve takes longer than along whole lines: a second elimination, and
    /// two exchanges of rows and solutions for each array of a batch.
    ///
    /// The inverse transform pays for the other half, as it pays for a reshape from whole lines.
    pub(super) fn half_of_reduced(&self, state: State, axis: usize) -> f64 {
        let (search, model) = (self.search, self.model);
        let divided = search.row_major(state).filter(|layout| !layout.is_whole(axis));
        let Some(layout) = divided else { return 0.0 };
        let [near, far] = peers(layout, axis, |rank| search.hosts.host_of(rank));
        let modes = layout.most_points() as f64 / layout.longest(axis) as f64;
        let share = modes / (1.0 + near + far);
        let exchange = |numbers: f64| {
            let load = Volume {
                held: modes,
                own: share,
                near: near * share,
                far: far * share,
                mean: far * share,
                host: far * share * search.hosts.ranks_per_host() as f64,
                near_messages: 2.0 * near,
                far_messages: 2.0 * far,
            };
            let (element, wire, exchange) = (numbers * NUMBER, Wire::Raw, Exchange::P2p);
            let order =
                Order { load, element, share: 1.0, wire, exchange, chunk: None, rounds: 1.0 };
            // As in the first search, what leaves hosts has double weight.
            let network = model.network(load.mean * element);
            model.reshape(&order).seconds() + network + 2.0 * model.agreement()
        };
        let width = if search.problem.complex_spectrum() { 2.0 } else { 1.0 };
        let exchanges = exchange(2.0 * width + 4.0) + exchange(2.0 * width);
        let bytes = layout.most_points() as f64 * search.element(state.done.0) as f64;
        let elimination = PASSES * model.pass(bytes);
        let batch = search.problem.batch as f64;
        0.5 * (model.agreement() + batch * exchanges + elimination)
    }
}

/// The other ranks with the modes of rank 0: of its host, and of other hosts.
fn peers(layout: &Layout, axis: usize, host: impl Fn(usize) -> usize) -> [f64; 2] {
    let mut lines = layout.brick(0);
    (lines.lo[axis], lines.hi[axis]) = (0, layout.grid().len(axis));
    let mut peers = [0.0; 2];
    layout.intersections(&lines, |rank, _| {
        if rank > 0 {
            peers[usize::from(host(rank) != host(0))] += 1.0;
        }
    });
    peers
}
