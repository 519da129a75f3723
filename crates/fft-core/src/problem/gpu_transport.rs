//! Transports between devices.

use std::fmt;
use std::str::FromStr;

use crate::base::Error;

/// How data travels to other ranks.
///
/// ```
/// use fft_core::GpuTransport;
/// assert_eq!("gpu_direct".parse(), Ok(GpuTransport::GpuDirect));
/// assert!("device".parse::<GpuTransport>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GpuTransport {
    /// CUDA peer access and CUDA IPC between ranks of a host, and messages to other ranks. Those
    /// messages are sent from device memory where MPI can do that, else through the host.
    #[default]
    PeerToPeer,
    /// Messages only, sent from and received into device memory: CUDA-aware MPI.
    GpuDirect,
    /// Messages only, sent from and received into host memory.
    HostStaged,
}

impl GpuTransport {
    /// All transports.
    pub const ALL: [Self; 3] = [Self::PeerToPeer, Self::GpuDirect, Self::HostStaged];
}

/// `peer_to_peer`, `gpu_direct`, `host_staged`.
impl fmt::Display for GpuTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PeerToPeer => "peer_to_peer",
            Self::GpuDirect => "gpu_direct",
            Self::HostStaged => "host_staged",
        })
    }
}

/// Reads what [`Display`](fmt::Display) writes.
impl FromStr for GpuTransport {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|known| known.to_string() == name);
        found.ok_or_else(|| {
            Error::argument("transport", name, "peer_to_peer, gpu_direct or host_staged")
        })
    }
}
