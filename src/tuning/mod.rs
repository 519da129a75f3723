//! How the recipe of a plan is chosen: by the model, by timings, or from wisdom.
//!
//! `candidates.rs` lists recipes, `race.rs` times trials, `tune.rs` reports on the race, and
//! `decide.rs` chooses. Each candidate that is timed is a plan of its own, dropped afterwards.

mod candidates;
mod clock;
mod decide;
mod files;
mod lock;
mod race;
mod report;
mod tune;
mod units;
mod wisdom;

#[cfg(test)]
mod tests;

pub use crate::options::Tuning;
pub use candidates::{Candidate, Choice, Favourite, candidates, favourite};
pub(crate) use clock::by_clock;
#[cfg(feature = "cuda")]
pub(crate) use clock::by_device_clock;
#[cfg(feature = "cuda")]
pub(crate) use decide::{ByClock, Chosen};
pub(crate) use decide::{Decision, Wanted, decide};
pub(crate) use files::{read, replace};
pub use race::{Outcome, Progress};
pub use report::{Report, ReportRow, Source};
pub(crate) use tune::noise;
pub(crate) use wisdom::save as save_wisdom;
