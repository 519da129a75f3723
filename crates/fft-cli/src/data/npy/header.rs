//! The header: a magic string, a version, a length, and a Python dictionary of three keys.
//!
//! ```text
//! \x93NUMPY 1 0 <u16 length> {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }     \n
//! \x93NUMPY 2 0 <u32 length> ...                     version 3 differs from 2 in its encoding only
//! ```

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use thriffty::planning::MAX_AXES;

use super::item::KNOWN;
use super::{Dtype, Item};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Bytes of the magic string, the version and the length of version 1.0, the one that is written.
const FRAME: usize = 10;
/// NumPy aligns the data to this many bytes for those who map files.
const ALIGNMENT: usize = 64;
/// The longest text that is read; most of it is allowance for padding.
const MAX_TEXT: u64 = u16::MAX as u64;
/// Files are addressed by signed 64-bit offsets.
const MAX_FILE: u64 = i64::MAX as u64;

/// The contents of a file, and where in it the data starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The length of each axis; 0 is allowed.
    pub(crate) shape: Vec<usize>,
    /// The type of elements in memory.
    pub(crate) dtype: Dtype,
    /// The elements of the file.
    pub(crate) item: Item,
    /// Whether the first axis is contiguous (Fortran order) rather than the last (C order).
    pub(crate) fortran_order: bool,
    /// The byte at which the data starts.
    pub(crate) data_offset: u64,
}

/// The dictionary as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dictionary {
    descr: Value,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Header {
    /// The header of a new file. `Output::create` checks it.
    pub(crate) fn new(shape: &[usize], dtype: Dtype, fortran_order: bool) -> Self {
        let (shape, item) = (shape.to_vec(), Item::plain(dtype));
        let mut header = Self { shape, dtype, item, fortran_order, data_offset: 0 };
        header.data_offset = header.encode().len() as u64;
        header
    }

    /// Reads and checks the header of a file, and the length of the file.
    ///
    /// # Errors
    ///
    /// If the file is not an array of a known dtype with at least one axis and exactly its data.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let metadata = fs::metadata(path).map_err(|error| format!("cannot open: {error}"))?;
        if !metadata.is_file() {
            return Err("found a directory or a device, expected a regular file".into());
        }
        let file = File::open(path).map_err(|error| format!("cannot open: {error}"))?;
        let found = metadata.len();
        let read = |length: u64, offset: u64| {
            let mut bytes = vec![0; length as usize];
            let done = file.read_exact_at(&mut bytes, offset);
            done.map_err(|error| format!("cannot read {length} bytes at byte {offset}: {error}"))
                .map(|()| bytes)
        };
        let (text_offset, text_length) = parse_frame(&read(found.min(12), 0)?)?;
        let data_offset = text_offset + text_length;
        if found < data_offset {
            return Err(wrong_length(found, data_offset));
        }
        if text_length > MAX_TEXT {
            return Err(format!(
                "the header's text is {text_length} bytes long, expected at most {MAX_TEXT}"
            ));
        }
        let text = read(text_length, text_offset)?;
        let header = Self { data_offset, ..Self::parse(&String::from_utf8_lossy(&text))? };
        header.check_length(found)?;
        Ok(header)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let parsed = serde_json::from_str(&to_json(text));
        let Dictionary { descr, fortran_order, shape } =
            parsed.map_err(|error| format!("the header's text: {error}"))?;
        let item = descr.as_str().and_then(Item::parse).ok_or_else(|| {
            let found: String = descr.to_string().replace('"', "'").chars().take(40).collect();
            format!("found dtype {found}, expected {KNOWN}, of either byte order")
        })?;
        Ok(Self { shape, dtype: item.dtype(), item, fortran_order, data_offset: 0 })
    }

    /// The length in bytes of a file with this header.
    pub(super) fn file_length(&self) -> Result<u64, String> {
        let Self { shape, item, .. } = self;
        if !(1..=MAX_AXES).contains(&shape.len()) {
            let axes = shape.len();
            return Err(format!("found an array of {axes} axes, expected 1 to {MAX_AXES}"));
        }
        let times = |product: u64, &n: &usize| product.checked_mul(n as u64);
        let bytes = if shape.contains(&0) {
            Some(0)
        } else {
            shape.iter().try_fold(item.bytes() as u64, times)
        };
        let length = bytes.and_then(|bytes| bytes.checked_add(self.data_offset));
        length.filter(|&length| length <= MAX_FILE).ok_or_else(|| {
            format!(
                "shape {shape:?} of {item} needs more than the {MAX_FILE} bytes that a file can have"
            )
        })
    }

    /// Refuses a file whose length does not match this header.
    pub(super) fn check_length(&self, found: u64) -> Result<(), String> {
        let expected = self.file_length()?;
        if found == expected { Ok(()) } else { Err(wrong_length(found, expected)) }
    }

    /// The bytes of a new file before its data, in format version 1.0.
    pub(super) fn encode(&self) -> Vec<u8> {
        let order = if self.fortran_order { "True" } else { "False" };
        let lengths: Vec<_> = self.shape.iter().map(usize::to_string).collect();
        // Python's tuple of one needs its comma.
        let comma = if lengths.len() == 1 { "," } else { "" };
        let text = format!(
            "{{'descr': '{}', 'fortran_order': {order}, 'shape': ({}{comma}), }}",
            self.dtype,
            lengths.join(", ")
        );
        let length = (FRAME + text.len() + 1).next_multiple_of(ALIGNMENT) - FRAME;
        let mut bytes = [MAGIC, &[1, 0], &(length as u16).to_le_bytes()].concat();
        bytes.extend(format!("{text:<width$}\n", width = length - 1).bytes());
        bytes
    }
}

fn wrong_length(found: u64, expected: u64) -> String {
    format!("the file is {found} bytes long, expected {expected} from its header")
}

/// The offset and the length of the text, from a file's first 12 bytes, or all if it has fewer.
fn parse_frame(frame: &[u8]) -> Result<(u64, u64), String> {
    let Some(rest) = frame.strip_prefix(MAGIC) else {
        let found = frame[..frame.len().min(MAGIC.len())].escape_ascii();
        return Err(format!(
            "not a NumPy file: it starts with \"{found}\", expected \"\\x93NUMPY\""
        ));
    };
    let found = frame.len() as u64;
    match *rest {
        [1, 0, a, b, ..] => Ok((10, u16::from_le_bytes([a, b]).into())),
        [2 | 3, 0, a, b, c, d] => Ok((12, u32::from_le_bytes([a, b, c, d]).into())),
        [] | [_] | [1, 0, ..] => Err(wrong_length(found, 10)),
        [2 | 3, 0, ..] => Err(wrong_length(found, 12)),
        [major, minor, ..] => {
            Err(format!("found format version {major}.{minor}, expected 1.0, 2.0 or 3.0"))
        }
    }
}

/// Turns a Python dictionary of strings, booleans and tuples of numbers into JSON.
fn to_json(text: &str) -> String {
    let mut json = String::with_capacity(text.len());
    for (number, part) in text.split(['\'', '"']).enumerate() {
        if number > 0 {
            json.push('"');
        }
        if number % 2 == 1 {
            json += part;
            continue;
        }
        let part = part.replace("True", "true").replace("False", "false");
        let digit = |c: char| c.is_ascii_digit();
        for (at, c) in part.char_indices() {
            match c {
                '(' => json.push('['),
                ')' | ']' | '}' => {
                    // Python allows a comma before a bracket.
                    json.truncate(json.trim_end().len());
                    json.truncate(json.strip_suffix(',').unwrap_or(&json).len());
                    json.push(if c == '}' { '}' } else { ']' });
                }
                // Python 2 marks long numbers, and allows zeros before others.
                'L' if json.ends_with(digit) => {}
                '0' if !json.ends_with(digit) && part[at + 1..].starts_with(digit) => {}
                // JSON has fewer kinds of whitespace than Python.
                '\x0c' => json.push(' '),
                _ => json.push(c),
            }
        }
    }
    json
}
