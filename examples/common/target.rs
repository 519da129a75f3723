//! Where plans and their data are: on the host, or on the GPU of each rank.

use thriffty::planning::{Host, Location};
use thriffty::{Comm, Draft, Error, R2c};

/// The host or a device.
pub(crate) trait Target {
    type Location: Location;

    /// The draft of a plan there.
    fn place<'a, const D: usize>(
        &self,
        draft: Draft<'a, R2c, D>,
    ) -> Draft<'a, R2c, D, Self::Location>;
}

pub(crate) struct OnHost;

impl Target for OnHost {
    type Location = Host;

    fn place<'a, const D: usize>(&self, draft: Draft<'a, R2c, D>) -> Draft<'a, R2c, D> {
        draft
    }
}

/// The GPU of each rank.
#[cfg(feature = "cuda")]
struct OnDevice(thriffty::gpu::Gpu);

#[cfg(feature = "cuda")]
impl Target for OnDevice {
    type Location = thriffty::planning::Device;

    fn place<'a, const D: usize>(
        &self,
        draft: Draft<'a, R2c, D>,
    ) -> Draft<'a, R2c, D, Self::Location> {
        draft.on(&self.0)
    }
}

/// The GPU of this rank. Collective.
#[cfg(feature = "cuda")]
pub(crate) fn on_device(comm: &dyn Comm) -> Result<impl Target, Error> {
    super::gpu::gpu(comm).map(OnDevice)
}

/// There is none without the feature `cuda`.
#[cfg(not(feature = "cuda"))]
pub(crate) fn on_device(comm: &dyn Comm) -> Result<impl Target, Error> {
    let why = "built without the feature cuda".into();
    Err::<OnHost, _>(Error::NoDevice { rank: comm.rank(), why })
}
