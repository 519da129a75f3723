//! The result of a benchmark: as a table to read, and as a JSON record to keep.

use crate::machine::{self, Description};
use crate::options::Options;
use crate::quiet::QUIET;
use crate::stats::{Ratio, median, min};
use crate::tools::{self, Result, command};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// The seconds of one contender in each round.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) seconds: Vec<f64>,
}

impl Series {
    pub(crate) fn record(&self) -> Value {
        let Self { name, seconds } = self;
        json!({
            "name": name,
            "median": rounded(median(seconds)),
            "min": rounded(min(seconds)),
            "seconds": all_rounded(seconds),
        })
    }
}

/// All contenders at one number of ranks.
pub(crate) struct RankCase {
    pub(crate) ranks: usize,
    pub(crate) series: Vec<Series>,
    /// For each round, the share of the cores that other processes used.
    pub(crate) busy: Vec<f64>,
}

impl RankCase {
    /// Our programs' times divided by the times of FFTW and of our older program: (name, name,
    /// ratio).
    pub(crate) fn ratios(&self) -> Vec<(&str, &str, Ratio)> {
        let named = |prefix| self.series.iter().filter(move |s| s.name.starts_with(prefix));
        let beside = |ours: &Series| {
            let older = format!("older{}", ours.name.trim_start_matches("thriffty"));
            self.series.iter().filter(move |s| s.name == older)
        };
        named("thriffty")
            .flat_map(|ours| named("fftw").chain(beside(ours)).map(move |theirs| (ours, theirs)))
            .map(|(a, b)| (a.name.as_str(), b.name.as_str(), Ratio::of(&a.seconds, &b.seconds)))
            .collect()
    }

    pub(crate) fn table(&self) -> String {
        let mut text = format!("\nranks {:<40} {:>9}  {:>9}\n", self.ranks, "median s", "min s");
        for Series { name, seconds } in &self.series {
            let _ = writeln!(text, "  {name:<44} {:9.4}  {:9.4}", median(seconds), min(seconds));
        }
        text += &noise(&self.busy);
        let ratios = self.ratios();
        if !ratios.is_empty() {
            let _ = writeln!(text, "  {:<44} {:>9}  {:>9}", "ratio", "medians", "by round");
        }
        for (ours, theirs, ratio) in ratios {
            let both = format!("{ours} / {theirs}");
            let Ratio { of_medians, median_of_rounds } = ratio;
            let _ = writeln!(text, "  {both:<44} {of_medians:9.3}  {median_of_rounds:9.3}");
        }
        text
    }

    pub(crate) fn record(&self) -> Value {
        let series = self.series.iter().map(Series::record);
        let ratios = self.ratios().into_iter().map(|(ours, theirs, ratio)| {
            json!({
                "ours": ours,
                "theirs": theirs,
                "of_medians": rounded(ratio.of_medians),
                "median_of_rounds": rounded(ratio.median_of_rounds),
            })
        });
        json!({
            "ranks": self.ranks,
            "others_busy": all_rounded(&self.busy),
            "series": series.collect::<Vec<_>>(),
            "ratios": ratios.collect::<Vec<_>>(),
        })
    }
}

/// A line about rounds in which other work ran, if there were any.
pub(crate) fn noise(busy: &[f64]) -> String {
    match busy.iter().filter(|share| **share > QUIET).count() {
        0 => String::new(),
        noisy => {
            format!("  {noisy} of {} rounds beside other work: NOT TO BE TRUSTED\n", busy.len())
        }
    }
}

pub(crate) fn of_cases(options: &Options, machine: &Description, cases: &[RankCase]) -> Value {
    let cases: Vec<_> = cases.iter().map(RankCase::record).collect();
    with_problem(options, machine, json!({ "cases": cases }))
}

/// A record with its problem, its rounds and its machine.
pub(crate) fn with_problem(options: &Options, machine: &Description, mut record: Value) -> Value {
    record["problem"] = problem(options).replace('-', " ").into();
    record["rounds"] = options.rounds.into();
    for (name, value) in machine {
        record["machine"][*name] = value.as_str().into();
    }
    record
}

/// `c2c-256x256x256`, or the kind alone of several sizes.
fn problem(options: &Options) -> String {
    if options.sizes.is_empty() && !options.gpu {
        format!("{}-{}", options.kind, options.size_text())
    } else {
        options.kind.clone()
    }
}

/// Six decimals, finer than any of these times repeats.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

pub(crate) fn all_rounded(values: &[f64]) -> Vec<f64> {
    values.iter().copied().map(rounded).collect()
}

/// Writes a record to a file per day, machine and name; in the source tree with `--record`.
pub(crate) fn write(options: &Options, name: &str, mut record: Value) -> Result {
    let date = tools::output(command("date").args(["-u", "+%F"]))?;
    record["date"] = date.as_str().into();
    let folder = if options.record {
        Path::new("benches/records").to_path_buf()
    } else {
        tools::target_dir()
    };
    tools::make_folder(&folder)?;
    let name = format!("{date}-{}-{}{name}.json", machine::short_id(), problem(options));
    let path = folder.join(name);
    tools::write(&path, &format!("{record:#}\n"))?;
    println!("record: {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::parse;

    fn case() -> RankCase {
        let series =
            |name: &str, seconds: &[f64]| Series { name: name.into(), seconds: seconds.into() };
        RankCase {
            ranks: 2,
            busy: vec![0.5, 0.0],
            series: vec![
                series("memory copy", &[0.1]),
                series("fftw-mpi", &[0.5, 0.25]),
                series("thriffty-mpi", &[0.25, 0.25]),
            ],
        }
    }

    #[test]
    fn an_older_program_is_compared_with_its_like() {
        let mut case = case();
        let series = |name: &str| Series { name: name.into(), seconds: vec![0.5, 0.5] };
        case.series.extend(["older-mpi", "older-threads"].map(series));
        let ratios = case.ratios();
        let names: Vec<_> = ratios.iter().map(|(ours, theirs, _)| (*ours, *theirs)).collect();
        assert_eq!(names, [("thriffty-mpi", "fftw-mpi"), ("thriffty-mpi", "older-mpi")]);
        assert_eq!(ratios[1].2.median_of_rounds, 0.5);
    }

    #[test]
    fn ratios_are_ours_over_theirs() {
        let case = case();
        let ratios = case.ratios();
        let expected = Ratio { of_medians: 0.25 / 0.375, median_of_rounds: 0.75 };
        assert_eq!(ratios, [("thriffty-mpi", "fftw-mpi", expected)]);
        let table = case.table();
        assert!(table.contains("thriffty-mpi / fftw-mpi"), "{table}");
        assert!(table.contains("1 of 2 rounds beside other work"), "{table}");
        assert!(table.contains("0.667") && table.contains("0.750"), "{table}");
    }

    #[test]
    fn the_record_has_every_time() {
        let machine = vec![("cpu", "a \"fast\" one".to_string()), ("cores", "2".to_string())];
        let found = of_cases(&parse("--rounds 2").unwrap(), &machine, &[case()]);
        let ratio = json!({ "ours": "thriffty-mpi", "theirs": "fftw-mpi", "of_medians": 0.666667,
                            "median_of_rounds": 0.75 });
        let expected = json!({
            "problem": "c2c 256x256x256",
            "rounds": 2,
            "machine": { "cpu": "a \"fast\" one", "cores": "2" },
            "cases": [{
                "ranks": 2,
                "others_busy": [0.5, 0.0],
                "series": [
                    { "name": "memory copy", "median": 0.1, "min": 0.1, "seconds": [0.1] },
                    { "name": "fftw-mpi", "median": 0.375, "min": 0.25, "seconds": [0.5, 0.25] },
                    { "name": "thriffty-mpi", "median": 0.25, "min": 0.25, "seconds": [0.25, 0.25] },
                ],
                "ratios": [ratio],
            }],
        });
        assert_eq!(found, expected);
        assert!(json!(rounded(f64::NAN)).is_null());
    }
}
