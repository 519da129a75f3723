//! Memory that the ranks of one host show each other.
//!
//! A rank shows memory for the length of a *visit*: everyone arrives, everyone works, everyone leaves. What is shown
//! to be read may be read by all in between. What is shown to be written is divided: each rank has a [`Share`] of
//! everybody's elements, which it alone may read and write until all have left. That shares are disjoint follows from
//! the layouts they are made from, each of which gives every point of the grid to exactly one rank. Where shares have only what
//! is each rank's own, nobody need be met ([`Share::is_alone`]).

use crate::base::Error;
use crate::geometry::Placed;
use crate::geometry::exclusive::Private;
use crate::geometry::{DynBrick, Layout, PerAxis, Transfer};

/// What a rank shows during a visit.
#[derive(Debug)]
pub enum Show<'a> {
    /// Memory for all to read.
    Read(&'a [u8]),
    /// Memory of which every rank writes its share.
    Write {
        /// Where shares are read; in `write` without it.
        read: Option<&'a [u8]>,
        /// Where shares are written.
        write: &'a mut [u8],
        /// The number of the share, as [`Commons::admit`] returned it.
        share: usize,
        /// Where this rank itself reads and writes what it has, if elsewhere.
        ends: Ends<'a>,
    },
}

/// Memory of one rank that no other can see, each as large as its whole brick: where its private elements are, and in place of what is
/// shown those of its own that it transforms first, or last.
#[derive(Debug, Default)]
pub struct Ends<'a> {
    /// Where these are read, if elsewhere than where they are written.
    pub input: Option<&'a [u8]>,
    /// Where they are written.
    pub output: Option<&'a mut [u8]>,
    /// Whether its share of its own elements is read here.
    pub takes: bool,
    /// Whether that is written here.
    pub brings: bool,
}

/// What is done during a visit.
pub type Work<'a> = &'a mut dyn FnMut(&mut dyn Neighbours) -> Result<(), Error>;

/// What the ranks of one host, those that a communicator links by [`Link::Own`](crate::Link) and
/// [`Link::Shared`](crate::Link), need to reach each other's memory. Ranks are numbered as in the communicator.
///
/// `allocate`, `admit`, `meet` and `visit` are **collective** over these ranks, and so is dropping it, where they are processes.
pub trait Commons: Send {
    /// Whether any memory can be shown (by threads of one process), or only what [`Commons::allocate`] makes.
    fn shows_all(&self) -> bool;

    /// Whether these bytes can be shown: any, or those of memory that [`Commons::allocate`] made.
    fn sees(&self, memory: &[u8]) -> bool;

    /// Zeroed memory that can be shown; the ranks may ask for different lengths. It may be dropped later than the commons: then what
    /// all its ranks have allocated there is kept until the processes end.
    ///
    /// # Errors
    /// When this rank or another does not get it.
    fn allocate(&mut self, bytes: usize) -> Result<Box<dyn SharedMemory>, Error>;

    /// Takes this rank's share of a division of memory and returns its number, once it is certain that all ranks
    /// mean the same division.
    ///
    /// # Errors
    /// [`Error::Disagreement`] on every rank when they do not.
    fn admit(&mut self, share: Share) -> Result<usize, Error>;

    /// Comes together with all ranks of the host: whether all are well. No messages, and nothing is shown.
    ///
    /// # Errors
    /// [`Error::Left`] on every rank that comes when another is a process that has dropped its commons, or a thread that has gone;
    /// [`Error::Transport`] on this rank alone where MPI is not running, or not for this thread.
    fn meet(&mut self, well: bool) -> Result<bool, Error>;

    /// Shows memory, calls `work` when all ranks show theirs, and returns when all have done with it. What `work`
    /// returns is passed on when all have left. With a share that is alone ([`Share::is_alone`]) nothing is shown, nobody is
    /// waited for, and memory that is too short is a panic.
    ///
    /// # Errors
    /// Those of `work`, and of [`Commons::meet`] (a process that is gone ends the job; one that turns to something else is waited
    /// for); on every rank [`Error::Argument`] when one shows memory that cannot be shown or is too short, or comes for
    /// another share. `work` is not called then.
    fn visit(&mut self, show: Show<'_>, work: Work<'_>) -> Result<(), Error>;
}

/// Memory of this rank that others of the host can be shown.
pub trait SharedMemory: Send + Sync {
    /// The memory, aligned to [`SLOT_ALIGN`](crate::SLOT_ALIGN).
    fn bytes(&self) -> &[u8];

    /// The same, to be changed.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// The ranks of the host during a visit.
pub trait Neighbours {
    /// What a rank shows with [`Show::Read`], or to be read where others write.
    ///
    /// # Panics
    /// If this visit is to write what is read.
    fn shown(&self, peer: usize) -> &[u8];

    /// Copies a piece of this rank's share from its owner's memory to `tile`.
    ///
    /// # Panics
    /// If the share has no such piece or reads other data, `tile` is too short for it, or this visit is not to write.
    fn fetch(&mut self, piece: usize, tile: &mut [u8]);

    /// Copies a piece from `tile` back to where it belongs.
    ///
    /// # Panics
    /// As [`Neighbours::fetch`].
    fn store(&mut self, piece: usize, tile: &[u8]);
}

/// The elements that one rank may touch while memory is divided, piece by piece.
///
/// Invariant, on which memory safety rests elsewhere: shares with equal [`Share::division`] of different ranks have no
/// element in common. It holds because a piece is always part of the rank's brick of one layout, made for the owner's
/// brick of another, and [`Layout`]s give no point to two ranks; and because each point of a brick has a place of its own in what its
/// owner shows, the same for all who mean the same private parts, which are their owners' alone.
#[derive(Debug)]
pub struct Share {
    rank: usize,
    element: usize,
    /// Elements that every rank must show.
    lens: Vec<usize>,
    /// Elements of all ranks.
    elements: usize,
    /// Bytes that every rank must show to be read, where what is read is other data than what is written.
    read: Option<Vec<usize>>,
    pieces: Vec<Piece>,
    division: Vec<u64>,
    alone: bool,
}

/// Elements of one owner, and their places in a dense tile.
#[derive(Debug)]
pub struct Piece {
    owner: usize,
    /// From what the owner shows, or from its whole brick if it is private.
    transfer: Transfer,
    /// From the owner's whole brick, where this rank is the owner and that is something else.
    whole: Option<Box<Transfer>>,
    private: bool,
}

impl Share {
    /// Nothing yet, of memory where `home` says what its owners hold (`howmany` bricks of elements of so many bytes), `private` what
    /// of it they do not show, and `work` which of it each rank may touch.
    pub(crate) fn new(
        rank: usize,
        [home, work]: [&Layout; 2],
        private: &Private,
        element: usize,
        howmany: usize,
    ) -> Self {
        let mut division = vec![home.grid().axes() as u64, element as u64, howmany as u64];
        for layout in [home, work] {
            division.extend(words(layout));
        }
        division.extend((0..home.ranks()).flat_map(|rank| bounds(&private.brick(rank))));
        let lens = (0..home.ranks()).map(|rank| private.public_points(rank) * howmany).collect();
        let elements = home.grid().points() * howmany;
        let alone = home.bricks() == work.bricks();
        Self { rank, element, lens, elements, read: None, pieces: Vec::new(), division, alone }
    }

    /// Adds what a box of this rank's brick in `work` has in common with each owner's brick in `home`, the layouts
    /// that the share was made with. A tile holds the box with its axes in this order.
    ///
    /// # Panics
    /// If the box is not part of this rank's brick in `work`.
    pub(crate) fn claim(
        &mut self,
        [home, work]: [&Layout; 2],
        private: &Private,
        tile: &DynBrick,
        order: PerAxis<usize>,
        howmany: usize,
    ) {
        let mine = work.brick(self.rank);
        let own = tile.is_empty() || tile.intersect(&mine) == *tile;
        assert!(own, "a rank claims only what is in its own brick");
        self.pieces.extend(Piece::of(self.rank, home, private, tile, order, howmany));
    }

    /// Says that other data is read than what is written: `howmany` of these bricks, of elements of so many bytes. All of it may
    /// be read by all.
    pub(crate) fn reading(mut self, layout: &Layout, element: usize, howmany: usize) -> Self {
        self.division.push(element as u64);
        self.division.extend(words(layout));
        let bytes = |brick: &DynBrick| brick.points() * howmany * element;
        self.read = Some(layout.bricks().iter().map(bytes).collect());
        self
    }

    /// Whether no rank touches what another has: nobody need be waited for, and nothing is shown.
    pub fn is_alone(&self) -> bool {
        self.alone && self.read.is_none()
    }

    /// The rank whose share it is.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Bytes that a rank must show.
    pub fn bytes(&self, rank: usize) -> usize {
        self.lens[rank] * self.element
    }

    /// Bytes of the data that is divided, whether it is shown or not.
    pub fn all_bytes(&self) -> usize {
        self.elements * self.element
    }

    /// Bytes that a rank must show to be read; `None` where it is what is written that is read.
    pub fn read_bytes(&self, rank: usize) -> Option<usize> {
        self.read.as_ref().map(|bytes| bytes[rank])
    }

    /// Bytes of an element.
    pub fn element(&self) -> usize {
        self.element
    }

    /// All pieces, in the order of their numbers.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Which memory is divided, and how: equal on all ranks that may use their shares together.
    pub fn division(&self) -> &[u64] {
        &self.division
    }
}

/// A layout in numbers.
fn words(layout: &Layout) -> impl Iterator<Item = u64> {
    let order = layout.order().into_iter().map(|axis| axis as u64);
    order.chain(layout.bricks().iter().flat_map(bounds))
}

/// A brick in numbers.
fn bounds(brick: &DynBrick) -> impl Iterator<Item = u64> + use<> {
    brick.lo.into_iter().chain(brick.hi).map(|bound| bound as u64)
}

impl Piece {
    /// What a box that a rank may touch has in common with each owner's brick in `home`; in a tile it lies with its axes in this
    /// order.
    pub(crate) fn of(
        rank: usize,
        home: &Layout,
        private: &Private,
        tile: &DynBrick,
        order: PerAxis<usize>,
        howmany: usize,
    ) -> Vec<Self> {
        let mut pieces = Vec::new();
        home.meet(tile, |owner, common| {
            let from = |part: &DynBrick, brick| {
                let (from, to) = (Placed { brick, order: home.order(), howmany }, *tile);
                Transfer::new(part, 0..howmany, &from, &Placed { brick: to, order, howmany })
            };
            let whole = |part: &DynBrick| from(part, home.brick(owner));
            let common = |part: &DynBrick| Some(common.intersect(part)).filter(|p| !p.is_empty());
            for (dense, before) in private.public(owner) {
                pieces.extend(common(dense).map(|part| {
                    let transfer = from(&part, *dense).behind(before * howmany, 0);
                    let apart = owner == rank && *dense != home.brick(owner);
                    let whole = apart.then(|| Box::new(whole(&part)));
                    Self { owner, transfer, whole, private: false }
                }));
            }
            if owner == rank {
                let piece =
                    |part| Self { owner, transfer: whole(&part), whole: None, private: true };
                pieces.extend(common(&private.brick(owner)).map(piece));
            }
        });
        pieces
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.whole.as_ref().map_or(0, |whole| size_of_val(&**whole))
    }

    /// In whose memory it is.
    pub fn owner(&self) -> usize {
        self.owner
    }

    /// From what the owner shows to the tile, in elements; from its whole brick if it is [private](Piece::is_private).
    pub fn transfer(&self) -> &Transfer {
        &self.transfer
    }

    /// The same elements from this rank's whole brick, if it is the owner.
    pub fn whole(&self) -> &Transfer {
        self.whole.as_deref().unwrap_or(&self.transfer)
    }

    /// Whether it is this rank's own, and not in what is shown.
    pub fn is_private(&self) -> bool {
        self.private
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{DynGrid, ProcGrid};

    /// Shares of all ranks, with whole bricks as tiles.
    fn shares(home: &Layout, work: &Layout, howmany: usize) -> Vec<Share> {
        let share = |rank| {
            let (layouts, private) = ([home, work], Private::nothing(home));
            let mut share = Share::new(rank, layouts, &private, 16, howmany);
            share.claim(layouts, &private, &work.brick(rank), home.order(), howmany);
            share
        };
        (0..home.ranks()).map(share).collect()
    }

    #[test]
    fn shares_give_every_element_to_one_rank() {
        let grid = DynGrid::new([5, 7, 6]).unwrap();
        let even = |shape| Layout::even(grid, ProcGrid::new(shape), 6);
        let layouts = [[6, 1, 1], [1, 2, 3], [2, 3, 1], [1, 1, 4], [1, 1, 1]].map(even);
        for home in &layouts {
            let home = home.clone().ordered([1, 2, 0]).unwrap();
            for work in &layouts {
                let bricks = home.bricks().iter();
                let mut touched: Vec<_> = bricks.map(|brick| vec![0; 2 * brick.points()]).collect();
                for share in shares(&home, work, 2) {
                    let mut tile = vec![0; 2 * work.brick(share.rank()).points()];
                    for piece in share.pieces() {
                        piece.transfer().runs(|from, to, len| {
                            let owner = &mut touched[piece.owner()];
                            owner[from..from + len].iter_mut().for_each(|seen| *seen += 1);
                            tile[to..to + len].iter_mut().for_each(|seen| *seen += 1);
                        });
                    }
                    assert!(tile.iter().all(|seen| *seen == 1), "{home} {work}");
                }
                assert!(touched.iter().flatten().all(|seen| *seen == 1), "{home} {work}");
            }
        }
    }

    /// What all ranks show, and what is private, is touched by one rank each time, and at the ends of each rank by itself alone.
    #[test]
    fn shares_with_private_parts_give_every_element_to_one_rank() {
        let grid = DynGrid::new([5, 7, 6]).unwrap();
        let even = |shape| Layout::even(grid, ProcGrid::new(shape), 6);
        let layouts = [[6, 1, 1], [1, 2, 3], [2, 3, 1], [1, 1, 4], [1, 1, 1]].map(even);
        let howmany = 2;
        for home in &layouts {
            let home = home.clone().ordered([1, 2, 0]).unwrap();
            for works in [[0, 1], [1, 2], [2, 4], [3, 3]].map(|two| two.map(|i| &layouts[i])) {
                let private = Private::of(&home, &works);
                let counts = |points: &dyn Fn(usize) -> usize| -> Vec<Vec<usize>> {
                    (0..6).map(|rank| vec![0; howmany * points(rank)]).collect()
                };
                let all = |rank: usize| home.brick(rank).points();
                for work in works {
                    let mut shown = counts(&|rank| private.public_points(rank));
                    let mut own = counts(&all);
                    for rank in 0..6 {
                        let mut share = Share::new(rank, [&home, work], &private, 16, howmany);
                        let tile = work.brick(rank);
                        share.claim([&home, work], &private, &tile, home.order(), howmany);
                        let mut filled = vec![0; howmany * tile.points()];
                        for piece in share.pieces() {
                            let owner = piece.owner();
                            let mut places = piece.whole().places();
                            assert!(owner == rank || !piece.is_private());
                            if !piece.is_private() {
                                piece.transfer().runs(|from, _, len| {
                                    shown[owner][from..from + len].iter_mut().for_each(|n| *n += 1);
                                });
                            }
                            if owner == rank {
                                piece.whole().runs(|from, _, len| {
                                    own[owner][from..from + len].iter_mut().for_each(|n| *n += 1);
                                });
                            }
                            // Both are the same elements of the tile.
                            let mut others = piece.transfer().places();
                            places.iter().for_each(|place| filled[*place] += 1);
                            places.sort_unstable();
                            others.sort_unstable();
                            assert_eq!(places, others);
                        }
                        assert!(filled.iter().all(|n| *n == 1), "{home} {work}");
                    }
                    assert!(shown.iter().flatten().all(|n| *n == 1), "{home} {work}");
                    for (rank, own) in own.iter().enumerate() {
                        let mine = home.brick(rank).intersect(&work.brick(rank));
                        assert_eq!(own.iter().sum::<usize>(), howmany * mine.points());
                        assert!(own.iter().all(|n| *n <= 1), "{home} {work}");
                    }
                }
            }
        }
    }

    #[test]
    fn divisions_are_equal_where_shares_are_of_the_same_memory() {
        let grid = DynGrid::new([4, 4, 4]).unwrap();
        let even = |shape| Layout::even(grid, ProcGrid::new(shape), 2);
        let (x, y) = (even([2, 1, 1]), even([1, 2, 1]));
        let all = shares(&x, &y, 1);
        assert_eq!(all[0].division(), all[1].division());
        for other in [shares(&x, &x, 1), shares(&y, &y, 1), shares(&x, &y, 2)] {
            assert_ne!(all[0].division(), other[1].division());
        }
        let private = Private::of(&x, &[&y]);
        let other = Share::new(1, [&x, &y], &private, 16, 1);
        assert_ne!(all[0].division(), other.division());
        assert!(!other.is_alone() && Share::new(1, [&x, &x], &private, 16, 1).is_alone());
    }

    #[test]
    #[should_panic(expected = "a rank claims only what is in its own brick")]
    fn nobody_claims_what_is_another_rank_s() {
        let grid = DynGrid::new([4, 4, 4]).unwrap();
        let layout = Layout::even(grid, ProcGrid::new([2, 1, 1]), 2);
        let (layouts, private) = ([&layout, &layout], Private::nothing(&layout));
        let mut share = Share::new(0, layouts, &private, 8, 1);
        share.claim(layouts, &private, &layout.brick(1), layout.order(), 1);
    }
}
