//! Copies between arrays, bound to an exchange.

use fft_core::{Comm, CopyPlan, Error, Exchange, ParallelCopy, agree, assert_same};

use super::exchanger;

/// Binds a plan to the host. Collective, over the same ranks.
///
/// # Errors
/// The errors of [`ParallelCopy::new`].
pub fn bind_copy(comm: &dyn Comm, plan: CopyPlan) -> Result<ParallelCopy, Error> {
    bind_copy_by(comm, usual_exchange(comm), plan)
}

/// Messages between pairs, if the communicator has them.
pub fn usual_exchange(comm: &dyn Comm) -> Exchange {
    if comm.has_messages() { Exchange::P2p } else { Exchange::Alltoallv }
}

/// As [`bind_copy`], with messages sent by an exchange. Collective.
///
/// # Errors
/// The errors of [`ParallelCopy::new`]; [`Error::Argument`] for an exchange that does not exist;
/// [`Error::Disagreement`] when ranks name different ones.
pub fn bind_copy_by(
    comm: &dyn Comm,
    exchange: Exchange,
    plan: CopyPlan,
) -> Result<ParallelCopy, Error> {
    assert_same(comm, &[("exchange of a copy", exchange.to_string())])?;
    let own = agree(comm, comm.dup())?;
    let exchange = agree(comm, exchanger(exchange, own.as_ref()))?;
    ParallelCopy::new(own, exchange, plan)
}
