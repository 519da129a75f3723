//! `include/thriffty.h` is what cbindgen makes of this crate, today.

mod current;

use std::path::Path;

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
    current::check(&root.join("include/thriffty.h"), &made);
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
