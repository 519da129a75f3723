//! `fft-cli tune`: what is fastest here, to be remembered.

use thriffty::{Comm, Tune};

use crate::args::{cli, draft_options};
use crate::engine::family::{Family, Task, dispatch};
use crate::ranks::world::{Failure, print};

/// Runs the command. Collective.
pub(crate) fn run(comm: &dyn Comm, options: &cli::Tune) -> Result<(), Failure> {
    let cli::Problem { kind, precision, .. } = &options.problem;
    dispatch(Tuning { comm, options }, *kind, *precision)
}

struct Tuning<'a> {
    comm: &'a dyn Comm,
    options: &'a cli::Tune,
}

impl Task for Tuning<'_> {
    type Output = ();

    fn run<K: Family>(self) -> Result<(), Failure> {
        let Self { comm, options } = self;
        let tune = Tune::Measure { budget: options.budget };
        let plan = draft_options::tuned::<K>(comm, &options.problem, tune)?;
        // Before anything is written: what was measured is not lost where that fails.
        print(comm, &plan.report().to_string())?;
        match &options.wisdom {
            Some(path) => Ok(plan.save_wisdom(path)?),
            None => Ok(()),
        }
    }
}
