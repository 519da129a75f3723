//! Teams: the threads of a process that share the work of its plans.

mod pool;
mod team;
mod threads;
mod work;

pub(crate) use team::Team;
pub use threads::default_threads;
pub(crate) use work::{Work, part};
