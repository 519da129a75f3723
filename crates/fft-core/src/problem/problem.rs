//! What is to be transformed, before anyone has thought about how.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::algorithm::Algorithm;
use super::kind::{Direction, Kind, Scale};
use super::machine::Machine;
use crate::base::cache_sizes::{CACHED_CHUNK_BYTES, LONG_MESSAGE_BYTES, MESSAGE_BYTES};
use crate::base::{Error, Precision, Tolerance};
use crate::codec::Wire;
use crate::geometry::{DynGrid, Layout, PerAxis};

/// How much memory a plan takes beside input and output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Memory {
    /// As much as makes it fast. Large data goes in chunks, of which four are under way at once, with [`Algorithm::KWay`] one: with 256³
    /// points on 4 ranks 1.03 to 1.11 times what a rank holds, of real data 1.4. [`Algorithm::Ring`] has a quarter of all messages of a
    /// reshape at once, 1.6 to 2.3 times; where data is small, on more than 16 ranks, and between some ranks of several hosts that share
    /// memory, others have all of them, 2.3 to 3 times.
    /// [`Algorithm::Shared`] on one host has no messages: once that at most and, where what is between does not fit into the
    /// output, what of it does not; or, where ranks could not read that in two pieces, as with bricks that are not even, twice.
    /// Half a MiB is for lines that lie far apart.
    #[default]
    Ample,
    /// Once what a rank holds at most in the course of a transform, what of that does not fit into the output, and 1 to 6 % for
    /// messages, which go in about 128 rounds; with small data 8 KiB for each rank and each message at a time.
    ///
    /// The output is one of the two places that steps read and write by turns. More than it has room for is half a spectrum, of
    /// n + 2 real numbers for n, on the way back to real data in another array, by 2 in n; and what layouts give to a rank that
    /// are less even between than at the ends: up to twice what it holds, where it holds nothing at the end. With
    /// reshapes from one place to another none that keeps its input does with less. Bricks are cut in whole planes, so that a
    /// plane may be added.
    ///
    /// With [`Algorithm::Shared`] ranks cannot read each other's memory where it is in two pieces, nor under MPI in the output.
    /// Then the result is made in the other place and copied, or ranks of one host send messages, too.
    Least,
}

impl Memory {
    /// Rounds that the messages of a reshape go in at most, where there are chunks: each ends before the next begins.
    pub fn rounds(self, exchange: Algorithm) -> usize {
        use Algorithm::{Alltoallv, KWay, Ring};
        match (self, exchange) {
            // What is unpacked after the last of them delays the end.
            (Self::Ample, Ring(_)) => 4,
            // One message to a rank at a time.
            (_, Alltoallv | KWay(_)) => usize::MAX,
            (Self::Ample, _) => 1,
            (Self::Least, _) => 128,
        }
    }
}

/// `ample`, `least`.
impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ample => "ample",
            Self::Least => "least",
        })
    }
}

/// Reads what [`Display`](fmt::Display) writes.
impl FromStr for Memory {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = [Self::Ample, Self::Least].into_iter().find(|known| known.to_string() == name);
        found.ok_or_else(|| Error::argument("memory", name, "ample or least"))
    }
}

/// How local transforms come to their data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// Through caches, lines wherever they lie: on hosts.
    #[default]
    Cached,
    /// Lines are transformed where they are contiguous, and messages packed from memory: on devices, which have no caches to do both
    /// in at once.
    Contiguous,
    /// The same; and after a reshape between ranks that share a device, or have some that are joined, they fetch what they read, so that
    /// the axis which is contiguous stays so (`fetching.rs`).
    Fetched,
}

/// Of chunks that save memory, the fewest that a rank has.
const MANY: usize = 8;

/// A transform to be done: shapes, kinds, layouts and options. Equal on all ranks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Problem {
    /// What is done along each axis.
    pub kinds: PerAxis<Kind>,
    /// Whether physical data is complex.
    pub complex: bool,
    /// Of all numbers.
    pub precision: Precision,
    /// Equal transforms done together, one array after the other in each rank's memory.
    pub howmany: usize,
    /// Scale of the forward transform.
    pub forward: Scale,
    /// Scale of the inverse transform.
    pub inverse: Scale,
    /// Where physical data is.
    pub input: Layout,
    /// Where spectral data is.
    pub output: Layout,
    /// How messages to other hosts are represented, or all, where ranks are not to know who is on their host.
    pub wire: Wire,
    /// Reshapes of which messages are represented otherwise, by their number in the forward transform.
    pub wires: Vec<(usize, Wire)>,
    /// What a transform may lose on the wire [`Wire::Tolerance`].
    pub tolerance: Option<Tolerance>,
    /// How they travel.
    pub exchange: Algorithm,
    /// A number for the host of each rank ([`Comm::host`](crate::Comm::host)); empty when nobody is to look at another
    /// rank's memory.
    pub hosts: Vec<usize>,
    /// Bytes of a chunk of messages where they travel in chunks: one is packed while the one before it flies. At least
    /// 8 KiB for each rank.
    pub chunk: usize,
    /// What a plan may take.
    pub memory: Memory,
    /// Whether input and output are in memory that the ranks of a host share, so that nothing need be brought there.
    pub shared_arrays: bool,
    /// How local transforms come to their data.
    pub access: Access,
    /// What costs are effective_exchange with: the same on all ranks.
    pub machine: Arc<Machine>,
}

/// How large chunks are.
#[derive(Clone, Copy, Debug)]
pub struct Chunking {
    /// Bytes at most, unless planes across the axis that is cut are larger; no less than 8 KiB for each rank.
    pub bytes: usize,
    /// Whether such planes are cut, too: chunks are smaller, and come in shorter runs of memory.
    pub fine: bool,
}

impl Chunking {
    /// With messages that are not too short on average.
    pub(crate) fn for_ranks(self, ranks: usize) -> Self {
        Self { bytes: self.bytes.max(MESSAGE_BYTES * ranks), ..self }
    }
}

impl Problem {
    /// Bytes of a chunk unless told otherwise: it stays in the second-level cache while the one before it flies.
    pub const CHUNK: usize = 1 << 19;

    /// A problem with default options: one transform, unscaled forward and fully scaled inverse, nothing
    /// lost on the wire.
    ///
    /// # Errors
    /// [`Error::Argument`] when there are other kinds than axes, kinds do not go with the data or
    /// with each other, an axis is too short
    /// for its kind, or the output's grid is not [`Problem::spectral_grid`]; [`Error::Geometry`] when the
    /// layouts are for different numbers of ranks.
    pub fn new(
        kinds: impl Into<PerAxis<Kind>>,
        complex: bool,
        precision: Precision,
        input: Layout,
        output: Layout,
    ) -> Result<Self, Error> {
        let (kinds, grid) = (kinds.into(), input.grid());
        if kinds.len() != grid.axes() {
            return Err(Error::argument("axes with a kind", kinds.len(), grid.axes()));
        }
        for (axis, kind) in kinds.iter().enumerate() {
            kind.check(axis, grid.len(axis))?;
        }
        let halved = kinds.iter().filter(|kind| **kind == Kind::R2C).count();
        let list = || kinds.map(Kind::name).join(", ");
        if halved > usize::from(!complex) {
            let allowed = if complex { "none for complex data" } else { "at most one" };
            return Err(Error::argument("axes of kind r2c", list(), allowed));
        }
        if !complex && halved == 0 && kinds.contains(&Kind::C2C) {
            let expected = "one axis of kind r2c to make real data complex";
            return Err(Error::argument("kinds of a real transform", list(), expected));
        }
        let spectral = Self::spectral_grid(grid, kinds);
        if output.grid() != spectral {
            return Err(Error::argument("grid of the output", output.grid(), spectral));
        }
        if input.ranks() != output.ranks() {
            return Err(Error::rank_count(output.ranks(), input.ranks()));
        }
        Ok(Self {
            kinds,
            complex,
            precision,
            howmany: 1,
            forward: Scale::None,
            inverse: Scale::Full,
            input,
            output,
            wire: Wire::default(),
            wires: Vec::new(),
            tolerance: None,
            exchange: Algorithm::default(),
            hosts: Vec::new(),
            chunk: Self::CHUNK,
            memory: Memory::default(),
            shared_arrays: false,
            access: Access::default(),
            machine: Arc::default(),
        })
    }

    /// Whether two ranks can read each other's memory on their host in a reshape; what devices reach is found when they meet.
    pub fn near(&self, a: usize, b: usize) -> bool {
        a == b
            || self.effective_exchange() == Algorithm::Shared
                && !self.hosts.is_empty()
                && self.hosts[a] == self.hosts[b]
    }

    /// The exchange as which the problem's is effective_exchange. With [`Algorithm::Shared`] ranks share memory of a host; messages between devices go
    /// in chunks, whoever is at the other end.
    pub(crate) fn effective_exchange(&self) -> Algorithm {
        match self.exchange {
            Algorithm::Shared if self.access != Access::Cached => Algorithm::Pipelined,
            exchange => exchange,
        }
    }

    /// The exchange that is bound where this one is asked for: windows are memory of the host, so that devices send
    /// chunks instead.
    pub(crate) fn bound_exchange(&self, named: Algorithm) -> Algorithm {
        match named {
            Algorithm::Ring(_) if self.access != Access::Cached => Algorithm::Pipelined,
            named => named,
        }
    }

    /// How messages of a reshape are represented, by its number in the forward transform.
    pub(crate) fn wire_of(&self, reshape: usize) -> Wire {
        let own = self.wires.iter().rev().find(|(number, _)| *number == reshape);
        own.map_or(self.wire, |(_, wire)| *wire)
    }

    /// Whether a wire is that of one host's ranks among each other: every bit arrives, as nothing is gained there.
    pub fn is_raw_link(&self, a: usize, b: usize) -> bool {
        !self.hosts.is_empty() && self.hosts[a] == self.hosts[b]
    }

    /// What rounding may add to the result of a transform, as a share of its l2 norm: `2ε max(4, log₂ N)`, a few times
    /// what it does.
    pub fn rounding(&self) -> f64 {
        let epsilon = match self.precision {
            Precision::F32 => f64::from(f32::EPSILON),
            Precision::F64 => f64::EPSILON,
        };
        2.0 * epsilon * (self.grid().points() as f64).log2().max(4.0)
    }

    /// Checks wires and tolerance.
    ///
    /// # Errors
    /// [`Error::Argument`].
    pub(crate) fn check_wires(&self) -> Result<(), Error> {
        let all = || self.wires.iter().map(|(_, wire)| *wire).chain([self.wire]);
        all().try_for_each(Wire::check)?;
        let Some(tolerance) = self.tolerance else {
            return match all().find(|wire| *wire == Wire::Tolerance) {
                Some(wire) => Err(Error::argument("wire without a tolerance", wire, "another")),
                None => Ok(()),
            };
        };
        if let Some(wire) = all().find(|wire| wire.is_lossy() && *wire != Wire::Tolerance)
            && tolerance.is_strict()
        {
            let expected = "only wire tolerance, or none that loses anything";
            return Err(Error::argument("wire beside a strict tolerance", wire, expected));
        }
        // Of what is less than twice the rounding nothing is left for the wire.
        let least = 2.0 * self.rounding();
        if tolerance.value() < least {
            // Rounded up, so that it can be had.
            let unit = 10f64.powf(least.log10().floor() - 1.0);
            let least = (least / unit).ceil() * unit;
            let expected = format!("at least {least:.1e}, as the numbers themselves are rounded");
            return Err(Error::argument("tolerance", tolerance, expected));
        }
        Ok(())
    }

    /// Real numbers of a point of physical and of spectral data.
    pub fn widths(&self) -> [usize; 2] {
        [self.complex, self.complex_spectrum()].map(|complex| if complex { 2 } else { 1 })
    }

    /// Real numbers that a rank holds of physical and of spectral data.
    pub fn reals(&self, rank: usize) -> [usize; 2] {
        let [physical, spectral] = self.widths();
        let points = |layout: &Layout| layout.brick(rank).points() * self.howmany;
        [points(&self.input) * physical, points(&self.output) * spectral]
    }

    /// Bytes of data that a rank holds on average.
    fn share(&self) -> usize {
        let point = self.precision.bytes() * self.widths()[0];
        let point = point.saturating_mul(self.howmany);
        self.grid().points().saturating_mul(point) / self.input.ranks()
    }

    /// Whether each rank is on a host of its own, as far as anybody is to know.
    fn one_rank_per_host(&self) -> bool {
        let mut hosts = self.hosts.clone();
        hosts.sort_unstable();
        hosts.is_sorted_by(|a, b| a < b)
    }

    /// Bytes of a chunk of which every message is long.
    fn long_chunk(&self) -> usize {
        self.chunk.max(LONG_MESSAGE_BYTES.saturating_mul(self.input.ranks()))
    }

    /// Whether messages could be read as they come, with ample memory, where it pays.
    fn may_stream(&self) -> bool {
        use Algorithm::{Alltoallv, KWay, P2p, Pipelined, Shared};
        let can = match self.exchange {
            P2p | Pipelined | Alltoallv | KWay(_) => true,
            Shared => self.one_rank_per_host(),
            _ => false,
        };
        can && self.memory == Memory::Ample && self.access == Access::Cached
    }

    /// Whether they are: data is large, in chunks that are transformed in cache on their way out, of which no more than a few are
    /// under way at once. That takes less memory than whole messages, or all chunks, and no more time. Where chunks with long
    /// messages are too large for a cache, or few, it takes more.
    fn is_streaming(&self) -> bool {
        let cached = LONG_MESSAGE_BYTES.saturating_mul(self.input.ranks()) <= CACHED_CHUNK_BYTES;
        self.may_stream() && cached && self.share() / self.long_chunk() >= MANY
    }

    /// Whether messages are cut into chunks: so that one is packed while others fly, or to need memory for one only.
    pub fn chunked(&self) -> bool {
        use Algorithm::{Pipelined, Ring, Shared};
        let chunks = matches!(self.exchange, Shared | Pipelined | Ring(_));
        chunks || self.memory == Memory::Least || self.is_streaming()
    }

    /// Bytes of a chunk: with [`Memory::Least`] no more than a 256th of what a rank has, of which two make a round; a 128th
    /// where each is one.
    pub fn chunk_bytes(&self) -> usize {
        match self.memory {
            Memory::Ample if self.is_streaming() => self.long_chunk(),
            Memory::Ample => self.chunk,
            Memory::Least => {
                let parts = match self.exchange {
                    Algorithm::Alltoallv | Algorithm::KWay(_) => 128,
                    _ => 256,
                };
                self.chunk.min(self.share() / parts).max(1)
            }
        }
    }

    /// How bricks are cut into chunks, where they are.
    pub(crate) fn chunking(&self) -> Chunking {
        // Of a collective, or of rounds of one chunk, nothing flies while a chunk is made, which is the faster for being in cache.
        let alone = matches!(self.exchange, Algorithm::Alltoallv | Algorithm::KWay(_));
        let fine = self.memory == Memory::Least || alone;
        Chunking { bytes: self.chunk_bytes(), fine }
    }

    /// Bytes of what is transformed on the way out: with [`Memory::Least`] no more than a chunk has anyway.
    pub(crate) fn tile_bytes(&self) -> usize {
        match self.memory {
            Memory::Ample => usize::MAX,
            Memory::Least => self.chunk_bytes().max(MESSAGE_BYTES * self.input.ranks()),
        }
    }

    /// Whether messages of a reshape are kept until all have come, and read then.
    pub(crate) fn buffers_all(&self) -> bool {
        self.memory == Memory::Ample && self.exchange.keeps() && !self.is_streaming()
    }

    /// Bytes of a chunk, where there are chunks, of another size than [`Problem::CHUNK`].
    pub(crate) fn uncommon_chunk(&self) -> Option<usize> {
        let chunks = self.chunked() || self.may_stream();
        let chunks = chunks && !self.all_near() && self.input.ranks() > 1;
        Some(self.chunk).filter(|chunk| chunks && *chunk != Self::CHUNK)
    }

    /// Whether transforms fetch what they read from all other ranks, however messages travel: those of one host.
    pub fn fetches(&self) -> bool {
        let host = self.hosts.first();
        self.access == Access::Fetched
            && self.hosts.iter().all(|other| Some(other) == host)
            && host.is_some()
    }

    /// Whether a chunk is also transformed just before it is packed: where it is asked for, where there are chunks to spare
    /// memory, and where memory is to be shared but each rank is on a host of its own. Otherwise those that read this rank's
    /// memory must find there what has been transformed. Not where lines must be contiguous.
    pub fn pipelined(&self) -> bool {
        match self.exchange {
            _ if self.access != Access::Cached => false,
            Algorithm::Pipelined | Algorithm::Ring(_) => true,
            Algorithm::Shared => self.one_rank_per_host(),
            _ => self.memory == Memory::Least || self.is_streaming(),
        }
    }

    /// Whether all ranks can.
    pub fn all_near(&self) -> bool {
        (1..self.input.ranks()).all(|rank| self.near(0, rank))
    }

    /// The grid after the forward transform: the axis of kind R2C has `n/2 + 1` points.
    ///
    /// # Panics
    /// If there are more kinds than axes.
    pub fn spectral_grid(grid: impl Into<DynGrid>, kinds: impl Into<PerAxis<Kind>>) -> DynGrid {
        let (grid, kinds) = (grid.into(), kinds.into());
        (0..kinds.len())
            .fold(grid, |grid, axis| grid.with_len(axis, kinds[axis].spectral_len(grid.len(axis))))
    }

    /// The index space of physical data.
    pub fn grid(&self) -> DynGrid {
        self.input.grid()
    }

    /// The axis of which half a spectrum is kept.
    pub(crate) fn halved_axis(&self) -> Option<usize> {
        self.kinds.iter().position(|kind| *kind == Kind::R2C)
    }

    /// Whether spectral data is complex.
    pub fn complex_spectrum(&self) -> bool {
        self.complex || self.kinds.contains(&Kind::R2C)
    }

    /// The product of the axes' logical lengths: what forward and inverse multiply by together, unscaled.
    pub fn logical_points(&self) -> f64 {
        let len = |axis: usize| self.kinds[axis].logical_len(self.grid().len(axis)) as f64;
        (0..self.kinds.len()).map(len).product()
    }

    /// What results are multiplied by.
    pub fn factor(&self, direction: Direction) -> f64 {
        match direction {
            Direction::Forward => self.forward.factor(self.logical_points()),
            Direction::Inverse => self.inverse.factor(self.logical_points()),
        }
    }
}
