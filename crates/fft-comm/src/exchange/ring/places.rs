//! Where messages are put, and in which order: pure arithmetic.

use fft_core::{Comm, Parcel, SLOT_ALIGN, Traffic, by_host};

/// Where a rank is among the others.
pub(super) struct Stand {
    /// The host of each rank.
    hosts: Vec<usize>,
    /// This rank's host, and how many ranks of it come before this one.
    here: [usize; 2],
}

impl Stand {
    pub(super) fn new(comm: &dyn Comm) -> Self {
        let hosts: Vec<_> = (0..comm.size()).map(|rank| comm.host(rank)).collect();
        let home = hosts[comm.rank()];
        let place = hosts[..comm.rank()].iter().filter(|host| **host == home).count();
        Self { hosts, here: [home, place] }
    }
}

/// The messages of one epoch: their numbers, and where the slot of each begins among those of the same pair of ranks.
#[derive(Clone, Default)]
pub(super) struct Round {
    pub(super) sends: Vec<(usize, usize)>,
    pub(super) recvs: Vec<(usize, usize)>,
}

/// Before each message: how long it is, and in which epoch it was put.
pub(super) const HEADER: usize = SLOT_ALIGN;

/// Bytes that a message of at most so many takes with its header.
fn slot(bytes: usize) -> usize {
    bytes.saturating_add(HEADER + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN
}

/// Bytes that a message of a traffic takes in the window: no more than its header where it lies in a berth.
pub(super) fn taken(traffic: &Traffic, parcel: &Parcel) -> usize {
    slot(if traffic.berths.is_some() { 0 } else { parcel.bytes })
}

/// The messages of a traffic in rounds, so many at most: the same rounds on all ranks.
pub(super) fn rounds(traffic: &Traffic, stand: &Stand, most: usize) -> Vec<Round> {
    let chunks = traffic.chunks.max(1);
    let mut rounds = vec![Round::default(); chunks.min(most)];
    let of = |parcel: &Parcel| parcel.chunk.min(chunks - 1) * most.min(chunks) / chunks;
    let mut place = |parcels: &[Parcel], side: fn(&mut Round) -> &mut Vec<(usize, usize)>| {
        let mut ends = vec![vec![0usize; stand.hosts.len()]; rounds.len()];
        for (number, parcel) in parcels.iter().enumerate() {
            let end = &mut ends[of(parcel)][parcel.peer];
            side(&mut rounds[of(parcel)]).push((number, *end));
            *end = end.saturating_add(taken(traffic, parcel));
        }
    };
    place(&traffic.sends, |round| &mut round.sends);
    place(&traffic.recvs, |round| &mut round.recvs);
    for round in &mut rounds {
        let parcel = |&(number, _): &(usize, usize)| traffic.sends[number];
        let chunks = round.sends.chunk_by(|a, b| parcel(a).chunk == parcel(b).chunk);
        let turned = |sends: &[_]| {
            by_host(sends.to_vec(), |send| parcel(send).peer, |rank| stand.hosts[rank], stand.here)
        };
        round.sends = chunks.flat_map(turned).collect();
    }
    rounds
}

/// Finds a place for the slots of each peer, such that no two that meet in any of these lists of messages overlap: one
/// peer's after the other's in every list, those in most lists first. Returns the bytes that they take.
pub(super) fn place(lists: &[&[Parcel]], places: &mut [usize]) -> usize {
    // (lists it is in, peer, bytes)
    let mut peers = vec![(0usize, usize::MAX, 0); places.len()];
    let mut lists_of = vec![Vec::new(); places.len()];
    for (list, parcels) in lists.iter().enumerate() {
        let mut sums = vec![0usize; places.len()];
        for parcel in *parcels {
            let peer = parcel.peer;
            sums[peer] = sums[peer].saturating_add(slot(parcel.bytes));
            if lists_of[peer].last() != Some(&list) {
                lists_of[peer].push(list);
                (peers[peer].0, peers[peer].1) = (peers[peer].0 + 1, peer);
            }
            peers[peer].2 = sums[peer].max(peers[peer].2);
        }
    }
    peers.retain(|(times, ..)| *times > 0);
    peers.sort_unstable_by_key(|&(times, peer, _)| (std::cmp::Reverse(times), peer));
    let mut ends = vec![0usize; lists.len()];
    for (_, peer, bytes) in peers {
        let lists = &lists_of[peer];
        places[peer] = lists.iter().map(|&list| ends[list]).max().unwrap_or(0);
        lists.iter().for_each(|&list| ends[list] = places[peer].saturating_add(bytes));
    }
    ends.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcels(of: &[(usize, usize)]) -> Vec<Parcel> {
        of.iter().map(|&(peer, bytes)| Parcel { peer, bytes, chunk: 0 }).collect()
    }

    #[test]
    fn slots_that_meet_do_not_overlap_and_others_share_memory() {
        let lists = [
            parcels(&[(1, 100), (2, 64), (3, 0)]),
            parcels(&[(3, 65), (4, 1)]),
            parcels(&[]),
            parcels(&[(5, 300), (1, 10), (5, 336)]),
        ];
        let lists: Vec<_> = lists.iter().map(|list| &list[..]).collect();
        let mut places = [usize::MAX; 7];
        let total = place(&lists, &mut places);
        for list in &lists {
            let traffic = Traffic { recvs: list.to_vec(), ..Traffic::default() };
            let at = |(p, (_, offset)): (&Parcel, &(usize, usize))| {
                (places[p.peer] + offset, places[p.peer] + offset + slot(p.bytes))
            };
            let round = &rounds(&traffic, &Stand { hosts: vec![0; 7], here: [0, 0] }, 4)[0];
            let mut taken: Vec<_> = list.iter().zip(&round.recvs).map(at).collect();
            taken.sort_unstable();
            assert!(taken.is_sorted_by(|a, b| a.1 <= b.0), "{taken:?}");
            assert!(taken.iter().all(|(at, end)| at % SLOT_ALIGN == 0 && *end <= total));
        }
        // The longest list, [5, 1, 5], determines the size: 64 + 320, 64 + 128 and 64 + 384 bytes.
        assert_eq!(total, 1024);
        assert_eq!((places[0], places[6]), (usize::MAX, usize::MAX));
        let sum: usize = [100, 64, 65, 1, 300, 336].map(slot).iter().sum();
        assert!(total < sum, "{total} of {sum}");
    }

    #[test]
    fn too_much_is_too_much_and_not_a_small_number() {
        let list = parcels(&[(0, usize::MAX), (1, usize::MAX)]);
        assert!(place(&[&list], &mut [0; 2]) > usize::MAX / 2);
    }
}
