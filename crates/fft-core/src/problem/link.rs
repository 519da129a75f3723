//! Links between ranks.

/// The connection of two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Link {
    /// The same rank: memory is copied.
    Own,
    /// Two ranks of one host: memory can be shared.
    Shared,
    /// Any other rank: messages are sent.
    Remote,
}
