//! NumPy reads what we write and writes what we read. Runs where `THRIFFTY_PYTHON` names a Python that has NumPy.

use std::process::Command;

use super::*;

const SHAPE: [usize; 3] = [3, 4, 5];

/// Writes `DTYPE-ORDER-VERSION.npy` for each dtype, order and version.
const WRITE: &str = r"
import sys, numpy as np
for dtype in ['<f4', '<f8', '<c8', '<c16']:
    values = np.arange(60).astype(dtype)
    if dtype[1] == 'c': values = values - 1j * values
    for order in 'CF':
        array = np.array(values.reshape(3, 4, 5), dtype=dtype, order=order)
        for version in [1, 2, 3]:
            with open(f'{sys.argv[1]}/{dtype}-{order}-{version}.npy', 'wb') as file:
                np.lib.format.write_array(file, array, version=(version, 0))
";

/// Checks `DTYPE-ORDER.npy` for each dtype and order, and that the data are aligned.
const CHECK: &str = r"
import sys, numpy as np
for dtype in ['<f4', '<f8', '<c8', '<c16']:
    values = np.arange(60).astype(dtype)
    if dtype[1] == 'c': values = values - 1j * values
    for order in 'CF':
        path = f'{sys.argv[1]}/{dtype}-{order}.npy'
        for array in [np.load(path), np.load(path, mmap_mode='r')]:
            assert array.dtype == np.dtype(dtype) and array.flags[f'{order}_CONTIGUOUS'], path
            assert np.array_equal(array, values.reshape(3, 4, 5)), path
        assert np.load(path, mmap_mode='r').offset % 64 == 0, path
";

fn run(python: &str, script: &str, folder: &TempDir) {
    let status = Command::new(python).args(["-c", script]).arg(folder.path()).status().unwrap();
    assert!(status.success(), "{python}: {status}");
}

fn read_numpys<E: Element>(folder: &TempDir) {
    for (order, fortran_order) in [("C", false), ("F", true)] {
        for version in [1, 2, 3] {
            let path = folder.path().join(format!("{}-{order}-{version}.npy", E::DTYPE));
            let header = Header::open(&path).unwrap();
            let expected = Header {
                data_offset: header.data_offset,
                ..Header::new(&SHAPE, E::DTYPE, fortran_order)
            };
            assert_eq!(header, expected);
            for (lo, hi) in [([0; 3], SHAPE), ([1, 0, 2], [3, 3, 4])] {
                let expected = numbered::<E>(&header, &lo, &hi);
                let mut found = vec![E::numbered(0); expected.len()];
                read_brick(&path, &header, &lo, &hi, &mut found).unwrap();
                assert_eq!(found, expected);
            }
        }
    }
}

fn write_ours<E: Element>(folder: &TempDir) {
    for (order, fortran_order) in [("C", false), ("F", true)] {
        write_numbered::<E>(
            &folder.path().join(format!("{}-{order}.npy", E::DTYPE)),
            &SHAPE,
            fortran_order,
        );
    }
}

#[test]
fn numpy_agrees() {
    let Ok(python) = std::env::var("THRIFFTY_PYTHON") else {
        eprintln!("skipped: THRIFFTY_PYTHON names no Python with NumPy");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    run(&python, WRITE, &folder);
    read_numpys::<f32>(&folder);
    read_numpys::<f64>(&folder);
    read_numpys::<Complex<f32>>(&folder);
    read_numpys::<Complex<f64>>(&folder);

    write_ours::<f32>(&folder);
    write_ours::<f64>(&folder);
    write_ours::<Complex<f32>>(&folder);
    write_ours::<Complex<f64>>(&folder);
    run(&python, CHECK, &folder);
}
