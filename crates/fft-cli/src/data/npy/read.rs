//! Reading a brick, run by run.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::runs::Runs;
use super::{Dtype, Header};

/// Reads the brick `lo..hi` (half-open, in the array's axes) of a file into `out`, in the file's
/// order of memory. `E` must have the size and alignment of the header's dtype; other numbers are
/// converted to it.
///
/// # Errors
///
/// If the brick is not inside the array, `E` or `out` do not fit it, or the file cannot be read.
pub(crate) fn read_brick<E: bytemuck::Pod>(
    path: &Path,
    header: &Header,
    lo: &[usize],
    hi: &[usize],
    out: &mut [E],
) -> Result<(), String> {
    let runs = Runs::new::<E>(header, lo, hi, out.len())?;
    let file = File::open(path).map_err(|error| format!("cannot open: {error}"))?;
    if !header.item.is_plain() {
        return convert(&file, header, &runs, out);
    }
    let out: &mut [u8] = bytemuck::cast_slice_mut(out);
    for (run, bytes) in out.chunks_exact_mut(runs.bytes).enumerate() {
        read_at(&file, bytes, runs.offset(run))?;
    }
    Ok(())
}

/// Elements that are converted at once.
const PIECE: usize = 1 << 13;

/// The same for elements that are stored in another way.
fn convert<E: bytemuck::Pod>(
    file: &File,
    header: &Header,
    runs: &Runs,
    out: &mut [E],
) -> Result<(), String> {
    let item = header.item;
    let mut buffer = vec![0; PIECE * item.bytes()];
    for (run, out) in out.chunks_exact_mut((runs.bytes / item.bytes()).max(1)).enumerate() {
        let mut offset = runs.offset(run);
        for out in out.chunks_mut(PIECE) {
            let bytes = &mut buffer[..out.len() * item.bytes()];
            read_at(file, bytes, offset)?;
            match header.dtype {
                Dtype::F32 | Dtype::C64 => item.to_f32(bytes, bytemuck::cast_slice_mut(out)),
                Dtype::F64 | Dtype::C128 => item.to_f64(bytes, bytemuck::cast_slice_mut(out)),
            }
            offset += bytes.len() as u64;
        }
    }
    Ok(())
}

fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> Result<(), String> {
    let length = bytes.len();
    file.read_exact_at(bytes, offset)
        .map_err(|error| format!("cannot read {length} bytes at byte {offset}: {error}"))
}
