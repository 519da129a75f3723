//! The exchanges, which carry the messages of reshapes.

mod alltoallv;
mod copies;
mod hosts;
mod kway;
mod messages;
mod p2p;
mod pairwise;
mod ring;
mod rounds;

use fft_core::{Comm, Error, Exchange, Exchanger, MakeExchanger, Memory, Pattern};

pub use copies::{bind_copy, bind_copy_by, usual_exchange};
pub(crate) use pairwise::{pairwise, reserve_pairwise};

/// Makes the exchanger that carries the messages of an exchange on a communicator. Collective.
///
/// Both ends must agree on the size of each message. Executors compare sizes by
/// [`matching`](fft_core::matching); other callers must do so.
///
/// # Errors
/// [`Error::Argument`] for an unknown exchange; [`check_messages`]' and the communicator's.
pub fn exchanger(exchange: Exchange, comm: &dyn Comm) -> Result<Box<dyn Exchanger>, Error> {
    make(Memory::Ample, exchange, comm)
}

/// [`exchanger`] for a plan with this memory; with least memory it works in rounds.
pub fn exchanger_in(memory: Memory) -> MakeExchanger<'static> {
    match memory {
        Memory::Least => &|exchange, comm| make(Memory::Least, exchange, comm),
        _ => &exchanger,
    }
}

/// Checks that the communicator has the messages that an exchange needs.
///
/// # Errors
/// [`Error::Argument`] for an exchange that needs messages, if the communicator has none.
pub fn check_messages(exchange: Exchange, comm: &dyn Comm) -> Result<(), Error> {
    if exchange == Exchange::Alltoallv || comm.has_messages() {
        return Ok(());
    }
    let expected = "alltoallv, because this process group sends no messages between hosts";
    Err(Error::argument("exchange", exchange, expected))
}

/// Exchanges are in rounds of a few chunks with least memory, and if messages are forwarded.
/// Collective.
fn make(memory: Memory, exchange: Exchange, comm: &dyn Comm) -> Result<Box<dyn Exchanger>, Error> {
    check_messages(exchange, comm)?;
    let most = exchange.pattern().rounds(memory);
    let made: Option<Box<dyn Exchanger>> = match exchange {
        Exchange::Shared | Exchange::P2p | Exchange::Pipelined => {
            Some(Box::new(p2p::P2p::new(exchange, comm)?))
        }
        Exchange::Alltoallv => Some(Box::new(alltoallv::Alltoallv::new(comm)?)),
        Exchange::KWay(k) => Some(Box::new(kway::KWay::new(k, comm)?)),
        Exchange::Hosts => hosts::make(memory, comm)?,
        Exchange::Ring(epochs) => ring::make(comm, epochs, most)?,
        other => return Err(Error::argument("exchange", other, "one that is known")),
    };
    let Some(inner) = made else { return make(memory, Exchange::Pipelined, comm) };
    let own_rounds = inner.exchange().pattern() == Pattern::Put;
    let in_rounds = memory == Memory::Least || exchange.pattern() == Pattern::Forwarded;
    Ok(if in_rounds && !own_rounds { Box::new(rounds::Rounds::new(inner, most)) } else { inner })
}
