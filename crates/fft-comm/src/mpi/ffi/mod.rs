//! Every call into MPI, behind safe types.
//!
//! Communicators are duplicates that return errors instead of aborting. Every return code that
//! allows a reaction is checked. Buffers of non-blocking operations are slots that move into
//! [`Requests`] and out again on completion; an operation that never completes leaks its slot.
#![allow(unsafe_code)]

mod callers;
mod calls;
mod device_buffer;
mod failure_detector;
mod line_type;
mod raw_comm;
mod requests;
mod shared_window;
mod window;

pub(super) use callers::any_thread;
pub(super) use calls::{TAG, abort, awaited, is_running};
pub(super) use device_buffer::takes_devices;
pub(super) use failure_detector::{FailureDetector, complete_calls, when_finalized};
pub(super) use line_type::LineType;
pub(super) use raw_comm::{Bytes, BytesMut, RawComm, duplicate_of, of_fortran};
pub(super) use requests::Requests;
pub(super) use shared_window::SharedWindow;
pub(super) use window::{RawEpoch, RawPair, RawWindow};
