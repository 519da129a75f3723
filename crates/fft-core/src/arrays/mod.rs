//! Bricks in a program's local arrays, with strides, ghost points and several bricks per rank.

mod arrays_of_rank;
mod copy_plan;
mod grid_data;
mod halo;
mod matches;
mod parallel_copy;
mod subarray;

pub use copy_plan::{ArrayRole, CopyMessage, CopyPart, CopyPlan, OwnCopy};
pub use grid_data::GridData;
pub use halo::Ghosts;
pub use parallel_copy::ParallelCopy;
pub use subarray::Subarray;
