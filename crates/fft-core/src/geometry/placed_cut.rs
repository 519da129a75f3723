//! An even cut of the grid, and the rank of each of its parts.
//!
//! The placement of parts decides how much data a reshape keeps in place. C order is one choice;
//! others keep ranks, or hosts, near their bricks of the input or output. A reshape to or from
//! these then stays within groups as small as the two cuts allow.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::brick::DynBrick;
use super::grid::DynGrid;
use super::layout::Layout;
use super::per_axis::{MAX_AXES, PerAxis};
use super::process_grid::ProcGrid;
use super::topology::Topology;

/// The rule that places the parts of a cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum NearLayout {
    /// In C order.
    #[default]
    Nothing,
    /// In C order, spread evenly over more ranks.
    Spread,
    /// Ranks keep as much of the input as possible.
    Input,
    /// Ranks keep as much of the output as possible.
    Output,
    /// Hosts keep as much of the input as possible, then ranks.
    InputOnHosts,
    /// Hosts keep as much of the output as possible, then ranks.
    OutputOnHosts,
}

/// The suffix of a cut's name.
impl fmt::Display for NearLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "",
            Self::Spread => "~spread",
            Self::Input => "~in",
            Self::Output => "~out",
            Self::InputOnHosts => "~hosts-in",
            Self::OutputOnHosts => "~hosts-out",
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub(crate) parts: ProcGrid,
    pub(crate) near: NearLayout,
    ranks: usize,
    places: Option<Arc<Places>>,
}

/// `4x2x1~in`: parts of each axis, and their placement.
impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.parts, self.near)
    }
}

/// The part of each rank, and the rank of each part.
#[derive(Debug)]
struct Places {
    part_of: Vec<u32>,
    rank_of: Vec<u32>,
}

/// More ranks are matched to even cuts in C order only: other matches need a list of all messages.
const MOST_MATCHED: usize = 512;

impl Cut {
    /// Parts in C order.
    ///
    /// # Panics
    /// If there are more parts than ranks, or none.
    pub(crate) fn plain(parts: ProcGrid, ranks: usize) -> Self {
        assert!((1..=ranks).contains(&parts.ranks()), "cut {parts} over {ranks} ranks");
        // A single part has the same place in both.
        let near = if (2..ranks).contains(&parts.ranks()) {
            NearLayout::Spread
        } else {
            NearLayout::Nothing
        };
        Self { parts, near, ranks, places: None }
    }

    /// One part per rank, placed so that ranks or hosts keep what they hold in `layout`.
    ///
    /// `None` if that is the C order, or takes too long to find.
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
        let part_of = match (near, even) {
            (NearLayout::Nothing | NearLayout::Spread, _) => return None,
            (NearLayout::Input | NearLayout::Output, Some(other))
                if ranks > MOST_MATCHED
                    || common(&other, &parts).iter().any(|parts| *parts != 1) =>
            {
                nested(&other, &parts)
            }
            _ if ranks > MOST_MATCHED => return None,
            // Bricks, or cuts without a common factor: large parts go to ranks with large bricks.
            (NearLayout::Input | NearLayout::Output, _) => {
                most_kept(layout, &parts, &Topology::new(&[], ranks))
            }
            _ => most_kept(layout, &parts, hosts),
        };
        if part_of.iter().enumerate().all(|(rank, part)| rank == *part as usize) {
            return None;
        }
        let mut rank_of = vec![0; ranks];
        part_of.iter().enumerate().for_each(|(rank, part)| rank_of[*part as usize] = rank as u32);
        let places = Some(Arc::new(Places { part_of, rank_of }));
        Some(Self { parts, near, ranks, places })
    }

    pub(crate) fn ranks(&self) -> usize {
        self.ranks
    }

    fn part_of(&self, rank: usize) -> Option<usize> {
        match &self.places {
            Some(places) => Some(places.part_of[rank] as usize),
            None => {
                let parts = self.parts.ranks();
                let part = (rank * parts).div_ceil(self.ranks);
                (part < parts && part * self.ranks / parts == rank).then_some(part)
            }
        }
    }

    fn rank_of(&self, part: usize) -> usize {
        match &self.places {
            Some(places) => places.rank_of[part] as usize,
            None => part * self.ranks / self.parts.ranks(),
        }
    }

    /// The row-major layout of a grid with this cut.
    pub(crate) fn layout(&self, grid: DynGrid) -> Layout {
        let bricks = (0..self.ranks).map(|rank| self.brick(&grid, rank)).collect();
        match self.near {
            NearLayout::Nothing => Layout::unchecked(grid, bricks, Some(self.parts)),
            _ => Layout::unchecked(grid, bricks, None).called(self),
        }
    }

    pub(crate) fn brick(&self, grid: &DynGrid, rank: usize) -> DynBrick {
        self.part_of(rank).map_or(grid.nothing(), |part| self.parts.part(grid, part))
    }

    /// For each axis, the first part that a box touches and one past the last.
    fn touched(&self, grid: &DynGrid, query: &DynBrick) -> PerAxis<(usize, usize)> {
        PerAxis::from_fn(grid.axes(), |axis| {
            let (n, parts) = (grid.len(axis), self.parts.shape()[axis]);
            // Part i begins at ⌊n·i/p⌋.
            let part = |x: usize| ((x + 1) * parts - 1) / n;
            if query.len(axis) == 0 {
                (0, 0)
            } else {
                (part(query.lo[axis]), part(query.hi[axis] - 1) + 1)
            }
        })
    }

    /// The number of ranks that hold points of a box, counting touched parts without points.
    pub(crate) fn count(&self, grid: &DynGrid, query: &DynBrick) -> usize {
        self.touched(grid, query).iter().map(|(first, last)| last - first).product()
    }

    /// Calls `found(rank, common)` for every rank that holds points of a box.
    pub(crate) fn intersections(
        &self,
        grid: &DynGrid,
        query: &DynBrick,
        mut found: impl FnMut(usize, DynBrick),
    ) {
        let touched = self.touched(grid, query);
        let all: usize = touched.iter().map(|(first, last)| last - first).product();
        let shape = self.parts.shape();
        for number in 0..all {
            let (mut rest, mut part, mut stride) = (number, 0, 1);
            for axis in (0..shape.len()).rev() {
                let (first, last) = touched[axis];
                part += (first + rest % (last - first)) * stride;
                rest /= last - first;
                stride *= shape[axis];
            }
            let common = self.parts.part(grid, part).intersect(query);
            if !common.is_empty() {
                found(self.rank_of(part), common);
            }
        }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The finest cut that both refine.
fn common(a: &ProcGrid, b: &ProcGrid) -> PerAxis<usize> {
    PerAxis::from_fn(a.shape().len(), |axis| gcd(a.shape()[axis], b.shape()[axis]))
}

/// The part of each rank if ranks keep their share of a cut in C order.
///
/// The common factor of both cuts stays along each axis. Within the ranks that agree in it, the
/// remaining digits of the rank count through the remaining digits of the part.
fn nested(from: &ProcGrid, to: &ProcGrid) -> Vec<u32> {
    let (a, c, common) = (from.shape(), to.shape(), common(from, to));
    let axes = a.len();
    let part_of = |rank: usize| {
        let mut rest = rank;
        let (mut coarse, mut fine) = ([0; MAX_AXES], [0; MAX_AXES]);
        for axis in (0..axes).rev() {
            let (at, finer) = (rest % a[axis], a[axis] / common[axis]);
            (coarse[axis], fine[axis]) = (at / finer, at % finer);
            rest /= a[axis];
        }
        let mut number =
            (0..axes).fold(0, |number, axis| number * (a[axis] / common[axis]) + fine[axis]);
        let (mut part, mut stride) = (0, 1);
        for axis in (0..axes).rev() {
            let finer = c[axis] / common[axis];
            part += (coarse[axis] * finer + number % finer) * stride;
            number /= finer;
            stride *= c[axis];
        }
        part as u32
    };
    (0..from.ranks()).map(part_of).collect()
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
    // Parts that no rank of the host has points of go to any of its ranks.
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
                    assert!(found.len() <= cut.count(&grid, query));
                    found.sort_by_key(|(rank, _)| *rank);
                    let all = bricks.iter().map(|b| b.intersect(query)).enumerate();
                    assert!(all.filter(|(_, common)| !common.is_empty()).eq(found));
                }
            }
        }
    }

    #[test]
    fn fewer_parts_are_spread() {
        let grid = DynGrid::new([8, 8]).unwrap();
        let cut = Cut::plain(ProcGrid::new([3, 1]), 8);
        let busy: Vec<_> = (0..8).filter(|rank| !cut.brick(&grid, *rank).is_empty()).collect();
        assert_eq!(busy, [0, 2, 5]);
        for part in 0..3 {
            assert_eq!(cut.part_of(cut.rank_of(part)), Some(part));
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
