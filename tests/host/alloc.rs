//! Executing a plan allocates nothing, after the first time, with threads as ranks.

use thriffty::planning::Exchange;
use thriffty::{C2c, Comm, Error, Kind};

use crate::allocations::{calls, check, encoded, little, plain, shared};
use crate::common::check::Case;

#[test]
fn the_counter_counts() {
    let allocate = || {
        std::hint::black_box(vec![1u8; 100]);
        std::hint::black_box(Box::new(1u8));
        Ok(())
    };
    assert_eq!(calls(allocate), Ok(2));
}

/// Data so large that it is sent in chunks, a few of which are under way at once.
fn large(comm: &dyn Comm, exchange: Exchange) -> Result<(), Error> {
    let case = Case::new([132, 64, 63], [Kind::C2C; 3]).exchange(exchange);
    check::<C2c<f64>, 3>(comm, &case)?;
    check::<C2c<f64>, 3>(comm, &case.tiling(5))
}

#[test]
fn execution_allocates_nothing() {
    for ranks in [1, 2, 4, 6, 9] {
        for exchange in Exchange::ALL {
            thriffty::threads(ranks, |comm| plain(&comm, exchange))
                .unwrap_or_else(|error| panic!("{ranks} ranks: {error}"));
        }
    }
}

#[test]
fn nor_does_it_in_shared_arrays() {
    for ranks in [1, 2, 4] {
        thriffty::threads(ranks, |comm| shared(&comm)).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn nor_does_it_of_large_data() {
    for exchange in [Exchange::P2p, Exchange::Alltoallv] {
        thriffty::threads(2, |comm| large(&comm, exchange))
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn nor_does_it_in_little_memory() {
    for ranks in [2, 3, 6] {
        for exchange in Exchange::ALL {
            thriffty::threads(ranks, |comm| little(&comm, exchange))
                .unwrap_or_else(|error| panic!("{ranks} ranks: {error}"));
        }
    }
}

#[test]
fn nor_does_it_with_encoded_messages() {
    for exchange in Exchange::ALL {
        thriffty::threads(4, |comm| encoded(&comm, exchange))
            .unwrap_or_else(|error| panic!("{error}"));
    }
}
