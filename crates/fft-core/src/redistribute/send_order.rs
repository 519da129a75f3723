//! The order in which a rank sends to its peers.
//!
//! If all ranks began with their lowest peer, that peer's link would be the bottleneck. Beginning
//! with the next rank avoids this only in complete exchanges. From pencils to bricks, a row of
//! ranks has the same peers and the same next one.
//!
//! So each rank begins with a different entry of its list. The entry is its position among the
//! senders to the first entry. In groups of complete exchanges, each rank then receives from one
//! rank at a time.

use std::collections::HashMap;

use crate::geometry::{DynBrick, Layout};

/// The receivers of a rank's boxes, in sending order.
pub(crate) fn sends(rank: usize, from: &Layout, to: &Layout) -> Vec<(usize, DynBrick)> {
    let mut peers = Vec::new();
    to.intersections(&from.brick(rank), |peer, common| peers.push((peer, common)));
    peers.sort_unstable_by_key(|(peer, _)| *peer);
    if let Some((first, _)) = peers.first() {
        let (mut before, mut rivals) = (0, 0);
        from.intersections(&to.brick(*first), |rival, _| {
            before += usize::from(rival < rank);
            rivals += 1;
        });
        // Fewer senders than entries are spread over the list.
        let start = before * peers.len().div_ceil(rivals) + 1;
        let places = peers.len();
        peers.rotate_left(start % places);
    }
    peers
}

/// Messages to these peers grouped by host, in order of first occurrence, the rank's own host
/// `home` last. On each host, the first peer is the one at the rank's own `place`.
///
/// Ranks of one host thus leave it together, and no two of them send to the same rank at once.
/// [`Exchange::Ring`](crate::Exchange::Ring) uses this order.
pub fn by_host<T>(
    messages: impl IntoIterator<Item = T>,
    peer: impl Fn(&T) -> usize,
    host: impl Fn(usize) -> usize,
    [home, place]: [usize; 2],
) -> impl Iterator<Item = T> {
    let mut number = HashMap::new();
    let mut groups: Vec<Vec<T>> = Vec::new();
    for message in messages {
        let group = *number.entry(host(peer(&message))).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(message);
    }
    if let Some(own) = number.get(&home) {
        groups[*own..].rotate_left(1);
    }
    for group in &mut groups {
        group.sort_by_key(&peer);
        let first = place % group.len();
        group.rotate_left(first);
    }
    groups.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{DynGrid, ProcGrid};

    /// Hosts of these sizes: ranks in blocks, or round-robin.
    fn hosts(sizes: &[usize], dealt: bool) -> Vec<usize> {
        let mut names = Vec::new();
        for round in 0..sizes.iter().copied().max().unwrap_or(0) {
            names.extend((0..sizes.len()).filter(|&host| round < sizes[host]));
        }
        if !dealt {
            names.sort_unstable();
        }
        names
    }

    /// All other ranks in the order of puts.
    fn targets(rank: usize, hosts: &[usize]) -> Vec<usize> {
        let others = (1..hosts.len()).map(|k| (rank + k) % hosts.len());
        let place = hosts[..rank].iter().filter(|host| **host == hosts[rank]).count();
        by_host(others, |peer| *peer, |peer| hosts[peer], [hosts[rank], place]).collect()
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

    /// The most messages to one rank in the same step.
    fn incast(from: &Layout, to: &Layout, order: impl Fn(usize) -> Vec<usize>) -> usize {
        let lists: Vec<_> = (0..from.ranks()).map(order).collect();
        let steps = lists.iter().map(Vec::len).max().unwrap_or(0);
        let at = |step: usize| {
            let mut hits = vec![0; to.ranks()];
            lists.iter().filter_map(|list| list.get(step)).for_each(|peer| hits[*peer] += 1);
            hits.into_iter().max().unwrap_or(0)
        };
        (0..steps).map(at).max().unwrap_or(0)
    }

    #[test]
    fn nobody_is_aimed_at_by_many_at_once() {
        let grid = DynGrid::new([128, 128, 128]).unwrap();
        let even = |cut: [usize; 3]| {
            let cut = ProcGrid::new(cut);
            Layout::even(grid, cut, cut.ranks())
        };
        for (a, b, most) in [
            ([4, 1, 1], [1, 4, 1], 1),
            ([1, 16, 16], [8, 8, 4], 1),
            ([1, 32, 32], [16, 8, 8], 1),
            ([16, 16, 1], [16, 1, 16], 1),
            ([8, 8, 4], [16, 16, 1], 1),
            ([6, 5, 1], [1, 5, 6], 1),
            ([5, 1, 6], [3, 5, 2], 3),
        ] {
            let (from, to) = (even(a), even(b));
            let transposed = |rank| -> Vec<usize> {
                sends(rank, &from, &to).into_iter().map(|(peer, _)| peer).collect()
            };
            assert!(
                incast(&from, &to, transposed) <= most,
                "{a:?} {b:?} {}",
                incast(&from, &to, transposed)
            );
        }
        // The counter-example: from the next rank on, a row of ranks sends to the same peers.
        let (from, to) = (even([1, 32, 32]), even([16, 8, 8]));
        let ring = |rank: usize| -> Vec<usize> {
            let mut peers: Vec<_> =
                sends(rank, &from, &to).into_iter().map(|(peer, _)| peer).collect();
            peers.sort_unstable_by_key(|peer| (peer + 1024 - rank - 1) % 1024);
            peers
        };
        assert!(incast(&from, &to, ring) >= 8, "{}", incast(&from, &to, ring));
    }

    #[test]
    fn everyone_gets_a_box_once() {
        let grid = DynGrid::new([20, 18, 16]).unwrap();
        let even = |cut| Layout::even(grid, ProcGrid::new(cut), 12);
        let (from, to) = (even([3, 2, 2]), even([1, 4, 3]));
        for rank in 0..12 {
            let mut found = sends(rank, &from, &to);
            assert_eq!(
                found.iter().map(|(_, part)| part.points()).sum::<usize>(),
                from.brick(rank).points()
            );
            found.sort_unstable_by_key(|(peer, _)| *peer);
            found.dedup_by_key(|(peer, _)| *peer);
            assert!(found.iter().all(|(peer, part)| to.brick(*peer).intersect(part) == *part));
        }
    }
}
