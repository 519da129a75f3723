//! Which ranks share a host.

use std::collections::HashMap;

/// The hosts of all ranks, numbered in the order of their first ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    host_of: Vec<usize>,
    /// Ranks of each host, ascending.
    ranks_of: Vec<Vec<usize>>,
}

impl Topology {
    /// Groups ranks by the number of their host. Ranks without a number have a host of their own.
    pub fn new(hosts: &[usize], ranks: usize) -> Self {
        let mut seen = HashMap::new();
        let mut host_of = Vec::with_capacity(ranks);
        let mut ranks_of: Vec<Vec<usize>> = Vec::new();
        for rank in 0..ranks {
            let next = ranks_of.len();
            let key = hosts.get(rank).map_or((1, rank), |host| (0, *host));
            let host = *seen.entry(key).or_insert(next);
            if host == next {
                ranks_of.push(Vec::new());
            }
            host_of.push(host);
            ranks_of[host].push(rank);
        }
        Self { host_of, ranks_of }
    }

    /// Ranks in all.
    pub fn ranks(&self) -> usize {
        self.host_of.len()
    }

    /// The number of hosts.
    pub fn hosts(&self) -> usize {
        self.ranks_of.len()
    }

    /// The host of a rank.
    pub fn host_of(&self, rank: usize) -> usize {
        self.host_of[rank]
    }

    /// The ranks of a host, ascending.
    pub fn ranks_of(&self, host: usize) -> &[usize] {
        &self.ranks_of[host]
    }

    /// The rank of a host that exchanges this chunk with another host for all of its ranks.
    ///
    /// Ranks take turns, even if only every nth host has messages, because all digits of a host's
    /// number, to the base of the ranks per host, count.
    pub fn leader(&self, host: usize, other: usize, chunk: usize) -> usize {
        let ranks = self.ranks_of(host);
        let base = ranks.len().max(2);
        let mut rest = other;
        let mut turn = chunk;
        while rest > 0 {
            turn += rest % base;
            rest /= base;
        }
        ranks[turn % ranks.len()]
    }

    /// Ranks of the fullest host.
    pub fn ranks_per_host(&self) -> usize {
        self.ranks_of.iter().map(Vec::len).max().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaders_take_turns_with_neighbours_and_with_every_nth_host() {
        for n in [1, 2, 3, 8] {
            let hosts: Vec<_> = (0..n * n * n).flat_map(|host| vec![host; n]).collect();
            let topology = Topology::new(&hosts, hosts.len());
            for stride in [1, n, n * n] {
                for chunk in [0, 5] {
                    let others = (0..n).map(|it| it * stride);
                    let mut leaders: Vec<_> =
                        others.map(|other| topology.leader(0, other, chunk)).collect();
                    leaders.sort_unstable();
                    assert_eq!(leaders, topology.ranks_of(0), "every {stride}th of {n} ranks");
                }
            }
        }
    }
}
