//! Padding and truncation: measured, written to files, forecast and refused.

use crate::common::{Folder, Run, load, threads, unsaid};
use serde_json::{Value, json};

fn run(ranks: usize, line: &str) -> Run {
    threads(ranks, &line.split(' ').collect::<Vec<_>>())
}

fn object(ranks: usize, line: &str) -> Value {
    serde_json::from_str(&run(ranks, &format!("{line} --json")).ok()).unwrap()
}

/// Forward against the definition; the inverse against it, too, where it does not undo that.
#[test]
fn errors_are_measured_whatever_is_left_out() {
    for (line, padded, truncated) in [
        ("c2c 8x6x10 --zero-padded 16x6x11", "16x6x11", false),
        ("r2c 12x10x9 --modes 8x10x4 --batch 2", "12x10x9", true),
        ("r2c 12x10x9 --zero-padded 16x15x16 --modes 9x6x10", "16x15x16", true),
        ("r2c 6x12x9 --kinds dct2,r2c,none --zero-padded 6x20x9 --modes 6x9x9", "6x20x9", true),
        ("c2c 12x10 --modes 7x6 --precision f32 --direction inverse", "12x10", true),
        // All of it is left out.
        ("c2c 12x10 --modes 7x6 --field checkerboard", "12x10", true),
        ("c2c 12x10 --modes 7x6 --wire lossless --ignore-shared-memory", "12x10", true),
    ] {
        for ranks in [1, 3] {
            let found = object(ranks, &format!("bench {line} --check --reps 1"));
            let error = |name: &str| found["error"][name].as_f64();
            let bound = if line.contains("f32") { 1e-6 } else { 5e-15 };
            assert!(error("forward").is_some_and(|error| error < bound), "{found}");
            for (name, is_there) in
                [("roundtrip", !truncated), ("roundtrip_max", !truncated), ("inverse", truncated)]
            {
                assert_eq!(error(name).is_some(), is_there, "{name}: {found}");
                assert!(error(name).is_none_or(|error| error < bound), "{name}: {found}");
            }
            let recipe = found["recipe"].as_str().unwrap();
            assert!(recipe.contains(&format!(" zero_padded={padded} modes=")), "{recipe}");
        }
    }
    let table = run(2, "bench r2c 16x16 --modes 8x8 --reps 1").ok();
    assert!(table.contains("\n  inverse    ") && !table.contains("round trip"), "{table}");
    let whole = "bench r2c 12x9 --zero-padded 24x18 --threads 2 --reps 1 --json";
    let whole = unsaid(&whole.split(' ').collect::<Vec<_>>()).ok();
    assert!(whole.contains("\"r2c 12x9 zero_padded=24x18\""), "{whole}");
    let grids = "bench r2c 8x8 --modes 8x4 --output-grid 1x3 --reps 1";
    assert!(object(3, grids)["recipe"].as_str().unwrap().contains("[1x3]"));
}

/// As if zeros had been in the file, with the lowest frequencies alone.
#[test]
fn files_have_the_shape_of_the_modes() {
    let folder = Folder::new();
    let input = folder.array("in.npy", "<c16", false, &[6, 5]);
    let [hat, back, all] = ["hat.npy", "back.npy", "all.npy"].map(|name| folder.at(name));
    let padded = folder.array("padded.npy", "<c16", false, &[8, 5]);
    let bytes = std::fs::read(&input).unwrap();
    let zeros = vec![0; 2 * 5 * 16];
    let header = std::fs::read(&padded).unwrap();
    std::fs::write(&padded, [&header[..128], &bytes[128..], &zeros].concat()).unwrap();
    run(1, &format!("transform c2c {padded} {all}")).ok();
    let all = load(&all).1;
    for ranks in [1, 4] {
        let lens = "--zero-padded 8x5";
        run(ranks, &format!("transform c2c {input} {hat} {lens}")).ok();
        let found = load(&hat).1;
        assert!(found.iter().zip(&all).all(|(x, y)| (x - y).abs() < 1e-14));
        run(ranks, &format!("transform c2c {hat} {back} {lens} --inverse --shape 6x5")).ok();
        let (there, again) = (load(&input), load(&back));
        assert_eq!(there.0.trim_end(), again.0.trim_end());
        assert!(there.1.iter().zip(&again.1).all(|(x, y)| (x - y).abs() < 1e-15));

        let lens = "--zero-padded 8x5 --modes 4x3";
        let line = run(ranks, &format!("transform c2c {input} {hat} {lens}")).ok();
        assert!(line.starts_with("c2c zero_padded=8x5 modes=4x3 6x5 <c16 -> 4x3 <c16, "), "{line}");
        let kept = [0, 1, 2, 7].map(|i| [0, 1, 4].map(|j| (i, j)));
        for (found, (i, j)) in load(&hat).1.chunks(2).zip(kept.concat()) {
            // The middle one of four modes is 0.
            let at = 2 * (5 * i + j);
            let expected = if i == 2 { &[0.0; 2] } else { &all[at..at + 2] };
            let differ = |(x, y): (&f64, &f64)| (x - y).abs() > 1e-14;
            assert!(!found.iter().zip(expected).any(differ), "{i} {j}");
        }
        let again = format!("transform c2c {hat} {back} {lens} --inverse --shape 6x5");
        let found = object(ranks, &again);
        assert_eq!(found["output"]["shape"], json!([6, 5]));
        assert_eq!((&found["zero_padded"], &found["modes"]), (&json!([8, 5]), &json!([4, 3])));
    }
    let real = folder.array("real.npy", "<f8", true, &[6, 5, 7]);
    run(3, &format!("transform r2c {real} {hat} --modes 4x3x5")).ok();
    assert!(load(&hat).0.contains("(4, 3, 3)"));
    run(2, &format!("transform r2c {hat} {back} --modes 4x3x5 --inverse --shape 6x5x7")).ok();
    assert!(load(&back).0.contains("(6, 5, 7)"));
    let names = folder.names();
    for (line, expected) in [
        (format!("{hat} {back} --inverse --modes 4x3x5"), "needs --shape"),
        (format!("{hat} {back} --inverse --modes 4x3x6 --shape 6x5x7"), "expected 4x3x4"),
        (format!("{hat} {back} --inverse --shape 4x3"), "--shape 4x3 has 2 axes"),
        (format!("{real} {back} --shape 6x5x7"), "--inverse"),
        (format!("{real} {back} --modes 6x5x9"), "modes along axis 2: found 9"),
        (format!("{real} {back} --modes 5x5x7 --kinds dct2,r2c,none"), "kind of padding"),
    ] {
        let run = run(2, &format!("transform r2c {line}"));
        assert!(run.complaint().contains(expected), "{run:?}");
        assert_eq!(folder.names(), names);
    }
}

#[test]
fn forecasts_are_of_the_padded_transform() {
    let plan = |lens: &str| object(4, &format!("plan c2c 64^3 --machine ethernet{lens}"));
    let seconds = |found: &Value| found["seconds"]["predicted"].as_f64().unwrap();
    let (found, whole) = (plan(" --zero-padded 96^3 --modes 64^3"), plan(" --zero-padded 96^3"));
    assert_eq!(found["problem"], "c2c 64x64x64 zero_padded=96x96x96 modes=64x64x64");
    assert!(seconds(&plan("")) < seconds(&found) && seconds(&found) < seconds(&whole));
    let n = 96f64.powi(3);
    let flops = found["gflops"]["predicted"].as_f64().unwrap() * 1e9 * seconds(&found);
    assert!((flops / (5.0 * n * n.log2()) - 1.0).abs() < 1e-9, "{flops}");

    let scale = "scale r2c 64^3 --zero-padded 96^3 --machine ethernet --ranks-list 2,4";
    let text = unsaid(&scale.split(' ').collect::<Vec<_>>()).ok();
    for part in [
        "encoded is lossless",
        " 64x64x64 zero_padded=96x96x96 ",
        " 80x80x80 zero_padded=120x120x120 ",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn wisdom_is_of_these_lengths() {
    let folder = Folder::new();
    let path = folder.at("wisdom.toml");
    let lens = "c2c 12x8 --zero-padded 24x8 --modes 12x6";
    run(3, &format!("tune {lens} --tuning measure:200ms --wisdom {path}")).ok();
    let bench = |line: &str| run(3, &format!("bench {line} --reps 1 --tuning wisdom:{path}"));
    assert_eq!(bench(lens).stderr, "");
    assert!(bench("c2c 12x8").stderr.contains("is ignored"));
}

#[test]
fn what_makes_no_sense_is_refused_by_all() {
    for (line, expected) in [
        ("c2c 8x8 --zero-padded 16", "axes of zero_padded: found 1, expected 2"),
        ("c2c 8x8 --modes 8x8x8", "axes of modes: found 3, expected 2"),
        ("c2c 8x8 --zero-padded 4x8", "zero_padded along axis 0: found 4"),
        ("c2c 8x8 --modes 4x9", "modes along axis 1: found 9, expected 1 to 8"),
        ("c2c 8x8 --modes 4x0", "modes along axis 1: found 0"),
        ("dct2 8x8 --zero-padded 16x8", "kind of padding or truncation along axis 0: found dct2"),
        ("c2c 8x8 --modes 4x4 --wire f32", "wire beside padding or truncation: found f32"),
        ("c2c 8x8 --modes 4x4 --tolerance 1e-5", "truncation: found tolerance"),
    ] {
        for command in ["bench", "tune --tuning measure:100ms", "plan"] {
            let run = run(3, &format!("{command} {line}"));
            assert!(run.complaint().contains(expected), "{command} {line}: {run:?}");
            assert_eq!(run.stdout, "", "{command} {line}");
        }
    }
}
