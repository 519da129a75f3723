//! Running the program, with a limit on its time so that nothing can hang the tests.
#![cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "a part is for processes"))]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) elapsed: Duration,
}

impl Run {
    /// What it said, having ended well.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// What it complained about, in one line of its own.
    #[track_caller]
    pub(crate) fn complaint(&self) -> &str {
        assert!(self.code.is_some_and(|code| code != 0), "{self:?}");
        let own: Vec<_> = self.stderr.lines().filter(|line| line.contains("fft-cli: ")).collect();
        assert_eq!(own.len(), 1, "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        own[0]
    }
}

/// Runs the program without saying on how many ranks.
pub(crate) fn unsaid(args: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fft-cli"));
    command.args(args);
    run(command, "")
}

/// Runs the program on `ranks` threads as ranks.
pub(crate) fn threads(ranks: usize, args: &[&str]) -> Run {
    let ranks = ranks.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fft-cli"));
    command.args(args).args(["--ranks", &ranks]);
    run(command, "")
}

/// Exchanges by their names.
pub(crate) const EXCHANGES: [&str; 10] = [
    "shared",
    "p2p",
    "pipelined",
    "alltoallv",
    "kway2",
    "kway3",
    "kway4",
    "kway255",
    "ring",
    "ring-flush",
];

/// Checks transforms, there and back, by this exchange, with ample and with least memory. `run`
/// gets the arguments.
pub(crate) fn check_exchange(exchange: &str, run: impl Fn(&[&str]) -> Run) {
    for (kind, memory) in [("c2c", "ample"), ("r2c", "least")] {
        let args = ["bench", kind, "12x10x9", "--exchange", exchange, "--memory", memory];
        let text = run(&[&args[..], &["--reps", "1", "--check", "--json"]].concat()).ok();
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        let (ran, puts) = (&found["exchange"], found["communicator"] == "mpi");
        // Threads cannot put, nor can some MPIs.
        let instead = exchange.starts_with("ring") && !puts;
        assert_eq!(ran, if instead { "pipelined" } else { exchange }, "{found}");
        assert!(found.pointer("/error/forward").unwrap().as_f64().unwrap() < 5e-15, "{found}");
    }
}

/// Runs the program on `ranks` MPI processes.
pub(crate) fn processes(ranks: usize, args: &[&str]) -> Run {
    processes_with(&[], ranks, args)
}

/// The same, with these variables in the environment.
pub(crate) fn processes_with(envs: &[(&str, &str)], ranks: usize, args: &[&str]) -> Run {
    let mut command = mpirun();
    command.args(["-n", &ranks.to_string(), env!("CARGO_BIN_EXE_fft-cli")]).args(args);
    command.envs(envs.iter().copied());
    run(command, "")
}

/// An mpirun that starts more processes than there are cores, also as root.
pub(crate) fn mpirun() -> Command {
    let mut command = Command::new("mpirun");
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        command.env(name, "1");
    }
    for name in ["OMPI_MCA_rmaps_base_oversubscribe", "OMPI_MCA_mpi_yield_when_idle"] {
        command.env(name, "1");
    }
    command
}

/// Whether there is an mpirun.
pub(crate) fn has_mpirun() -> bool {
    let mut command = Command::new("mpirun");
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let found = command.status().is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped: there is no mpirun");
    }
    found
}

/// Everything that can be wrong with a transform, as words of a command line in this folder: `OUT`
/// is the output.
pub(crate) fn wrong_transforms(folder: &Folder) -> Vec<Vec<String>> {
    let real = folder.array("real.npy", "<f8", false, &[6, 5]);
    let complex = folder.array("complex.npy", "<c16", true, &[6, 5]);
    let short = folder.array("short.npy", "<f8", false, &[6, 5]);
    let bytes = std::fs::read(&short).unwrap();
    std::fs::write(&short, &bytes[..bytes.len() - 1]).unwrap();
    let point = folder.array("point.npy", "<f8", false, &[1, 5]);
    let scalar = folder.array("scalar.npy", "<f8", false, &[]);
    let many = folder.array("many.npy", "<f8", false, &[1; 5]);
    let empty = folder.array("empty.npy", "<c16", false, &[3, 0]);
    let long = folder.array("long.npy", "<f16", false, &[6, 5]);
    let text = folder.at("text.npy");
    std::fs::write(&text, "no array").unwrap();
    let (missing, out) = (folder.at("missing.npy"), folder.at("OUT.npy"));
    let (nowhere, inside) = (folder.at("nowhere/OUT.npy"), folder.at("text.npy/OUT.npy"));
    let this = folder.at("");
    let lines: Vec<Vec<&str>> = vec![
        vec!["r2c", &missing, &out],
        vec!["r2c", &this, &out],
        vec!["r2c", &text, &out],
        vec!["r2c", &short, &out],
        vec!["r2c", &long, &out],
        vec!["r2c", &complex, &out],
        vec!["dct2", &complex, &out],
        vec!["r2c", &real, &out, "--inverse"],
        vec!["r2c", &scalar, &out],
        vec!["r2c", &many, &out],
        vec!["c2c", &empty, &out],
        vec!["r2c", &empty, &out, "--inverse"],
        vec!["dct1", &point, &out],
        vec!["c2c", &complex, &out, "--last", "5"],
        vec!["r2c", &complex, &out, "--inverse", "--last", "10"],
        vec!["r2c", &complex, &out, "--inverse", "--last", "0"],
        vec!["r2c", &real, &out, "--input-grid", "7x11"],
        vec!["r2c", &real, &out, "--output-grid", "1x1x1"],
        vec!["r2c", &real, &nowhere],
        vec!["r2c", &real, &inside],
        vec!["r2c", &real, &this],
        vec!["r2c", &real, "/proc/OUT.npy"],
        vec!["r2c", &real, "/dev/full"],
        vec!["r2c", &real],
        vec!["r2d", &real, &out],
        vec!["r2c", &real, &out, "--forward-scale", "half"],
    ];
    let words = |line: Vec<&str>| line.into_iter().map(str::to_owned).collect();
    lines.into_iter().map(words).collect()
}

/// Runs a program with this input, for five minutes at most.
pub(crate) fn run(mut command: Command, input: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("in"), input).unwrap();
    command
        .stdin(std::fs::File::open(file("in")).unwrap())
        .stdout(std::fs::File::create(file("out")).unwrap())
        .stderr(std::fs::File::create(file("err")).unwrap());
    let start = Instant::now();
    let mut child = command.spawn().unwrap();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > Duration::from_secs(300) {
            child.kill().unwrap();
            panic!("{command:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = |name| String::from_utf8_lossy(&std::fs::read(file(name)).unwrap()).into_owned();
    let (stdout, stderr) = (text("out"), text("err"));
    Run { code: status.code(), stdout, stderr, elapsed: start.elapsed() }
}

/// A folder with names in it.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file in it.
    pub(crate) fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// The names of all files in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Writes an `.npy` file in C or Fortran order, whose elements are numbers with nothing special
    /// about them; for complex dtypes two of them each. Returns its path.
    pub(crate) fn array(&self, name: &str, descr: &str, fortran: bool, shape: &[usize]) -> String {
        let order = if fortran { "True" } else { "False" };
        let lengths: Vec<_> = shape.iter().map(usize::to_string).collect();
        let lengths = lengths.join(", ") + if shape.len() == 1 { "," } else { "" };
        let text =
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({lengths}), }}");
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{text:<117}\n").bytes());
        let count = shape.iter().product::<usize>() * if descr.contains('c') { 2 } else { 1 };
        let value = |i: usize| (i as f64 * 0.618_033_988_749_895 + 0.1).fract() - 0.45;
        for i in 0..count {
            match descr {
                "<f4" | "<c8" => bytes.extend((value(i) as f32).to_le_bytes()),
                _ => bytes.extend(value(i).to_le_bytes()),
            }
        }
        std::fs::write(self.at(name), bytes).unwrap();
        self.at(name)
    }
}

/// The data of an `.npy` file whose elements are `<f8` or `<c16`, and its header's text.
pub(crate) fn load(path: &str) -> (String, Vec<f64>) {
    let bytes = std::fs::read(path).unwrap();
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8(bytes[10..start].to_vec()).unwrap();
    let number = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().unwrap());
    (header, bytes[start..].chunks_exact(8).map(number).collect())
}
