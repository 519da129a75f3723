//! Plans, from options to transforms.

#[cfg(feature = "cuda")]
mod device_plan;
mod draft;
mod dyn_draft;
mod dyn_plan;
#[cfg(feature = "cuda")]
mod on_device;
mod open_space;
mod plan;
mod plan_cache;

#[cfg(feature = "cuda")]
pub use device_plan::{DeviceDraft, DeviceField, DevicePlan};
pub use draft::{Draft, c2c, r2c, r2r};
pub use dyn_draft::DynDraft;
pub use dyn_plan::DynPlan;
#[cfg(feature = "cuda")]
pub use on_device::planned_access;
pub use plan::Plan;
pub use plan_cache::PlanCache;
