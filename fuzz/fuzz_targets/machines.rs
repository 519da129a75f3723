//! Machine files: what is read can be planned with.
#![no_main]

use std::path::PathBuf;
use std::sync::Arc;

use fft_core::{DynGrid, Kind, Layout, Precision, Problem, ProcGrid, Recipe};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static FILE: PathBuf = tempfile::NamedTempFile::new().unwrap().keep().unwrap().1;
}

fuzz_target!(|data: &[u8]| {
    FILE.with(|path| {
        std::fs::write(path, data).unwrap();
        let comm = thriffty::alone();
        let _ = thriffty::machine::load(&comm, path).unwrap();
        let Ok(machine) = thriffty::machine::read_file(path) else { return };
        assert_eq!(thriffty::machine::read(&comm, path).as_ref(), Ok(&machine));
        let grid = DynGrid::new([8, 6, 4]).unwrap();
        let bricks = Layout::even(grid, ProcGrid::cubic(grid, 6), 6);
        let mut problem =
            Problem::new([Kind::C2C; 3], true, Precision::F64, bricks.clone(), bricks).unwrap();
        problem.hosts = vec![0, 0, 0, 1, 1, 1].into();
        problem.machine = Arc::new(machine);
        let predicted = Recipe::new(problem).unwrap().predict().seconds;
        assert!(predicted >= 0.0, "{predicted} s");
    });
});
