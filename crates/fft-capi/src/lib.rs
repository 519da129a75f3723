//! The C and Fortran interface of thriffty: what `include/thriffty.h` declares.
//!
//! A call goes through three layers, each in files of its own:
//!
//! 1. `ffi/` has the entry points and all unsafe code: pointers become references, slices and texts, or an error where it
//!    can be seen that they are none. Nothing else in this crate follows one.
//! 2. `status.rs` catches what a call comes to, an error or a panic: a status, and a text for [`ffi::thriffty_last_error`].
//! 3. `request.rs` turns numbers into options, `plan.rs` these into a [`thriffty::Plan`], whose types are forgotten (`device.rs`
//!    has those on devices); `registry.rs` gives it a handle.
//!
//! A handle is a number that no plan had before and none will have again, in the guise of a pointer that nobody follows. So one
//! that was destroyed, or never was, is found out, and plans are the one thing here that is process-wide.
#![deny(unsafe_code)]

pub mod ffi;
mod plan;
mod registry;
mod request;
pub mod status;
pub mod values;
