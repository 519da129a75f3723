//! A cache of plans over threads.

use thriffty::planning::PlanCache;
use thriffty::{Comm, Error};

use crate::common::{on_all_ranks, plan_cache};
use crate::watch::within_patience;

#[test]
fn the_plans_that_were_used_last_are_kept() {
    on_all_ranks(plan_cache::capacity);
}

#[test]
fn drafts_of_other_types_and_options_have_other_plans() {
    on_all_ranks(plan_cache::types);
}

fn on_several_ranks(name: &'static str, body: fn(&dyn Comm) -> Result<(), Error>) {
    for ranks in [2, 3, 4, 6] {
        within_patience(name, move || thriffty::threads(ranks, |comm| body(&comm)))
            .unwrap_or_else(|error| panic!("{name}, {ranks} ranks: {error}"));
    }
}

#[test]
fn another_brick_of_one_rank_plans_anew_on_all() {
    on_several_ranks("bricks", plan_cache::bricks);
}

#[test]
fn errors_are_those_of_all_ranks_and_leave_the_plans() {
    on_several_ranks("errors", plan_cache::errors);
}

#[test]
fn a_rank_that_leaves_is_an_error_for_those_that_find_a_plan() {
    let found = within_patience("leaving", || {
        fft_comm::threads(3, |world| {
            let draft = || thriffty::c2c(&world, [12, 10]);
            let mut plans = PlanCache::new(&world, 4)?;
            plans.plan(draft())?;
            if world.rank() == 1 {
                return Ok(());
            }
            plans.plan(draft()).map(drop)
        })
    });
    let left = Err(Error::Left { gone: 1 });
    assert_eq!(found, [left.clone(), Ok(()), left]);
}
