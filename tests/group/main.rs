//! All that is tested with a process group: tests start this very program again as several
//! processes, which are connected by sockets and where only the body that they name runs.
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
mod processes;
mod sockets;

mod checks;
mod endings;
mod forks;
mod hosts;
mod properties;
