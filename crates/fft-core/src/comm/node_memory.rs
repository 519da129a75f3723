//! Shared memory of the ranks of a host.
//!
//! A rank exposes memory for an *exposure epoch*: all ranks enter, work and exit. In between, all
//! ranks may read memory exposed for reading. Memory exposed for writing is divided: each rank
//! reads and writes only its [`WritePartition`] of all memory. Partitions are disjoint, because the
//! layouts that they are made of give every point to one rank.

use crate::base::Error;
use crate::geometry::Placed;
use crate::geometry::exclusive::Exclusive;
use crate::geometry::{DynBrick, Layout, PerAxis, Transfer};

/// Memory that a rank exposes in an epoch.
#[derive(Debug)]
pub enum Expose<'a> {
    /// Memory that all ranks may read.
    Read(&'a [u8]),
    /// Memory that each rank writes its partition of.
    Write {
        /// Where partitions are read, if not in `write`.
        read: Option<&'a [u8]>,
        /// Where partitions are written.
        write: &'a mut [u8],
        /// The number that [`NodeMemory::register`] returned.
        partition: usize,
        /// Where this rank accesses its own elements, if elsewhere.
        local: LocalBuffers<'a>,
    },
}

/// Private memory of a rank, as large as its brick. It has exclusive elements, and elements that
/// the rank transforms first or last, instead of exposed memory.
#[derive(Debug, Default)]
pub struct LocalBuffers<'a> {
    /// Where elements are read, if elsewhere than written.
    pub input: Option<&'a [u8]>,
    /// Where elements are written.
    pub output: Option<&'a mut [u8]>,
    /// Whether its own elements of its partition are read here.
    pub copy_in: bool,
    /// Whether its own elements of its partition are written here.
    pub copy_out: bool,
}

/// The body of an epoch.
pub type Work<'a> = &'a mut dyn FnMut(&mut dyn PeerMemory) -> Result<(), Error>;

/// Shared memory of the ranks of a host: all with [`Link::Own`](crate::Link) and
/// [`Link::Shared`](crate::Link). Ranks are numbered as in the communicator.
///
/// `allocate`, `register`, `sync`, `exposure_epoch` and dropping it are **collective**.
pub trait NodeMemory: Send {
    /// Whether any memory can be exposed, as between threads, and not only allocated memory.
    fn exposes_all(&self) -> bool;

    /// Whether these bytes can be exposed.
    fn sees(&self, memory: &[u8]) -> bool;

    /// Zeroed memory that can be exposed. If it outlives this object, it is kept to the end.
    ///
    /// # Errors
    /// When a rank does not get its memory.
    fn allocate(&mut self, bytes: usize) -> Result<Box<dyn SharedMemory>, Error>;

    /// Registers this rank's partition of a division, and returns its number.
    ///
    /// # Errors
    /// [`Error::Disagreement`] on every rank for different divisions.
    fn register(&mut self, partition: WritePartition) -> Result<usize, Error>;

    /// Waits for all ranks of the host; whether all have succeeded. Nothing is sent or exposed.
    ///
    /// # Errors
    /// [`Error::Left`] on all ranks when one left; [`Error::Transport`] if MPI cannot be called.
    fn sync(&mut self, succeeded: bool) -> Result<bool, Error>;

    /// Exposes memory, calls `work` when all ranks have entered, and returns when all exit.
    ///
    /// A rank whose partition [is alone](WritePartition::is_alone) exposes nothing and does not
    /// wait. The length of its memory is not checked before `work` accesses it.
    ///
    /// # Errors
    /// The errors of `work` and [`NodeMemory::sync`]; [`Error::Argument`] on every rank, without
    /// calling `work`, for memory that is too short or cannot be exposed, or for different
    /// partitions.
    ///
    /// # Panics
    /// If no partition has this number, or `work` panics.
    fn exposure_epoch(&mut self, show: Expose<'_>, work: Work<'_>) -> Result<(), Error>;
}

/// Memory of this rank that can be exposed.
pub trait SharedMemory: Send + Sync {
    /// The memory, aligned to [`SLOT_ALIGN`](crate::SLOT_ALIGN).
    fn bytes(&self) -> &[u8];

    /// The memory, to be written.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// The memory of the host's ranks during an epoch.
pub trait PeerMemory {
    /// The memory that a rank exposes for reading.
    ///
    /// # Panics
    /// If this epoch writes it, or the rank is on another host.
    fn shown(&self, peer: usize) -> &[u8];

    /// Copies a segment of this rank's partition to `tile`.
    ///
    /// # Panics
    /// If there is no such segment, or this epoch is for reading. If `tile` or the segment's memory
    /// is too short. If the epoch reads other data than it writes.
    fn fetch(&mut self, segment: usize, tile: &mut [u8]);

    /// Copies `tile` back to a segment.
    ///
    /// # Panics
    /// If there is no such segment, or this epoch is for reading. If `tile` or the segment's memory
    /// is too short.
    fn store(&mut self, segment: usize, tile: &[u8]);
}

/// The elements that one rank may access while memory is divided.
///
/// Invariant for memory safety elsewhere: partitions of different ranks with equal
/// [`WritePartition::division`] are disjoint. A segment is a part of this rank's brick in one
/// layout and of its owner's in another. A [`Layout`] gives each point to one rank. Each point has
/// one place in its owner's memory. Exclusive parts are accessed by owners only.
#[derive(Debug)]
pub struct WritePartition {
    rank: usize,
    element: usize,
    /// Elements that each rank exposes.
    lens: Vec<usize>,
    /// Elements of all ranks.
    elements: usize,
    /// Bytes that each rank exposes for reading, if these are other data.
    read: Option<Vec<usize>>,
    segments: Vec<Segment>,
    division: Vec<u64>,
    alone: bool,
}

/// Elements of one owner, and their places in a dense tile.
#[derive(Debug)]
pub struct Segment {
    owner: usize,
    /// From the exposed memory to the tile; if exclusive, from the owner's brick.
    transfer: Transfer,
    /// From the owner's brick, if this rank is the owner and exposes something else.
    whole: Option<Box<Transfer>>,
    exclusive: bool,
}

impl WritePartition {
    /// An empty partition: owners hold `home`, except for `exclusive`, and ranks access `work`.
    pub(crate) fn new(
        rank: usize,
        [home, work]: [&Layout; 2],
        exclusive: &Exclusive,
        element: usize,
        batch: usize,
    ) -> Self {
        let mut division = vec![home.grid().axes() as u64, element as u64, batch as u64];
        for layout in [home, work] {
            division.extend(words(layout));
        }
        division.extend((0..home.ranks()).flat_map(|rank| bounds(&exclusive.brick(rank))));
        let lens = (0..home.ranks()).map(|rank| exclusive.public_points(rank) * batch).collect();
        let elements = home.grid().points() * batch;
        let alone = home.bricks() == work.bricks();
        Self { rank, element, lens, elements, read: None, segments: Vec::new(), division, alone }
    }

    /// Adds the segments of a tile, a box of this rank's brick in `work` with its axes in `order`.
    ///
    /// # Panics
    /// If the box is not part of that brick.
    pub(crate) fn claim(
        &mut self,
        [home, work]: [&Layout; 2],
        exclusive: &Exclusive,
        tile: &DynBrick,
        order: PerAxis<usize>,
        batch: usize,
    ) {
        let mine = work.brick(self.rank);
        let own = tile.is_empty() || tile.intersect(&mine) == *tile;
        assert!(own, "a rank claims only what is in its own brick");
        self.segments.extend(Segment::of(self.rank, home, exclusive, tile, order, batch));
    }

    /// Makes elements be read from `batch` other bricks, which all ranks may read.
    pub(crate) fn reading(mut self, layout: &Layout, element: usize, batch: usize) -> Self {
        self.division.push(element as u64);
        self.division.extend(words(layout));
        let bytes = |brick: &DynBrick| brick.points() * batch * element;
        self.read = Some(layout.bricks().iter().map(bytes).collect());
        self
    }

    /// Whether each rank accesses only its own elements, so that no rank waits.
    pub fn is_alone(&self) -> bool {
        self.alone && self.read.is_none()
    }

    /// The rank whose partition it is.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Bytes that a rank exposes.
    pub fn bytes(&self, rank: usize) -> usize {
        self.lens[rank] * self.element
    }

    /// Bytes of all ranks' elements, exposed or not.
    pub fn all_bytes(&self) -> usize {
        self.elements * self.element
    }

    /// Bytes that a rank exposes for reading, if these are other data.
    pub fn read_bytes(&self, rank: usize) -> Option<usize> {
        self.read.as_ref().map(|bytes| bytes[rank])
    }

    /// Bytes of an element.
    pub fn element(&self) -> usize {
        self.element
    }

    /// Frees room for more segments.
    pub(crate) fn shrink(&mut self) {
        self.segments.shrink_to_fit();
    }

    /// The segments by number.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Numbers that are equal on all ranks that divide the same memory in the same way.
    pub fn division(&self) -> &[u64] {
        &self.division
    }
}

fn words(layout: &Layout) -> impl Iterator<Item = u64> {
    let order = layout.order().into_iter().map(|axis| axis as u64);
    order.chain(layout.bricks().iter().flat_map(bounds))
}

fn bounds(brick: &DynBrick) -> impl Iterator<Item = u64> + use<> {
    brick.lo.into_iter().chain(brick.hi).map(|bound| bound as u64)
}

impl Segment {
    /// The segments of a tile with its axes in `order`.
    pub(crate) fn of(
        rank: usize,
        home: &Layout,
        exclusive: &Exclusive,
        tile: &DynBrick,
        order: PerAxis<usize>,
        batch: usize,
    ) -> Vec<Self> {
        let mut segments = Vec::new();
        home.intersections(tile, |owner, common| {
            let from = |part: &DynBrick, brick| {
                let (from, to) = (Placed { brick, order: home.order(), batch }, *tile);
                Transfer::new(part, 0..batch, &from, &Placed { brick: to, order, batch })
            };
            let whole = |part: &DynBrick| from(part, home.brick(owner));
            let common = |part: &DynBrick| Some(common.intersect(part)).filter(|p| !p.is_empty());
            for (dense, before) in exclusive.public(owner) {
                segments.extend(common(dense).map(|part| {
                    let transfer = from(&part, *dense).behind(before * batch, 0);
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

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.whole.as_ref().map_or(0, |whole| size_of_val(&**whole))
    }

    /// The rank whose memory it is in.
    pub fn owner(&self) -> usize {
        self.owner
    }

    /// From the exposed memory to the tile; from the owner's brick if exclusive.
    pub fn transfer(&self) -> &Transfer {
        &self.transfer
    }

    /// The same from this rank's whole brick, if it is the owner.
    pub fn whole(&self) -> &Transfer {
        self.whole.as_deref().unwrap_or(&self.transfer)
    }

    /// Whether only this rank accesses it, outside of exposed memory.
    pub fn is_exclusive(&self) -> bool {
        self.exclusive
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{DynGrid, ProcGrid};

    /// Partitions of all ranks, with whole bricks as tiles.
    fn partitions(home: &Layout, work: &Layout, batch: usize) -> Vec<WritePartition> {
        let partition = |rank| {
            let (layouts, exclusive) = ([home, work], Exclusive::nothing(home));
            let mut partition = WritePartition::new(rank, layouts, &exclusive, 16, batch);
            partition.claim(layouts, &exclusive, &work.brick(rank), home.order(), batch);
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

    /// One rank accesses each element that is exposed or exclusive, and each rank's own memory.
    #[test]
    fn shares_with_private_parts_give_every_element_to_one_rank() {
        let grid = DynGrid::new([5, 7, 6]).unwrap();
        let even = |shape| Layout::even(grid, ProcGrid::new(shape), 6);
        let layouts = [[6, 1, 1], [1, 2, 3], [2, 3, 1], [1, 1, 4], [1, 1, 1]].map(even);
        let batch = 2;
        for home in &layouts {
            let home = home.clone().ordered([1, 2, 0]).unwrap();
            for works in [[0, 1], [1, 2], [2, 4], [3, 3]].map(|two| two.map(|i| &layouts[i])) {
                let exclusive = Exclusive::of(&home, &works);
                let counts = |points: &dyn Fn(usize) -> usize| -> Vec<Vec<usize>> {
                    (0..6).map(|rank| vec![0; batch * points(rank)]).collect()
                };
                let all = |rank: usize| home.brick(rank).points();
                for work in works {
                    let mut shown = counts(&|rank| exclusive.public_points(rank));
                    let mut own = counts(&all);
                    for rank in 0..6 {
                        let mut partition =
                            WritePartition::new(rank, [&home, work], &exclusive, 16, batch);
                        let tile = work.brick(rank);
                        partition.claim([&home, work], &exclusive, &tile, home.order(), batch);
                        let mut filled = vec![0; batch * tile.points()];
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
                        assert_eq!(own.iter().sum::<usize>(), batch * mine.points());
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
