//! The volume of a reshape between two layouts, by link.

use crate::geometry::{DynBrick, Layout, Topology};

/// Number of ranks up to which all are examined.
pub(crate) const FEW: usize = 64;
/// Hosts examined for more ranks, and ranks of each.
const SOME_HOSTS: usize = 4;
const SOME_RANKS: usize = 2;

/// At most `most` numbers below `n`, with the first and the last.
pub(crate) fn some(n: usize, most: usize) -> impl Iterator<Item = usize> {
    let count = n.min(most);
    (0..count).map(move |i| if count == 1 { 0 } else { i * (n - 1) / (count - 1) })
}

/// The examined hosts: all, or a few of many.
fn sampled_hosts(hosts: &Topology) -> impl Iterator<Item = usize> {
    let count = hosts.hosts();
    some(count, if hosts.ranks() <= FEW { count } else { SOME_HOSTS })
}

/// [`Layout::count`] or [`Layout::touches`].
pub(crate) type Count = fn(&Layout, &DynBrick) -> usize;

/// Maxima over ranks, and over hosts, in points; for messages, their number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Volume {
    /// Held before or after.
    pub(crate) held: f64,
    /// Kept by the rank.
    pub(crate) own: f64,
    /// Sent to, or received from, other ranks of the host.
    pub(crate) near: f64,
    /// Sent to, or received from, ranks of other hosts.
    pub(crate) far: f64,
    /// Points sent to other hosts by the average rank.
    pub(crate) mean: f64,
    /// Sent from, or received by, a host.
    pub(crate) host: f64,
    /// To and from ranks of the host, both counted.
    pub(crate) near_messages: f64,
    /// To and from ranks of other hosts.
    pub(crate) far_messages: f64,
}

impl Volume {
    /// The volume between two layouts. For many ranks it is estimated from a sample.
    pub(crate) fn new(from: &Layout, to: &Layout, hosts: &Topology, count: Count) -> Self {
        let mut load = Self::default();
        let (mut sent, mut ranks) = (0.0, 0.0);
        for host in sampled_hosts(hosts) {
            let members = hosts.ranks_of(host);
            let most = if hosts.ranks() <= FEW { members.len() } else { SOME_RANKS };
            let (mut out, mut back, mut seen) = (0.0, 0.0, 0.0);
            let others = if hosts.hosts() > 1 { members } else { &[] };
            let held = |rank: &usize| (*rank, [from.brick(*rank), to.brick(*rank)]);
            let others: Vec<_> = others.iter().map(held).collect();
            for at in some(members.len(), most) {
                let one = Self::of_rank(members[at], &others, [from, to], count);
                load.take_larger(&one);
                out += one.sent;
                back += one.received;
                seen += 1.0;
            }
            let all = members.len() as f64 / seen;
            load.host = load.host.max(out * all).max(back * all);
            (sent, ranks) = (sent + out, ranks + seen);
        }
        load.mean = sent / ranks;
        load.held = from.most_points().max(to.most_points()) as f64;
        load
    }

    fn take_larger(&mut self, one: &OfRank) {
        self.own = self.own.max(one.own);
        self.near = self.near.max(one.near);
        self.far = self.far.max(one.sent).max(one.received);
        self.near_messages = self.near_messages.max(one.near_messages);
        self.far_messages = self.far_messages.max(one.far_messages);
    }

    fn of_rank(
        rank: usize,
        others: &[(usize, [DynBrick; 2])],
        [from, to]: [&Layout; 2],
        count: Count,
    ) -> OfRank {
        let (before, after) = (from.brick(rank), to.brick(rank));
        let own = before.intersect(&after).points();
        let stays = usize::from(own > 0);
        // Points and messages to others of the host, and from them.
        let (mut near, mut near_messages) = ([0; 2], [0; 2]);
        if others.is_empty() {
            near = [before.points() - own, after.points() - own];
            near_messages =
                [count(to, &before), count(from, &after)].map(|count| count.saturating_sub(stays));
        } else {
            for (_, [theirs, gets]) in others.iter().filter(|(peer, _)| *peer != rank) {
                let out = before.intersect(gets).points();
                let back = theirs.intersect(&after).points();
                near = [near[0] + out, near[1] + back];
                near_messages[0] += usize::from(out > 0);
                near_messages[1] += usize::from(back > 0);
            }
        }
        let [sent, received] = [before.points() - own - near[0], after.points() - own - near[1]];
        let far = |points: usize, layout: &Layout, brick: &DynBrick, near: usize| match points {
            0 => 0,
            _ => count(layout, brick).saturating_sub(near + stays),
        };
        let far_messages = far(sent, to, &before, near_messages[0])
            + far(received, from, &after, near_messages[1]);
        OfRank {
            own: own as f64,
            near: near[0].max(near[1]) as f64,
            sent: sent as f64,
            received: received as f64,
            near_messages: near_messages.iter().sum::<usize>() as f64,
            far_messages: far_messages as f64,
        }
    }
}

/// The volume of one rank, by direction for other hosts.
struct OfRank {
    own: f64,
    near: f64,
    sent: f64,
    received: f64,
    near_messages: f64,
    far_messages: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{DynGrid, ProcGrid};

    fn cut(grid: DynGrid, parts: [usize; 2], ranks: usize) -> Layout {
        Layout::even(grid, ProcGrid::new(parts), ranks)
    }

    #[test]
    fn points_go_by_the_links_they_take() {
        let grid = DynGrid::new([8, 8]).unwrap();
        // Rows to columns: a quarter stays, a quarter goes to the neighbour, half far away.
        let hosts = Topology::new(&[7, 7, 5, 5], 4);
        let load = Volume::new(&cut(grid, [4, 1], 4), &cut(grid, [1, 4], 4), &hosts, Layout::count);
        let expected = Volume {
            held: 16.0,
            own: 4.0,
            near: 4.0,
            far: 8.0,
            mean: 8.0,
            host: 16.0,
            near_messages: 2.0,
            far_messages: 4.0,
        };
        assert_eq!(load, expected);
        let one_host = Volume::new(
            &cut(grid, [4, 1], 4),
            &cut(grid, [1, 4], 4),
            &Topology::new(&[3; 4], 4),
            Layout::count,
        );
        assert_eq!((one_host.near, one_host.near_messages, one_host.far), (12.0, 6.0, 0.0));
        let apart = Volume::new(
            &cut(grid, [4, 1], 4),
            &cut(grid, [1, 4], 4),
            &Topology::new(&[], 4),
            Layout::count,
        );
        assert_eq!((apart.far, apart.far_messages, apart.near), (12.0, 6.0, 0.0));
    }

    #[test]
    fn some_of_many_hosts_stand_for_all() {
        let grid = DynGrid::new([1024, 1024]).unwrap();
        let numbers: Vec<_> = (0..1024).map(|rank| rank / 8).collect();
        let hosts = Topology::new(&numbers, 1024);
        assert!(sampled_hosts(&hosts).eq([0, 42, 84, 127]));
        // Rows to columns: one point stays, 7 go to peers on the host, the others to other hosts.
        let load = Volume::new(
            &cut(grid, [1024, 1], 1024),
            &cut(grid, [1, 1024], 1024),
            &hosts,
            Layout::count,
        );
        assert_eq!([load.own, load.near, load.far, load.host], [1.0, 7.0, 1016.0, 8128.0]);
        assert_eq!([load.near_messages, load.far_messages], [14.0, 2032.0]);
    }
}
