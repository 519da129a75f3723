//! Drafts and plans of options of the command line.

use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
#[cfg(feature = "cuda")]
use thriffty::gpu::DeviceOptions;
use thriffty::machine::{self, Machine};
use thriffty::planning::{DynDraft, DynGrid, DynPlan, Options, on_any_rank};
use thriffty::tuning::Progress;
use thriffty::{Comm, Error, Tuning};

use super::place::Site;
use crate::args::choices::Offer;
use crate::args::kinds;
use crate::args::options::{Problem, TransformArgs};
use crate::args::shape::Shape;
use crate::ranks::world::Failure;

/// The draft of the options, without the machine of the environment. Collective.
pub(crate) fn draft<'a, O: Offer>(
    comm: &'a dyn Comm,
    problem: &Problem<O>,
) -> Result<DynDraft<'a>, Failure> {
    let TransformArgs { kind, shape, choices } = &problem.transform;
    let grid = shape.grid()?;
    let mut draft = DynDraft::new(comm, grid, kinds::transform(*kind), choices.placement.precision);
    draft.options = kinds::with_kinds(&choices.options, *kind, grid.axes());
    draft.options.check_axes(grid)?;
    let spectral_grid = draft.spectral_grid();
    let cut = |grid: &DynGrid, name, ranks: &Option<Shape>| -> Result<_, Failure> {
        let Some(ranks) = ranks else { return Ok(None) };
        Ok(Some(ranks.proc_grid(name, grid.axes(), comm.size())?.part(grid, comm.rank())))
    };
    draft.options.input = cut(&grid, "--input-grid", &problem.grids.input_grid)?;
    draft.options.output = cut(&spectral_grid, "--output-grid", &problem.grids.output_grid)?;
    Ok(draft)
}

/// The plan of the options for processes with this number of threads each; a bar shows the progress
/// of measurements. Collective.
pub(crate) fn plan<O: Offer>(
    comm: &dyn Comm,
    problem: &Problem<O>,
    threads: usize,
) -> Result<DynPlan, Failure> {
    let mut draft = draft(comm, problem)?;
    draft.threads = Some(threads);
    name_machine(comm, problem, &mut draft.options, &|path| machine::load(comm, path))?;
    // The bar hides itself if standard error is not a terminal.
    let bar = match (comm.rank(), &draft.options.tuning) {
        (0, Tuning::Measure { budget }) => ProgressBar::new(budget.as_millis() as u64),
        _ => ProgressBar::hidden(),
    };
    let style = ProgressStyle::with_template("{wide_bar} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let shown = bar.clone();
    let show = move |news: Progress| {
        shown.set_position(news.spent.as_millis() as u64);
        shown.set_message(format!("{} of {}", news.candidate + 1, news.candidates));
    };
    let plan = draft.watch(show).build();
    bar.finish_and_clear();
    Ok(plan?)
}

/// The plan of the options where they place it, for processes with one thread each. Collective.
pub(crate) fn placed<O: Offer>(comm: &dyn Comm, problem: &Problem<O>) -> Result<DynPlan, Failure> {
    match Site::of(comm, &problem.transform.choices.placement)? {
        Site::Host => plan(comm, problem, 1),
        #[cfg(feature = "cuda")]
        Site::Cuda(device) => on_device(comm, problem, device),
    }
}

/// The plan of the options on a device. Collective.
#[cfg(feature = "cuda")]
pub(super) fn on_device<O: Offer>(
    comm: &dyn Comm,
    problem: &Problem<O>,
    device: DeviceOptions,
) -> Result<DynPlan, Failure> {
    let mut draft = draft(comm, problem)?;
    name_machine(comm, problem, &mut draft.options, &|path| {
        machine::load_on_device(comm, &device.gpu, path)
    })?;
    Ok(draft.on(device).build()?)
}

/// If the command line names no machine, sets the machine of the file THRIFFTY_MACHINE, by `load`.
/// Collective.
fn name_machine<O: Offer>(
    comm: &dyn Comm,
    problem: &Problem<O>,
    options: &mut Options,
    load: &dyn Fn(&PathBuf) -> Result<Option<Machine>, Error>,
) -> Result<(), Error> {
    // Rank 0's environment counts, because launchers may not pass it on to others.
    let path = std::env::var_os("THRIFFTY_MACHINE").map(PathBuf::from).unwrap_or_default();
    let is_named = problem.transform.choices.are_given(&["machine"]);
    let is_wanted = comm.rank() == 0 && !is_named && !path.as_os_str().is_empty();
    if on_any_rank(comm, [is_wanted])? == [true] {
        options.machine = load(&path)?.map(Machine::into);
    }
    Ok(())
}
