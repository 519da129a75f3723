//! All tests with a process group. Tests start this program again as several processes, which are
//! connected by sockets and run only the named body.
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
