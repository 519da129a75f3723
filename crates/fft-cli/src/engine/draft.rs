//! Drafts and plans of options of the command line.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use thriffty::local::{DynLocalDraft, DynLocalPlan};
use thriffty::machine::{self, Machine};
use thriffty::planning::{DynDraft, DynGrid, DynPlan, Options, Reduce};
use thriffty::tuning::Progress;
use thriffty::{Comm, Error, Tune};

use super::family;
use crate::args::encoding::Encoding;
use crate::args::options::{Problem, Transform};
use crate::args::shape::Shape;
use crate::ranks::world::Failure;

/// The draft of the options, without wire and machine. Collective.
pub(crate) fn draft<'a>(comm: &'a dyn Comm, options: &Problem) -> Result<DynDraft<'a>, Failure> {
    let Transform { kind, axes, shape, lengths, precision, batch, wires } = &options.transform;
    let grid = shape.grid()?;
    let mut draft = family::draft(comm, grid, *kind, *precision);
    draft.options.kinds = family::kinds_of(grid.axes(), *kind, axes)?;
    [draft.options.transform, draft.options.modes] = lengths.of_axes(grid.axes())?;
    let spectral_grid = draft.spectral_grid();
    let cut = |grid: &DynGrid, name, ranks: &Option<Shape>| -> Result<_, Failure> {
        let Some(ranks) = ranks else { return Ok(None) };
        Ok(Some(ranks.proc_grid(name, grid.axes(), comm.size())?.part(grid, comm.rank())))
    };
    draft.options = Options {
        batch: batch.get(),
        memory: options.memory,
        layouts: options.layouts,
        exchange: options.exchange,
        ignore_shared_memory: wires.ignore_shared_memory,
        input: cut(&grid, "--in-grid", &options.grids.in_grid)?,
        output: cut(&spectral_grid, "--out-grid", &options.grids.out_grid)?,
        ..draft.options
    };
    Ok(draft)
}

/// The same with the wire and shared arrays. Collective.
pub(crate) fn asked<'a>(comm: &'a dyn Comm, options: &Problem) -> Result<DynDraft<'a>, Failure> {
    let mut draft = Encoding::of(&options.transform.wires).draft(draft(comm, options)?);
    draft.options.shared_arrays = options.shared_arrays;
    Ok(draft)
}

/// The plan of processes with so many threads each. Collective.
pub(crate) fn local(
    comm: &dyn Comm,
    problem: &Problem,
    tune: Tune,
    threads: usize,
) -> Result<DynLocalPlan, Failure> {
    let mut options = asked(comm, problem)?.options;
    options.machine = machine_of(comm, problem)?.map(Arc::new);
    options.tune = tune;
    let Transform { kind, shape, precision, .. } = &problem.transform;
    let transform = family::transform(*kind);
    let shape = shape.grid()?.shape();
    let (precision, threads) = (*precision, Some(threads));
    let draft = DynLocalDraft { shape, transform, precision, options, threads };
    Ok(draft.build_over(comm)?)
}

/// The plan that `tune` chooses; a bar shows the progress of measurements. Collective.
pub(crate) fn plan(comm: &dyn Comm, problem: &Problem, tune: Tune) -> Result<DynPlan, Failure> {
    let mut draft = asked(comm, problem)?;
    draft.options.machine = machine_of(comm, problem)?.map(Arc::new);
    // The bar hides itself where standard error is not a terminal.
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

/// The machine that the options or the environment name, for a plan on the host. Collective.
fn machine_of(comm: &dyn Comm, options: &Problem) -> Result<Option<Machine>, Error> {
    let by_name = |path: &Path| machine::read(comm, path);
    machine_by(comm, options, &by_name, &|path| machine::load(comm, path))
}

/// The same, for a plan on GPUs. Collective.
#[cfg(feature = "cuda")]
pub(super) fn machine_on_device(
    comm: &dyn Comm,
    options: &Problem,
    gpu: &thriffty::gpu::Gpu,
) -> Result<Option<Machine>, Error> {
    let by_name = |path: &Path| machine::read_on_device(comm, gpu, path);
    machine_by(comm, options, &by_name, &|path| machine::load_on_device(comm, gpu, path))
}

/// The machine that the options name, by `read`; or the environment, by `load`. Collective.
fn machine_by(
    comm: &dyn Comm,
    options: &Problem,
    read: &dyn Fn(&Path) -> Result<Machine, Error>,
    load: &dyn Fn(&Path) -> Result<Option<Machine>, Error>,
) -> Result<Option<Machine>, Error> {
    if let Some(name) = &options.machine {
        return read(name).map(Some);
    }
    // Rank 0's environment counts: launchers may not hand it on to others.
    let path = std::env::var_os("THRIFFTY_MACHINE").map(PathBuf::from).unwrap_or_default();
    let mut named = [f64::from(u8::from(comm.rank() == 0 && !path.as_os_str().is_empty()))];
    comm.allreduce(Reduce::Max, &mut named)?;
    if named == [0.0] { Ok(None) } else { load(&path) }
}
