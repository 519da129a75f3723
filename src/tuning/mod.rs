//! How the recipe of a plan is chosen.

mod decide;
#[cfg(feature = "cuda")]
mod device_clock;
mod files;
mod tune;
mod wisdom;

#[cfg(feature = "cuda")]
pub(crate) use decide::ByClock;
#[cfg(feature = "cuda")]
pub(crate) use decide::Chosen;
pub(crate) use decide::{Decision, Wanted, by_clock, decide, fingerprint};
#[cfg(feature = "cuda")]
pub(crate) use device_clock::by_device_clock;
pub use fft_comm::tuner::{
    Candidate, Choice, Outcome, Progress, Report, ReportRow, Source, candidates, favourite,
};
pub(crate) use files::{read, replace};
pub use tune::Tune;
pub(crate) use wisdom::save as save_wisdom;
