//! How data gets from one device to another.

use std::fmt;
use std::str::FromStr;

use fft_core::Error;

/// How data gets to other ranks.
///
/// ```
/// use fft_gpu::GpuTransport;
/// assert_eq!("device".parse(), Ok(GpuTransport::GpuDirect));
/// assert!("devices".parse::<GpuTransport>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GpuTransport {
    /// Ranks whose memory is reached take it from there, or are written to; others get messages, from memory of the device
    /// where their way leads that far, else through the host.
    #[default]
    PeerToPeer,
    /// All that changes ranks is in messages, which are sent from memory of the device and received into it: CUDA-aware MPI.
    GpuDirect,
    /// All that changes ranks is in messages, which are sent from and received into memory of the host.
    HostStaged,
}

impl GpuTransport {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::PeerToPeer, Self::GpuDirect, Self::HostStaged];
}

/// `reached`, `device`, `host`.
impl fmt::Display for GpuTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PeerToPeer => "reached",
            Self::GpuDirect => "device",
            Self::HostStaged => "host",
        })
    }
}

/// Reads what [`Display`](fmt::Display) writes.
impl FromStr for GpuTransport {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|known| known.to_string() == name);
        found.ok_or_else(|| Error::argument("transport", name, "reached, device or host"))
    }
}
