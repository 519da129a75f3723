//! `fft-cli study`: errors and bits of encoded messages.

mod lab;
mod options;
mod row;
mod run;
mod show;

pub(super) use options::Options;
pub(super) use run::run;
