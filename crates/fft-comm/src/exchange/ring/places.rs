//! Where messages are put, and in which order: pure arithmetic.

use fft_core::{Parcel, SLOT_ALIGN, Traffic};

/// The messages of one epoch: their numbers, and where the slot of each begins among those of the same pair of ranks.
#[derive(Clone, Default)]
pub(super) struct Round {
    pub(super) sends: Vec<(usize, usize)>,
    pub(super) recvs: Vec<(usize, usize)>,
}

/// Rounds of one exchange, where there are chunks enough: what is unpacked after the last of them delays the end.
const ROUNDS: usize = 4;

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

/// The messages of a traffic in rounds: the same rounds on all ranks.
pub(super) fn rounds(traffic: &Traffic, turns: &[usize]) -> Vec<Round> {
    let chunks = traffic.chunks.max(1);
    let mut rounds = vec![Round::default(); chunks.min(ROUNDS)];
    let of = |parcel: &Parcel| parcel.chunk.min(chunks - 1) * ROUNDS.min(chunks) / chunks;
    let mut place = |parcels: &[Parcel], side: fn(&mut Round) -> &mut Vec<(usize, usize)>| {
        let mut ends = vec![vec![0usize; turns.len()]; rounds.len()];
        for (number, parcel) in parcels.iter().enumerate() {
            let end = &mut ends[of(parcel)][parcel.peer];
            side(&mut rounds[of(parcel)]).push((number, *end));
            *end = end.saturating_add(taken(traffic, parcel));
        }
    };
    place(&traffic.sends, |round| &mut round.sends);
    place(&traffic.recvs, |round| &mut round.recvs);
    for round in &mut rounds {
        round.sends.sort_by_key(|&(number, _)| {
            let Parcel { peer, chunk, .. } = traffic.sends[number];
            (chunk, turns[peer])
        });
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

/// All other ranks in the order in which this one sends to them, given the lowest rank on the host of each: host by
/// host from the next one on, the own host last. On each, ranks are taken in rotation, beginning with the one whose
/// place there is this rank's place here. So the ranks of two hosts do not aim at the same host at once where hosts are
/// equally large, nor two ranks of one host at the same rank.
pub(super) fn targets(rank: usize, hosts: &[usize]) -> Vec<usize> {
    let mut ranks: Vec<usize> = (0..hosts.len()).collect();
    ranks.sort_by_key(|&other| (hosts[other], other));
    let groups: Vec<&[usize]> = ranks.chunk_by(|&a, &b| hosts[a] == hosts[b]).collect();
    let home = groups.partition_point(|group| hosts[group[0]] < hosts[rank]);
    let own = groups[home];
    let place = own.partition_point(|other| *other < rank);
    let mut targets = Vec::with_capacity(hosts.len() - 1);
    for step in 1..groups.len() {
        let ranks = groups[(home + step) % groups.len()];
        targets.extend((0..ranks.len()).map(|k| ranks[(place + k) % ranks.len()]));
    }
    targets.extend((1..own.len()).map(|k| own[(place + k) % own.len()]));
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts of these sizes: ranks in blocks, or dealt out like cards.
    fn hosts(sizes: &[usize], dealt: bool) -> Vec<usize> {
        let mut names = Vec::new();
        for round in 0..sizes.iter().copied().max().unwrap_or(0) {
            names.extend((0..sizes.len()).filter(|&host| round < sizes[host]));
        }
        if !dealt {
            names.sort_unstable();
        }
        let first = |name| names.iter().position(|other| *other == name).expect("it is there");
        names.iter().map(|&name| first(name)).collect()
    }

    #[test]
    fn every_other_rank_is_a_target_once_and_the_own_host_last() {
        for sizes in [&[1][..], &[4], &[1, 1], &[2, 3, 1], &[4, 4], &[1, 5, 2, 2]] {
            for dealt in [false, true] {
                let hosts = hosts(sizes, dealt);
                for rank in 0..hosts.len() {
                    let found = targets(rank, &hosts);
                    let mut sorted = found.clone();
                    sorted.sort_unstable();
                    let others: Vec<_> = (0..hosts.len()).filter(|&r| r != rank).collect();
                    assert_eq!(sorted, others, "rank {rank} of {hosts:?}");
                    let at_home = |&r: &usize| hosts[r] == hosts[rank];
                    assert!(found.is_sorted_by_key(at_home), "rank {rank} of {hosts:?}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn ranks_of_equal_hosts_never_aim_at_the_same_rank_and_leave_a_host_together() {
        for sizes in [[1; 5], [2; 5], [3; 5]] {
            for dealt in [false, true] {
                let hosts = hosts(&sizes, dealt);
                let ranks = hosts.len();
                let orders: Vec<_> = (0..ranks).map(|rank| targets(rank, &hosts)).collect();
                for step in 0..ranks - 1 {
                    let mut aims: Vec<_> = orders.iter().map(|order| order[step]).collect();
                    for (rank, aim) in aims.iter().enumerate() {
                        let mate = (0..ranks).find(|&r| hosts[r] == hosts[rank]).expect("itself");
                        assert_eq!(hosts[*aim], hosts[aims[mate]], "step {step} of {hosts:?}");
                    }
                    aims.sort_unstable();
                    assert_eq!(aims, (0..ranks).collect::<Vec<_>>(), "step {step} of {hosts:?}");
                }
            }
        }
    }

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
            let round = &rounds(&traffic, &[0; 7])[0];
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
