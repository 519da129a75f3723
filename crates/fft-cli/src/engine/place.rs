//! Where plans are made: on the host, or on this rank's GPU.

use thriffty::machine::{self, Machine};
use thriffty::planning::{DeviceChoice, GpuTransport, Placement};
use thriffty::{Comm, Error};

use crate::ranks::world::{Failure, refused};

/// Why a program without the feature `cuda` refuses devices.
#[cfg(not(feature = "cuda"))]
pub(crate) const NO_CUDA: &str = "this fft-cli was built without the feature cuda";

/// Where plans are made.
pub(crate) enum Site {
    Host,
    #[cfg(feature = "cuda")]
    Cuda(thriffty::gpu::DeviceOptions),
}

impl Site {
    /// The site that the options name, for this rank. Collective.
    pub(crate) fn of(comm: &dyn Comm, placement: &Placement) -> Result<Self, Failure> {
        let Placement { device, transport, .. } = *placement;
        match device {
            DeviceChoice::Host if transport != GpuTransport::default() => {
                refused("--transport goes with --device cuda")
            }
            DeviceChoice::Host => Ok(Self::Host),
            #[cfg(feature = "cuda")]
            device => super::cuda::device(comm, device, transport).map(Self::Cuda),
            #[cfg(not(feature = "cuda"))]
            _ => {
                let _ = comm;
                refused(NO_CUDA)
            }
        }
    }

    /// The machine of the cost model, measured. Collective.
    pub(crate) fn measure(self, comm: &dyn Comm) -> Result<Machine, Error> {
        match self {
            Self::Host => machine::measure(comm),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => machine::measure_on_device(comm, device),
        }
    }
}
