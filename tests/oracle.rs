//! Every transform against its definition, with threads as ranks.

mod common;

use common::{RANKS, cases};
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
fn four_axes() {
    on_all_ranks(cases::four_axes);
}

#[test]
fn random_tilings() {
    on_all_ranks(cases::random_tilings);
}
