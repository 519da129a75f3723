//! The table of means over time, next to the published values.

use std::fmt::Write;

use super::flow::Means;

/// The published values are for this Reynolds number.
pub(crate) const REYNOLDS: f64 = 1600.0;

const REFERENCE: &str = include_str!("reference.txt");
const HEAD: &str = "time,energy,dissipation,enstrophy,reference energy,difference";

/// The means at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) time: f64,
    pub(crate) energy: f64,
    /// `-d(energy)/dt`, which is 2ν times the enstrophy.
    pub(crate) dissipation: f64,
    pub(crate) enstrophy: f64,
}

impl Row {
    pub(crate) fn new(time: f64, means: Means, viscosity: f64) -> Self {
        let Means { energy, enstrophy } = means;
        Self { time, energy, dissipation: 2.0 * viscosity * enstrophy, enstrophy }
    }
}

/// All published rows.
pub(crate) fn reference() -> impl Iterator<Item = Row> {
    let lines = REFERENCE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut numbers = line.split_whitespace().map_while(|number| number.parse().ok());
        let [time, energy, dissipation, enstrophy] = std::array::from_fn(|_| numbers.next());
        Some(Row { time: time?, energy: energy?, dissipation: dissipation?, enstrophy: enstrophy? })
    })
}

/// The published energy at a time, if there is one.
pub(crate) fn reference_energy(time: f64) -> Option<f64> {
    reference().find(|row| (row.time - time).abs() < 1e-9).map(|row| row.energy)
}

/// The rows as a CSV file; with the published energy if `compare` is set.
pub(crate) fn csv(rows: &[Row], compare: bool) -> String {
    let mut text = format!("{HEAD}\n");
    for Row { time, energy, dissipation, enstrophy } in rows {
        let (known, off) = match reference_energy(*time).filter(|_| compare) {
            Some(known) => (known.to_string(), format!("{:.2e}", energy - known)),
            None => Default::default(),
        };
        // Writing to a text cannot fail.
        let _ =
            writeln!(text, "{time},{energy:.15},{dissipation:.15},{enstrophy:.15},{known},{off}");
    }
    text
}

/// The rows of a CSV file before a time, from which a run goes on.
pub(crate) fn before(time: f64, text: &str) -> Vec<Row> {
    let rows = text.lines().skip(1).filter_map(|line| {
        let mut numbers = line.split(',').map_while(|number| number.parse().ok());
        let [time, energy, dissipation, enstrophy] = std::array::from_fn(|_| numbers.next());
        Some(Row { time: time?, energy: energy?, dissipation: dissipation?, enstrophy: enstrophy? })
    });
    rows.filter(|row| row.time < time - 1e-9).collect()
}
