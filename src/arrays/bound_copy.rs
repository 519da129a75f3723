//! A copy on the host or on devices.

use fft_core::{CopyPlan, Error, ParallelCopy};
#[cfg(feature = "cuda")]
use fft_gpu::DeviceCopy;

use super::bind;
#[cfg(feature = "cuda")]
use super::bind_on_device;
use crate::plan::DynPlan;

/// A copy that is bound where the data of a plan is.
#[derive(Debug)]
pub enum BoundCopy {
    /// To the host.
    Host(Box<ParallelCopy>),
    /// To the ranks' devices.
    #[cfg(feature = "cuda")]
    Device(Box<DeviceCopy>),
}

impl BoundCopy {
    /// Binds a copy where the plan's data is, on the host or on devices. Collective, over its
    /// ranks.
    ///
    /// # Errors
    /// The errors of [`bind`], or on devices of `bind_on_device`.
    pub fn new(plan: &DynPlan, copy: CopyPlan) -> Result<Self, Error> {
        #[cfg(feature = "cuda")]
        if let Some(device) = plan.device_options() {
            return Ok(Self::Device(Box::new(bind_on_device(plan.comm(), device, copy)?)));
        }
        Ok(Self::Host(Box::new(bind(plan.comm(), copy)?)))
    }

    /// The plan of this copy.
    pub fn plan(&self) -> &CopyPlan {
        match self {
            Self::Host(copy) => copy.plan(),
            #[cfg(feature = "cuda")]
            Self::Device(copy) => copy.plan(),
        }
    }

    pub(super) fn host(&mut self) -> &mut ParallelCopy {
        match self {
            Self::Host(copy) => copy,
            #[cfg(feature = "cuda")]
            Self::Device(_) => unreachable!("fields of the host have plans of the host"),
        }
    }

    #[cfg(feature = "cuda")]
    pub(super) fn device(&mut self) -> &mut DeviceCopy {
        match self {
            Self::Device(copy) => copy,
            Self::Host(_) => unreachable!("fields on a device have plans on a device"),
        }
    }
}
