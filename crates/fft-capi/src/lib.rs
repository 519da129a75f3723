//! The place of the C and Fortran interface.
//!
//! This crate is where the static library for C and Fortran programs belongs. It holds no code yet. It depends
//! on the facade `thriffty` alone, and what it needs of it is there: options are plain values
//! ([`thriffty::Draft`]), data are slices ([`thriffty::Plan::forward_into`]), errors say whose fault they are
//! ([`thriffty::ErrorKind`]), and a communicator can be handed in.
#![forbid(unsafe_code)]
