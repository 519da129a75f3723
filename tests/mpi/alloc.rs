//! Executing a plan allocates nothing, after the first time, with processes as ranks.

use thriffty::planning::Exchange;

use crate::allocations::{encoded, little, plain, shared};
use crate::as_rank;
use crate::common::job;

#[test]
fn execution_allocates_nothing() {
    job::must_succeed(3, "alloc::body");
}

#[test]
#[ignore = "started under mpirun by another test"]
fn body() {
    as_rank(|world, _| {
        shared(world).unwrap_or_else(|error| panic!("shared arrays: {error}"));
        for exchange in Exchange::ALL {
            plain(world, exchange).unwrap_or_else(|error| panic!("{exchange}: {error}"));
            little(world, exchange).unwrap_or_else(|error| panic!("{exchange}: {error}"));
            encoded(world, exchange).unwrap_or_else(|error| panic!("{exchange}: {error}"));
        }
    });
}
