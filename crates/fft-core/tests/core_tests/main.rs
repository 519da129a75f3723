//! All tests of what this crate shows.

mod options;
mod tiling;

mod bytes;
mod devices;
mod exact;
mod frozen;
mod layout;
mod lines;
mod machine;
mod programs;
mod recipe;
mod recipes;
mod schedule;
mod wire;
