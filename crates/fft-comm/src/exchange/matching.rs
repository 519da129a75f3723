//! Whether all ranks expect what others send to them, before anything is sent.

use fft_core::{Comm, Error, Parcel, Reduce, Traffic, agree};

use super::of_chunks;
use crate::checksum;

/// Compares how long each message is for its sender and for its receiver, or can be. An MPI that is sent more than there is room
/// for may end the job (Open MPI's collective does, and MPICH also with messages between pairs), and a put would go beyond its place. Collective: one reduction of two numbers, and more only where there is a difference.
///
/// # Errors
/// On every rank the same: [`Error::OnRank`] of the lowest receiver in the first chunk in which ranks disagree; what the communicator
/// returns.
pub(super) fn matching(comm: &dyn Comm, traffic: &Traffic) -> Result<(), Error> {
    let sent = traffic.sends.iter().map(|sent| sum(traffic, [comm.rank(), sent.peer], sent));
    let come = traffic.recvs.iter().map(|come| sum(traffic, [come.peer, comm.rank()], come));
    let more = sent.fold(0, u64::wrapping_add);
    let more = come.fold(more, u64::wrapping_sub);
    // In halves, of which sums over all ranks are exact.
    let mut halves = [more as u32, (more >> 32) as u32].map(f64::from);
    comm.allreduce(Reduce::Sum, &mut halves)?;
    let [low, high] = halves.map(|half| half as u64);
    match low.wrapping_add(high << 32) {
        0 => Ok(()),
        _ => search(comm, traffic),
    }
}

/// What a message adds to the sum of its sender, and takes from that of its receiver.
fn sum(traffic: &Traffic, ends: [usize; 2], parcel: &Parcel) -> u64 {
    let chunk = parcel.chunk.min(traffic.chunks.max(1) - 1);
    let words = [ends[0], ends[1], chunk, parcel.bytes].map(|word| (word as u64).to_le_bytes());
    // One that is empty is as good as none.
    if parcel.bytes == 0 { 0 } else { checksum(words.as_flattened()) }
}

/// Finds what is different, and tells all. Collective.
fn search(comm: &dyn Comm, traffic: &Traffic) -> Result<(), Error> {
    let (rank, size, chunks) = (comm.rank(), comm.size(), traffic.chunks.max(1));
    for chunk in 0..chunks {
        let row = |parcels: &[Parcel]| {
            let mut row = vec![0u64; size];
            let here = &parcels[of_chunks(parcels, chunk..chunk + 1, chunks)];
            here.iter().for_each(|parcel| row[parcel.peer] += parcel.bytes as u64);
            row
        };
        let (sent, expected) = (row(&traffic.sends), row(&traffic.recvs));
        let mut all = vec![0u64; size * size];
        comm.allgather(bytemuck::cast_slice(&sent), bytemuck::cast_slice_mut(&mut all))?;
        let sent = |from: usize| all[from * size + rank];
        let wrong = (0..size).find(|&from| sent(from) != expected[from]);
        let bytes = |from: usize| [sent(from), expected[from]];
        agree(comm, wrong.map_or(Ok(()), |from| Err(differ([from, rank], bytes(from)))))?;
    }
    Ok(())
}

/// A message is of other lengths for its sender and its receiver.
pub(super) fn differ([from, to]: [usize; 2], bytes: [u64; 2]) -> Error {
    let what = format!("message from rank {from} to rank {to}");
    let [a, b] = bytes.map(|bytes| format!("{bytes} bytes"));
    Error::Disagreement { what, rank_a: from, a, rank_b: to, b }
}
