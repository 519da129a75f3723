//! How the recipe of a plan is chosen.

mod clock;
mod decide;
mod files;
mod lock;
mod wisdom;

pub use crate::options::Tuning;
pub(crate) use clock::by_clock;
#[cfg(feature = "cuda")]
pub(crate) use clock::by_device_clock;
#[cfg(feature = "cuda")]
pub(crate) use decide::{ByClock, Chosen};
pub(crate) use decide::{Decision, Wanted, decide};
pub use fft_comm::tuner::{
    Candidate, Choice, Favourite, Outcome, Progress, Report, ReportRow, Source, candidates,
    favourite,
};
pub(crate) use files::{read, replace};
pub(crate) use wisdom::save as save_wisdom;
