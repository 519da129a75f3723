//! The places of messages in windows, and the rounds they are put in. Pure arithmetic.

use fft_core::{Comm, MessagePlan, MessageSpec, SLOT_ALIGN, by_host};

/// The hosts of all ranks, and the place of this rank on its own.
pub(super) struct RankPlace {
    hosts: Vec<usize>,
    /// This rank's host, and the number of lower ranks on it.
    here: [usize; 2],
}

impl RankPlace {
    pub(super) fn new(comm: &dyn Comm) -> Self {
        let hosts: Vec<_> = (0..comm.size()).map(|rank| comm.host(rank)).collect();
        let home = hosts[comm.rank()];
        let place = hosts[..comm.rank()].iter().filter(|host| **host == home).count();
        Self { hosts, here: [home, place] }
    }
}

/// The messages of one epoch: their numbers, and their offsets among the slots of the same pair of
/// ranks.
#[derive(Clone, Default)]
pub(super) struct Round {
    pub(super) sends: Vec<(usize, usize)>,
    pub(super) recvs: Vec<(usize, usize)>,
}

/// Bytes before each message: its length, and the epoch it was put in.
pub(super) const HEADER: usize = SLOT_ALIGN;

/// Bytes of the slot of a message of at most `bytes` bytes, with its header.
pub(super) fn slot(bytes: usize) -> usize {
    bytes.saturating_add(HEADER + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN
}

/// Divides the messages of a plan into at most `most` rounds: the same rounds on all ranks.
pub(super) fn rounds(message_plan: &MessagePlan, place: &RankPlace, most: usize) -> Vec<Round> {
    let chunks = message_plan.chunks.max(1);
    let mut rounds = vec![Round::default(); chunks.min(most)];
    let of = |spec: &MessageSpec| spec.chunk.min(chunks - 1) * most.min(chunks) / chunks;
    let mut add = |specs: &[MessageSpec], side: fn(&mut Round) -> &mut Vec<(usize, usize)>| {
        let mut ends = vec![vec![0usize; place.hosts.len()]; rounds.len()];
        for (number, spec) in specs.iter().enumerate() {
            let end = &mut ends[of(spec)][spec.peer];
            side(&mut rounds[of(spec)]).push((number, *end));
            *end = end.saturating_add(slot(spec.bytes));
        }
    };
    add(&message_plan.sends, |round| &mut round.sends);
    add(&message_plan.recvs, |round| &mut round.recvs);
    for round in &mut rounds {
        let spec = |&(number, _): &(usize, usize)| message_plan.sends[number];
        let chunks = round.sends.chunk_by(|a, b| spec(a).chunk == spec(b).chunk);
        let ordered = |sends: &[_]| {
            by_host(sends.to_vec(), |send| spec(send).peer, |rank| place.hosts[rank], place.here)
        };
        round.sends = chunks.flat_map(ordered).collect();
    }
    rounds
}

/// Assigns a place to the slots of each peer, and returns the bytes of all. Slots of one list do
/// not overlap.
///
/// Slots belong to a pair of ranks, so that peers of the same list follow one another in memory.
/// Peers of most lists come first.
pub(super) fn assign_places(lists: &[&[MessageSpec]], places: &mut [usize]) -> usize {
    // (lists it is in, peer, bytes)
    let mut peers = vec![(0usize, usize::MAX, 0); places.len()];
    let mut lists_of = vec![Vec::new(); places.len()];
    for (list, specs) in lists.iter().enumerate() {
        let mut sums = vec![0usize; places.len()];
        for spec in *specs {
            let peer = spec.peer;
            sums[peer] = sums[peer].saturating_add(slot(spec.bytes));
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

    fn specs(of: &[(usize, usize)]) -> Vec<MessageSpec> {
        of.iter().map(|&(peer, bytes)| MessageSpec { peer, bytes, chunk: 0 }).collect()
    }

    #[test]
    fn slots_that_meet_do_not_overlap_and_others_share_memory() {
        let lists = [
            specs(&[(1, 100), (2, 64), (3, 0)]),
            specs(&[(3, 65), (4, 1)]),
            specs(&[]),
            specs(&[(5, 300), (1, 10), (5, 336)]),
        ];
        let lists: Vec<_> = lists.iter().map(|list| &list[..]).collect();
        let mut places = [usize::MAX; 7];
        let total = assign_places(&lists, &mut places);
        for list in &lists {
            let message_plan = MessagePlan { recvs: list.to_vec(), ..MessagePlan::default() };
            let at = |(p, (_, offset)): (&MessageSpec, &(usize, usize))| {
                (places[p.peer] + offset, places[p.peer] + offset + slot(p.bytes))
            };
            let place = RankPlace { hosts: vec![0; 7], here: [0, 0] };
            let round = &rounds(&message_plan, &place, 4)[0];
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
        let list = specs(&[(0, usize::MAX), (1, usize::MAX)]);
        assert!(assign_places(&[&list], &mut [0; 2]) > usize::MAX / 2);
    }
}
