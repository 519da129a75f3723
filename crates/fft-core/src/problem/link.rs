//! Links between ranks.

/// How two ranks reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Link {
    /// The same rank: memory is copied.
    Own,
    /// A rank of the same host: its memory can be read.
    Shared,
    /// Any other rank: messages are sent.
    Remote,
}
