//! `MPI_Alltoallv` out of messages between pairs.

use fft_core::{Error, Flight, Part, Parts};

use super::messages::slot_or_empty;

/// Allocates the buffers of [`pairwise`] with these parts. Returns the bytes of the flight.
pub(crate) fn reserve_pairwise(
    rank: usize,
    flight: &mut dyn Flight,
    send: &[Part],
    recv: &[Part],
) -> Result<usize, Error> {
    let others = |parts: &[Part]| -> Vec<usize> {
        let there = |(peer, part): (usize, &Part)| (peer != rank).then_some(part.1);
        parts.iter().enumerate().filter_map(there).filter(|&bytes| bytes > 0).collect()
    };
    flight.reserve(&others(send), &others(recv))?;
    Ok(flight.memory())
}

/// The collective by messages between pairs, for communicators that have no better one. Peers are
/// taken in rotation, so that not all ranks send to the same one.
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
            let mut slot = slot_or_empty(flight, bytes, &mut result)?;
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
    if found == expected { Ok(()) } else { Err(Error::Message { rank, from, found, expected }) }
}
