//! Where the time of a transform goes.

use std::time::{Duration, Instant};

/// What one rank has done since the timings was last cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timings {
    /// Packing and encoding messages.
    pub pack: Duration,
    /// Sending and receiving, and waiting for others: everything in an exchange that is not listed apart.
    pub exchange: Duration,
    /// Decoding and unpacking messages.
    pub unpack: Duration,
    /// Copying what stays on the rank.
    pub own: Duration,
    /// Reading and writing memory of other ranks of the host, and this rank's beside it.
    pub shared: Duration,
    /// Local transforms, with their scaling.
    pub fft: Duration,
    /// Bytes of this rank's messages to other ranks.
    pub sent: u64,
    /// Bytes sent beside these: messages of others on their way, and headers.
    pub forwarded: u64,
    /// Real numbers that the bytes of `sent` stand for.
    pub reals: u64,
}

impl Timings {
    /// The part of an exchange that is work of this rank.
    pub(crate) fn busy(&self) -> Duration {
        self.pack + self.unpack + self.own + self.shared + self.fft
    }
}

/// Adds the time of a call.
pub(crate) trait Time {
    fn time<R>(&mut self, call: impl FnOnce() -> R) -> R;
}

impl Time for Duration {
    fn time<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = call();
        *self += start.elapsed();
        result
    }
}
