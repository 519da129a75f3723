//! Texts of users in messages: shortened, and without control characters for terminals.

/// Characters of a value that a message shows at most.
const SHOWN: usize = 240;
/// The same for expected values, because lists of names are longer than values.
const SHOWN_OF_LISTS: usize = 400;

/// A text without control characters, which are escaped as Rust does. So are marks that change the
/// direction of writing.
///
/// ```
/// assert_eq!(fft_core::escaped("a\u{1b}[2J\n"), r"a\u{1b}[2J\n");
/// assert_eq!(fft_core::escaped("é 'x' \\"), "é 'x' \\");
/// ```
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            _ if letter.is_control() => shown.extend(letter.escape_default()),
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                shown.extend(letter.escape_default());
            }
            _ => shown.push(letter),
        }
    }
    shown
}

/// An escaped value; for a long one, its beginning and the number of characters. An empty one is
/// `nothing`.
///
/// ```
/// assert!(fft_core::shown(&"x".repeat(100_000)).ends_with("xx... (100000 characters)"));
/// ```
pub fn shown(text: &str) -> String {
    shown_to(text, SHOWN)
}

/// As [`shown`], for expected values.
pub(crate) fn shown_list(text: &str) -> String {
    shown_to(text, SHOWN_OF_LISTS)
}

fn shown_to(text: &str, most: usize) -> String {
    if text.is_empty() {
        return "nothing".into();
    }
    let mut end = 0;
    let mut left = most;
    for letter in text.chars() {
        // Escaped letters are longer.
        let length = escaped(letter.encode_utf8(&mut [0; 4])).chars().count();
        if length > left {
            let all = text.chars().count();
            return format!("{}... ({all} characters)", escaped(&text[..end]));
        }
        left -= length;
        end += letter.len_utf8();
    }
    escaped(text)
}
