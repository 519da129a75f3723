//! How two ranks reach each other.

/// How two ranks reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Link {
    /// The same rank: memory is copied, nothing is sent.
    Own,
    /// A rank of the same host: its memory can be read.
    Shared,
    /// Any other rank: a message.
    Remote,
}
