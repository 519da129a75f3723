//! Benchmarks: what they print.

use std::process::Command;

use crate::common::{EXCHANGES, Folder, Run, check_exchange, run, threads, unsaid};
use serde_json::Value;

fn json(ranks: usize, args: &[&str]) -> Value {
    let text = threads(ranks, &[&["bench", "--json", "--reps", "3"], args].concat()).ok();
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn csv_has_the_numbers_and_texts_of_json() {
    let args = ["c2c", "12x10x9", "--check", "--kinds", "c2c,c2c,none"];
    let text = threads(3, &[&["bench", "--format", "csv", "--reps", "1"], &args[..]].concat()).ok();
    let [names, values] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    // Commas are within quotes alone.
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in values.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            _ => cells.last_mut().unwrap().push(c),
        }
    }
    let found: Vec<_> = names.split(',').zip(&cells).collect();
    assert_eq!(found.len(), cells.len());
    let expected = json(3, &args);
    for (name, cell) in &found {
        let pointer = format!("/{}", name.replace('.', "/"));
        match expected.pointer(&pointer).unwrap_or_else(|| panic!("{name}")) {
            Value::String(text) if *name != "recipe" => assert_eq!(*cell, text, "{name}"),
            Value::Number(_) => drop(cell.parse::<f64>().unwrap()),
            Value::Null => assert_eq!(*cell, "", "{name}"),
            _ => {}
        }
    }
    assert!(found.iter().any(|(name, _)| *name == "seconds.median"));
    assert!(found.iter().any(|(name, _)| *name == "error.forward"));
}

/// One process with threads says what ranks say; whole arrays have no bricks and no messages.
#[test]
fn threads_transform_whole_arrays() {
    let bench = |args: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fft-cli"));
        command.args(["bench", "--json", "--reps", "2"]).args(args.split(' '));
        run(command, "")
    };
    for (kind, batch) in [("c2c", "1"), ("r2c", "5"), ("dst3", "2")] {
        let text = bench(&format!("{kind} 12x10x9 --threads 3 --check --batch {batch}")).ok();
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["ranks"], 3);
        assert!(found["recipe"].as_str().unwrap().contains("ranks=3"), "{text}");
        assert!(found["error"]["forward"].as_f64().unwrap() < 1e-14);
        assert!(found["split"]["fft"].as_f64().unwrap() > 0.0);
    }
    for with in ["--ranks 2", "--input-grid 2", "--wire f32", "--exchange p2p", "--shared-arrays"] {
        bench(&format!("c2c 8 --threads 2 {with}")).complaint();
    }
}

#[test]
fn layouts_are_those_asked_for() {
    let [any, slabs, pencils] = ["any", "slabs", "pencils"].map(|layouts| {
        json(4, &["c2c", "16x16x16", "--layouts", layouts])["recipe"].as_str().unwrap().to_owned()
    });
    assert_ne!(slabs, pencils);
    assert!(any == slabs || any == pencils || any.starts_with("(c2c 16x16x16"));
    let other = threads(2, &["bench", "c2c", "8", "--layouts", "bricks"]);
    assert!(other.complaint().contains("any, slabs, pencils"));
}

#[test]
fn json_has_everything_and_it_is_sane() {
    for ranks in 1..=4 {
        for (kind, exchange) in [("c2c", "p2p"), ("r2c", "alltoallv"), ("dst3", "p2p")] {
            let args = [kind, "12x10x9", "--exchange", exchange, "--check", "--batch", "2"];
            let found = json(ranks, &args);
            assert_eq!(found["problem"], format!("{kind} 12x10x9"));
            assert_eq!(found["ranks"], ranks);
            assert_eq!(found["communicator"], "threads");
            assert_eq!(found["precision"], "f64");
            assert_eq!(found["exchange"], exchange);
            assert_eq!(found["version"], env!("CARGO_PKG_VERSION"));
            assert!(found["recipe"].as_str().unwrap().starts_with(&format!("({kind} 12x10x9")));
            let number = |place: &str| found.pointer(place).unwrap().as_f64().unwrap();
            let [min, median, max] =
                ["min", "median", "max"].map(|name| number(&format!("/seconds/{name}")));
            assert!(0.0 < min && min <= median && median <= max && max < 100.0);
            for part in ["pack", "exchange", "unpack", "own", "shared", "fft"] {
                assert!((0.0..=2.0 * max).contains(&number(&format!("/split/{part}"))), "{found}");
            }
            assert!(number("/gflops") > 0.0 && number("/workspace_bytes") >= 0.0);
            let busiest = number("/bytes_sent_busiest");
            assert!(busiest <= number("/bytes_sent") && (busiest > 0.0) == (ranks > 1));
            assert_eq!(number("/bytes_sent") > 0.0, ranks > 1);
            assert_eq!(found["bits_per_real"].as_f64(), (ranks > 1).then_some(64.0));
            for error in ["roundtrip", "roundtrip_max", "forward"] {
                assert!((1e-17..5e-15).contains(&number(&format!("/error/{error}"))), "{found}");
            }
        }
    }
}

#[test]
fn every_exchange_is_right_by_its_name() {
    for exchange in EXCHANGES {
        for ranks in 2..=4 {
            check_exchange(exchange, |args| threads(ranks, args));
        }
    }
    let wrong = threads(2, &["bench", "c2c", "8", "--exchange", "kway256"]);
    assert!(wrong.complaint().contains("kway256"), "{wrong:?}");
}

#[test]
fn least_memory_is_little_more_than_once_the_data() {
    for exchange in ["p2p", "pipelined", "alltoallv", "kway2"] {
        let args = ["c2c", "128x64x64", "--exchange", exchange, "--memory"];
        let [ample, least] = ["ample", "least"].map(|memory| {
            let found = json(2, &[&args[..], &[memory]].concat());
            found["workspace_bytes"].as_f64().unwrap() / f64::from(16 * 128 * 64 * 64)
        });
        // By default a few chunks are under way, which of so little data are much of it.
        assert!(ample < 1.4 && ample >= least, "{exchange}: {ample}, {least}");
        // Besides the data, tables and lists of the messages of all rounds.
        assert!(least < 1.2, "{exchange}: {least}");
    }
}

#[test]
fn both_directions_and_precisions_pass_their_checks() {
    for (shape, precision) in [("35", "f64"), ("8x7", "f32")] {
        for direction in ["forward", "inverse"] {
            let args = ["dst4", shape, "--precision", precision, "--direction", direction];
            let found = json(3, &[&args[..], &["--check"]].concat());
            assert_eq!(found["direction"], direction);
        }
    }
    assert!(json(1, &["c2c", "8"])["error"]["forward"].is_null());
}

#[test]
fn grids_of_ranks_are_those_of_the_recipe() {
    let found = json(4, &["c2c", "8^3", "--input-grid", "1x2x2", "--output-grid", "2x2x1"]);
    let recipe = found["recipe"].as_str().unwrap();
    assert!(recipe.contains("[1x2x2]") && recipe.contains("[2x2x1]"), "{recipe}");
}

/// The same on a GPU, or one line that says why there is none.
#[test]
fn a_device_gives_what_is_checked_or_a_reason() {
    let args = "--device cuda --check --json --reps 2 --ranks";
    for (line, ranks) in [
        ("c2c 16x12x10", "1"),
        ("c2c 16x12x10", "2"),
        ("r2c 16x12x10", "3"),
        ("dct2 16x12x10", "2"),
        ("c2c 16x12x10 --zero-padded 32x12x15", "2"),
        ("r2c 16x12x10 --modes 8x12x7", "2"),
    ] {
        let words = line.split(' ').chain(args.split(' ')).chain([ranks]);
        let found = unsaid(&["bench"].into_iter().chain(words).collect::<Vec<_>>());
        if found.code == Some(0) {
            let found: Value = serde_json::from_str(&found.stdout).unwrap();
            assert_eq!(found["transport"], "peer_to_peer", "{found}");
            let back = if line.contains("--modes") { "/error/inverse" } else { "/error/roundtrip" };
            for error in [back, "/error/forward"] {
                let error = found.pointer(error).and_then(Value::as_f64).unwrap();
                assert!((1e-17..5e-15).contains(&error), "{found}");
            }
        } else {
            let why = found.complaint().split_once("fft-cli: ").unwrap().1;
            assert!(is_why_there_is_no_device(why), "{why}");
            println!("not run: {why}");
        }
    }
}

/// A machine of GPUs, which plans on them take and others do not; or why there are none.
#[test]
fn a_device_is_calibrated_or_there_is_a_reason() {
    let folder = Folder::new();
    let path = folder.at("machine.toml");
    for ranks in ["1", "2"] {
        let args = ["calibrate", "--device", "cuda", "-o", &path, "--ranks", ranks];
        let found = unsaid(&args);
        if found.code == Some(0) {
            for name in ["cores", "flops.256", "launch", "encode.bits"] {
                let has = |line: &str| line.trim_start().starts_with(name);
                assert!(found.stdout.lines().any(has), "{found:?}");
            }
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains("\ngpu = "), "{text}");
            let bench = |args: &[&str]| {
                unsaid(
                    &[&["bench", "c2c", "8^3", "--machine", &path, "--ranks", ranks], args]
                        .concat(),
                )
            };
            assert_eq!(bench(&["--device", "cuda"]).stderr, "");
            assert!(bench(&[]).stderr.contains("its GPU is"));
        } else {
            let why = found.complaint().split_once("fft-cli: ").unwrap().1;
            assert!(is_why_there_is_no_device(why), "{why}");
            println!("not run: {why}");
        }
    }
    let refused = threads(2, &["calibrate", "--transport", "host_staged"]);
    assert!(refused.complaint().contains("--transport goes with --device cuda"));
}

/// Whether that is all of why a rank has no device, or a program none at all.
fn is_why_there_is_no_device(text: &str) -> bool {
    let whole = |why: &str| {
        // The driver's own words follow the device: a name of its errors, and what it means.
        let device = why.strip_prefix("CUDA device ").and_then(|of| of.split_once(": "));
        why == "no CUDA driver on this machine (libcuda.so does not load)"
            || device.is_some_and(|(number, says)| {
                number.parse::<usize>().is_ok() && says.contains("CUDA_ERROR_")
            })
            || (why.starts_with("CUDA device ") && why.ends_with(", expected 8.0 or more"))
    };
    let numbered = |of: &str| of.strip_prefix("rank ").is_some_and(|n| n.parse::<usize>().is_ok());
    match text.split_once(": ") {
        None => text == "this fft-cli was built without the feature cuda",
        Some((rank, why)) => match rank.strip_suffix(" has no device") {
            Some(rank) => {
                numbered(rank) && why == "no cuFFT on this machine (libcufft.so does not load)"
            }
            None => numbered(rank) && whole(why),
        },
    }
}

#[test]
fn the_table_is_for_people() {
    let table = threads(2, &["bench", "r2c", "16x16", "--check"]).ok();
    for name in ["(r2c 16x16 f64 ranks=2", "ranks      2 (threads)", "GFlop/s", "forward", "KiB"] {
        assert!(table.contains(name), "{table}");
    }
}

fn serve(input: &str) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fft-cli"));
    command.args(["bench", "r2c", "16x16", "--serve", "--ranks", "3", "--exchange", "p2p"]);
    run(command, input)
}

#[test]
fn serves_on_demand() {
    for (input, answers) in [("", 0), ("quit\ngo\n", 0), ("go\ngo\n", 2), ("go\ngo\ngo\nquit\n", 3)]
    {
        let text = serve(input).ok();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("ready"));
        let seconds: Vec<f64> = lines.map(|line| line.parse().unwrap()).collect();
        assert!(seconds.len() == answers && seconds.iter().all(|t| *t > 0.0 && *t < 10.0));
    }
    assert!(serve("go\nstop\n").complaint().contains("`stop`"));
    let text = serve("timings\ngo\ngo\ntimings\n").ok();
    let lines: Vec<&str> = text.lines().collect();
    let value = |line: &str, name: &str| -> f64 {
        let mut words = line.split(' ').skip_while(|word| *word != name);
        words.nth(1).expect("a value follows each name").parse().unwrap()
    };
    assert_eq!((lines.len(), value(lines[1], "bytes_sent_busiest")), (5, 0.0));
    let [all, most] = ["bytes_sent", "bytes_sent_busiest"].map(|name| value(lines[4], name));
    assert!(0.0 < most && most < all && all <= 3.0 * most, "{text}");
    assert!(value(lines[4], "fft") > 0.0, "{text}");
}

#[test]
fn ranks_share_a_single_axis() {
    for layout in ["", " --transposed-output", " --input-cyclic 4 --output-cyclic 4"] {
        let args = format!("bench c2c 2^10 --reps 1 --json{layout}");
        let text = threads(4, &args.split(' ').collect::<Vec<_>>()).ok();
        let found: Value = serde_json::from_str(&text).unwrap();
        assert!(found["recipe"].as_str().unwrap().starts_with("(c2c 1024"), "{text}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for args in [
        "c2c",
        "c2c 8x",
        "fft 8",
        "c2c 8^99",
        "c2c 20 --input-cyclic 4 --output-cyclic 4",
        "c2c 8 --reps 0",
        "c2c 8 --ranks 0",
        "c2c 8x8 --input-grid 2x2",
        "c2c 8x8 --output-grid 3",
        "dct1 8x1",
        "c2c 9999999999999x999999999999",
        "c2c 8 --serve --json",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fft-cli"));
        command.arg("bench").args(args.split(' '));
        if !args.contains("--ranks") {
            command.args(["--ranks", "3"]);
        }
        let run = run(command, "");
        run.complaint();
        assert_eq!(run.stdout, "", "{args}");
    }
    let output = threads(2, &["bench", "--help"]).ok();
    assert!(output.contains("--exchange"));
}

#[cfg(not(feature = "mpi"))]
#[test]
fn under_mpirun_a_build_without_mpi_says_how_to_make_one_with() {
    for rank in ["0", "1"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fft-cli"));
        command.args(["bench", "c2c", "8"]);
        command.env("OMPI_COMM_WORLD_SIZE", "2").env("OMPI_COMM_WORLD_RANK", rank);
        let run = run(command, "");
        assert_eq!(run.code, Some(2));
        assert_eq!(run.stderr.contains("--features mpi"), rank == "0", "{run:?}");
    }
}

#[test]
fn solvers_of_poissons_equation_tell_their_residual() {
    for (ranks, ends) in [
        (1, "periodic,periodic,tridiagonal"),
        (3, "tridiagonal,neumann-dirichlet,dirichlet@faces"),
        (2, "neumann,neumann@faces,periodic"),
    ] {
        let args = ["bench", "poisson", "8x6x9", "--ends", ends, "--reps", "1"];
        let text = threads(ranks, &[&args[..], &["--json"]].concat()).ok();
        let found: Value = serde_json::from_str(&text).unwrap();
        assert!(found["residual"].as_f64().unwrap() < 1e-12, "{text}");
        assert!(found["seconds"]["median"].as_f64() > found["operator"]["min"].as_f64(), "{text}");
        assert!(threads(ranks, &args).ok().contains("residual"));
    }
    let ends = ["--ends", "tridiagonal,neumann,dirichlet", "--output-grid", "3x1x1", "--json"];
    let text =
        threads(3, &[&["bench", "poisson", "8x6x9", "--reps", "1"], &ends[..]].concat()).ok();
    let found: Value = serde_json::from_str(&text).unwrap();
    assert!(found["residual"].as_f64().unwrap() < 1e-12, "{text}");
    assert!(found["recipe"].as_str().unwrap().contains("(reduced x)"), "{text}");
    let refused = threads(1, &["bench", "poisson", "8x8", "--ends", "periodic"]);
    assert!(refused.complaint().contains("1 of 2 axes"));
    let refused = threads(1, &["bench", "poisson", "8x8", "--ends", "periodic,open"]);
    assert!(refused.complaint().contains("possible values"));
    assert!(unsaid(&["list", "ends"]).ok().contains("neumann-dirichlet@faces\n"));
}
