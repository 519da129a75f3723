//! Recipes that are measured on a CUDA device. Without a GPU the test prints why and passes.

use std::time::Duration;

use crate::gpu::{few, gpu};
use thriffty::gpu::{Gpu, GpuTransport};
use thriffty::planning::Exchange;
use thriffty::tuning::Source;
use thriffty::{Brick, Comm, Error, Grid, Plan, R2c, Tolerance, Tuning};

/// The budget of the search, which ends earlier when it has measured all candidates.
fn budget() -> Duration {
    Duration::from_millis(if few() { 120_000 } else { 3_000 })
}

/// Transforms real data in slabs; returns the sum over all points.
fn check(
    comm: &dyn Comm,
    gpu: &Gpu,
    exchange: Option<Exchange>,
    tolerance: bool,
) -> Result<(), Error> {
    let grid = Grid::new([24, 20, 18])?;
    let (rank, ranks) = (comm.rank(), comm.size());
    let slab = Brick { lo: [24 * rank / ranks, 0, 0], hi: [24 * (rank + 1) / ranks, 20, 18] };
    let draft = Plan::<R2c, 3>::r2c(comm, grid).input_brick(slab);
    let draft = draft.tuning(Tuning::Measure { budget: budget() });
    let draft = match exchange {
        None => draft,
        Some(exchange) => draft.exchange(exchange),
    };
    let draft = if tolerance {
        draft.ignore_shared_memory(true).tolerance(Tolerance::relative(1e-6)?)
    } else {
        draft
    };
    let mut plan = draft.on(gpu).build()?;
    let report = plan.report();
    let timed = report.rows.iter().filter(|row| row.outcome.seconds().is_some()).count();
    if rank == 0 {
        println!("{ranks} ranks, {exchange:?}, tolerance {tolerance}:\n{report}");
    }
    assert_eq!(report.source, Source::Measured);
    assert!(timed > 0 && report.chosen().measured().is_some(), "{report}");
    // Four ranks can use slabs or pencils, whether or not there was time for both.
    assert!(ranks < 4 || report.rows.len() > 1, "{report}");
    assert_eq!(report.chosen().recipe, plan.recipe().to_string());
    if let Some(exchange) = exchange.filter(|_| ranks > 1) {
        assert!(plan.recipe().to_string().contains(&exchange.to_string()), "{}", plan.recipe());
    }
    let mut ones = plan.input();
    ones.fill(|_| 1.0);
    let sums = plan.forward(ones)?;
    let sums = plan.download(&sums)?;
    if sums.brick().lo == [0; 3] && !sums.brick().is_empty() {
        let error = (sums.as_slice()[0].re - 24.0 * 20.0 * 18.0).abs();
        assert!(error < if tolerance { 1e-1 } else { 1e-9 }, "{error}");
    }
    Ok(())
}

#[test]
fn what_is_fastest_on_a_device_is_chosen() {
    let Some(gpu) = gpu() else { return };
    for ranks in [1, 2, 4] {
        thriffty::threads(ranks, |comm| check(&comm, &gpu, None, false)).unwrap();
    }
    thriffty::threads(4, |comm| check(&comm, &gpu, None, true)).unwrap();
    for done in fft_comm::threads_on(&[0, 1, 2], |comm| {
        check(&comm, &gpu, Some(Exchange::Alltoallv), false)
    }) {
        done.unwrap();
    }
}

#[test]
fn wisdom_of_a_device_is_for_that_device() {
    let Some(gpu) = gpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wisdom.toml");
    thriffty::threads(2, |comm| {
        let draft = || thriffty::r2c(&comm, [24, 20, 18]);
        let measured = draft().tuning(Tuning::Measure { budget: budget() }).on(&gpu).build()?;
        measured.save_wisdom(&path)?;
        let wisdom = || draft().tuning(Tuning::Wisdom(path.clone()));
        let again = wisdom().on(&gpu).build()?;
        assert_eq!(again.report().source, Source::Wisdom);
        assert_eq!(again.recipe().to_string(), measured.recipe().to_string());
        // There is none for the host, nor for another transport.
        assert_eq!(wisdom().build()?.report().source, Source::Model);
        let staged = wisdom().on(&gpu).transport(GpuTransport::HostStaged).build()?;
        assert_eq!(staged.report().source, Source::Model);
        Ok::<_, Error>(())
    })
    .unwrap();
}
