//! The ways messages travel. They differ in the order of a few calls; memory, and which message is for which receive,
//! are the flight's.

mod alltoallv;
mod kway;
mod p2p;
mod ring;
mod rounds;

use std::ops::Range;

use fft_core::{
    Algorithm, Comm, Error, Exchange, Flight, MakeExchange, Memory, MessageSpec, Parts, RmaWindow,
    Slot, agree,
};

/// Makes the exchange of an algorithm on a communicator. Collective.
///
/// Ranks must expect what others send. Executors make sure of that; who uses an exchange without one does so by
/// [`matching`](fft_core::matching):
///
/// ```
/// use fft_core::{Comm, MessageSpec, MessagePlan, matching};
///
/// let errors = fft_comm::threads(2, |comm| {
///     let (rank, peer) = (comm.rank(), 1 - comm.rank());
///     let spec = |bytes| vec![MessageSpec { peer, bytes, chunk: 0 }];
///     // Rank 1 expects less than rank 0 sends.
///     let message_plan = MessagePlan { sends: spec(64), recvs: spec(64 - 8 * rank), ..MessagePlan::default() };
///     matching(&comm, [&message_plan]).unwrap_err().to_string()
/// });
/// let expected = "the ranks disagree on the message from rank 0 to rank 1: rank 0 has 64 bytes, rank 1 has 56 bytes";
/// assert_eq!(errors, [expected; 2]);
/// ```
///
/// # Errors
/// [`Error::Argument`] for an algorithm that this communicator does not have; what the communicator returns.
pub fn exchange(algorithm: Algorithm, comm: &dyn Comm) -> Result<Box<dyn Exchange>, Error> {
    match algorithm {
        Algorithm::Shared | Algorithm::P2p | Algorithm::Pipelined => {
            Ok(Box::new(p2p::P2p::new(algorithm, comm)?))
        }
        Algorithm::Alltoallv => Ok(Box::new(alltoallv::Alltoallv::new(comm)?)),
        Algorithm::KWay(_) => in_rounds(Memory::Ample, algorithm, comm),
        Algorithm::Ring(epochs) => Ok(match window(comm)? {
            Some(puts) => {
                let most = Memory::Ample.rounds(algorithm);
                Box::new(ring::Ring::new(comm, puts, epochs, most)?)
            }
            None => Box::new(p2p::P2p::new(Algorithm::Pipelined, comm)?),
        }),
        other => Err(Error::argument("exchange", other, "one of Algorithm::ALL")),
    }
}

/// What makes the exchanges of a plan with so much memory, which its recipe was made for: [`exchange`], or the same in rounds.
pub fn exchange_in(memory: Memory) -> MakeExchange<'static> {
    match memory {
        Memory::Least => &|algorithm, comm| in_rounds(Memory::Least, algorithm, comm),
        _ => &exchange,
    }
}

/// In rounds, each with messages of a few chunks: it has memory for those of one, and keeps none until all have come, unless a
/// message_plan is to have memory for all at once. Of exchanges with one message to a rank, each chunk is a round. Collective.
fn in_rounds(
    memory: Memory,
    algorithm: Algorithm,
    comm: &dyn Comm,
) -> Result<Box<dyn Exchange>, Error> {
    let most = memory.rounds(algorithm);
    let inner: Box<dyn Exchange> = match algorithm {
        Algorithm::KWay(k) => Box::new(kway::KWay::new(k, comm)?),
        Algorithm::Ring(epochs) => match window(comm)? {
            Some(puts) => return Ok(Box::new(ring::Ring::new(comm, puts, epochs, most)?)),
            None => exchange(Algorithm::Pipelined, comm)?,
        },
        _ => exchange(algorithm, comm)?,
    };
    Ok(Box::new(rounds::Rounds::new(inner, most)))
}

/// Memory to put into, where ranks can. Collective.
fn window(comm: &dyn Comm) -> Result<Option<Box<dyn RmaWindow>>, Error> {
    agree(comm, comm.window())
}

/// The messages of these chunks of so many, the last of which has all that are behind it.
fn of_chunks(specs: &[MessageSpec], chunks: Range<usize>, all: usize) -> Range<usize> {
    let before = |chunk| specs.partition_point(|spec| spec.chunk.min(all - 1) < chunk);
    before(chunks.start)..before(chunks.end)
}

/// A slot for a message. Where there is no memory for it, which is remembered, an empty one to be sent in its place: its
/// receiver knows nothing of that, and waits for a message.
fn slot(
    flight: &mut dyn Flight,
    bytes: usize,
    lacked: &mut Result<(), Error>,
) -> Result<Slot, Error> {
    flight.slot(bytes).or_else(|error| {
        *lacked = lacked.clone().and(Err(error));
        flight.slot(0)
    })
}

/// The collective in terms of pairs, for ranks that have no better one.
/// Peers are taken in rotation, so that not all aim at the same one.
pub(crate) fn pairwise(
    rank: usize,
    flight: &mut dyn Flight,
    send: Parts<'_, &[u8]>,
    recv: Parts<'_, &mut [u8]>,
) -> Result<(), Error> {
    let ranks = send.parts.len();
    let sources = (1..ranks).map(|k| (rank + ranks - k) % ranks).filter(|&r| recv.parts[r].1 > 0);
    for from in sources.clone() {
        flight.post_recv(from, recv.parts[from].1)?;
    }
    let mut result = Ok(());
    for to in (1..ranks).map(|k| (rank + k) % ranks) {
        let (first, bytes) = send.parts[to];
        if bytes > 0 {
            let mut slot = slot(flight, bytes, &mut result)?;
            let len = slot.len();
            slot.bytes_mut().copy_from_slice(&send.bytes[first..first + len]);
            flight.send(to, bytes, slot)?;
        }
    }
    let ((from, bytes), (to, expected)) = (send.parts[rank], recv.parts[rank]);
    let fits = check(rank, rank, bytes, expected);
    if fits.is_ok() {
        recv.bytes[to..to + bytes].copy_from_slice(&send.bytes[from..from + bytes]);
    }
    result = result.and(fits);
    while let Some(arrival) = flight.wait_any()? {
        let from = sources.clone().nth(arrival.number).expect("one arrival per announcement");
        let ((first, expected), message) = (recv.parts[from], arrival.message.bytes());
        let fits = check(rank, from, message.len(), expected);
        if fits.is_ok() {
            recv.bytes[first..first + expected].copy_from_slice(message);
        }
        result = result.and(fits);
        flight.recycle(arrival);
    }
    result.and(flight.wait_all())
}

fn check(rank: usize, from: usize, found: usize, expected: usize) -> Result<(), Error> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::Message { rank, from, found, expected }),
    }
}
