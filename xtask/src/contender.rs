//! The programs that the benchmark times, by the seconds of one turn.
//!
//! A program speaks a protocol of lines. It plans, then prints `ready`. For each line `go` on
//! standard input it runs a forward transform and prints the seconds; ours answer `timings` with
//! the seconds of each part. `quit`, or the end of the input, ends it. Between turns all its ranks
//! sleep.

use crate::tools::{Result, shown};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// FFTW measures plans of large grids for minutes.
const PLANNING: Duration = Duration::from_secs(3600);
const TURN: Duration = Duration::from_secs(600);
const FAREWELL: Duration = Duration::from_secs(5);

/// A program or a function to be timed.
pub(crate) trait Contender {
    fn name(&self) -> &str;
    fn turn(&mut self) -> Result<f64>;
}

/// A program that waits for its turn.
pub(crate) struct Server {
    name: String,
    line: String,
    child: Child,
    /// `None` once closed, which ends the program.
    questions: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Server {
    /// Starts the program and waits until it has planned.
    pub(crate) fn start(name: &str, command: &mut Command) -> Result<Self> {
        let line = shown(command);
        let failed = |what: &str| format!("cannot start `{line}`: {what}");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failed(&e.to_string()))?;
        let output = child.stdout.take().ok_or_else(|| failed("no output"))?;
        let questions = child.stdin.take();
        // A thread reads, because only a channel has a wait with a time limit.
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for answer in BufReader::new(output).lines().map_while(|line| line.ok()) {
                if sender.send(answer).is_err() {
                    break;
                }
            }
        });
        let mut server = Self { name: name.into(), line, child, questions, answers };
        match server.answer(PLANNING)?.as_str() {
            "ready" => Ok(server),
            other => Err(server.broke(&format!("said `{other}` where `ready` was due"))),
        }
    }

    fn answer(&mut self, patience: Duration) -> Result<String> {
        match self.answers.recv_timeout(patience) {
            Ok(line) => Ok(line.trim().to_string()),
            Err(RecvTimeoutError::Timeout) => {
                Err(self.broke(&format!("was silent for {} s", patience.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let ending = self.child.wait().map_or(String::new(), |status| status.to_string());
                Err(self.broke(&format!("ended too early ({ending})")))
            }
        }
    }

    pub(crate) fn ask(&mut self, question: &str) -> Result<String> {
        // A failed write means that the program has ended; `answer` reports how.
        if let Some(pipe) = &mut self.questions {
            pipe.write_all(format!("{question}\n").as_bytes()).ok();
        }
        self.answer(TURN)
    }

    fn broke(&self, how: &str) -> String {
        format!("{}: `{}` {how}", self.name, self.line)
    }
}

impl Contender for Server {
    fn name(&self) -> &str {
        &self.name
    }

    fn turn(&mut self) -> Result<f64> {
        let answer = self.ask("go")?;
        match answer.parse::<f64>() {
            Ok(seconds) if seconds.is_finite() && seconds > 0.0 => Ok(seconds),
            _ => Err(self.broke(&format!("answered `{answer}` where seconds were due"))),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of input ends it. Killing comes last, because a killed mpirun may leave ranks
        // behind.
        self.questions = None;
        let deadline = Instant::now() + FAREWELL;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A copy of the input by all cores: the lower limit of any transform out of place.
pub(crate) struct MemoryCopy {
    name: String,
    from: Vec<u64>,
    to: Vec<u64>,
    threads: usize,
}

impl MemoryCopy {
    pub(crate) fn new(bytes: usize) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        let words = bytes / size_of::<u64>();
        let name = format!("memory copy, {threads} threads");
        // The system may allocate zeroed memory at its first write only.
        Self { name, from: vec![1; words], to: vec![1; words], threads }
    }
}

impl Contender for MemoryCopy {
    fn name(&self) -> &str {
        &self.name
    }

    fn turn(&mut self) -> Result<f64> {
        let part = self.from.len().div_ceil(self.threads).max(1);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for (from, to) in self.from.chunks(part).zip(self.to.chunks_mut(part)) {
                scope.spawn(|| to.copy_from_slice(from));
            }
        });
        let seconds = start.elapsed().as_secs_f64();
        std::hint::black_box(&self.to);
        Ok(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<Server> {
        Server::start("script", Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn a_program_takes_turns() {
        let mut server = shell("echo ready; while read go; do echo 0.5; done").unwrap();
        assert_eq!(server.turn(), Ok(0.5));
        assert_eq!(server.turn(), Ok(0.5));
        assert_eq!(server.name(), "script");
    }

    #[test]
    fn a_program_that_breaks_the_protocol_is_told_from_one_that_ends() {
        let talks = shell("echo hello").map(|_| ()).unwrap_err();
        assert!(talks.contains("said `hello` where `ready` was due"), "{talks}");
        let ends = shell("exit 3").map(|_| ()).unwrap_err();
        assert!(ends.contains("ended too early (exit status: 3)"), "{ends}");
        let mut dies = shell("echo ready; exit 4").unwrap();
        assert!(dies.turn().unwrap_err().contains("exit status: 4"));
        let mut mumbles = shell("echo ready; read go; echo soon; read go").unwrap();
        assert!(mumbles.turn().unwrap_err().contains("answered `soon`"));
    }

    #[test]
    fn the_copy_copies() {
        let mut copy = MemoryCopy::new(8 * 1001);
        copy.from.fill(7);
        assert!(copy.turn().unwrap() > 0.0);
        assert!(copy.to.iter().all(|&word| word == 7));
    }
}
