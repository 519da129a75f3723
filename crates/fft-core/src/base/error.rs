//! What can go wrong, with the rank and both values in the text.

/// Everything that fft-core and fft-comm can fail with.
///
/// A failure that only some ranks can see (a short slice, a failed allocation, a damaged message) goes
/// through [`agree`](crate::agree) before it reaches the caller, and every rank then holds the same
/// [`Error::OnRank`] naming the lowest failing rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A grid without points, or bricks that do not tile it, one per rank.
    #[error("{0}")]
    Geometry(String),
    /// More points than can be counted.
    #[error("grid {grid} with {howmany} batches has more than 2^58 points")]
    TooLarge {
        /// The grid's shape.
        grid: String,
        /// Transforms in one batch.
        howmany: usize,
    },
    /// A combination of kinds, lengths or options that has no meaning.
    #[error("{what}: found {found}, expected {expected}")]
    Argument {
        /// Which argument.
        what: String,
        /// What was given.
        found: String,
        /// What would do.
        expected: String,
    },
    /// The ranks were called with different problems.
    #[error("the ranks disagree on the {what}: rank {rank_a} has {a}, rank {rank_b} has {b}")]
    Disagreement {
        /// What differs.
        what: String,
        /// A rank.
        rank_a: usize,
        /// Its value.
        a: String,
        /// The first rank that differs from it.
        rank_b: usize,
        /// Its value.
        b: String,
    },
    /// A slice of the wrong length.
    #[error("the {what} of rank {rank} has {found} elements, expected {expected}")]
    Length {
        /// Input, output, ...
        what: &'static str,
        /// Whose.
        rank: usize,
        /// Elements given.
        found: usize,
        /// Elements needed.
        expected: usize,
    },
    /// Memory that the system did not give.
    #[error("rank {rank} could not allocate {bytes} bytes")]
    Memory {
        /// Where.
        rank: usize,
        /// How much.
        bytes: usize,
    },
    /// Memory that the ranks of a host cannot share.
    #[error(
        "the ranks on the host of rank {rank} need {wanted} bytes of shared memory, and {place} has {free}: enlarge it, \
         or choose an exchange other than shared"
    )]
    SharedMemory {
        /// One of the host's.
        rank: usize,
        /// Bytes for all of them.
        wanted: u64,
        /// Where it would be.
        place: &'static str,
        /// Bytes that are free there.
        free: u64,
    },
    /// A message that is not what the plan says it must be.
    #[error("rank {rank} received {found} bytes from rank {from}, expected {expected}")]
    Message {
        /// The receiver.
        rank: usize,
        /// The sender.
        from: usize,
        /// Bytes that came.
        found: usize,
        /// Bytes announced by the plan.
        expected: usize,
    },
    /// A message, or several that travelled as one, with a header or a body that is not what the plan says.
    #[error("rank {rank} received from rank {from} {found}, expected {expected}")]
    Header {
        /// The receiver.
        rank: usize,
        /// The sender.
        from: usize,
        /// What came.
        found: String,
        /// What the plan says.
        expected: String,
    },
    /// A call of the communication library that failed.
    #[error("{call} failed on rank {rank}: {text}")]
    Transport {
        /// Where.
        rank: usize,
        /// Which call.
        call: &'static str,
        /// What the library says.
        text: String,
    },
    /// A device that is not there, or cannot be used.
    #[error("rank {rank} has no device: {why}")]
    NoDevice {
        /// Where.
        rank: usize,
        /// What is missing.
        why: String,
    },
    /// A rank that ended, or dropped what was of all, while others still needed it.
    #[error("rank {gone} left while others went on")]
    Left {
        /// Who left.
        gone: usize,
    },
    /// What every rank gets when at least one failed: the error of the lowest failing rank.
    #[error("rank {rank}: {message}")]
    OnRank {
        /// The lowest failing rank.
        rank: usize,
        /// What kind of failure it had.
        kind: ErrorKind,
        /// What it said.
        message: String,
    },
}

/// Whose fault an [`Error`] is, for callers that act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum ErrorKind {
    /// Bricks that do not tile the grid.
    Geometry = 1,
    /// Any other argument.
    Argument = 2,
    /// No memory.
    Memory = 3,
    /// A damaged or unexpected message.
    Message = 4,
    /// The communication library, or a rank that went away.
    Transport = 5,
    /// Too little memory that the ranks of a host can share.
    SharedMemory = 6,
    /// No such device, or none that can be used.
    Device = 7,
}

impl ErrorKind {
    /// The kind with this number, as sent between ranks.
    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Geometry,
            2 => Self::Argument,
            3 => Self::Memory,
            4 => Self::Message,
            6 => Self::SharedMemory,
            7 => Self::Device,
            _ => Self::Transport,
        }
    }
}

impl Error {
    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Geometry(_) => ErrorKind::Geometry,
            Self::TooLarge { .. }
            | Self::Argument { .. }
            | Self::Disagreement { .. }
            | Self::Length { .. } => ErrorKind::Argument,
            Self::Memory { .. } => ErrorKind::Memory,
            Self::SharedMemory { .. } => ErrorKind::SharedMemory,
            Self::NoDevice { .. } => ErrorKind::Device,
            Self::Message { .. } | Self::Header { .. } => ErrorKind::Message,
            Self::Transport { .. } | Self::Left { .. } => ErrorKind::Transport,
            Self::OnRank { kind, .. } => *kind,
        }
    }

    /// The error of a layout that has not one brick for each rank.
    pub fn rank_count(bricks: usize, ranks: usize) -> Self {
        Self::Geometry(format!("a layout for {ranks} ranks needs {ranks} bricks, found {bricks}"))
    }

    /// The error of a communicator that sends from its own memory only.
    pub(crate) fn unreached() -> Self {
        Self::argument("memory of messages", "that of somebody else", "the communicator's own")
    }

    /// An [`Error::Argument`] from anything printable.
    pub fn argument(what: impl ToString, found: impl ToString, expected: impl ToString) -> Self {
        Self::Argument {
            what: what.to_string(),
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }
}
