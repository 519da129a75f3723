//! Files that one rank reads and writes for all.

use std::io::{self, Write};
use std::path::Path;

use fft_core::{Comm, Error, agree};

/// The text of a file, read by rank 0, or why it cannot be read; the same on every rank.
/// Collective.
///
/// # Errors
/// When a rank has gone or the library fails.
pub(crate) fn read(comm: &dyn Comm, path: &Path) -> Result<Result<String, String>, Error> {
    let found = match comm.rank() {
        0 => std::fs::read_to_string(path),
        _ => Ok(String::new()),
    };
    // The first byte tells which of the two it is.
    let text = match found {
        Ok(text) => format!("+{text}"),
        Err(error) => format!("-{error}"),
    };
    let text = String::from_utf8_lossy(&fft_comm::broadcast(comm, text.as_bytes())?).into_owned();
    Ok(match text.strip_prefix('+') {
        Some(text) => Ok(text.to_owned()),
        None => Err(text[1..].to_owned()),
    })
}

/// Replaces a file by a text of rank 0, as a whole: readers find the old or the new text.
/// Collective.
///
/// # Errors
/// On every rank: [`Error::OnRank`] when it cannot be written.
pub(crate) fn replace(
    comm: &dyn Comm,
    path: &Path,
    text: impl FnOnce() -> String,
) -> Result<(), Error> {
    let written = if comm.rank() == 0 { write(path, &text()) } else { Ok(()) };
    let told = |error| Error::argument(format!("file {}", path.display()), error, "to be written");
    agree(comm, written.map_err(told))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut beside = name.to_owned();
    // Another process may write the same file at the same time.
    beside.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(beside);
    let written = std::fs::File::create(&beside)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // The first of two failures is reported.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let found = fft_comm::threads(2, |comm| {
            let written = replace(&comm, &nowhere, || "text".into()).unwrap_err();
            (read(&comm, &nowhere).unwrap().unwrap_err(), written.to_string())
        });
        assert_eq!(found[0], found[1]);
        assert!(found[0].1.starts_with("rank 0: file"), "{}", found[0].1);
    }
}
