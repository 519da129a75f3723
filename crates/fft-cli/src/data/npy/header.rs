//! The header: a magic string, a version, a length, and a Python dictionary of three keys.
//!
//! ```text
//! \x93NUMPY 1 0 <u16 length> {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }     \n
//! \x93NUMPY 2 0 <u32 length> ...                     version 3 differs from 2 in its encoding only
//! ```

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::dictionary::Dictionary;
use super::{Dtype, NpyError};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Magic, version and length of a version 1.0 header, the one we write.
const FRAME: usize = 10;
/// Where the data of a file of ours may start: NumPy promises this alignment to those who map the file.
const ALIGNMENT: usize = 64;
/// The longest text that is read. What we accept needs at most 1.5 KiB; the rest is room for padding.
const MAX_TEXT: u64 = u16::MAX as u64;
/// As many axes as NumPy has.
const MAX_AXES: usize = 64;
/// Files are addressed by signed 64-bit offsets.
const MAX_FILE: u64 = i64::MAX as u64;

/// What a file holds, and where in it the data start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Length of each axis; at least one axis. A length may be zero: then there are no data.
    pub(crate) shape: Vec<usize>,
    /// What an element is.
    pub(crate) dtype: Dtype,
    /// Whether the first axis is contiguous (Fortran order) rather than the last (C order).
    pub(crate) fortran_order: bool,
    /// The byte at which the data start.
    pub(crate) data_offset: u64,
}

impl Header {
    /// The header of a file to be written; the same on every rank. [`Output::create`](super::Output::create) checks it.
    pub(crate) fn new(shape: &[usize], dtype: Dtype, fortran_order: bool) -> Self {
        let mut header = Self { shape: shape.to_vec(), dtype, fortran_order, data_offset: 0 };
        let length = FRAME + header.text().len() + 1;
        header.data_offset = length.next_multiple_of(ALIGNMENT) as u64;
        header
    }

    /// Reads and checks the header of a file, and that the file is exactly as long as the header says.
    ///
    /// Cost: two small reads.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is no NumPy file, holds another dtype or an array without axes, or is longer or
    /// shorter than its header says. Whatever the file holds, little memory is taken and nothing panics.
    pub(crate) fn open(path: &Path) -> Result<Self, NpyError> {
        let metadata = fs::metadata(path).map_err(NpyError::io(path, "open"))?;
        if !metadata.is_file() {
            return Err(NpyError::NotAFile { path: path.to_path_buf() });
        }
        let file = File::open(path).map_err(NpyError::io(path, "open"))?;
        let found = metadata.len();
        let read = |length: u64, offset: u64| {
            let mut bytes = vec![0; length as usize];
            let done = file.read_exact_at(&mut bytes, offset);
            done.map_err(NpyError::transfer(path, "read", length, offset)).map(|()| bytes)
        };

        let (text_offset, text_length) = parse_frame(path, &read(found.min(12), 0)?)?;
        let data_offset = text_offset + text_length;
        if found < data_offset {
            return Err(NpyError::Length {
                path: path.to_path_buf(),
                found,
                expected: data_offset,
            });
        }
        if text_length > MAX_TEXT {
            let (path, found) = (path.to_path_buf(), text_length);
            return Err(NpyError::LongHeader { path, found, expected: MAX_TEXT });
        }
        let text = read(text_length, text_offset)?;
        let text = String::from_utf8_lossy(&text);
        let Dictionary { shape, dtype, fortran_order } = Dictionary::parse(path, &text)?;
        let header = Self { shape, dtype, fortran_order, data_offset };
        let expected = header.file_length(path)?;
        if found != expected {
            return Err(NpyError::Length { path: path.to_path_buf(), found, expected });
        }
        Ok(header)
    }

    /// The length in bytes of a file with this header.
    pub(super) fn file_length(&self, path: &Path) -> Result<u64, NpyError> {
        if !(1..=MAX_AXES).contains(&self.shape.len()) {
            let (path, found) = (path.to_path_buf(), self.shape.len());
            return Err(NpyError::Axes { path, found, expected: MAX_AXES });
        }
        let bytes = if self.shape.contains(&0) {
            Some(0)
        } else {
            let item = self.dtype.item_size() as u64;
            self.shape.iter().try_fold(item, |product, &n| product.checked_mul(n as u64))
        };
        bytes
            .and_then(|bytes| bytes.checked_add(self.data_offset))
            .filter(|&length| length <= MAX_FILE)
            .ok_or_else(|| NpyError::Large {
                path: path.to_path_buf(),
                shape: self.shape.clone(),
                dtype: self.dtype,
                expected: MAX_FILE,
            })
    }

    /// The bytes of a file before its data: version 1.0, padded up to `data_offset`, so that a header that was read
    /// from another file can be written as it is.
    pub(super) fn encode(&self, path: &Path) -> Result<Vec<u8>, NpyError> {
        let text = self.text();
        let (least, most) = ((FRAME + text.len() + 1) as u64, FRAME as u64 + MAX_TEXT);
        if !(least..=most).contains(&self.data_offset) {
            let (path, found) = (path.to_path_buf(), self.data_offset);
            return Err(NpyError::DataOffset { path, found, least, most });
        }
        let text_length = self.data_offset as usize - FRAME;
        let mut bytes = [MAGIC, &[1, 0], &(text_length as u16).to_le_bytes()].concat();
        bytes.extend(format!("{text:<width$}\n", width = text_length - 1).bytes());
        Ok(bytes)
    }

    fn text(&self) -> String {
        let order = if self.fortran_order { "True" } else { "False" };
        let lengths: Vec<_> = self.shape.iter().map(usize::to_string).collect();
        // Python's tuple of one needs its comma.
        let comma = if lengths.len() == 1 { "," } else { "" };
        format!(
            "{{'descr': '{}', 'fortran_order': {order}, 'shape': ({}{comma}), }}",
            self.dtype,
            lengths.join(", ")
        )
    }
}

/// Where the text starts and how long it is, from a file's first 12 bytes, or all if there are fewer.
fn parse_frame(path: &Path, frame: &[u8]) -> Result<(u64, u64), NpyError> {
    let path = path.to_path_buf();
    let Some(rest) = frame.strip_prefix(MAGIC) else {
        let found = frame[..frame.len().min(MAGIC.len())].escape_ascii().to_string();
        return Err(NpyError::Magic { path, found });
    };
    let found = frame.len() as u64;
    match *rest {
        [1, 0, a, b, ..] => Ok((10, u16::from_le_bytes([a, b]).into())),
        [2 | 3, 0, a, b, c, d] => Ok((12, u32::from_le_bytes([a, b, c, d]).into())),
        [] | [_] | [1, 0, ..] => Err(NpyError::Length { path, found, expected: 10 }),
        [2 | 3, 0, ..] => Err(NpyError::Length { path, found, expected: 12 }),
        [major, minor, ..] => Err(NpyError::Version { path, found: (major, minor) }),
    }
}
