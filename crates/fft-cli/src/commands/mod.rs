//! The commands, one file or folder each, with their options. Each `run` is collective, except for
//! `list`, `plan`, `scale` and `trace`, which need no ranks.

pub(crate) mod cli;

mod bench;
mod calibrate;
mod list;
mod plan;
mod poisson;
mod sample;
mod serve;
mod spectrum;
mod study;
mod trace;
mod transform;
mod tune;
mod verify;
