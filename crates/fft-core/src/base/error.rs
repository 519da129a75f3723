//! Errors, with the rank and both values in the text.

use super::text::{escaped, shown, shown_list};

/// The errors of fft-core and fft-comm.
///
/// [`agree`](crate::agree) turns a failure of some ranks into [`Error::OnRank`] on all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A grid without points, or bricks that do not tile it, one per rank.
    #[error("{}", shown(.0))]
    Geometry(String),
    /// More points than can be counted.
    #[error("grid {grid} with {batch} batches has more than 2^58 points")]
    TooLarge {
        /// The grid's shape.
        grid: String,
        /// Transforms in one batch.
        batch: usize,
    },
    /// Kinds, lengths or options without a meaning.
    #[error("{}: found {}, expected {}", shown(.what), shown(.found), shown_list(.expected))]
    Argument {
        /// The argument.
        what: String,
        /// Its value.
        found: String,
        /// A valid value.
        expected: String,
    },
    /// The ranks were called with different values.
    #[error(
        "the ranks disagree on the {}: rank {rank_a} has {}, rank {rank_b} has {}",
        shown(.what), shown(.a), shown(.b)
    )]
    Disagreement {
        /// The value that differs.
        what: String,
        /// The lower rank.
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
        /// The array: input, output.
        what: &'static str,
        /// Its rank.
        rank: usize,
        /// Its length.
        found: usize,
        /// The plan's length.
        expected: usize,
    },
    /// The allocator refused.
    #[error("rank {rank} could not allocate {bytes} bytes")]
    Memory {
        /// The failing rank.
        rank: usize,
        /// The size of the allocation.
        bytes: usize,
    },
    /// The ranks of a host cannot share enough memory.
    #[error(
        "the ranks on the host of rank {rank} need {wanted} bytes of shared memory, \
         and {place} has {free}: enlarge it, or choose an exchange other than shared"
    )]
    SharedMemory {
        /// A rank of the host.
        rank: usize,
        /// Bytes that all ranks of the host need.
        wanted: u64,
        /// The file system.
        place: &'static str,
        /// Its free bytes.
        free: u64,
    },
    /// A message of another length than the plan's.
    #[error("rank {rank} received {found} bytes from rank {from}, expected {expected}")]
    Message {
        /// The receiver.
        rank: usize,
        /// The sender.
        from: usize,
        /// Bytes received.
        found: usize,
        /// The plan's bytes.
        expected: usize,
    },
    /// A message with an unexpected header or body.
    #[error(
        "rank {rank} received from rank {from} {}, expected {}", shown(.found), shown(.expected)
    )]
    Header {
        /// The receiver.
        rank: usize,
        /// The sender.
        from: usize,
        /// The value received.
        found: String,
        /// The plan's value.
        expected: String,
    },
    /// A failed call of the communication library.
    #[error("{call} failed on rank {rank}: {}", shown(.text))]
    Transport {
        /// The failing rank.
        rank: usize,
        /// The call.
        call: &'static str,
        /// The library's message.
        text: String,
    },
    /// Ranks are threads, and the system refused to start one.
    #[error("{}, one for each rank: {}", not_started(*found, *wanted), shown(.why))]
    Threads {
        /// Threads that could be started, if the number is known.
        found: Option<usize>,
        /// Threads of this process that ranks need.
        wanted: usize,
        /// The system's message.
        why: String,
    },
    /// No usable device.
    #[error("rank {rank} has no device: {}", shown(.why))]
    NoDevice {
        /// The rank without one.
        rank: usize,
        /// The reason.
        why: String,
    },
    /// A rank ended or dropped its plan while others still needed it.
    #[error("rank {gone} left while others went on")]
    Left {
        /// The rank that left.
        gone: usize,
    },
    /// The agreed error of all ranks when at least one failed.
    #[error("{}", on_rank(*rank, message))]
    OnRank {
        /// The lowest failing rank.
        rank: usize,
        /// The kind of its error.
        kind: ErrorKind,
        /// The text of its error.
        message: String,
    },
}

/// How many threads are missing.
fn not_started(found: Option<usize>, wanted: usize) -> String {
    match found {
        Some(found) => format!("{found} of {wanted} threads could be started"),
        None => format!("{wanted} threads could not be started"),
    }
}

/// The text of a rank's error, which names the rank once.
fn on_rank(rank: usize, message: &str) -> String {
    let name = format!("rank {rank}");
    let is_named = message.match_indices(&name).any(|(at, _)| {
        let (before, after) = (&message[..at], &message[at + name.len()..]);
        !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric)
    });
    let message = escaped(message);
    if is_named { message } else { format!("{name}: {message}") }
}

/// The kind of an [`Error`], for callers that act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum ErrorKind {
    /// Bricks that do not tile the grid.
    Geometry = 1,
    /// Any other argument.
    Argument = 2,
    /// Not enough memory.
    Memory = 3,
    /// A damaged or unexpected message.
    Message = 4,
    /// The communication library, or a rank that left.
    Transport = 5,
    /// Not enough memory that the ranks of a host can share.
    SharedMemory = 6,
    /// No usable device.
    Device = 7,
    /// Threads that cannot be started.
    Threads = 8,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Geometry,
        Self::Argument,
        Self::Memory,
        Self::Message,
        Self::Transport,
        Self::SharedMemory,
        Self::Device,
        Self::Threads,
    ];

    /// The kind with this number, which ranks send.
    pub(crate) fn from_code(code: u8) -> Self {
        let found = Self::ALL.into_iter().find(|kind| *kind as u8 == code);
        found.unwrap_or(Self::Transport)
    }
}

impl Error {
    /// The kind of this error.
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
            Self::Threads { .. } => ErrorKind::Threads,
            Self::Message { .. } | Self::Header { .. } => ErrorKind::Message,
            Self::Transport { .. } | Self::Left { .. } => ErrorKind::Transport,
            Self::OnRank { kind, .. } => *kind,
        }
    }

    /// The error of a layout without exactly one brick per rank.
    pub fn rank_count(bricks: usize, ranks: usize) -> Self {
        Self::Geometry(format!("a layout for {ranks} ranks needs {ranks} bricks, found {bricks}"))
    }

    /// The error of a communicator that sends from its own memory only.
    pub(crate) fn unreached() -> Self {
        Self::argument("memory of messages", "that of somebody else", "the communicator's own")
    }

    /// The same error of an argument with another name.
    pub fn of(self, name: impl Into<String>) -> Self {
        match self {
            Self::Argument { found, expected, .. } => {
                Self::Argument { what: name.into(), found, expected }
            }
            other => other,
        }
    }

    /// An [`Error::Argument`] of printable values.
    pub fn argument(what: impl ToString, found: impl ToString, expected: impl ToString) -> Self {
        Self::Argument {
            what: what.to_string(),
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text on every rank when rank 2 fails.
    fn agreed(error: Error) -> String {
        Error::OnRank { rank: 2, kind: error.kind(), message: error.to_string() }.to_string()
    }

    #[test]
    fn every_kind_has_a_number() {
        for (place, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place + 1);
            assert_eq!(ErrorKind::from_code(kind as u8), kind);
        }
        // If you add a kind here, add it to `ALL`, too.
        match ErrorKind::ALL[0] {
            ErrorKind::Geometry
            | ErrorKind::Argument
            | ErrorKind::Memory
            | ErrorKind::Message
            | ErrorKind::Transport
            | ErrorKind::SharedMemory
            | ErrorKind::Device
            | ErrorKind::Threads => {}
        }
    }

    #[test]
    fn the_rank_is_named_once() {
        let rank = 2;
        let text = "refused".to_string();
        for error in [
            Error::Memory { rank, bytes: 7 },
            Error::Length { what: "input", rank, found: 1, expected: 2 },
            Error::Message { rank, from: 1, found: 1, expected: 2 },
            Error::Transport { rank, call: "MPI_Win_create", text: text.clone() },
            Error::NoDevice { rank, why: text },
        ] {
            let said = error.to_string();
            assert_eq!(agreed(error), said);
            assert_eq!(said.matches("rank 2").count(), 1, "{said}");
        }
        // Another rank's number.
        assert_eq!(agreed(Error::Left { gone: 1 }), "rank 2: rank 1 left while others went on");
        assert_eq!(agreed(Error::Left { gone: 20 }), "rank 2: rank 20 left while others went on");
    }

    #[test]
    fn escaped_values_are_short() {
        let zeros = "\0".repeat(1000);
        let said = agreed(Error::argument(&zeros, &zeros, &zeros));
        assert!(said.len() < 1000 && said.contains("... (1000 characters)"), "{said}");
    }

    #[test]
    fn values_are_shortened_and_escaped() {
        let hostile = format!("\u{1b}[2J\r\n{}", "x".repeat(100_000));
        for error in [
            Error::argument("file", &hostile, "another"),
            Error::argument(&hostile, &hostile, &hostile),
            Error::Geometry(hostile.clone()),
            Error::Transport { rank: 2, call: "call", text: hostile },
        ] {
            let said = agreed(error);
            assert!(said.len() < 1000 && !said.contains(char::is_control), "{said}");
            assert!(said.contains(r"\u{1b}[2J\r\nxxx"), "{said}");
        }
    }
}
