//! `fft-cli plan` and `fft-cli scale`: predictions for ranks and machines that are not here.

mod ask;
mod forecast;
mod options;
mod published;
mod run;
mod scale;
mod show;

pub(super) use options::{Options, Scaling};
pub(super) use run::run;
pub(super) use scale::run as run_scale;
