//! `cargo xtask bench --sizes`: cubes of many lengths against FFTW, one line each.

use crate::bench::{Binaries, cases};
use crate::options::Options;
use crate::record::{self, RankCase};
use crate::tools::Result;
use serde_json::json;

/// Times each cube and prints a line of ratios for it.
pub(crate) fn run(options: &Options) -> Result {
    let binaries = Binaries::prepare(options)?;
    let machine = binaries.machine()?;
    let mut lines = Vec::new();
    let mut records = Vec::new();
    for &n in &options.sizes {
        let cube = options.cube(n);
        let cases = cases(&cube, &binaries, |name| is_timed(options, name))?;
        lines.push(line(n, &cases));
        records.push(
            json!({ "n": n, "cases": cases.iter().map(RankCase::record).collect::<Vec<_>>() }),
        );
    }
    println!(
        "\n{} {}: median of the ratios to FFTW within rounds",
        options.kind, options.precision
    );
    lines.iter().for_each(|line| println!("{line}"));
    let record = record::with_problem(options, &machine, json!({ "cubes": records }));
    record::write(options, &format!("-{}-sizes", options.precision), record)
}

/// By default only MPI and threads, ours and FFTW's.
fn is_timed(options: &Options, name: &str) -> bool {
    if options.only.is_empty() {
        ["fftw-mpi", "fftw-threads", "thriffty-mpi", "thriffty-threads"].contains(&name)
    } else {
        options.wants(name)
    }
}

/// `  100   1 rank 0.95   4 ranks 0.60`: threads at one rank, MPI at several.
fn line(n: usize, cases: &[RankCase]) -> String {
    let ratio = |case: &RankCase| {
        let way = if case.ranks == 1 { "threads" } else { "mpi" };
        let names = [format!("thriffty-{way}"), format!("fftw-{way}")];
        let all = case.ratios();
        let found = all.iter().find(|(ours, theirs, _)| [*ours, *theirs] == names);
        found.map_or("-".into(), |(_, _, ratio)| format!("{:.2}", ratio.median_of_rounds))
    };
    let ranks = |count: usize| if count == 1 { "rank" } else { "ranks" };
    let cells =
        cases.iter().map(|case| format!("{} {} {}", case.ranks, ranks(case.ranks), ratio(case)));
    format!("{n:5}   {}", cells.collect::<Vec<_>>().join("   "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Series;

    #[test]
    fn a_line_has_threads_at_one_rank_and_mpi_at_several() {
        let case = |ranks, way: &str| {
            let series = |name: String, seconds| Series { name, seconds: vec![seconds; 2] };
            let series =
                vec![series(format!("fftw-{way}"), 2.0), series(format!("thriffty-{way}"), 1.0)];
            RankCase { ranks, series, busy: Vec::new() }
        };
        let found = line(100, &[case(1, "threads"), case(4, "mpi"), case(4, "threads")]);
        assert_eq!(found, "  100   1 rank 0.50   4 ranks 0.50   4 ranks -");
    }
}
