//! Ranges of NVTX, as a profiler attached to a process gets them.

use std::fs;
use std::process::Command;

use thriffty::{Complex, local};

/// A profiler: the library that NVTX loads and gives the places of its functions.
const PROFILER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*Function)(void);
struct Callbacks {
    size_t size;
    int (*functions)(int module, Function ***table, unsigned *size);
};

static __thread int depth;

static void line(const char *text) {
    FILE *file = fopen(getenv("PROFILE"), "a");
    fprintf(file, "%d %s\n", depth, text);
    fclose(file);
}

static int push(const char *text) {
    line(text);
    return depth++;
}

static int pop(void) {
    return --depth;
}

int InitializeInjectionNvtx2(const void *(*tables)(unsigned)) {
    const struct Callbacks *callbacks = tables(1);
    Function **core = NULL;
    unsigned size = 0;
    if (callbacks->functions(1, &core, &size) == 0 || size <= 11)
        return 0;
    *core[9] = (Function)push;
    *core[11] = pop;
    return 1;
}
"#;

#[test]
fn a_profiler_sees_runs_and_their_operations() {
    let folder = tempfile::tempdir().unwrap();
    let [source, library, profile] =
        ["profiler.c", "libprofiler.so", "profile"].map(|name| folder.path().join(name));
    fs::write(&source, PROFILER).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).args([&library, &source]);
    assert!(compiler.status().unwrap().success(), "{compiler:?}");

    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "nvtx::transforms", "--ignored"]);
    program.env("NVTX_INJECTION64_PATH", &library).env("PROFILE", &profile);
    assert!(program.status().unwrap().success());

    let profile = fs::read_to_string(&profile).unwrap();
    let mut lines = profile.lines();
    for way in ["thriffty forward", "thriffty inverse"] {
        assert_eq!(lines.next(), Some(format!("0 {way}").as_str()), "{profile}");
        for _ in 0..2 {
            let operation = lines.next().unwrap();
            assert!(operation.starts_with("1 ") && operation.contains("fft"), "{profile}");
        }
    }
    assert_eq!(lines.next(), None, "{profile}");
}

#[test]
#[ignore = "started by another test"]
fn transforms() {
    let mut plan = local::c2c([64, 64, 64]).threads(1).build().unwrap();
    let mut x = vec![Complex::new(1.0, 0.0); plan.input_len()];
    let mut y = vec![Complex::new(0.0, 0.0); plan.output_len()];
    plan.forward_into(&x, &mut y).unwrap();
    plan.inverse_into(&y, &mut x).unwrap();
}
