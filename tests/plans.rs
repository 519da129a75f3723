//! Many plans over threads.
//!
//! One test by itself in its program: it looks at the memory of the whole process.

mod common;

use common::plans;
use thriffty::Algorithm;

#[test]
fn a_thousand_plans_leave_nothing_behind_and_do_not_meet() {
    for ranks in [1, 4, 6] {
        thriffty::threads(ranks, |world| {
            plans::come_and_go(&world, &Algorithm::ALL)?;
            plans::overlapping(&world, &Algorithm::ALL)
        })
        .unwrap_or_else(|error| panic!("{ranks} ranks: {error}"));
    }
}
