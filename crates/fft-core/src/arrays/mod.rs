//! Bricks in local arrays as programs have them: strides, ghost points, several bricks per rank.

mod arrays_of_rank;
mod halo;
mod matches;
mod parallel_copy;
mod subarray;

pub use halo::Ghosts;
pub use parallel_copy::{GridData, ParallelCopy};
pub use subarray::Subarray;
