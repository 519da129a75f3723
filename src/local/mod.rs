//! Plans of a process with a team of threads: whole arrays in, whole arrays out. Of several
//! processes, the bricks of each ([`LocalDraft::build_over`]).
//!
//! ```
//! use thriffty::Complex;
//! let mut plan = thriffty::local::c2c([6, 10]).threads(2).build()?;
//! let x = vec![Complex::new(1.0, 0.0); 60];
//! let mut y = vec![Complex::default(); 60];
//! plan.forward(&x, &mut y)?;
//! assert_eq!(y[0].re, 60.0); // the sum over all points
//! # Ok::<(), thriffty::Error>(())
//! ```
//!
//! [`LocalDraft::forward`] and [`LocalDraft::inverse`] need no plan, because they keep those that
//! they make.
//!
//! Inside, each thread is a rank with a part of the arrays, cut along their slowest axis. Nothing
//! is copied before or after, and threads read each other's parts where they are. All plans of the
//! process share their threads, and plans of several threads that run at the same time wait for
//! each other where there are too few cores. In a process that was forked, its plans of before
//! return an error and new ones work.

mod build;
mod cache;
mod draft;
mod dyn_local_draft;
mod local_plan;
mod pool;
mod team;
mod team_plans;
mod threads;
mod work;

pub use cache::{clear_plans, with_room};
pub use draft::{LocalDraft, c2c, r2c, r2r};
pub use dyn_local_draft::DynLocalDraft;
pub use local_plan::LocalPlan;
pub use threads::default_threads;
