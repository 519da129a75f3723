//! The exchanges, which carry the messages of reshapes.

mod alltoallv;
mod hosts;
mod kway;
mod messages;
mod p2p;
mod pairwise;
mod ring;
mod rounds;

use fft_core::{Algorithm, Comm, Error, Exchange, MakeExchange, Memory, Travel};

pub(crate) use pairwise::{pairwise, reserve_pairwise};

/// Makes the exchange of an algorithm on a communicator. Collective.
///
/// Both ends must agree on the size of each message. Executors compare sizes by
/// [`matching`](fft_core::matching); other callers must do so.
///
/// # Errors
/// [`Error::Argument`] for an unknown algorithm; [`check_messages`]' and the communicator's.
pub fn exchange(algorithm: Algorithm, comm: &dyn Comm) -> Result<Box<dyn Exchange>, Error> {
    make(Memory::Ample, algorithm, comm)
}

/// The exchanges of a plan with this memory: [`exchange`], or with least memory the same in rounds.
pub fn exchange_in(memory: Memory) -> MakeExchange<'static> {
    match memory {
        Memory::Least => &|algorithm, comm| make(Memory::Least, algorithm, comm),
        _ => &exchange,
    }
}

/// Checks that the communicator has the messages that an algorithm needs.
///
/// # Errors
/// [`Error::Argument`] for one that needs messages where there are none.
pub fn check_messages(algorithm: Algorithm, comm: &dyn Comm) -> Result<(), Error> {
    if algorithm == Algorithm::Alltoallv || comm.has_messages() {
        return Ok(());
    }
    let expected = "alltoallv, because this process group sends no messages between hosts";
    Err(Error::argument("exchange", algorithm, expected))
}

/// Exchanges are in rounds of a few chunks with least memory, and where messages are forwarded.
/// Collective.
fn make(memory: Memory, algorithm: Algorithm, comm: &dyn Comm) -> Result<Box<dyn Exchange>, Error> {
    check_messages(algorithm, comm)?;
    let most = algorithm.travel().rounds(memory);
    let made: Option<Box<dyn Exchange>> = match algorithm {
        Algorithm::Shared | Algorithm::P2p | Algorithm::Pipelined => {
            Some(Box::new(p2p::P2p::new(algorithm, comm)?))
        }
        Algorithm::Alltoallv => Some(Box::new(alltoallv::Alltoallv::new(comm)?)),
        Algorithm::KWay(k) => Some(Box::new(kway::KWay::new(k, comm)?)),
        Algorithm::Hosts => hosts::make(memory, comm)?,
        Algorithm::Ring(epochs) => ring::make(comm, epochs, most)?,
        other => return Err(Error::argument("exchange", other, "one that is known")),
    };
    let Some(inner) = made else { return make(memory, Algorithm::Pipelined, comm) };
    let own_rounds = inner.algorithm().travel() == Travel::Put;
    let in_rounds = memory == Memory::Least || algorithm.travel() == Travel::Forwarded;
    Ok(if in_rounds && !own_rounds { Box::new(rounds::Rounds::new(inner, most)) } else { inner })
}
