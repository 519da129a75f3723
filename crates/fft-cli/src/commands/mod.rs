//! One file per command.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod plan;
pub(crate) mod sample;
pub(crate) mod serve;
pub(crate) mod spectrum;
pub(crate) mod study;
pub(crate) mod transform;
pub(crate) mod tune;
pub(crate) mod verify;
