//! Code that the tests share: data, an oracle, random tilings, and checks that run on any
//! communicator.
#![allow(dead_code, reason = "every test binary uses its own part of what is shared")]

pub(crate) mod again;
pub(crate) mod arrays;
pub(crate) mod beyond;
pub(crate) mod cases;
pub(crate) mod check;
pub(crate) mod data;
pub(crate) mod equation;
pub(crate) mod failures;
pub(crate) mod faulty;
pub(crate) mod injected;
#[cfg(feature = "mpi")]
pub(crate) mod job;
pub(crate) mod leaving;
pub(crate) mod little;
pub(crate) mod lossy;
pub(crate) mod message_buffers;
pub(crate) mod one_axis;
pub(crate) mod operators;
pub(crate) mod oracle;
pub(crate) mod plan_cache;
pub(crate) mod plans;
pub(crate) mod same_result;
pub(crate) mod stencils;
pub(crate) mod tiling;
pub(crate) mod unequal;
pub(crate) mod weak;

use thriffty::{Comm, Error, ThreadComm};

/// Rank counts: one, even and odd, a prime, and one whose factors differ.
pub(crate) const RANKS: [usize; 5] = [1, 2, 3, 4, 6];

/// Hosts of ranks, some of which share memory.
pub(crate) const HOSTS: [&[usize]; 4] = [&[0, 1], &[0, 0, 1], &[1, 0, 1, 0], &[0, 0, 2, 2, 2, 1]];

/// Runs a check with threads as ranks, for each rank count.
pub(crate) fn on_all_ranks(body: fn(&dyn Comm) -> Result<(), Error>) {
    for ranks in RANKS {
        thriffty::threads(ranks, |comm| body(&comm))
            .unwrap_or_else(|error| panic!("{ranks} ranks: {error}"));
    }
}

/// Runs a check with threads as ranks on these hosts.
pub(crate) fn on_hosts(hosts: &[usize], body: impl Fn(ThreadComm) -> Result<(), Error> + Sync) {
    for found in fft_comm::threads_on(hosts, body) {
        found.unwrap_or_else(|error| panic!("{hosts:?}: {error}"));
    }
}
