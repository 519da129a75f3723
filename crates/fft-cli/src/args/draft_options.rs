//! From options of the command line to drafts and plans.

use std::path::PathBuf;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use thriffty::machine::{self, Machine};
use thriffty::planning::{DynDraft, DynPlan, Options, Reduce};
use thriffty::tuning::Progress;
use thriffty::{Comm, Error, Tune};

use crate::args::cli;
use crate::args::shape::Shape;
use crate::check::wires::Encoding;
use crate::data::bricks;
use crate::engine::family::{self, Family};
use crate::ranks::world::Failure;

/// The draft of the options, without wire and machine. Collective.
pub(crate) fn draft<'a, K: Family>(
    comm: &'a dyn Comm,
    options: &cli::Problem,
) -> Result<DynDraft<'a>, Failure> {
    let grid = options.shape.grid()?;
    let mut draft = family::draft::<K>(comm, grid, options.kind);
    let spectral_grid = draft.spectral_grid();
    let cut = |grid, name, ranks: &Option<Shape>| {
        ranks.as_ref().map(|ranks| bricks::cut(comm, grid, name, ranks)).transpose()
    };
    draft.options = Options {
        howmany: options.howmany.get(),
        memory: options.memory,
        exchange: options.exchange,
        ignore_shared_memory: options.wires.ignore_shared_memory,
        input: cut(&grid, "--in-grid", &options.grids.in_grid)?,
        output: cut(&spectral_grid, "--out-grid", &options.grids.out_grid)?,
        ..draft.options
    };
    Ok(draft)
}

/// The same with the wire and shared arrays. Collective.
pub(crate) fn asked<'a, K: Family>(
    comm: &'a dyn Comm,
    options: &cli::Problem,
) -> Result<DynDraft<'a>, Failure> {
    let mut draft = draft::<K>(comm, options)?;
    let Encoding { wire, tolerance } = Encoding::of(&options.wires);
    (draft.options.wire, draft.options.tolerance) = (wire, tolerance);
    draft.options.shared_arrays = options.shared_arrays;
    Ok(draft)
}

/// How the recipe is to be chosen.
pub(crate) fn tune(choosing: &cli::Choosing) -> Tune {
    match (&choosing.wisdom, &choosing.recipe, choosing.tune) {
        (Some(path), _, _) => Tune::Wisdom(path.clone()),
        (_, Some(text), _) => Tune::Recipe(text.clone()),
        (_, _, cli::By::Timings) => Tune::Measure { budget: choosing.budget },
        (_, _, cli::By::Model) => Tune::Model,
    }
}

/// The plan that the options ask for. Collective.
pub(crate) fn plan<K: Family>(
    comm: &dyn Comm,
    problem: &cli::Problem,
    choosing: &cli::Choosing,
) -> Result<DynPlan, Failure> {
    tuned::<K>(comm, problem, tune(choosing))
}

/// The plan that is chosen so, with a progress bar. Collective.
pub(crate) fn tuned<K: Family>(
    comm: &dyn Comm,
    problem: &cli::Problem,
    tune: Tune,
) -> Result<DynPlan, Failure> {
    let mut draft = asked::<K>(comm, problem)?;
    draft.options.machine = machine_of(comm, problem)?.map(Arc::new);
    // The bar hides itself where standard error is no terminal.
    let bar = match (comm.rank(), &tune) {
        (0, Tune::Measure { budget }) => ProgressBar::new(budget.as_millis() as u64),
        _ => ProgressBar::hidden(),
    };
    let style = ProgressStyle::with_template("{wide_bar} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let shown = bar.clone();
    let show = move |news: Progress| {
        shown.set_position(news.spent.as_millis() as u64);
        shown.set_message(format!("{} of {}", news.candidate + 1, news.candidates));
    };
    draft.options.tune = tune;
    let plan = draft.watch(show).build();
    bar.finish_and_clear();
    Ok(plan?)
}

/// The machine that the options or the environment name. Collective.
fn machine_of(comm: &dyn Comm, options: &cli::Problem) -> Result<Option<Machine>, Error> {
    if let Some(name) = &options.machine {
        let known = name.to_str().filter(|name| machine::NAMES.contains(name));
        let machine = known.map_or_else(|| machine::read(comm, name), machine::named);
        return machine.map(Some);
    }
    // The environment of rank 0 counts: others may have none.
    let path = std::env::var_os("THRIFFTY_MACHINE").map(PathBuf::from).unwrap_or_default();
    let mut named = [f64::from(u8::from(comm.rank() == 0 && !path.as_os_str().is_empty()))];
    comm.allreduce(Reduce::Max, &mut named)?;
    if named == [0.0] { Ok(None) } else { machine::load(comm, path) }
}
