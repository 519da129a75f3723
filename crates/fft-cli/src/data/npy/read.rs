//! Reading a brick, run by run.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::Header;
use super::runs::Runs;

/// Reads the brick `lo..hi` (half-open, in the array's axes) of a file into `out`, in the file's
/// order of memory. `E` must have the size and alignment of the file's dtype.
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
    let out: &mut [u8] = bytemuck::cast_slice_mut(out);
    for (run, bytes) in out.chunks_exact_mut(runs.bytes).enumerate() {
        let (length, offset) = (bytes.len(), runs.offset(run));
        file.read_exact_at(bytes, offset)
            .map_err(|error| format!("cannot read {length} bytes at byte {offset}: {error}"))?;
    }
    Ok(())
}
