//! The order in which a rank sends to its peers.
//!
//! Ranks that all begin with the lowest of their peers aim at the same one, step after step, and its link is the limit.
//! Beginning with the rank after oneself repairs this only where everyone sends to everyone: in a reshape from pencils to
//! bricks, a row of ranks has the same few peers, and for all of them the next one is the same. So each rank begins at
//! another place of its list: where it stands itself among those that send to the first in it. Groups in which everyone
//! sends to everyone, which is what reshapes between even cuts are made of, then go round in step: at every step each
//! receives from one.

use crate::{Brick, Layout};

/// Who gets which box of a rank's, in order of sending.
pub(crate) fn sends<const D: usize>(
    rank: usize,
    from: &Layout<D>,
    to: &Layout<D>,
) -> Vec<(usize, Brick<D>)> {
    let mut peers = Vec::new();
    to.meet(&from.brick(rank), |peer, common| peers.push((peer, common)));
    peers.sort_unstable_by_key(|(peer, _)| *peer);
    if let Some((first, _)) = peers.first() {
        let (mut before, mut rivals) = (0, 0);
        from.meet(&to.brick(*first), |rival, _| {
            before += usize::from(rival < rank);
            rivals += 1;
        });
        // Fewer than there are places in the list are spread over it.
        let start = before * peers.len().div_ceil(rivals) + 1;
        let places = peers.len();
        peers.rotate_left(start % places);
    }
    peers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grid, ProcGrid};

    /// The most messages to one rank in the same step.
    fn incast(from: &Layout<3>, to: &Layout<3>, order: impl Fn(usize) -> Vec<usize>) -> usize {
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
        let grid = Grid::new([128, 128, 128]).unwrap();
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
            let turned = |rank| -> Vec<usize> {
                sends(rank, &from, &to).into_iter().map(|(peer, _)| peer).collect()
            };
            assert!(
                incast(&from, &to, turned) <= most,
                "{a:?} {b:?} {}",
                incast(&from, &to, turned)
            );
        }
        // What it is good for: from the rank after oneself, all of a row go for the same ones.
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
        let grid = Grid::new([20, 18, 16]).unwrap();
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
