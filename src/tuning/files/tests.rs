use std::collections::BTreeSet;
use std::io::{Read, Write as _};
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use super::*;

/// The file that a process of [`of_another_process`] changes.
const FILE: &str = "THRIFFTY_TEST_FILE";
/// What it does: `hang`, or the first of the numbers that it adds.
const TASK: &str = "THRIFFTY_TEST_TASK";
const THREADS: usize = 4;
const ADDED: usize = 4;

/// Adds a line to a file.
fn add(path: &Path, line: &str) -> Result<(), Error> {
    update(&fft_comm::alone(), path, |old| Ok(format!("{}{line}\n", old.unwrap_or_default())))
}

fn other_process(path: &Path, task: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "tuning::files::tests::of_another_process", "--nocapture"]);
    command.env(FILE, path).env(TASK, task).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// Does something only when started by another test.
#[test]
fn of_another_process() {
    let (Some(path), Ok(task)) = (std::env::var_os(FILE), std::env::var(TASK)) else {
        return;
    };
    let path = Path::new(&path);
    let Ok(first) = task.parse::<usize>() else {
        update(&fft_comm::alone(), path, |_| {
            println!("locked");
            let _ = std::io::stdin().read(&mut [0]);
            Ok("after a signal that should have ended it".into())
        })
        .unwrap();
        return;
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for number in 0..ADDED {
                    let line = first + thread * ADDED + number;
                    add(path, &line.to_string()).unwrap();
                    // A reader closes a handle of the file, and needs no lock.
                    assert!(std::fs::read_to_string(path).unwrap().ends_with('\n'));
                }
            });
        }
    });
}

#[test]
fn what_is_written_is_read_by_all_and_nothing_else_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for text in ["", "one\n", "é two\n"] {
        let found = fft_comm::threads(3, |comm| {
            replace(&comm, &path, || text.into()).unwrap();
            read(&comm, &path).unwrap()
        });
        assert_eq!(found, vec![Ok(text.to_owned()); 3]);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_read_or_written_is_known_to_all() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere").join("file");
    // A folder in the place of the lock.
    let locked = folder.path().join("locked");
    std::fs::create_dir(folder.path().join(".locked.lock")).unwrap();
    let found = fft_comm::threads(2, |comm| {
        let written = replace(&comm, &nowhere, || "text".into()).unwrap_err();
        let changed = [&nowhere, &locked, &folder.path().into()]
            .map(|path| update(&comm, path, |_| Ok("text".into())).unwrap_err().to_string());
        let refused = update(&comm, &folder.path().join("new"), |_| Err("no".into())).unwrap_err();
        (read(&comm, &nowhere).unwrap().unwrap_err(), written.to_string(), changed, refused)
    });
    assert_eq!(found[0], found[1]);
    let (_, written, [nowhere, locked, a_folder], _) = &found[0];
    for text in [written, nowhere, locked, a_folder] {
        assert!(text.starts_with("rank 0: file"), "{text}");
    }
    assert!(locked.contains(".locked.lock"), "{locked}");
    assert!(a_folder.contains("expected a regular file"), "{a_folder}");
}

#[test]
fn nothing_is_lost_when_threads_and_processes_write_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for round in 0..2 {
        let first = |child: usize| (round * 4 + child) * THREADS * ADDED;
        let children: Vec<_> =
            (0..4).map(|child| other_process(&path, &first(child).to_string())).collect();
        for child in children {
            let done = child.wait_with_output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        }
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let found: BTreeSet<usize> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(found.into_iter().eq(0..8 * THREADS * ADDED), "{text}");
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".file.lock", "file"]);
}

#[test]
fn a_writer_that_is_killed_leaves_the_old_file_and_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    add(&path, "one").unwrap();
    let mut child = other_process(&path, "hang");
    let mut said = String::new();
    while !said.contains("locked") {
        let mut byte = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        said.push(byte[0].into());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");
    add(&path, "two").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
}

#[test]
fn a_file_keeps_its_mode_and_its_links() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("file"), folder.path().join("link"));
    std::fs::File::create(&path).unwrap().write_all(b"old").unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    symlink("file", &link).unwrap();
    let comm = fft_comm::alone();
    for change in [0, 1] {
        match change {
            0 => replace(&comm, &link, || "0".into()).unwrap(),
            _ => update(&comm, &link, |old| Ok(format!("{}1", old.unwrap()))).unwrap(),
        }
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "01");
    // By both names one lock is taken.
    assert!(folder.path().join(".file.lock").exists());
    assert!(!folder.path().join(".link.lock").exists());
}

#[test]
fn who_may_write_a_file_may_lock_it_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let [path, lock] = ["file", ".file.lock"].map(|name| folder.path().join(name));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    add(&path, "new").unwrap();
    // A new file and its lock have what the process's umask leaves.
    let left = 0o666 & !umask();
    assert_eq!((mode(&path), mode(&lock)), (left, left));
    for (given, expected) in
        [(0o600, 0o600), (0o664, 0o664), (0o640, 0o640), (0o666, 0o666), (0o755, 0o644)]
    {
        std::fs::set_permissions(&path, Permissions::from_mode(given)).unwrap();
        add(&path, "more").unwrap();
        assert_eq!((mode(&path), mode(&lock)), (given, expected));
    }
}

/// The process's umask, as the system shows it: a call that returns it would set it, too.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap();
    u32::from_str_radix(line.trim(), 8).unwrap()
}

/// Somebody who may write to the folder must not get another file's owner changed.
#[test]
fn a_lock_is_not_opened_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let [path, lock, other] = ["file", ".file.lock", "other"].map(|name| folder.path().join(name));
    std::fs::write(&other, "").unwrap();
    std::fs::set_permissions(&other, Permissions::from_mode(0o600)).unwrap();
    symlink("other", &lock).unwrap();
    let error = add(&path, "new").unwrap_err().to_string();
    assert!(error.contains(".file.lock") && !path.exists(), "{error}");
    assert_eq!(std::fs::metadata(&other).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_link_to_a_file_that_is_not_there_yet_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("file"), folder.path().join("link"));
    symlink("file", &link).unwrap();
    add(&link, "one").unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");
    assert!(folder.path().join(".file.lock").exists(), "one lock by both names");
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let comm = fft_comm::alone();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| std::fs::read_to_string(&pipe).unwrap());
        replace(&comm, &pipe, || "text".into()).unwrap();
        assert_eq!(reader.join().unwrap(), "text");
    });
    assert!(!std::fs::metadata(&pipe).unwrap().is_file());
    assert!(update(&comm, &pipe, |_| Ok("text".into())).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
