//! Where the data of a plan is.

use clap::Args;
use thriffty::machine::{self, Machine};
use thriffty::{Comm, Error};

use crate::args::parse::choice;
use crate::ranks::world::{Failure, refused};

/// The place of a plan's data, and the transport from there.
#[derive(Args, Debug)]
pub(crate) struct Place {
    /// Memory of the data: host; or cuda, on the host's GPUs in rotation.
    #[arg(long, default_value = "host", value_parser = choice([("host", Device::Host), ("cuda", Device::Cuda)]))]
    pub(crate) device: Device,
    /// How data gets to other ranks' GPUs: peer_to_peer, by direct access where possible; or messages
    /// from memory of the device or the host.
    #[arg(long, default_value = "peer_to_peer", value_parser = ["peer_to_peer", "gpu_direct", "host_staged"])]
    pub(crate) transport: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    Host,
    Cuda,
}

/// Where plans are made: on the host, or on this rank's GPU.
pub(crate) enum Site {
    Host,
    #[cfg(feature = "cuda")]
    Cuda(thriffty::gpu::DeviceOptions),
}

impl Place {
    /// The place on this rank. Collective.
    pub(crate) fn site(&self, comm: &dyn Comm) -> Result<Site, Failure> {
        match self.device {
            Device::Host if self.transport != "peer_to_peer" => {
                refused("--transport goes with --device cuda")
            }
            Device::Host => Ok(Site::Host),
            #[cfg(feature = "cuda")]
            Device::Cuda => {
                let transport = self.transport.parse()?;
                super::cuda::device(comm, transport).map(Site::Cuda)
            }
            #[cfg(not(feature = "cuda"))]
            Device::Cuda => {
                let _ = comm;
                refused("this fft-cli was built without the feature cuda")
            }
        }
    }
}

impl Site {
    /// The machine of the cost model, measured. Collective.
    pub(crate) fn measure(self, comm: &dyn Comm) -> Result<Machine, Error> {
        match self {
            Self::Host => machine::measure(comm),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => machine::measure_on_device(comm, device),
        }
    }
}
