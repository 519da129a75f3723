//! The exchanges, which carry the messages of reshapes.

mod alltoallv;
mod hosts;
mod kway;
mod messages;
mod p2p;
mod pairwise;
mod ring;
mod rounds;

use fft_core::{Algorithm, Comm, Error, Exchange, MakeExchange, Memory, agree};

pub(crate) use pairwise::{pairwise, reserve_pairwise};

/// Makes the exchange of an algorithm on a communicator. Collective.
///
/// Both ends must agree on the size of each message. Executors compare sizes by
/// [`matching`](fft_core::matching); other callers must do so.
///
/// # Errors
/// [`Error::Argument`] for an unknown algorithm, or one that needs messages where there are none;
/// those of the communicator.
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

/// Whether ranks share slots of messages: several are on a host, with memory for all messages.
fn shares_slots(memory: Memory, comm: &dyn Comm) -> bool {
    memory != Memory::Least && comm.topology().ranks_per_host() > 1
}

fn hosts(comm: &dyn Comm) -> Result<Box<dyn Exchange>, Error> {
    match hosts::Hosts::new(comm)? {
        Some(hosts) => Ok(Box::new(hosts)),
        None => Ok(Box::new(p2p::P2p::new(Algorithm::Pipelined, comm)?)),
    }
}

/// Exchanges are in rounds of a few chunks with least memory, and where messages are forwarded.
/// Collective.
fn make(memory: Memory, algorithm: Algorithm, comm: &dyn Comm) -> Result<Box<dyn Exchange>, Error> {
    if algorithm != Algorithm::Alltoallv && !comm.has_messages() {
        let expected = "alltoallv, as this process group sends no messages between hosts";
        return Err(Error::argument("exchange", algorithm, expected));
    }
    let most = memory.rounds(algorithm);
    let inner: Box<dyn Exchange> = match algorithm {
        Algorithm::Shared | Algorithm::P2p | Algorithm::Pipelined => {
            Box::new(p2p::P2p::new(algorithm, comm)?)
        }
        Algorithm::Alltoallv => Box::new(alltoallv::Alltoallv::new(comm)?),
        Algorithm::KWay(k) => Box::new(kway::KWay::new(k, comm)?),
        Algorithm::Hosts => match shares_slots(memory, comm) {
            true => hosts(comm)?,
            false => Box::new(p2p::P2p::new(Algorithm::Pipelined, comm)?),
        },
        Algorithm::Ring(epochs) => match agree(comm, comm.window())? {
            Some(window) => return Ok(Box::new(ring::Ring::new(comm, window, epochs, most)?)),
            None => Box::new(p2p::P2p::new(Algorithm::Pipelined, comm)?),
        },
        other => return Err(Error::argument("exchange", other, "one that is known")),
    };
    let in_rounds = memory == Memory::Least || matches!(algorithm, Algorithm::KWay(_));
    Ok(if in_rounds { Box::new(rounds::Rounds::new(inner, most)) } else { inner })
}
