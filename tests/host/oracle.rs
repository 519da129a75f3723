//! Every transform against its definition, with threads as ranks.

use crate::common::{RANKS, beyond, cases};
use thriffty::{Comm, Error};

fn on_all_ranks(body: fn(&dyn Comm) -> Result<(), Error>) {
    for ranks in RANKS {
        thriffty::threads(ranks, |comm| body(&comm))
            .unwrap_or_else(|e| panic!("{ranks} ranks: {e}"));
    }
}

#[test]
fn one_axis() {
    on_all_ranks(cases::one_axis);
}

#[test]
fn two_axes() {
    on_all_ranks(cases::two_axes);
}

#[test]
fn three_axes() {
    on_all_ranks(cases::three_axes);
}

#[test]
fn many_neighbours() {
    on_all_ranks(cases::many_neighbours);
}

#[test]
fn large_planes() {
    on_all_ranks(cases::large_planes);
}

#[test]
fn more_than_caches_hold() {
    on_all_ranks(beyond::all);
}

#[test]
fn four_axes() {
    on_all_ranks(cases::four_axes);
}

#[test]
fn random_tilings() {
    on_all_ranks(cases::random_tilings);
}

/// Some ranks share memory and others do not: both kinds of links in one exchange.
#[test]
fn several_hosts() {
    for hosts in [&[0, 1][..], &[0, 0, 1], &[1, 0, 1, 0], &[0, 0, 2, 2, 2, 1]] {
        for body in [cases::three_axes, cases::random_tilings] {
            let found = fft_comm::threads_on(hosts, |comm| body(&comm));
            found
                .into_iter()
                .collect::<Result<Vec<()>, _>>()
                .unwrap_or_else(|e| panic!("{hosts:?}: {e}"));
        }
    }
}
