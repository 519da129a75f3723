//! The same program under mpirun.
use std::process::Command;
use std::time::Duration;

use crate::common::{
    EXCHANGES, Folder, check_exchange, has_mpirun, processes, processes_with, threads,
    wrong_transforms,
};

#[test]
fn processes_write_the_same_files_as_threads() {
    if !has_mpirun() {
        return;
    }
    let folder = Folder::new();
    let (one, other) = (folder.at("threads.npy"), folder.at("processes.npy"));
    for (kind, descr, fortran, shape) in [
        ("r2c", "<f8", false, &[6, 5, 7][..]),
        ("c2c", "<c8", true, &[9, 4]),
        ("dct2", "<f4", false, &[13]),
    ] {
        let input = folder.array("in.npy", descr, fortran, shape);
        for ranks in 1..=4 {
            threads(ranks, &["transform", kind, &input, &one]).ok();
            let line = processes(ranks, &["transform", kind, &input, &other]).ok();
            assert!(line.contains(&format!("{ranks} ranks (mpi)")), "{line}");
            assert_eq!(line.lines().count(), 1);
            let [one, other] = [&one, &other].map(|path| std::fs::read(path).unwrap());
            assert!(one == other, "{kind} {ranks}");
        }
    }
    assert_eq!(folder.names(), ["in.npy", "processes.npy", "threads.npy"]);
}

#[test]
fn errors_end_all_processes_at_once() {
    if !has_mpirun() {
        return;
    }
    let folder = Folder::new();
    let lines = wrong_transforms(&folder);
    let before = folder.names();
    // Every fifth: errors of paths, of dtypes, of shapes, of numbers and of the command line.
    for (i, line) in lines.iter().enumerate().step_by(5) {
        let args: Vec<&str> =
            std::iter::once("transform").chain(line.iter().map(|s| &**s)).collect();
        let run = processes(2 + i % 3, &args);
        run.complaint();
        assert!(run.elapsed < Duration::from_secs(30), "{run:?}");
        assert_eq!(folder.names(), before, "{line:?}");
    }
}

#[test]
fn every_exchange_is_right_by_its_name() {
    if !has_mpirun() {
        return;
    }
    for exchange in EXCHANGES {
        check_exchange(exchange, |args| processes(3, args));
    }
}

#[test]
fn benchmarks_verifies_and_refuses() {
    if !has_mpirun() {
        return;
    }
    let text = processes(3, &["bench", "r2c", "8^3", "--json", "--check"]).ok();
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&found["ranks"], &found["communicator"]), (&3.into(), &"mpi".into()));
    let text = processes(2, &["verify", "--quick"]).ok();
    assert!(text.ends_with("checks, all ok\n"), "{text}");
    let text = processes(3, &["bench", "r2c", "8^3", "--serve"]).ok();
    assert_eq!(text, "ready\n");
    let run = processes(2, &["bench", "r2c", "8", "--ranks", "2"]);
    assert!(run.complaint().contains("--ranks"), "{run:?}");
    assert_eq!(processes(2, &["--version"]).ok().lines().count(), 1);
}

#[test]
fn processes_have_several_threads() {
    if !has_mpirun() {
        return;
    }
    let bench = |more: &str| {
        let args = "bench r2c 12x10x8 --json --check --reps 2 --threads 2".split(' ');
        let args: Vec<_> = args.chain(more.split_whitespace()).collect();
        processes(2, &args)
    };
    for more in ["", "--exchange hosts --input-grid 2x1x1 --output-grid 1x2x1", "--tolerance 1e-6"]
    {
        let text = bench(more).ok();
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["ranks"], 4, "{text}");
        assert!(found["error"]["forward"].as_f64().unwrap() < 1e-6, "{text}");
        assert!(found["error"]["round_trip"]["l2"].as_f64().is_none_or(|it| it < 1e-6), "{text}");
    }
    assert!(bench("--ranks 2").complaint().contains("--ranks"));
}

#[test]
fn processes_measure_their_machine_and_remember_what_is_fastest() {
    if !has_mpirun() {
        return;
    }
    let folder = Folder::new();
    let (machine, wisdom) = (folder.at("machine.toml"), folder.at("wisdom.toml"));
    let table = processes(3, &["calibrate", "-o", &machine]).ok();
    assert!(table.contains("near.bandwidth"), "{table}");
    let text = std::fs::read_to_string(&machine).unwrap();
    assert!(text.contains("# ranks_per_host: 3"), "{text}");
    let tune = ["tune", "r2c", "12x8x10", "--tuning", "measure:300ms", "--wisdom", &wisdom];
    let table = processes(3, &[&tune[..], &["--machine", &machine]].concat()).ok();
    let chosen: Vec<_> = table.lines().filter(|line| line.starts_with('*')).collect();
    assert!(chosen.len() == 1 && table.lines().count() > 4, "{table}");
    let from_wisdom = format!("wisdom:{wisdom}");
    let bench = ["bench", "r2c", "12x8x10", "--reps", "1", "--tuning", &from_wisdom];
    let found = processes(3, &bench);
    assert_eq!(found.stderr, "");
    assert_eq!(
        found.ok().lines().next(),
        chosen[0].split_once("  (").map(|(_, recipe)| format!("({recipe}")).as_deref()
    );
    // The launcher leaves this option to the program.
    let tuning = ["--tuning", "measure:100ms", "--reps", "1"];
    let timed = processes(2, &[&["bench", "c2c", "8^3"], &tuning[..]].concat()).ok();
    assert!(timed.contains("\n  recipe     chosen by the clock: "), "{timed}");
    // Threads are another machine.
    assert!(threads(3, &bench).stderr.contains("its library is"));
    assert_eq!(folder.names(), [".wisdom.toml.lock", "machine.toml", "wisdom.toml"]);
}

/// Open MPI without any of its ways to make a window, as Debian's settings leave it between hosts.
/// Other MPIs ignore the variable, and have nothing to warn of.
#[test]
fn an_mpi_that_cannot_put_is_warned_of_once() {
    if !has_mpirun() {
        return;
    }
    let version = Command::new("mpirun").arg("--version").output().unwrap();
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let open_mpi = version.contains("Open MPI");
    let none = [("OMPI_MCA_osc", "^sm,rdma,ucx,pt2pt,portals4,monitoring")];
    for exchange in ["ring", "ring-flush", "p2p"] {
        let args = ["bench", "c2c", "6x5", "--exchange", exchange, "--reps", "1", "--check"];
        let run = processes_with(&none, 3, &args);
        let warnings = run.stderr.matches("cannot put into the memory of other ranks").count();
        let expected = usize::from(exchange != "p2p" && open_mpi);
        assert_eq!(warnings, expected, "{run:?}");
        if expected > 0 {
            assert!(run.stderr.contains("fft-cli: warn: "), "{run:?}");
            // A remedy exists for this version.
            let advised = run.stderr.contains("OMPI_MCA_osc=^ucx");
            assert_eq!(advised, version.contains("(Open MPI) 4."), "{run:?}");
        }
        run.ok();
    }
}
