//! The C and Fortran interface of thriffty: what `include/thriffty.h` declares.
//!
//! A call goes through three layers:
//!
//! 1. `ffi/` has the entry points and all unsafe code: pointers become references, slices and
//!    texts, or an error.
//! 2. `status.rs` turns an error or a panic into a status, and a text for
//!    [`ffi::thriffty_last_error`].
//! 3. `options.rs` sets options by name, `request.rs` says what arguments mean, `plan.rs` makes
//!    plans of them, `arrays.rs` plans copies, and `registry.rs` gives both handles.
//!
//! A handle is a number in place of a pointer. No number is used twice, so that handles of
//! destroyed plans are detected.
#![deny(unsafe_code)]

mod arrays;
mod domain;
pub mod ffi;
mod options;
mod plan;
mod registry;
mod request;
mod spectral;
pub mod status;
pub mod values;
