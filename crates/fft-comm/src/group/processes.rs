//! The failure detector: notices when a process of this host has ended.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time between two looks. Each look reads one file for every process.
const EVERY: Duration = Duration::from_millis(200);

/// The processes of a host that are ranks of a group, by index among them.
pub(super) struct Processes {
    all: Vec<Process>,
    start: Instant,
    /// Milliseconds from `start` to the next look.
    next_look: AtomicU64,
}

struct Process {
    id: u32,
    /// An open file belongs to this process, and not to a later one with the same number. None if
    /// it had ended before.
    stat: Option<File>,
    has_ended: AtomicBool,
}

impl Processes {
    pub(super) fn new(ids: &[u32]) -> Self {
        let open = |&id: &u32| {
            let stat = File::open(format!("/proc/{id}/stat")).ok();
            Process { id, stat, has_ended: AtomicBool::new(false) }
        };
        let all = ids.iter().map(open).collect();
        Self { all, start: Instant::now(), next_look: AtomicU64::new(0) }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn id(&self, i: usize) -> u32 {
        self.all[i].id
    }

    /// Whether one was seen to have ended.
    pub(super) fn has_ended(&self, i: usize) -> bool {
        self.all[i].has_ended.load(Ordering::Acquire)
    }

    /// Looks at all processes if it is time to, which it returns. Called while waiting.
    pub(super) fn watch(&self) -> bool {
        let now = self.start.elapsed();
        if (now.as_millis() as u64) < self.next_look.load(Ordering::Relaxed) {
            return false;
        }
        self.next_look.store((now + EVERY).as_millis() as u64, Ordering::Relaxed);
        for process in &self.all {
            if !process.has_ended.load(Ordering::Relaxed) && process.is_over() {
                process.has_ended.store(true, Ordering::Release);
            }
        }
        true
    }
}

impl Process {
    /// Whether it has ended, even if its parent has not collected its status yet.
    fn is_over(&self) -> bool {
        let Some(stat) = &self.stat else { return true };
        let mut text = [0; 256];
        let Ok(len) = stat.read_at(&mut text, 0) else { return true };
        // The state follows the name, which is in brackets and may contain any character.
        let name_end = text[..len].iter().rposition(|byte| *byte == b')');
        let state = name_end.and_then(|end| text[..len].get(end + 2));
        matches!(state, None | Some(b'Z' | b'X'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn an_end_is_noticed_before_the_parent_asks_for_it() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("there is `sleep`");
        let processes = Processes::new(&[std::process::id(), child.id()]);
        assert!(processes.watch() && !processes.has_ended(0) && !processes.has_ended(1));
        child.kill().expect("the child is ours");
        while !processes.has_ended(1) {
            processes.watch();
            std::thread::yield_now();
        }
        child.wait().expect("the child is ours");
        assert!(!processes.has_ended(0));
    }

    #[test]
    fn a_process_that_is_not_there_has_ended() {
        let mut child = Command::new("true").spawn().expect("there is `true`");
        child.wait().expect("the child is ours");
        let processes = Processes::new(&[child.id()]);
        assert!(processes.watch() && processes.has_ended(0));
    }
}
