//! Memory that the ranks of one host show each other.
//!
//! A rank shows memory for the length of a *exposure_epoch*: everyone arrives, everyone works, everyone leaves. What is shown
//! to be read may be read by all in between. What is shown to be written is divided: each rank has a [`WritePartition`] of
//! everybody's elements, which it alone may read and write until all have left. That partitions are disjoint follows from
//! the layouts they are made from, each of which gives every point of the grid to exactly one rank. Where partitions have only what
//! is each rank's own, nobody need be met ([`WritePartition::is_alone`]).

use crate::base::Error;
use crate::geometry::Placed;
use crate::geometry::exclusive::Exclusive;
use crate::geometry::{DynBrick, Layout, PerAxis, Transfer};

/// What a rank shows during a exposure_epoch.
#[derive(Debug)]
pub enum Expose<'a> {
    /// Memory for all to read.
    Read(&'a [u8]),
    /// Memory of which every rank writes its partition.
    Write {
        /// Where partitions are read; in `write` without it.
        read: Option<&'a [u8]>,
        /// Where partitions are written.
        write: &'a mut [u8],
        /// The number of the partition, as [`NodeMemory::register`] returned it.
        partition: usize,
        /// Where this rank itself reads and writes what it has, if elsewhere.
        local: LocalBuffers<'a>,
    },
}

/// Memory of one rank that no other can see, each as large as its whole brick: where its exclusive elements are, and in place of what is
/// shown those of its own that it transforms first, or last.
#[derive(Debug, Default)]
pub struct LocalBuffers<'a> {
    /// Where these are read, if elsewhere than where they are written.
    pub input: Option<&'a [u8]>,
    /// Where they are written.
    pub output: Option<&'a mut [u8]>,
    /// Whether its partition of its own elements is read here.
    pub copy_in: bool,
    /// Whether that is written here.
    pub copy_out: bool,
}

/// What is done during a exposure_epoch.
pub type Work<'a> = &'a mut dyn FnMut(&mut dyn PeerMemory) -> Result<(), Error>;

/// What the ranks of one host, those that a communicator links by [`Link::Own`](crate::Link) and
/// [`Link::Shared`](crate::Link), need to reach each other's memory. Ranks are numbered as in the communicator.
///
/// `allocate`, `register`, `meet` and `exposure_epoch` are **collective** over these ranks, and so is dropping it, where they are processes.
pub trait NodeMemory: Send {
    /// Whether any memory can be shown (by threads of one process), or only what [`NodeMemory::allocate`] makes.
    fn exposes_all(&self) -> bool;

    /// Whether these bytes can be shown: any, or those of memory that [`NodeMemory::allocate`] made.
    fn sees(&self, memory: &[u8]) -> bool;

    /// Zeroed memory that can be shown; the ranks may ask for different lengths. It may be dropped later than the node_memory: then what
    /// all its ranks have allocated there is kept until the processes end.
    ///
    /// # Errors
    /// When this rank or another does not get it.
    fn allocate(&mut self, bytes: usize) -> Result<Box<dyn SharedMemory>, Error>;

    /// Takes this rank's partition of a division of memory and returns its number, once it is certain that all ranks
    /// mean the same division.
    ///
    /// # Errors
    /// [`Error::Disagreement`] on every rank when they do not.
    fn register(&mut self, partition: WritePartition) -> Result<usize, Error>;

    /// Comes together with all ranks of the host: whether all are well. No messages, and nothing is shown.
    ///
    /// # Errors
    /// [`Error::Left`] on every rank that comes when another is a process that has dropped its node_memory, or a thread that has gone;
    /// [`Error::Transport`] on this rank alone where MPI is not running, or not for this thread.
    fn sync(&mut self, well: bool) -> Result<bool, Error>;

    /// Shows memory, calls `work` when all ranks show theirs, and returns when all have done with it. What `work`
    /// returns is passed on when all have left. With a partition that is alone ([`WritePartition::is_alone`]) nothing is shown, nobody is
    /// waited for, and memory that is too short is a panic.
    ///
    /// # Errors
    /// Those of `work`, and of [`NodeMemory::sync`] (a process that is gone local the job; one that turns to something else is waited
    /// for); on every rank [`Error::Argument`] when one shows memory that cannot be shown or is too short, or comes for
    /// another partition. `work` is not called then.
    fn exposure_epoch(&mut self, show: Expose<'_>, work: Work<'_>) -> Result<(), Error>;
}

/// Memory of this rank that others of the host can be shown.
pub trait SharedMemory: Send + Sync {
    /// The memory, aligned to [`SLOT_ALIGN`](crate::SLOT_ALIGN).
    fn bytes(&self) -> &[u8];

    /// The same, to be changed.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// The ranks of the host during a exposure_epoch.
pub trait PeerMemory {
    /// What a rank shows with [`Expose::Read`], or to be read where others write.
    ///
    /// # Panics
    /// If this exposure_epoch is to write what is read.
    fn shown(&self, peer: usize) -> &[u8];

    /// Copies a segment of this rank's partition from its owner's memory to `tile`.
    ///
    /// # Panics
    /// If the partition has no such segment or reads other data, `tile` is too short for it, or this exposure_epoch is not to write.
    fn fetch(&mut self, segment: usize, tile: &mut [u8]);

    /// Copies a segment from `tile` back to where it belongs.
    ///
    /// # Panics
    /// As [`PeerMemory::fetch`].
    fn store(&mut self, segment: usize, tile: &[u8]);
}

/// The elements that one rank may touch while memory is divided, segment by segment.
///
/// Invariant, on which memory safety rests elsewhere: partitions with equal [`WritePartition::division`] of different ranks have no
/// element in common. It holds because a segment is always part of the rank's brick of one layout, made for the owner's
/// brick of another, and [`Layout`]s give no point to two ranks; and because each point of a brick has a place of its own in what its
/// owner shows, the same for all who mean the same exclusive parts, which are their owners' alone.
#[derive(Debug)]
pub struct WritePartition {
    rank: usize,
    element: usize,
    /// Elements that every rank must show.
    lens: Vec<usize>,
    /// Elements of all ranks.
    elements: usize,
    /// Bytes that every rank must show to be read, where what is read is other data than what is written.
    read: Option<Vec<usize>>,
    segments: Vec<Segment>,
    division: Vec<u64>,
    alone: bool,
}

/// Elements of one owner, and their places in a dense tile.
#[derive(Debug)]
pub struct Segment {
    owner: usize,
    /// From what the owner shows, or from its whole brick if it is exclusive.
    transfer: Transfer,
    /// From the owner's whole brick, where this rank is the owner and that is something else.
    whole: Option<Box<Transfer>>,
    exclusive: bool,
}

impl WritePartition {
    /// Nothing yet, of memory where `home` says what its owners hold (`howmany` bricks of elements of so many bytes), `exclusive` what
    /// of it they do not show, and `work` which of it each rank may touch.
    pub(crate) fn new(
        rank: usize,
        [home, work]: [&Layout; 2],
        exclusive: &Exclusive,
        element: usize,
        howmany: usize,
    ) -> Self {
        let mut division = vec![home.grid().axes() as u64, element as u64, howmany as u64];
        for layout in [home, work] {
            division.extend(words(layout));
        }
        division.extend((0..home.ranks()).flat_map(|rank| bounds(&exclusive.brick(rank))));
        let lens = (0..home.ranks()).map(|rank| exclusive.public_points(rank) * howmany).collect();
        let elements = home.grid().points() * howmany;
        let alone = home.bricks() == work.bricks();
        Self { rank, element, lens, elements, read: None, segments: Vec::new(), division, alone }
    }

    /// Adds what a box of this rank's brick in `work` has in common with each owner's brick in `home`, the layouts
    /// that the partition was made with. A tile holds the box with its axes in this order.
    ///
    /// # Panics
    /// If the box is not part of this rank's brick in `work`.
    pub(crate) fn claim(
        &mut self,
        [home, work]: [&Layout; 2],
        exclusive: &Exclusive,
        tile: &DynBrick,
        order: PerAxis<usize>,
        howmany: usize,
    ) {
        let mine = work.brick(self.rank);
        let own = tile.is_empty() || tile.intersect(&mine) == *tile;
        assert!(own, "a rank claims only what is in its own brick");
        self.segments.extend(Segment::of(self.rank, home, exclusive, tile, order, howmany));
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

    /// The rank whose partition it is.
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

    /// All segments, in the order of their numbers.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Which memory is divided, and how: equal on all ranks that may use their partitions together.
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

impl Segment {
    /// What a box that a rank may touch has in common with each owner's brick in `home`; in a tile it lies with its axes in this
    /// order.
    pub(crate) fn of(
        rank: usize,
        home: &Layout,
        exclusive: &Exclusive,
        tile: &DynBrick,
        order: PerAxis<usize>,
        howmany: usize,
    ) -> Vec<Self> {
        let mut segments = Vec::new();
        home.intersections(tile, |owner, common| {
            let from = |part: &DynBrick, brick| {
                let (from, to) = (Placed { brick, order: home.order(), howmany }, *tile);
                Transfer::new(part, 0..howmany, &from, &Placed { brick: to, order, howmany })
            };
            let whole = |part: &DynBrick| from(part, home.brick(owner));
            let common = |part: &DynBrick| Some(common.intersect(part)).filter(|p| !p.is_empty());
            for (dense, before) in exclusive.public(owner) {
                segments.extend(common(dense).map(|part| {
                    let transfer = from(&part, *dense).behind(before * howmany, 0);
                    let apart = owner == rank && *dense != home.brick(owner);
                    let whole = apart.then(|| Box::new(whole(&part)));
                    Self { owner, transfer, whole, exclusive: false }
                }));
            }
            if owner == rank {
                let segment =
                    |part| Self { owner, transfer: whole(&part), whole: None, exclusive: true };
                segments.extend(common(&exclusive.brick(owner)).map(segment));
            }
        });
        segments
    }

    /// Bytes that it copy_in.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.whole.as_ref().map_or(0, |whole| size_of_val(&**whole))
    }

    /// In whose memory it is.
    pub fn owner(&self) -> usize {
        self.owner
    }

    /// From what the owner shows to the tile, in elements; from its whole brick if it is [exclusive](Segment::is_exclusive).
    pub fn transfer(&self) -> &Transfer {
        &self.transfer
    }

    /// The same elements from this rank's whole brick, if it is the owner.
    pub fn whole(&self) -> &Transfer {
        self.whole.as_deref().unwrap_or(&self.transfer)
    }

    /// Whether it is this rank's own, and not in what is shown.
    pub fn is_exclusive(&self) -> bool {
        self.exclusive
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{DynGrid, ProcGrid};

    /// Shares of all ranks, with whole bricks as tiles.
    fn partitions(home: &Layout, work: &Layout, howmany: usize) -> Vec<WritePartition> {
        let partition = |rank| {
            let (layouts, exclusive) = ([home, work], Exclusive::nothing(home));
            let mut partition = WritePartition::new(rank, layouts, &exclusive, 16, howmany);
            partition.claim(layouts, &exclusive, &work.brick(rank), home.order(), howmany);
            partition
        };
        (0..home.ranks()).map(partition).collect()
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
                for partition in partitions(&home, work, 2) {
                    let mut tile = vec![0; 2 * work.brick(partition.rank()).points()];
                    for segment in partition.segments() {
                        segment.transfer().runs(|from, to, len| {
                            let owner = &mut touched[segment.owner()];
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

    /// What all ranks show, and what is exclusive, is touched by one rank each time, and at the local of each rank by itself alone.
    #[test]
    fn shares_with_private_parts_give_every_element_to_one_rank() {
        let grid = DynGrid::new([5, 7, 6]).unwrap();
        let even = |shape| Layout::even(grid, ProcGrid::new(shape), 6);
        let layouts = [[6, 1, 1], [1, 2, 3], [2, 3, 1], [1, 1, 4], [1, 1, 1]].map(even);
        let howmany = 2;
        for home in &layouts {
            let home = home.clone().ordered([1, 2, 0]).unwrap();
            for works in [[0, 1], [1, 2], [2, 4], [3, 3]].map(|two| two.map(|i| &layouts[i])) {
                let exclusive = Exclusive::of(&home, &works);
                let counts = |points: &dyn Fn(usize) -> usize| -> Vec<Vec<usize>> {
                    (0..6).map(|rank| vec![0; howmany * points(rank)]).collect()
                };
                let all = |rank: usize| home.brick(rank).points();
                for work in works {
                    let mut shown = counts(&|rank| exclusive.public_points(rank));
                    let mut own = counts(&all);
                    for rank in 0..6 {
                        let mut partition =
                            WritePartition::new(rank, [&home, work], &exclusive, 16, howmany);
                        let tile = work.brick(rank);
                        partition.claim([&home, work], &exclusive, &tile, home.order(), howmany);
                        let mut filled = vec![0; howmany * tile.points()];
                        for segment in partition.segments() {
                            let owner = segment.owner();
                            let mut places = segment.whole().places();
                            assert!(owner == rank || !segment.is_exclusive());
                            if !segment.is_exclusive() {
                                segment.transfer().runs(|from, _, len| {
                                    shown[owner][from..from + len].iter_mut().for_each(|n| *n += 1);
                                });
                            }
                            if owner == rank {
                                segment.whole().runs(|from, _, len| {
                                    own[owner][from..from + len].iter_mut().for_each(|n| *n += 1);
                                });
                            }
                            // Both are the same elements of the tile.
                            let mut others = segment.transfer().places();
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
        let all = partitions(&x, &y, 1);
        assert_eq!(all[0].division(), all[1].division());
        for other in [partitions(&x, &x, 1), partitions(&y, &y, 1), partitions(&x, &y, 2)] {
            assert_ne!(all[0].division(), other[1].division());
        }
        let exclusive = Exclusive::of(&x, &[&y]);
        let other = WritePartition::new(1, [&x, &y], &exclusive, 16, 1);
        assert_ne!(all[0].division(), other.division());
        assert!(
            !other.is_alone() && WritePartition::new(1, [&x, &x], &exclusive, 16, 1).is_alone()
        );
    }

    #[test]
    #[should_panic(expected = "a rank claims only what is in its own brick")]
    fn nobody_claims_what_is_another_rank_s() {
        let grid = DynGrid::new([4, 4, 4]).unwrap();
        let layout = Layout::even(grid, ProcGrid::new([2, 1, 1]), 2);
        let (layouts, exclusive) = ([&layout, &layout], Exclusive::nothing(&layout));
        let mut partition = WritePartition::new(0, layouts, &exclusive, 8, 1);
        partition.claim(layouts, &exclusive, &layout.brick(1), layout.order(), 1);
    }
}
