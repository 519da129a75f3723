//! NumPy and SciPy as independent oracles. `THRIFFTY_PYTHON` names a Python that has both; without
//! it the test prints "skipped".

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::check::Case;
use crate::common::data::{C64, distance, norm, random, widen};
use crate::whole::{forward, inverse};
use fft_core::Element;
use thriffty::{C2c, Kind, R2c, R2r, Scale};

/// Evaluates one expression of `x` per line of `jobs`: type, shape and expression, separated by
/// tabs.
const SCRIPT: &str = r#"
import os, sys
import numpy as np
from numpy.fft import fft, ifft, fftn, ifftn, rfft, irfft, rfftn, irfftn
from scipy.fft import dct, dst, idct, idst, dctn, dstn, idctn, idstn
os.chdir(sys.argv[1])
for number, line in enumerate(open("jobs")):
    kind, shape, expression = line.rstrip("\n").split("\t")
    x = np.fromfile(f"{number}.in", kind).reshape([int(n) for n in shape.split(",")])
    y = eval(expression)
    if y.dtype not in (np.float64, np.complex128):
        sys.exit(f"{expression} is {y.dtype}")
    y.tofile(f"{number}.out")
"#;

/// Relative l2 error: both sides round, in 1000 points each less than 1e-14.
const BOUND: f64 = 1e-13;

/// Ranks of the transforms compared, with random bricks.
const RANKS: usize = 4;

/// A directory that goes when the test ends.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to the system.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The expressions for Python, and the results computed here.
#[derive(Default)]
struct Jobs {
    lines: Vec<String>,
    inputs: Vec<Vec<u8>>,
    /// Results, and whether Python's are complex.
    results: Vec<(Vec<C64>, bool)>,
}

impl Jobs {
    fn add<A: Element, B: Element>(&mut self, shape: &[usize], expression: &str, x: &[A], y: &[B]) {
        let kind = if A::WIDTH == 2 { "c16" } else { "f8" };
        let shape: Vec<_> = shape.iter().map(usize::to_string).collect();
        self.lines.push(format!("{kind}\t{}\t{expression}\n", shape.join(",")));
        self.inputs.push(bytemuck::cast_slice(x).to_vec());
        self.results.push((widen(y), B::WIDTH == 2));
    }

    fn compare(&self, python: &str, directory: &Path) {
        std::fs::create_dir_all(directory).unwrap();
        std::fs::write(directory.join("jobs"), self.lines.concat()).unwrap();
        for (number, bytes) in self.inputs.iter().enumerate() {
            std::fs::write(directory.join(format!("{number}.in")), bytes).unwrap();
        }
        let run = Command::new(python).arg("-c").arg(SCRIPT).arg(directory).output();
        let run = run.unwrap_or_else(|error| panic!("{python}: {error}"));
        assert!(run.status.success(), "{python}: {}", String::from_utf8_lossy(&run.stderr));
        for (number, (found, complex)) in self.results.iter().enumerate() {
            let bytes = std::fs::read(directory.join(format!("{number}.out"))).unwrap();
            let reals: Vec<f64> =
                bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
            let expected = match complex {
                true => reals.chunks_exact(2).map(|x| C64::new(x[0], x[1])).collect(),
                false => widen(&reals),
            };
            let error = distance(found, &expected) / norm(&expected);
            assert!(error <= BOUND, "error {error:.2e} exceeds {BOUND:e}: {}", self.lines[number]);
        }
    }
}

const SHAPE: [usize; 3] = [12, 9, 10];
const POINTS: usize = 12 * 9 * 10;

/// Complex data both ways, with the expressions that give the same.
fn complex(jobs: &mut Jobs, case: &Case<3>, there: &str, back: &str) {
    let x: Vec<C64> = random(POINTS, 1);
    jobs.add(&SHAPE, there, &x, &forward::<C2c<f64>, 3>(RANKS, case, &x));
    jobs.add(&SHAPE, back, &x, &inverse::<C2c<f64>, 3>(RANKS, case, &x));
}

fn real(jobs: &mut Jobs, case: &Case<3>, there: &str, back: &str) {
    let x: Vec<f64> = random(POINTS, 2);
    jobs.add(&SHAPE, there, &x, &forward::<R2r<f64>, 3>(RANKS, case, &x));
    jobs.add(&SHAPE, back, &x, &inverse::<R2r<f64>, 3>(RANKS, case, &x));
}

/// Real data, and a spectrum that cannot come from any: NumPy drops the same part of it.
fn halved(jobs: &mut Jobs, case: &Case<3>, there: &str, back: &str) {
    let spectral = case.grids().unwrap()[1];
    let (x, y): (Vec<f64>, Vec<C64>) = (random(POINTS, 3), random(spectral.points(), 4));
    jobs.add(&SHAPE, there, &x, &forward::<R2c<f64>, 3>(RANKS, case, &x));
    jobs.add(&spectral.shape(), back, &y, &inverse::<R2c<f64>, 3>(RANKS, case, &y));
}

#[test]
fn numpy_and_scipy_agree() {
    use Kind::*;
    let Ok(python) = std::env::var("THRIFFTY_PYTHON") else {
        return println!("skipped: THRIFFTY_PYTHON names no Python");
    };
    let jobs = &mut Jobs::default();
    let case = |kinds| Case::new(SHAPE, kinds).tiling(11);

    complex(jobs, &case([C2C; 3]), "fftn(x)", "ifftn(x)");
    let unitary = case([C2C; 3]).scales(Scale::Symmetric, Scale::Symmetric);
    complex(jobs, &unitary, "fftn(x, norm='ortho')", "ifftn(x, norm='ortho')");
    let forward = case([C2C; 3]).scales(Scale::Full, Scale::None);
    complex(jobs, &forward, "fftn(x, norm='forward')", "ifftn(x, norm='forward')");
    complex(
        jobs,
        &case([C2C, Dct2, Kind::None]),
        "dct(fft(x, axis=0), 2, axis=1)",
        "idct(ifft(x, axis=0), 2, axis=1)",
    );

    halved(jobs, &case([C2C, C2C, R2C]), "rfftn(x)", "irfftn(x, s=(12, 9, 10), axes=(0, 1, 2))");
    halved(
        jobs,
        &case([C2C, R2C, C2C]),
        "rfftn(x, axes=(0, 2, 1))",
        "irfftn(x, s=(12, 10, 9), axes=(0, 2, 1))",
    );
    halved(
        jobs,
        &case([R2C, Dst4, C2C]),
        "dst(rfftn(x, axes=(2, 0)), 4, axis=1)",
        "irfftn(idst(x, 4, axis=1), s=(10, 12), axes=(2, 0))",
    );

    real(
        jobs,
        &case([Dst3, Kind::None, Dct1]),
        "dct(dst(x, 3, axis=0), 1, axis=2)",
        "idct(idst(x, 3, axis=0), 1, axis=2)",
    );

    let directory = std::env::temp_dir().join(format!("thriffty-numpy-{}", std::process::id()));
    let scratch = Scratch(directory);
    jobs.compare(&python, &scratch.0);
    println!("{} transforms compared", jobs.lines.len());
}
