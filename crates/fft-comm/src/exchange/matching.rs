//! Whether all ranks expect what others send to them, before anything is sent.

use fft_core::{Comm, Error, Parcel, Reduce, Traffic, agree};

use super::of_chunks;
use crate::checksum;

/// Compares what messages there are, and how long each is or can be, for its sender and for its receiver. An MPI that is sent more than
/// there is room for may end the job (Open MPI's collective does, and MPICH also with messages between pairs), and a put would go
/// beyond its place. Collective: one reduction of two numbers, and more only where there is a difference.
///
/// # Errors
/// On every rank the same: [`Error::OnRank`] of the lowest receiver in the first chunk in which ranks disagree; what the communicator
/// returns.
pub(super) fn matching(comm: &dyn Comm, traffic: &Traffic) -> Result<(), Error> {
    let sent = traffic.sends.iter().map(|sent| sum([comm.rank(), sent.peer], sent));
    let come = traffic.recvs.iter().map(|come| sum([come.peer, comm.rank()], come));
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
fn sum(ends: [usize; 2], parcel: &Parcel) -> u64 {
    let words = [ends[0], ends[1], parcel.chunk, parcel.bytes].map(|n| (n as u64).to_le_bytes());
    checksum(words.as_flattened())
}

/// Messages from one rank to another in a chunk: how many, of how many bytes in all, and their sum, in which none is like another.
type Messages = [u64; 3];

/// Finds what is different, and tells all. Collective.
fn search(comm: &dyn Comm, traffic: &Traffic) -> Result<(), Error> {
    let (rank, size) = (comm.rank(), comm.size());
    // In that, too, they may differ.
    let mut most = [traffic.chunks.max(1) as f64];
    comm.allreduce(Reduce::Max, &mut most)?;
    let chunks = most[0] as usize;
    for chunk in 0..chunks {
        let row = |parcels: &[Parcel], ends: fn(usize, usize) -> [usize; 2]| {
            let mut row: Vec<Messages> = vec![[0; 3]; size];
            for parcel in &parcels[of_chunks(parcels, chunk..chunk + 1, chunks)] {
                let [count, bytes, all] = &mut row[parcel.peer];
                (*count, *bytes) = (*count + 1, *bytes + parcel.bytes as u64);
                *all = all.wrapping_add(sum(ends(rank, parcel.peer), parcel));
            }
            row
        };
        let sent = row(&traffic.sends, |rank, peer| [rank, peer]);
        let expected = row(&traffic.recvs, |rank, peer| [peer, rank]);
        let mut all: Vec<Messages> = vec![[0; 3]; size * size];
        comm.allgather(bytemuck::cast_slice(&sent), bytemuck::cast_slice_mut(&mut all))?;
        let both = |from: usize| [all[from * size + rank], expected[from]];
        let wrong = (0..size).map(both).position(|[sent, expected]| sent != expected);
        agree(comm, wrong.map_or(Ok(()), |from| Err(differ([from, rank], both(from)))))?;
    }
    unreachable!("sums are of the same messages")
}

/// What a sender and a receiver know of their messages.
fn differ(ends: [usize; 2], messages: [Messages; 2]) -> Error {
    match messages {
        [[1, sent, _], [1, expected, _]] => differ_in_length(ends, [sent, expected]),
        _ => differ_as(
            ends,
            messages.map(|[n, bytes, all]| format!("{n} of {bytes} bytes ({all:x})")),
        ),
    }
}

/// A message is of other lengths for its sender and its receiver.
pub(super) fn differ_in_length(ends: [usize; 2], bytes: [u64; 2]) -> Error {
    differ_as(ends, bytes.map(|bytes| format!("{bytes} bytes")))
}

fn differ_as([from, to]: [usize; 2], [a, b]: [String; 2]) -> Error {
    let what = format!("message from rank {from} to rank {to}");
    Error::Disagreement { what, rank_a: from, a, rank_b: to, b }
}
