//! The test programs that need special treatment.

/// When `--quick` runs a test program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Quick {
    /// When anything that it is built of changed.
    Always,
    /// When its own package changed: it takes long.
    OwnChange,
    Never,
}

/// What a test program takes of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Share {
    /// A core.
    Core,
    /// A core, on all threads: they wait for processes that they start, most of the time.
    Waits,
    /// All: it fills the machine with threads or processes.
    All,
}

/// A test program and its treatment.
pub(super) struct Known {
    package: &'static str,
    target: &'static str,
    pub(super) share: Share,
    quick: Quick,
    /// Prefixes of the tests that `--quick` leaves out, as they take longest.
    pub(super) slow: &'static [&'static str],
}

/// Other programs share the machine and always run.
const KNOWN: [Known; 9] = [
    Known {
        package: "thriffty",
        target: "host",
        share: Share::All,
        quick: Quick::Always,
        slow: &["memory::", "large::"],
    },
    // It starts jobs of processes.
    Known { package: "thriffty", target: "mpi", share: Share::All, quick: Quick::Never, slow: &[] },
    // So does it, by itself.
    Known {
        package: "thriffty",
        target: "group",
        share: Share::All,
        quick: Quick::OwnChange,
        slow: &["checks::", "hosts::"],
    },
    Known {
        package: "fft-cli",
        target: "cli_tests",
        share: Share::Waits,
        quick: Quick::OwnChange,
        slow: &[],
    },
    // Its tests measure how long they sleep.
    Known {
        package: "fft-comm",
        target: "tuner",
        share: Share::All,
        quick: Quick::Always,
        slow: &[],
    },
    // It compiles the kernels for a CPU, which takes long.
    Known {
        package: "fft-gpu",
        target: "lib",
        share: Share::Core,
        quick: Quick::OwnChange,
        slow: &[],
    },
    // They need a device.
    Known {
        package: "thriffty",
        target: "device",
        share: Share::All,
        quick: Quick::OwnChange,
        slow: &[],
    },
    Known {
        package: "fft-capi",
        target: "device",
        share: Share::All,
        quick: Quick::OwnChange,
        slow: &[],
    },
    Known {
        package: "fft-gpu",
        target: "gpu",
        share: Share::All,
        quick: Quick::OwnChange,
        slow: &[],
    },
];

pub(super) fn known(package: &str, target: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.package == package && known.target == target)
}

/// When `--quick` runs the test program of this name.
pub(super) fn quick(package: &str, target: &str) -> Quick {
    known(package, target).map_or(Quick::Always, |known| known.quick)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_that_is_known_exists() {
        let workspace = super::super::workspace::Workspace::read().unwrap();
        let exists = |known: &Known| {
            let package = workspace.packages.iter().find(|package| package.name == known.package);
            let tests = package.into_iter().flat_map(|package| &package.tests);
            known.target == "lib" || tests.into_iter().any(|test| test.name == known.target)
        };
        for known in &KNOWN {
            assert!(exists(known), "{} {}", known.package, known.target);
            for name in known.slow {
                let module = format!("tests/{}/{}.rs", known.target, name.trim_end_matches("::"));
                assert!(workspace.root.join(&module).is_file(), "{module}");
            }
        }
    }

    #[test]
    fn programs_that_start_jobs_are_in_no_loop_and_run_alone() {
        assert!(known("thriffty", "mpi").is_some_and(|known| known.share == Share::All));
        assert_eq!(quick("thriffty", "mpi"), Quick::Never);
    }

    #[test]
    fn most_programs_share_the_machine_and_run_in_every_loop() {
        assert!(known("fft-core", "core_tests").is_none());
        assert_eq!(quick("fft-core", "core_tests"), Quick::Always);
    }
}
