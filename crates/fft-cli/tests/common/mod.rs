//! Running the program, with a limit on its time so that nothing can hang the tests.
#![allow(dead_code)] // each test uses a part of it

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How a program ended.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub elapsed: Duration,
}

impl Run {
    /// What it said, having ended well.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// What it complained about, in one line of its own.
    #[track_caller]
    pub fn complaint(&self) -> &str {
        assert!(self.code.is_some_and(|code| code != 0), "{self:?}");
        let own: Vec<_> = self.stderr.lines().filter(|line| line.contains("fft-cli: ")).collect();
        assert_eq!(own.len(), 1, "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        own[0]
    }
}

/// Runs the program on so many threads as ranks.
pub fn threads(ranks: usize, args: &[&str]) -> Run {
    let ranks = ranks.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fft-cli"));
    command.args(args).args(["--ranks", &ranks]);
    run(command, "")
}

/// Runs the program on so many MPI processes.
pub fn processes(ranks: usize, args: &[&str]) -> Run {
    let mut command = Command::new("mpirun");
    command.args(["-n", &ranks.to_string(), env!("CARGO_BIN_EXE_fft-cli")]).args(args);
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        command.env(name, "1");
    }
    for name in ["OMPI_MCA_rmaps_base_oversubscribe", "OMPI_MCA_mpi_yield_when_idle"] {
        command.env(name, "1");
    }
    run(command, "")
}

/// Whether there is an mpirun.
pub fn has_mpirun() -> bool {
    let mut command = Command::new("mpirun");
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs a program with this input, for two minutes at most.
pub fn run(mut command: Command, input: &str) -> Run {
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
        if start.elapsed() > Duration::from_secs(120) {
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
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file in it.
    pub fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// The names of all files in it.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Writes an `.npy` file in C or Fortran order, whose elements are numbers with nothing special about them; for
    /// complex dtypes two of them each. Returns its path.
    pub fn array(&self, name: &str, descr: &str, fortran: bool, shape: &[usize]) -> String {
        let order = if fortran { "True" } else { "False" };
        let lengths: String = shape.iter().map(|n| format!("{n},")).collect();
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
pub fn load(path: &str) -> (String, Vec<f64>) {
    let bytes = std::fs::read(path).unwrap();
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8(bytes[10..start].to_vec()).unwrap();
    let number = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().unwrap());
    (header, bytes[start..].chunks_exact(8).map(number).collect())
}
