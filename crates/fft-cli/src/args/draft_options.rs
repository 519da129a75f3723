//! From options to drafts and plans: how the recipe is chosen, and what machine the model reckons with.

use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use thriffty::{
    Comm, DynDraft, DynPlan, Error, Machine, Progress, Reduce, Tune, calibrated, machines,
};

use crate::args::cli;
use crate::check::wires::Encoding;
use crate::data::bricks;
use crate::engine::family::{self, Family};
use crate::ranks::world::Failure;

/// What the options say, but for the wire and the machine. Collective.
pub(crate) fn draft<'a, K: Family>(
    comm: &'a dyn Comm,
    options: &cli::Problem,
) -> Result<DynDraft<'a>, Failure> {
    let grid = options.shape.grid()?;
    let mut draft = family::draft::<K>(comm, grid, options.kind)
        .howmany(options.howmany.get())
        .memory(options.memory);
    if let Some(exchange) = options.exchange {
        draft = draft.exchange(exchange);
    }
    if options.wires.ignore_shared_memory {
        draft = draft.ignore_shared_memory();
    }
    let spectral_grid = draft.spectral_grid();
    if let Some(ranks) = &options.grids.in_grid {
        draft = draft.input_brick(bricks::cut(comm, &grid, "--in-grid", ranks)?);
    }
    if let Some(ranks) = &options.grids.out_grid {
        draft = draft.output_brick(bricks::cut(comm, &spectral_grid, "--out-grid", ranks)?);
    }
    Ok(draft)
}

/// The same with what it sends and where its data is. Collective.
pub(crate) fn asked<'a, K: Family>(
    comm: &'a dyn Comm,
    options: &cli::Problem,
) -> Result<DynDraft<'a>, Failure> {
    let draft = Encoding::of(&options.wires).draft(draft::<K>(comm, options)?);
    Ok(if options.shared_arrays { draft.shared_arrays() } else { draft })
}

/// The plan that the options ask for. Collective.
pub(crate) fn plan<K: Family>(
    comm: &dyn Comm,
    problem: &cli::Problem,
    choosing: &cli::Choosing,
) -> Result<DynPlan, Failure> {
    let tune = match (&choosing.wisdom, &choosing.recipe, choosing.tune) {
        (Some(path), _, _) => Tune::Wisdom(path.clone()),
        (_, Some(text), _) => Tune::Recipe(text.clone()),
        (_, _, cli::By::Timings) => Tune::Measure { budget: choosing.budget },
        (_, _, cli::By::Model) => Tune::Model,
    };
    tuned::<K>(comm, problem, tune)
}

/// The plan that is chosen so, while a bar shows how far it is. Collective.
pub(crate) fn tuned<K: Family>(
    comm: &dyn Comm,
    problem: &cli::Problem,
    tune: Tune,
) -> Result<DynPlan, Failure> {
    let mut draft = asked::<K>(comm, problem)?;
    if let Some(machine) = machine(comm, problem)? {
        draft = draft.machine(machine);
    }
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
    let plan = draft.tune(tune).watch(show).build();
    bar.finish_and_clear();
    Ok(plan?)
}

/// What the model is to reckon with, where anyone says. Collective.
fn machine(comm: &dyn Comm, options: &cli::Problem) -> Result<Option<Machine>, Error> {
    if let Some(name) = &options.machine {
        let known = name.to_str().filter(|name| machines::NAMES.contains(name));
        let machine = known.map_or_else(|| calibrated::read(comm, name), machines::named);
        return machine.map(Some);
    }
    // The environment of rank 0 counts: others may have none.
    let path = std::env::var_os("THRIFFTY_MACHINE").map(PathBuf::from).unwrap_or_default();
    let mut named = [f64::from(u8::from(comm.rank() == 0 && !path.as_os_str().is_empty()))];
    comm.allreduce(Reduce::Max, &mut named)?;
    if named == [0.0] { Ok(None) } else { calibrated::load(comm, path) }
}
