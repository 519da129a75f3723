//! `include/thriffty.h` is what cbindgen makes of this crate, today.

use std::path::Path;

/// Set by `cargo xtask header`: the file is written, not compared.
const WRITE: &str = "THRIFFTY_WRITE_HEADER";

#[test]
fn the_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let builder = cbindgen::Builder::new().with_config(config);
    let files = ["values.rs", "status.rs", "ffi/mod.rs"].map(|file| root.join("src").join(file));
    let builder = files.iter().fold(builder, cbindgen::Builder::with_src);
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let made = portable(&made.replace("# Safety\n", "What the caller promises:\n"));
    let path = root.join("include/thriffty.h");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == made, "include/thriffty.h is not current: run cargo xtask header");
}

/// What cbindgen writes, as C89 and C++98 accept it: without `//`, without a comma after the last
/// enumerator, and with a size for enumerations only where the language has it.
fn portable(header: &str) -> String {
    let sized = "#ifdef THRIFFTY_SIZED_ENUMS";
    let header = header
        .replace("#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L", sized)
        .replace("#if __STDC_VERSION__ >= 202311L", sized)
        .replace(",\n};", "\n};");
    let mut text = String::new();
    for line in header.lines() {
        let is_comment = line.trim_start().starts_with(['*', '/']);
        let code = if is_comment { line } else { line.split("//").next().unwrap_or_default() };
        text += code.trim_end();
        text.push('\n');
    }
    text
}
