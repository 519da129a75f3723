//! Many plans over threads.

use thriffty::Comm;
use thriffty::planning::Exchange;

use crate::common::{again, plans};

/// In a process of its own, since it looks at the memory of all of it.
#[test]
fn a_thousand_plans_leave_nothing_behind_and_do_not_meet() {
    let status = again::only("plans::body").status().expect("the test's own program");
    assert!(status.success(), "{status}");
}

#[test]
#[ignore = "started by another test"]
fn body() {
    for ranks in [1, 4] {
        thriffty::threads(ranks, |world| {
            plans::come_and_go(&world, &Exchange::ALL)?;
            let part = world.split(world.rank() % 2, world.rank())?;
            plans::overlapping(&world, &part, &Exchange::ALL)
        })
        .unwrap_or_else(|error| panic!("{ranks} ranks: {error}"));
    }
}
