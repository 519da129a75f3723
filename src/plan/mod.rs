//! Plans, from options to transforms.

mod build;
#[cfg(feature = "cuda")]
mod device_plan;
mod draft;
mod dyn_draft;
mod dyn_plan;
mod kept_plans;
#[cfg(feature = "cuda")]
mod on_device;
mod open_space;
mod plan;
mod plan_cache;
mod team_plans;
mod traced;

#[cfg(feature = "cuda")]
pub use device_plan::{DeviceDraft, DeviceField, DevicePlan};
pub use draft::{Draft, c2c, r2c, r2r};
pub use dyn_draft::DynDraft;
pub use dyn_plan::DynPlan;
pub use kept_plans::clear_plans;
#[cfg(feature = "cuda")]
pub use on_device::planned_access;
pub use plan::Plan;
pub use plan_cache::PlanCache;
