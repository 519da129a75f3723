//! The memory of plans, and how transforms access it.

use crate::base::named::names;

/// Memory of a plan besides input and output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Memory {
    /// As much memory as is fastest.
    ///
    /// Large data is sent in chunks, up to four in flight; one with [`Exchange::KWay`].
    /// [`Exchange::Ring`] holds a quarter of a reshape's messages at once. Small data, and data of
    /// many ranks, is held as whole messages.
    ///
    /// [`Exchange::Shared`] on one host has no messages. It holds the part of the data that does
    /// not fit into the output, or a copy of the data if bricks are uneven.
    ///
    /// [`Exchange::KWay`]: crate::Exchange::KWay
    /// [`Exchange::Ring`]: crate::Exchange::Ring
    /// [`Exchange::Shared`]: crate::Exchange::Shared
    #[default]
    Ample,
    /// Memory for intermediate data that does not fit into the output, and for short messages in
    /// many rounds.
    ///
    /// Steps alternate between the output and one other buffer. Intermediate data exceeds the
    /// output for half spectra of `n + 2` real numbers and for layouts less even than at the ends.
    /// Bricks are cut in whole planes, so a plane may be added.
    ///
    /// With [`Exchange::Shared`], peers cannot read a buffer split in two, nor the output under
    /// MPI. Then the result is copied, or ranks of one host send messages.
    ///
    /// [`Exchange::Shared`]: crate::Exchange::Shared
    Least,
}

names!(Memory, "memory", { Ample = "ample", Least = "least" });

/// Memory access of local transforms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// Lines at any stride, through caches: on hosts.
    #[default]
    Cached,
    /// Contiguous lines only; messages are packed from memory: on devices.
    Contiguous,
    /// Lines at any stride as fast as contiguous ones; messages are packed from memory: on devices
    /// with kernels for columns of these lengths, or if chunks make up for slower columns.
    Strided,
    /// As [`Access::Contiguous`]; in addition, transforms read their input from peers on the same
    /// host (`planner/peer_read_order.rs`).
    Fetched,
}
