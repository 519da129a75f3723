//! Wisdom files: whatever is in them, there is a recipe.
#![no_main]

use std::path::PathBuf;

use fft_comm::{Signature, seal};
use libfuzzer_sys::fuzz_target;
use thriffty::Tuning;

thread_local! {
    static FILE: PathBuf = tempfile::NamedTempFile::new().unwrap().keep().unwrap().1;
}

// Whether the file is sealed; the text, in which PROCESSOR, LIBRARY and VERSION are of here.
fuzz_target!(|data: &[u8]| {
    let [sealed, text @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let comm = thriffty::alone();
    let here = Signature::of(&comm).unwrap();
    let text = text
        .replace("PROCESSOR", &here.processor)
        .replace("LIBRARY", &here.library)
        .replace("VERSION", &here.version);
    let text = if sealed & 1 == 1 { seal("thriffty wisdom", &text) } else { text };
    FILE.with(|path| {
        std::fs::write(path, &text).unwrap();
        thriffty::c2c(&comm, [8, 6]).tuning(Tuning::Wisdom(path.clone())).recipe().unwrap();
    });
});
