//! Whatever is given, a complaint is one short line that a terminal shows as it is.

use crate::common::{Folder, Run, threads};

/// Clears the terminal, and sets its title.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\r\u{202e}";

#[track_caller]
fn check(run: &Run) {
    let said = run.complaint();
    assert!(said.len() < 1200, "{} bytes: {said}", said.len());
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    let shown = run.stderr.trim_end_matches('\n');
    assert!(!shown.contains(|c: char| c.is_control() || c == '\u{202e}'), "{run:?}");
    // A value is found or wanted somewhere.
    assert!(!said.contains("found ,"), "{said}");
}

#[test]
fn complaints_about_hostile_words_are_short_and_escaped() {
    let long = "x".repeat(100_000);
    let deep = format!("({})", "(fft x) ".repeat(10_000));
    for word in [HOSTILE, &long, &deep, "", "\n\n", "é\u{301}"] {
        for args in [
            &["bench", "c2c", word][..],
            &["bench", word, "8"],
            &["bench", "c2c", "8", "--tuning", &format!("recipe:{word}")],
            &["bench", "c2c", "8", "--machine", word],
            &["bench", "c2c", "8", "--exchange", word],
            &["bench", "c2c", "8", "--wire", word],
            &["bench", "c2c", "8", "--tolerance", word],
            &["tune", "c2c", "8", "--tuning", word],
            &["transform", "c2c", word, "out.npy"],
            &["spectrum", word],
            &[word],
        ] {
            // Linux has shorter words than these.
            if args.iter().all(|arg| arg.len() < 100_001) {
                check(&threads(1, args));
            }
        }
    }
}

#[test]
fn complaints_about_hostile_files_are_short_and_escaped() {
    let folder = Folder::new();
    let long = "x".repeat(30_000);
    let out = folder.at("out.npy");
    for (number, descr) in [HOSTILE, &long, "<f4'\n"].into_iter().enumerate() {
        let path = folder.array(&format!("{number}.npy"), "<f8", false, &[3]);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(3).position(|part| part == b"<f8").unwrap();
        bytes.splice(at..at + 3, descr.bytes());
        let text = u16::from_le_bytes([bytes[8], bytes[9]]) as usize + descr.len() - 3;
        bytes[8..10].copy_from_slice(&(text as u16).to_le_bytes());
        std::fs::write(&path, bytes).unwrap();
        check(&threads(2, &["transform", "c2c", &path, &out]));
    }
    let path = folder.at(&format!("{HOSTILE}.toml"));
    for text in ["", HOSTILE, &long, "name = \"\\u001b[2J\"\n", "name = 3\nname = 4\n"] {
        std::fs::write(&path, text).unwrap();
        check(&threads(2, &["bench", "c2c", "8", "--machine", &path]));
        if !text.is_empty() {
            check(&threads(2, &["tune", "c2c", "8", "--tuning", "measure:1ms", "--wisdom", &path]));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
    let many = folder.array("many.npy", "<f8", false, &[1; 5]);
    let scalar = folder.array("scalar.npy", "<f8", false, &[]);
    for path in [&many, &scalar] {
        let run = threads(1, &["transform", "c2c", path, &out]);
        check(&run);
        assert!(run.stderr.contains("axes, expected 1 to 4"), "{run:?}");
    }
}
