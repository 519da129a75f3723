//! Transforms against NumPy's and SciPy's. Runs where `THRIFFTY_PYTHON` names a Python that has
//! both.

use std::fmt::Write;
use std::process::Command;

use crate::common::{Folder, threads};

/// `make` writes the input of every case, by turns in each version of the format, and `check`
/// compares the output with the result of NumPy or SciPy.
const SCRIPT: &str = r"
import sys, os, numpy as np, scipy.fft
mode, folder = sys.argv[1:]
rng = np.random.default_rng(1)
worst = {}
for line in open(folder + '/cases'):
    name, kind, inverse, last, dtype, order, shape = line.split()
    inverse, last = inverse == '1', int(last) or None
    shape = [int(n) for n in shape.split('x')]
    single = dtype[1:] in ('f2', 'f4', 'c8')
    if mode == 'make':
        x = rng.uniform(-1, 1, shape) * (100 if dtype[1] in 'iu' else 1)
        if 'c' in dtype: x = x + 1j * rng.uniform(-1, 1, shape)
        with open(folder + '/' + name + '.in.npy', 'wb') as file:
            array = np.array(x, dtype=dtype, order=order)
            np.lib.format.write_array(file, array, version=(int(name) % 3 + 1, 0))
        continue
    x = np.load(folder + '/' + name + '.in.npy')
    x = x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)
    axes, real = range(len(shape)), kind != 'c2c' and (kind != 'r2c' or inverse)
    if kind == 'r2c' and inverse:
        lengths = shape[:-1] + [last or 2 * (shape[-1] - 1)]
        y = np.fft.irfftn(x, lengths, axes=axes)
    elif kind == 'r2c': y = np.fft.rfftn(x)
    elif kind == 'c2c': y = np.fft.ifftn(x) if inverse else np.fft.fftn(x)
    else:
        f = getattr(scipy.fft, ('i' if inverse else '') + kind[:3] + 'n')
        y = f(x, type=int(kind[3]))
    z = np.load(folder + '/' + name + '.out.npy')
    want = ('<f' if real else '<c') + str((4 if single else 8) * (1 if real else 2))
    assert z.dtype == np.dtype(want), (line, z.dtype)
    assert z.shape == y.shape, (line, z.shape, y.shape)
    assert z.flags[order + '_CONTIGUOUS'], line
    assert np.load(folder + '/' + name + '.out.npy', mmap_mode='r').offset % 64 == 0, line
    error = np.linalg.norm((z - y).ravel()) / np.linalg.norm(y.ravel())
    assert error < (1e-6 if single else 1e-13), (line, error)
    worst[single] = max(error, worst.get(single, 0))
print(mode, worst)
";

struct Case {
    kind: &'static str,
    inverse: bool,
    last: usize,
    dtype: &'static str,
    order: char,
    shape: Vec<usize>,
}

fn cases() -> Vec<Case> {
    let shapes: [&[usize]; 9] = [
        &[7],
        &[16],
        &[5, 9],
        &[16, 1],
        &[1, 3],
        &[3, 4, 5],
        &[11, 2, 8],
        &[2, 3, 4, 5],
        &[7, 2, 1, 6],
    ];
    let mut cases = Vec::new();
    let mut add = |kind, dtypes: &[&'static str], inverse: bool, last: usize, shape: &[usize]| {
        for (dtype, order) in dtypes.iter().flat_map(|dtype| [(dtype, 'C'), (dtype, 'F')]) {
            cases.push(Case { kind, inverse, last, dtype, order, shape: shape.to_vec() });
        }
    };
    for shape in shapes {
        for inverse in [false, true] {
            add("c2c", &["<f4", "<f8", "<c8", "<c16"], inverse, 0, shape);
            let kinds = ["dct1", "dct2", "dct3", "dct4", "dst1", "dst2", "dst3", "dst4"];
            for (turn, kind) in kinds.into_iter().enumerate() {
                // Each precision one way, as tests of the library have both.
                let dtype = ["<f4", "<f8"][(turn + usize::from(inverse)) % 2];
                if kind != "dct1" || !shape.contains(&1) {
                    add(kind, &[dtype], inverse, 0, shape);
                }
            }
        }
        add("r2c", &["<f4", "<f8"], false, 0, shape);
        let n = 2 * (shape[shape.len() - 1] - 1);
        for last in [0, n, n + 1].into_iter().filter(|&last| last > 0 || n > 0) {
            add("r2c", &["<c8", "<c16"], true, last, shape);
        }
    }
    // These are converted.
    let others = ["<f2", ">f2", ">f4", ">f8", "|i1", "|u1", ">i4", "<i8", "|b1"];
    add("r2c", &others, false, 0, &[3, 4, 5]);
    add("c2c", &[">c8", ">c16", ">u2"], true, 0, &[5, 9]);
    cases
}

#[test]
fn results_are_those_of_numpy_and_scipy() {
    let Ok(python) = std::env::var("THRIFFTY_PYTHON") else {
        eprintln!("skipped: THRIFFTY_PYTHON names no Python with NumPy and SciPy");
        return;
    };
    let folder = Folder::new();
    let run_script = |mode: &str| {
        let mut command = Command::new(&python);
        let status = command.args(["-c", SCRIPT, mode]).arg(folder.path()).status().unwrap();
        assert!(status.success(), "{mode}: {status}");
    };
    let cases = cases();
    let mut list = String::new();
    for (i, Case { kind, inverse, last, dtype, order, shape }) in cases.iter().enumerate() {
        let lengths: Vec<_> = shape.iter().map(usize::to_string).collect();
        let (inverse, lengths) = (u8::from(*inverse), lengths.join("x"));
        writeln!(list, "{i} {kind} {inverse} {last} {dtype} {order} {lengths}").unwrap();
    }
    std::fs::write(folder.at("cases"), list).unwrap();
    run_script("make");
    for (i, case) in cases.iter().enumerate() {
        let (input, output) =
            (folder.at(&format!("{i}.in.npy")), folder.at(&format!("{i}.out.npy")));
        let last = case.last.to_string();
        let mut args = vec!["transform", case.kind, &input, &output];
        args.extend(case.inverse.then_some("--inverse"));
        if case.last > 0 {
            args.extend(["--last", &last]);
        }
        threads(i % 4 + 1, &args).ok();
    }
    run_script("check");
    println!("{} cases", cases.len());
}
