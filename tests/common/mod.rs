//! What the tests share: data, an oracle, random tilings, and checks that run on any communicator.
#![allow(dead_code, reason = "every test binary uses its own part of what is shared")]

pub(crate) mod again;
pub(crate) mod arrays;
pub(crate) mod beyond;
pub(crate) mod cases;
pub(crate) mod check;
pub(crate) mod data;
pub(crate) mod failures;
pub(crate) mod faulty;
pub(crate) mod injected;
#[cfg(feature = "mpi")]
pub(crate) mod job;
pub(crate) mod little;
pub(crate) mod lossy;
pub(crate) mod oracle;
pub(crate) mod plans;
pub(crate) mod tiling;
pub(crate) mod unequal;
pub(crate) mod weak;

/// Rank counts: one, even and odd, a prime, and one whose factors differ.
pub(crate) const RANKS: [usize; 5] = [1, 2, 3, 4, 6];
