//! The order of test programs, how many run at once, and the threads of each.

use super::build::Program;
use super::known::Share;
use std::collections::BTreeMap;
use std::path::Path;

/// Seconds of test programs, by name.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Times(BTreeMap<String, f64>);

impl Times {
    /// Of the last run, if any.
    pub(super) fn read(path: &Path) -> Self {
        Self::parse(&std::fs::read_to_string(path).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let of_line = |line: &str| {
            let (seconds, name) = line.split_once(' ')?;
            Some((name.to_string(), seconds.parse().ok()?))
        };
        Self(text.lines().filter_map(of_line).collect())
    }

    fn text(&self) -> String {
        self.0.iter().map(|(name, seconds)| format!("{seconds:.2} {name}\n")).collect()
    }

    pub(super) fn set(&mut self, name: &str, seconds: f64) {
        self.0.insert(name.to_string(), seconds);
    }

    /// Writes them for the next run. They only choose an order, so that failures are ignored.
    pub(super) fn write(&self, path: &Path) {
        let _ = std::fs::write(path, self.text());
    }

    /// A program that never ran may take long.
    fn of(&self, program: &Program) -> f64 {
        self.0.get(&program.name()).copied().unwrap_or(f64::INFINITY)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// The number of running test programs.
    pub(super) programs: usize,
    /// Whether one of them must run alone.
    pub(super) alone: bool,
    /// Whether the compiler runs, and more programs will come.
    pub(super) building: bool,
}

/// Programs that are built and wait.
pub(super) struct Queue {
    cores: usize,
    times: Times,
    waiting: Vec<Program>,
}

impl Queue {
    pub(super) fn new(cores: usize, times: Times) -> Self {
        Self { cores, times, waiting: Vec::new() }
    }

    pub(super) fn push(&mut self, program: Program) {
        self.waiting.push(program);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// The program to start now and its threads, if the machine has room for one.
    ///
    /// Programs run on one thread each, since threads of one program end at different times. The
    /// compiler keeps half of the cores. A program that mostly waits has all threads in the place
    /// of one core, but not beside the compiler, where processes would wait for their turn at each
    /// message. Programs that run alone come last.
    pub(super) fn next(&mut self, load: Load) -> Option<(Program, usize)> {
        let room = if load.building { self.cores.div_ceil(2) } else { self.cores };
        if load.alone || load.programs >= room {
            return None;
        }
        if let Some(longest) = self.longest(Share::Waits).filter(|_| !load.building) {
            return Some((self.waiting.remove(longest), self.cores));
        }
        let idle = load.programs == 0 && !load.building;
        if let Some(longest) = self.longest(Share::Core) {
            let threads = if idle && self.waiting.len() == 1 { self.cores } else { 1 };
            return Some((self.waiting.remove(longest), threads));
        }
        let longest = self.longest(Share::All).filter(|_| idle)?;
        Some((self.waiting.remove(longest), self.cores))
    }

    /// The index of the program that took longest, of those with this share of the machine.
    fn longest(&self, share: Share) -> Option<usize> {
        let time = |at: &usize| self.times.of(&self.waiting[*at]);
        let places = (0..self.waiting.len()).rev().filter(|&at| self.waiting[at].share() == share);
        places.max_by(|a, b| time(a).total_cmp(&time(b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Load = Load { programs: 0, alone: false, building: false };
    const BUILDING: Load = Load { building: true, ..IDLE };

    fn queue(cores: usize, names: &[(&str, &str)]) -> Queue {
        let times = Times::parse(
            "5.00 fft-core core_tests\n20 fft-comm comm_tests\n1.5 fft-comm lib\n60 thriffty host\n70 thriffty mpi\n",
        );
        let mut queue = Queue::new(cores, times);
        for (package, target) in names {
            queue.push(Program {
                package: package.to_string(),
                target: target.to_string(),
                path: "program".into(),
                folder: "".into(),
            });
        }
        queue
    }

    fn next(queue: &mut Queue, load: Load) -> Option<(String, usize)> {
        queue.next(load).map(|(program, threads)| (program.name(), threads))
    }

    #[test]
    fn the_longest_starts_first_and_an_unknown_one_before_it() {
        let names = [
            ("fft-core", "core_tests"),
            ("new", "one"),
            ("fft-comm", "comm_tests"),
            ("fft-comm", "lib"),
        ];
        let mut queue = queue(2, &names);
        let order: Vec<_> = (0..4).map_while(|_| next(&mut queue, IDLE)).collect();
        let expected = [
            ("new one", 1),
            ("fft-comm comm_tests", 1),
            ("fft-core core_tests", 1),
            ("fft-comm lib", 2),
        ];
        assert_eq!(order, expected.map(|(name, threads)| (name.to_string(), threads)));
    }

    #[test]
    fn as_many_run_at_once_as_there_are_cores() {
        let mut queue = queue(2, &[("fft-core", "core_tests"), ("fft-comm", "comm_tests")]);
        assert_eq!(next(&mut queue, Load { programs: 2, ..IDLE }), None);
        assert!(next(&mut queue, Load { programs: 1, ..IDLE }).is_some());
    }

    #[test]
    fn the_compiler_keeps_half_of_the_cores() {
        let mut queue = queue(2, &[("fft-core", "core_tests"), ("fft-comm", "comm_tests")]);
        assert_eq!(next(&mut queue, BUILDING), Some(("fft-comm comm_tests".into(), 1)));
        assert_eq!(next(&mut queue, Load { programs: 1, ..BUILDING }), None);
        assert_eq!(
            next(&mut queue, BUILDING),
            Some(("fft-core core_tests".into(), 1)),
            "others may come"
        );
    }

    #[test]
    fn programs_that_fill_the_machine_run_alone_and_last() {
        let mut queue =
            queue(2, &[("thriffty", "host"), ("thriffty", "mpi"), ("fft-core", "core_tests")]);
        assert_eq!(next(&mut queue, IDLE), Some(("fft-core core_tests".into(), 1)));
        assert_eq!(next(&mut queue, Load { programs: 1, ..IDLE }), None);
        assert_eq!(next(&mut queue, BUILDING), None);
        assert_eq!(next(&mut queue, IDLE), Some(("thriffty mpi".into(), 2)));
        assert_eq!(next(&mut queue, Load { programs: 1, alone: true, ..IDLE }), None);
        assert_eq!(next(&mut queue, IDLE), Some(("thriffty host".into(), 2)));
        assert_eq!(next(&mut queue, IDLE), None);
    }

    #[test]
    fn a_program_that_mostly_waits_runs_beside_others() {
        let names = [("fft-cli", "cli_tests"), ("fft-core", "core_tests"), ("thriffty", "mpi")];
        let mut queue = queue(2, &names);
        assert_eq!(next(&mut queue, BUILDING), Some(("fft-core core_tests".into(), 1)));
        let beside = Load { programs: 1, ..IDLE };
        assert_eq!(next(&mut queue, beside), Some(("fft-cli cli_tests".into(), 2)));
        assert_eq!(next(&mut queue, beside), None, "what runs alone waits for it");
        assert_eq!(next(&mut queue, IDLE), Some(("thriffty mpi".into(), 2)));
    }

    #[test]
    fn times_are_kept_in_lines() {
        let mut times = Times::parse("5.25 fft-core core_tests\nnot a time\n");
        times.set("thriffty host", 60.0);
        assert_eq!(times.text(), "5.25 fft-core core_tests\n60.00 thriffty host\n");
        assert_eq!(Times::parse(&times.text()), times);
    }
}
