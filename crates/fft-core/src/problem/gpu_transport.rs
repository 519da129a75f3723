//! Transports between devices.

use crate::base::named::names;

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
    /// CUDA peer access and CUDA IPC between ranks of a host, and messages to other ranks. Messages
    /// are sent from device memory if MPI can do that, otherwise through the host.
    #[default]
    PeerToPeer,
    /// Messages only, sent from and received into device memory: CUDA-aware MPI.
    GpuDirect,
    /// Messages only, sent from and received into host memory.
    HostStaged,
}

names!(GpuTransport, "transport", {
    PeerToPeer = "peer_to_peer",
    GpuDirect = "gpu_direct",
    HostStaged = "host_staged",
});
