//! Transforms against their definition, with threads as ranks.

use crate::common::{HOSTS, beyond, cases, on_all_ranks, on_hosts};

/// A test per check, on all rank counts.
macro_rules! on_all_ranks {
    ($($name:ident: $check:path),* $(,)?) => {$(
        #[test]
        fn $name() {
            on_all_ranks($check);
        }
    )*};
}

on_all_ranks! {
    one_axis: cases::one_axis,
    two_axes: cases::two_axes,
    three_axes: cases::three_axes,
    many_neighbours: cases::many_neighbours,
    large_planes: cases::large_planes,
    more_than_caches_hold: beyond::all,
    four_axes: cases::four_axes,
    random_tilings: cases::random_tilings,
}

/// Some ranks share memory and others do not: both kinds of links in one exchange.
#[test]
fn several_hosts() {
    for (number, hosts) in HOSTS.into_iter().enumerate() {
        let body = [cases::three_axes, cases::random_tilings][number % 2];
        on_hosts(hosts, |comm| body(&comm));
    }
}
