//! Benchmarks of encoded messages: what they print, and what they complain about.

use std::process::Command;

use crate::common::{Run, run, threads};
use serde_json::Value;

const FIELDS: [&str; 13] = [
    "noise",
    "uniform",
    "gaussian",
    "turbulence",
    "charges",
    "profile",
    "smooth",
    "spike",
    "constant",
    "checkerboard",
    "extremes",
    "subnormal",
    "delta",
];

fn bench(ranks: usize, line: &str) -> Run {
    let words: Vec<_> = ["bench"].into_iter().chain(line.split(' ')).collect();
    threads(ranks, &[&words[..], &["--reps", "1", "--json"]].concat())
}

fn json(ranks: usize, line: &str) -> Value {
    serde_json::from_str(&bench(ranks, line).ok()).unwrap()
}

#[test]
fn what_was_sent_and_lost_is_reported() {
    let found = json(8, "c2c 32^3 --ignore-shared-memory --tolerance 1e-6");
    let number = |place: &str| found.pointer(place).unwrap().as_f64().unwrap();
    let (bits, error) = (number("/bits_per_real"), number("/error/wire"));
    assert!((20.0..23.0).contains(&bits) && (number("/ratio") * bits - 64.0).abs() < 1e-9);
    assert!((0.85e-6..1e-6).contains(&error) && error < number("/error/wire_bound"), "{found}");
    assert!((number("/error/wire_estimate") / error - 1.0).abs() < 0.02, "{found}");
    assert_eq!(found["tolerance"], "1e-6");
    assert_eq!((&found["field"], &found["wire"]), (&"noise".into(), &Value::Null));

    let found =
        json(4, "r2c 32^3 --precision f32 --ignore-shared-memory --wire bits:12 --field smooth");
    assert!((2.5..2.7).contains(&found["ratio"].as_f64().unwrap()), "{found}");
    assert_eq!((&found["field"], &found["wire"]), (&"smooth".into(), &"bits:12".into()));
    let found = json(4, "r2c 16^3 --ignore-shared-memory --wire lossless");
    assert_eq!(found["error"]["wire"].as_f64(), Some(0.0));
    // Nothing is encoded unless requested, nor between ranks of one host.
    assert_eq!(json(4, "r2c 16^3")["error"]["wire"], Value::Null);
    assert_eq!(json(4, "r2c 16^3 --wire f16")["error"]["wire"].as_f64(), Some(0.0));
    let table =
        threads(4, &["bench", "r2c", "16^3", "--ignore-shared-memory", "--wire", "f16"]).ok();
    assert!(table.contains("bits per real, ratio 3.") && table.contains("(f16)"), "{table}");
}

#[test]
fn what_is_not_encoded_is_told_so() {
    let table = |ranks: usize, line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        threads(ranks, &[&["bench", "r2c", "16^3"], &words[..]].concat()).ok()
    };
    for encoding in ["--tolerance 1e-6", "--wire f16", "--wire lossless"] {
        let one_host = table(4, encoding);
        assert!(one_host.contains(" shared raw)"), "{one_host}");
        let why = "  wire       exact, as nothing is encoded between ranks of one host; \
                   --ignore-shared-memory sends all\n";
        assert!(one_host.contains(why), "{one_host}");
        let alone = table(1, &format!("{encoding} --ignore-shared-memory"));
        assert!(alone.contains("  wire       exact, as one rank sends nothing\n"), "{alone}");
        let sent = table(4, &format!("{encoding} --ignore-shared-memory"));
        assert!(!sent.contains(" raw)") && sent.contains(" in l2, estimate "), "{sent}");
    }
    let asked = table(4, "--wire raw --ignore-shared-memory");
    assert!(asked.contains("  wire       exact, as messages are raw\n"), "{asked}");
}

#[test]
fn every_field_passes_with_and_without_a_wire() {
    for (n, field) in FIELDS.into_iter().enumerate() {
        let kind = ["c2c", "r2c", "dct2", "dst1"][n % 4];
        for wire in ["", " --wire bits:16", " --wire mantissa:0"] {
            let line =
                format!("{kind} 12x10x9 --check --ignore-shared-memory --field {field}{wire}");
            json(6, &line);
        }
        let strict = ["bench", kind, "12x10x9", "--ignore-shared-memory", "--field", field];
        threads(6, &[&strict[..], &["--tolerance", "1e-5 strict", "--reps", "1"]].concat()).ok();
    }
}

#[test]
fn too_much_lost_is_an_error() {
    for line in ["c2c 16^3 --wire bits:8 --tolerance 1e-3", "r2c 16^3 --wire f16 --tolerance 1e-5"]
    {
        let run = bench(8, &format!("{line} --ignore-shared-memory"));
        assert!(run.complaint().contains("beyond the tolerance"), "{run:?}");
        // What was found is said all the same.
        assert!(run.stdout.contains("wire_bound"), "{run:?}");
    }
}

#[test]
fn serves_with_a_wire() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fft-cli"));
    let line = "bench r2c 16x16 --serve --ranks 3 --ignore-shared-memory --tolerance 1e-3 --field gaussian";
    command.args(line.split(' '));
    let text = run(command, "go\ntimings\n").ok();
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for line in [
        "c2c 8x8 --tolerance 0",
        "c2c 8x8 --tolerance much",
        "c2c 8x8 --tolerance 1e-15",
        "c2c 8x8 --tolerance strict",
        "c2c 8x8 --wire zip",
        "c2c 8x8 --wire bits:1",
        "c2c 8x8 --wire tolerance",
        "c2c 8x8 --field sand",
    ] {
        let run = bench(3, line);
        run.complaint();
        assert_eq!(run.stdout, "", "{line}");
    }
}

/// The transform that it is compared with takes the same way, however that was found.
#[test]
fn raw_messages_lose_nothing_whatever_chose_the_recipe() {
    for chosen in ["--machine ethernet", "--machine summit", "--tuning measure:200ms"] {
        let found = json(4, &format!("c2c 20x24x18 --wire raw {chosen}"));
        assert_eq!(found.pointer("/error/wire").unwrap().as_f64(), Some(0.0), "{chosen}");
    }
}
