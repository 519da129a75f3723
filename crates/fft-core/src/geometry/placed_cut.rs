//! The placement of an even cut's parts near the bricks of a layout.
//!
//! The placement of parts decides how much data a reshape keeps in place. C order is one choice;
//! others keep ranks, or hosts, near their bricks of the input or output. A reshape to or from
//! these then stays within groups as small as the two cuts allow.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::cut::{Cut, NearLayout, common};
use super::layout::Layout;
use super::process_grid::ProcGrid;
use super::topology::Topology;

/// More ranks are matched only to even cuts in C order, because other matches need a list of all
/// messages.
const MOST_MATCHED: usize = 512;

impl Cut {
    /// One part per rank, placed so that ranks or hosts keep what they hold in `layout`.
    ///
    /// `None` if that is the C order, or if finding it takes too long.
    pub(crate) fn matched(
        parts: ProcGrid,
        layout: &Layout,
        near: NearLayout,
        hosts: &Topology,
    ) -> Option<Self> {
        let ranks = layout.ranks();
        if parts.ranks() != ranks {
            return None;
        }
        let even = layout.plain_cut().filter(|other| other.ranks() == ranks);
        let listed = |part_of| Self::placed(parts, near, part_of);
        let cut = match (near, even) {
            (NearLayout::Input | NearLayout::Output, Some(other))
                if ranks > MOST_MATCHED
                    || common(&other, &parts).iter().any(|parts| *parts != 1) =>
            {
                Self::nested_in(other, parts, near)
            }
            _ if ranks > MOST_MATCHED => return None,
            // Bricks, or cuts without a common factor: large parts go to ranks with large bricks.
            (NearLayout::Input | NearLayout::Output, _) => {
                listed(most_kept(layout, &parts, &Topology::new(&[], ranks)))
            }
            _ => listed(most_kept(layout, &parts, hosts)),
        };
        (!cut.is_in_order()).then_some(cut)
    }
}

/// The part of each rank by greedy matching: first parts to hosts by common points, then the parts
/// of a host to its ranks. Ties go to the lower host, rank and part.
fn most_kept(layout: &Layout, parts: &ProcGrid, hosts: &Topology) -> Vec<u32> {
    let (grid, ranks) = (layout.grid(), layout.ranks());
    let plain = Cut::plain(*parts, ranks);
    let mut of_ranks = BTreeMap::new();
    let mut of_hosts = BTreeMap::new();
    for (rank, brick) in layout.bricks().iter().enumerate() {
        plain.intersections(&grid, brick, |part, common| {
            of_ranks.insert((rank, part), common.points());
            *of_hosts.entry((hosts.host_of(rank), part)).or_insert(0) += common.points();
        });
    }
    let room: Vec<_> = (0..hosts.hosts()).map(|host| hosts.ranks_of(host).len()).collect();
    let host_of = assign(of_hosts, room, ranks);
    of_ranks.retain(|(rank, part), _| host_of[*part] == hosts.host_of(*rank));
    // If no rank of the host has points of a part, any of its ranks gets it.
    for (part, host) in host_of.iter().enumerate() {
        for rank in hosts.ranks_of(*host) {
            of_ranks.entry((*rank, part)).or_insert(0);
        }
    }
    let rank_of = assign(of_ranks, vec![1; ranks], ranks);
    let mut part_of = vec![0; ranks];
    rank_of.iter().enumerate().for_each(|(part, rank)| part_of[*rank] = part as u32);
    part_of
}

/// The owner of each part: pairs by common points, descending; the rest to any with room.
fn assign(
    common: BTreeMap<(usize, usize), usize>,
    mut room: Vec<usize>,
    parts: usize,
) -> Vec<usize> {
    let mut pairs: Vec<_> = common.into_iter().collect();
    pairs.sort_by_key(|(_, points)| Reverse(*points));
    let mut owner = vec![None; parts];
    for ((wanted, part), _) in pairs {
        if owner[part].is_none() && room[wanted] > 0 {
            owner[part] = Some(wanted);
            room[wanted] -= 1;
        }
    }
    let mut next = 0;
    let mut any = || {
        while room[next] == 0 {
            next += 1;
        }
        room[next] -= 1;
        next
    };
    owner.into_iter().map(|owner| owner.unwrap_or_else(&mut any)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{DynBrick, DynGrid};

    fn even(shape: [usize; 3], cut: [usize; 3]) -> Layout {
        let cut = ProcGrid::new(cut);
        Layout::even(DynGrid::new(shape).unwrap(), cut, cut.ranks())
    }

    fn peers(layout: &Layout, cut: &Cut) -> usize {
        let count = |brick: &DynBrick| {
            let mut count = 0;
            cut.intersections(&layout.grid(), brick, |_, _| count += 1);
            count
        };
        layout.bricks().iter().map(count).max().unwrap()
    }

    #[test]
    fn every_part_is_held_once_and_found() {
        let layout = even([13, 9, 10], [2, 3, 2]);
        let uneven = {
            let mut bricks = layout.bricks().to_vec();
            bricks.swap(3, 7);
            Layout::new(layout.grid(), bricks, 12).unwrap()
        };
        for parts in ProcGrid::all(3, 12) {
            let plain = Cut::plain(parts, 12);
            let hosts = Topology::new(&[0, 1, 1, 2, 0, 0, 0, 1, 2, 2, 2, 2], 12);
            let matched = [
                (&layout, NearLayout::Input),
                (&uneven, NearLayout::Input),
                (&uneven, NearLayout::InputOnHosts),
            ];
            let matched = matched.map(|(to, near)| Cut::matched(parts, to, near, &hosts));
            for cut in matched.into_iter().flatten().chain([plain]) {
                let grid = layout.grid();
                let bricks: Vec<_> = (0..12).map(|rank| cut.brick(&grid, rank)).collect();
                assert_eq!(bricks.iter().map(DynBrick::points).sum::<usize>(), grid.points());
                for query in layout.bricks() {
                    let mut found = Vec::new();
                    cut.intersections(&grid, query, |rank, common| found.push((rank, common)));
                    assert_eq!(found.len(), cut.count(&grid, query));
                    found.sort_by_key(|(rank, _)| *rank);
                    let all = bricks.iter().map(|b| b.intersect(query)).enumerate();
                    assert!(all.filter(|(_, common)| !common.is_empty()).eq(found));
                }
            }
        }
    }

    #[test]
    fn a_matched_reshape_spans_as_few_ranks_as_it_must() {
        // 512 bricks to pencils: each needs the 8 ranks along its own axis.
        let bricks = even([64, 64, 64], [8, 8, 8]);
        let pencils = ProcGrid::new([1, 8, 64]);
        let matched =
            Cut::matched(pencils, &bricks, NearLayout::Output, &Topology::new(&[], 512)).unwrap();
        assert_eq!(peers(&bricks, &matched), 8);
        assert_eq!(peers(&bricks, &Cut::plain(pencils, 512)), 8);
        // In C order these are other ranks every time, so that all data moves.
        let kept = |cut: &Cut| -> usize {
            let of = |(rank, brick): (usize, &DynBrick)| {
                cut.brick(&bricks.grid(), rank).intersect(brick).points()
            };
            bricks.bricks().iter().enumerate().map(of).sum()
        };
        assert_eq!(kept(&matched), bricks.grid().points() / 8);
        assert!(kept(&Cut::plain(pencils, 512)) < bricks.grid().points() / 64);
    }
}
