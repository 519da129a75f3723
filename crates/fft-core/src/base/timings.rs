//! Where the time of transforms goes.

use std::time::{Duration, Instant};

/// Times and traffic of one rank since they were last cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timings {
    /// Packing and encoding messages.
    pub pack: Duration,
    /// Sending, receiving and waiting: the rest of an exchange.
    pub exchange: Duration,
    /// Decoding and unpacking messages.
    pub unpack: Duration,
    /// Copying data that stays on the rank.
    pub own: Duration,
    /// Copying from and to memory that ranks of the host share.
    pub shared: Duration,
    /// Local transforms and scaling.
    pub fft: Duration,
    /// Bytes of messages to other ranks.
    pub sent: u64,
    /// Bytes of headers and of forwarded messages.
    pub forwarded: u64,
    /// Real numbers encoded in the `sent` bytes.
    pub reals: u64,
}

impl Timings {
    /// This rank's own work within an exchange.
    pub(crate) fn busy(&self) -> Duration {
        self.pack + self.unpack + self.own + self.shared + self.fft
    }
}

/// Adds the duration of a call.
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
