//! `cargo xtask demo`: the library at work on a flow everyone knows, over MPI and by threads.

use crate::setup;
use crate::tools::{self, Result, cargo, command, run_shown};
use std::path::{Path, PathBuf};
use std::process::Command;

const RANKS: &str = "4";

/// Builds `fft-cli` in release; where it is.
pub(crate) fn build_cli(mpi: bool) -> Result<PathBuf> {
    let features: &[&str] = if mpi { &["--features", "fft-cli/mpi"] } else { &[] };
    run_shown(cargo().args(["build", "--release", "--package", "fft-cli"]).args(features))?;
    Ok(tools::target_dir().join("release/fft-cli"))
}

/// `mpirun -n RANKS program`, to be completed.
pub(crate) fn mpirun(ranks: &str, program: &Path) -> Command {
    let mut mpirun = command("mpirun");
    mpirun.args(["-n", ranks]).arg(program);
    mpirun
}

/// Runs the demo; without MPI its ranks are threads.
pub(crate) fn run() -> Result {
    let mpi = setup::prepare(&[]).mpi;
    if !mpi {
        println!("no MPI here: every rank is a thread");
    }
    let cli = build_cli(mpi)?;
    let folder = tools::target_dir().join("demo");
    tools::make_folder(&folder)?;
    let [u, v, w] = ["u.npy", "v.npy", "w.npy"].map(|name| folder.join(name));

    let sample = ["sample", "taylor-green", "--n", "128", "--out"];
    run_shown(command(&cli).args(sample).arg(&folder))?;

    let [by_mpi, by_threads] = ["u_hat.npy", "u_hat_threads.npy"].map(|name| folder.join(name));
    let threads = ["--ranks", RANKS];
    let transform = ["transform", "r2c"];
    if mpi {
        run_shown(mpirun(RANKS, &cli).args(transform).args([&u, &by_mpi]))?;
    }
    run_shown(command(&cli).args(transform).args([&u, &by_threads]).args(threads))?;
    if mpi {
        println!("{}", compare(&by_mpi, &by_threads)?);
    }

    let bench = ["bench", "r2c", "128x128x128"];
    if mpi {
        run_shown(mpirun(RANKS, &cli).args(bench))?;
    }
    run_shown(command(&cli).args(bench).args(threads))?;

    let mut spectrum = if mpi { mpirun(RANKS, &cli) } else { command(&cli) };
    spectrum.arg("spectrum").args([&u, &v, &w]).arg("--svg").arg(folder.join("spectrum.svg"));
    if !mpi {
        spectrum.args(threads);
    }
    run_shown(&mut spectrum)
}

/// A sentence on whether two NumPy files of doubles are the same.
fn compare(a: &Path, b: &Path) -> Result<String> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
    };
    let (one, other) = (read(a)?, read(b)?);
    let names = format!("{} and {}", a.display(), b.display());
    if one == other {
        return Ok(format!("{names} are identical, byte by byte"));
    }
    match largest_difference(&one, &other) {
        Some(difference) => Ok(format!("{names} differ by at most {difference:.3e}")),
        None => Err(format!("{names} differ in shape or kind")),
    }
}

/// The largest difference between the doubles of two NumPy files with the same header.
fn largest_difference(a: &[u8], b: &[u8]) -> Option<f64> {
    let header = 10 + usize::from(u16::from_le_bytes([*a.get(8)?, *a.get(9)?]));
    if a.len() != b.len() || a.get(..header)? != b.get(..header)? {
        return None;
    }
    let doubles = |bytes: &[u8]| -> Vec<f64> {
        let (words, _) = bytes[header..].as_chunks::<8>();
        words.iter().map(|&word| f64::from_le_bytes(word)).collect()
    };
    let pairs = doubles(a).into_iter().zip(doubles(b));
    let differences = pairs.map(|(x, y)| (x - y).abs());
    // `f64::max` passes over NaN, which must not look like agreement.
    Some(differences.fold(0.0, |most, d| if d.is_nan() || d > most { d } else { most }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, values: &[f64]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        bytes
    }

    #[test]
    fn the_largest_difference_is_found() {
        let (a, b) = (npy("h", &[1.0, 2.0, 3.0]), npy("h", &[1.0, 2.5, 2.75]));
        assert_eq!(largest_difference(&a, &b), Some(0.5));
    }

    #[test]
    fn other_headers_lengths_and_nan_are_not_agreement() {
        assert_eq!(largest_difference(&npy("h", &[1.0]), &npy("g", &[1.0])), None);
        assert_eq!(largest_difference(&npy("h", &[1.0]), &npy("h", &[1.0, 2.0])), None);
        assert_eq!(largest_difference(b"short", b"short"), None);
        let nan = largest_difference(&npy("h", &[f64::NAN, 1.0]), &npy("h", &[1.0, 3.0]));
        assert!(nan.is_some_and(f64::is_nan));
    }
}
