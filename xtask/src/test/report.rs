//! The results of test programs, and the report at the end.

use std::time::Duration;

/// How many of the slowest test programs are listed.
const LISTED: usize = 10;

/// Numbers of tests. Skipped ones are ignored: other tests start them, or they need a large
/// machine.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// One `test result:` line, and the names of the tests that failed before it.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Tally {
    pub(super) counts: Counts,
    pub(super) failed: Vec<String>,
}

/// The numbers of a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; ...`.
fn counts(line: &str) -> Option<Counts> {
    let (_verdict, numbers) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = Counts::default();
    for part in numbers.split("; ") {
        match part.split_once(' ') {
            Some((number, "passed")) => counts.passed = number.parse().ok()?,
            Some((number, "failed")) => counts.failed = number.parse().ok()?,
            Some((number, "ignored")) => counts.skipped = number.parse().ok()?,
            _ => {}
        }
    }
    Some(counts)
}

/// All results in an output, in order.
fn tallies(output: &str) -> Vec<Tally> {
    let (mut tallies, mut failed) = (Vec::new(), Vec::new());
    for line in output.lines() {
        if line == "failures:" {
            // The second heading of these words precedes the names, the first one the output.
            failed.clear();
        } else if let Some(counts) = counts(line) {
            let names = std::mem::take(&mut failed);
            let failed = if counts.failed > 0 { names } else { Vec::new() };
            tallies.push(Tally { counts, failed });
        } else if let Some(name) = line.strip_prefix("    ") {
            failed.push(name.to_string());
        }
    }
    tallies
}

/// The sum of all results, of several test programs.
pub(super) fn sum(output: &str) -> Tally {
    tallies(output).into_iter().fold(Tally::default(), |mut sum, tally| {
        sum.counts += tally.counts;
        sum.failed.extend(tally.failed);
        sum
    })
}

/// The result of one test program: the last of its output, after those of processes that it
/// started. A program that dies without one counts as a failed test.
pub(super) fn own(output: &str, success: bool, program: &str) -> Tally {
    let tally = tallies(output).pop().unwrap_or_default();
    if success || tally.counts.failed > 0 {
        return tally;
    }
    let counts = Counts { failed: 1, ..Counts::default() };
    Tally { counts, failed: vec!["the program ended without a result".into()] }.of(program)
}

impl Tally {
    /// The same with the program's name before each test's.
    pub(super) fn of(mut self, program: &str) -> Self {
        for name in &mut self.failed {
            *name = format!("{program}: {name}");
        }
        self
    }
}

/// Times and results of all stages and programs.
#[derive(Default)]
pub(super) struct Report {
    stages: Vec<(bool, Duration, String)>,
    programs: Vec<(Duration, String)>,
    tally: Tally,
}

impl Report {
    pub(super) fn stage(&mut self, well: bool, time: Duration, line: impl Into<String>) {
        self.stages.push((well, time, line.into()));
    }

    pub(super) fn program(&mut self, time: Duration, name: impl Into<String>) {
        self.programs.push((time, name.into()));
    }

    pub(super) fn add(&mut self, tally: Tally) {
        self.tally.counts += tally.counts;
        self.tally.failed.extend(tally.failed);
    }

    /// The text at the end, without its last line.
    pub(super) fn tables(&mut self) -> String {
        let mut lines = vec![String::new()];
        for (well, time, line) in &self.stages {
            let verdict = if *well { "ok" } else { "FAILED" };
            lines.push(format!("{verdict:6} {:7.1} s  {line}", time.as_secs_f64()));
        }
        self.programs.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        if !self.programs.is_empty() {
            lines.push("\nslowest test programs:".into());
        }
        for (time, name) in self.programs.iter().take(LISTED) {
            lines.push(format!("       {:7.1} s  {name}", time.as_secs_f64()));
        }
        if !self.tally.failed.is_empty() {
            lines.push("\nfailed tests:".into());
        }
        lines.extend(self.tally.failed.iter().map(|name| format!("    {name}")));
        lines.join("\n")
    }

    pub(super) fn close(&self) -> String {
        let Counts { passed, failed, skipped } = self.tally.counts;
        let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
        format!("{passed} passed, {failed} failed{skipped}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANK: &str = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.1s";
    const FAILED: &str = "
running 3 tests
test a ... FAILED

failures:

---- a stdout ----
    a line that is no name

failures:
    a
    module::b

test result: FAILED. 1 passed; 2 failed; 4 ignored; 0 measured; 0 filtered out; finished in 1.2s
";

    fn tally(passed: usize, failed: &[&str], skipped: usize) -> Tally {
        let counts = Counts { passed, failed: failed.len(), skipped };
        Tally { counts, failed: failed.iter().map(|name| name.to_string()).collect() }
    }

    #[test]
    fn results_are_counted() {
        assert_eq!(counts(RANK), Some(Counts { passed: 1, failed: 0, skipped: 0 }));
        assert_eq!(counts("test result of another kind"), None);
        assert_eq!(counts("test a ... ok"), None);
    }

    #[test]
    fn failed_tests_are_named() {
        assert_eq!(sum(FAILED), tally(1, &["a", "module::b"], 4));
        assert_eq!(sum(&format!("{RANK}\n{FAILED}{RANK}\n")), tally(3, &["a", "module::b"], 4));
    }

    #[test]
    fn a_program_has_its_own_result_alone() {
        assert_eq!(
            own(&format!("{RANK}\n{RANK}\n{FAILED}"), false, "p"),
            tally(1, &["a", "module::b"], 4)
        );
        assert_eq!(own(RANK, true, "p"), tally(1, &[], 0));
        assert_eq!(own("no harness", true, "p"), tally(0, &[], 0));
    }

    #[test]
    fn a_program_that_dies_has_failed() {
        let died = tally(0, &["p: the program ended without a result"], 0);
        assert_eq!(own(RANK, false, "p"), died);
        assert_eq!(own("", false, "p"), died);
    }

    #[test]
    fn the_end_is_said_in_one_form() {
        let mut report = Report::default();
        assert_eq!(report.close(), "0 passed, 0 failed");
        report.stage(true, Duration::from_millis(1500), "cargo fmt");
        report.stage(false, Duration::from_secs(20), "tests");
        report.program(Duration::from_secs(1), "fast");
        report.program(Duration::from_secs(2), "slow");
        report.add(tally(7, &["x"], 0));
        report.add(tally(3, &[], 2));
        assert_eq!(report.close(), "10 passed, 1 failed, 2 skipped");
        let tables = report.tables();
        let expected = "
ok         1.5 s  cargo fmt
FAILED    20.0 s  tests

slowest test programs:
           2.0 s  slow
           1.0 s  fast

failed tests:
    x";
        assert_eq!(tables, expected);
    }
}
