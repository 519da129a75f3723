//! Calibration, tuning, and what later runs make of them.

use std::process::Command;

use crate::common::{Folder, Run, run, threads};
use serde_json::Value;

const PROBLEM: [&str; 2] = ["c2c", "12x8x10"];

fn bench(ranks: usize, args: &[&str]) -> Run {
    threads(ranks, &[&["bench", "--json", "--reps", "1"], &PROBLEM[..], args].concat())
}

fn recipe(run: Run) -> String {
    let found: Value = serde_json::from_str(&run.ok()).unwrap();
    found["recipe"].as_str().unwrap().to_owned()
}

#[test]
fn a_calibrated_machine_is_a_file_and_changes_what_is_predicted() {
    let folder = Folder::new();
    let path = folder.at("machine.toml");
    let table = threads(2, &["calibrate", "-o", &path]).ok();
    for name in ["cores", "flops.256", "near.latency", "encode.bits"] {
        assert!(table.lines().any(|line| line.trim_start().starts_with(name)), "{table}");
    }
    assert!(table.lines().filter(|line| line.ends_with("assumed")).count() < 10, "{table}");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# thriffty machine ") && text.contains("# ranks_per_host: 2"));
    let predicted = |run: Run| {
        let found: Value = serde_json::from_str(&run.ok()).unwrap();
        found["predicted"].as_f64().unwrap()
    };
    let own = predicted(bench(2, &["--machine", &path]));
    assert!(own > 0.0 && own != predicted(bench(2, &[])));
    // A file of other ranks is used with a warning if it is named, and ignored otherwise.
    let named = bench(3, &["--machine", &path]);
    assert!(named.stderr.contains("warn: machine file") && named.stderr.contains("is used, but"));
    let found = |ranks: usize| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fft-cli"));
        command.args(["bench", "--json", "--reps", "1"]).args(PROBLEM);
        command.args(["--ranks", &ranks.to_string()]).env("THRIFFTY_MACHINE", &path);
        run(command, "")
    };
    let foreign = found(3);
    assert_eq!(foreign.stderr.matches("is ignored").count(), 1, "{foreign:?}");
    assert_eq!(predicted(foreign), predicted(bench(3, &[])));
    let here = found(2);
    assert_eq!(here.stderr, "");
    assert_eq!(predicted(here), own);
    for wrong in [folder.at("nowhere.toml"), {
        std::fs::write(folder.at("wrong.toml"), "cores = 2\n").unwrap();
        folder.at("wrong.toml")
    }] {
        assert!(bench(2, &["--machine", &wrong]).complaint().contains("machine file"));
    }
}

#[test]
fn what_was_tuned_is_remembered_and_used() {
    let folder = Folder::new();
    let path = folder.at("wisdom.toml");
    let tune = ["tune", PROBLEM[0], PROBLEM[1], "--tuning", "measure:300ms", "--wisdom", &path];
    let table = threads(2, &tune).ok();
    let chosen: Vec<_> = table.lines().filter(|line| line.starts_with('*')).collect();
    assert_eq!(chosen.len(), 1, "{table}");
    assert!(table.lines().count() > 2, "{table}");
    let from_wisdom = format!("wisdom:{path}");
    let known = bench(2, &["--tuning", &from_wisdom]);
    assert_eq!(known.stderr, "");
    let chosen_from = |run: Run| {
        let found: Value = serde_json::from_str(&run.ok()).unwrap();
        found["reason"].as_str().unwrap().to_owned()
    };
    assert!(table.starts_with("chosen by the clock: the fastest of "), "{table}");
    // A mark, the model's time and its unit, the measured time and its unit.
    let words: Vec<_> = chosen[0].split_whitespace().collect();
    let measured = format!("from wisdom, measured {} {}", words[3], words[4]);
    assert_eq!(chosen_from(bench(2, &["--tuning", &from_wisdom])), measured, "{table}");
    let shown = threads(2, &["bench", PROBLEM[0], PROBLEM[1], "--tuning", &from_wisdom]).ok();
    assert!(shown.contains(&format!("\n  recipe     {measured}\n")), "{shown}");
    let known = recipe(known);
    assert!(chosen[0].ends_with(&known), "{table}");
    // By its name, too.
    let by_name = format!("recipe:{known}");
    assert_eq!(recipe(bench(2, &["--tuning", &by_name])), known);
    assert_eq!(chosen_from(bench(2, &["--tuning", &by_name])), "given as a recipe");
    assert_eq!(folder.names(), [".wisdom.toml.lock", "wisdom.toml"]);
    // Wisdom that is of other ranks, damaged or missing: the model chooses, with one warning.
    let by_model = recipe(bench(3, &[]));
    let check = |path: &str| {
        let run = bench(3, &["--tuning", &format!("wisdom:{path}")]);
        assert_eq!(run.stderr.matches("warn: wisdom").count(), 1, "{run:?}");
        assert!(run.stdout.contains("; wisdom is ignored: "), "{run:?}");
        assert_eq!(recipe(run), by_model);
    };
    check(&path);
    check(&folder.at("nowhere"));
    std::fs::write(&path, "no wisdom").unwrap();
    check(&path);
    // It may be somebody's only copy of something else.
    assert!(threads(2, &tune).complaint().contains("expected a file of wisdom"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "no wisdom");
}

#[test]
fn eight_jobs_at_once_leave_eight_entries() {
    let folder = Folder::new();
    let path = folder.at("wisdom.toml");
    std::thread::scope(|scope| {
        for n in 8..16 {
            let path = &path;
            scope.spawn(move || {
                let shape = format!("{n}x4");
                threads(1, &["tune", "c2c", &shape, "--tuning", "measure:20ms", "--wisdom", path])
                    .ok()
            });
        }
    });
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("[[entry]]").count(), 8, "{text}");
}

#[test]
fn benchmarks_choose_by_the_clock_when_asked_to() {
    let table = threads(2, &["bench", "r2c", "8^3", "--tuning", "measure:0.1"]).ok();
    assert!(table.contains("expected") && table.contains("(r2c 8x8x8"), "{table}");
    let inverse = bench(2, &["--direction", "inverse"]).ok();
    let inverse: Value = serde_json::from_str(&inverse).unwrap();
    assert!(inverse["predicted"].is_null());
}

#[test]
fn what_makes_no_sense_is_refused() {
    for args in [
        &["--tuning", "recipe:(c2c 1)"][..],
        &["--tuning", "guess"],
        &["--tuning", "measure:soon"],
        &["--tuning", "wisdom:"],
    ] {
        bench(2, args).complaint();
    }
    let folder = Folder::new();
    let nowhere = folder.at("nowhere/wisdom");
    let args = ["tune", "c2c", "8", "--tuning", "measure:0.05", "--wisdom", &nowhere];
    assert!(threads(2, &args).complaint().contains("file "));
}
