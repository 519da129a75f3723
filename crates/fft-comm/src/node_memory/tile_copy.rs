//! Copies between a tile and memory that other ranks write at the same time, elsewhere. References
//! to such memory are not allowed, so these use raw pointers.
//!
//! If axes are transposed, a line of the tile has one element of each of several distant rows.
//! Eight rows are read or written together: their elements are contiguous in a line, and the
//! processor prefetches all eight streams. The next eight are prefetched explicitly.
#![allow(unsafe_code)]

use fft_core::{Panel, Transfer};

/// Rows that are read or written together.
const BY_TURNS: usize = 8;

/// Copies elements of `element` bytes from memory to a tile.
///
/// # Safety
/// `from` is valid for reads of [`Transfer::reach`] elements, as far as the transfer reads them,
/// and `to` for writes of [`Transfer::span`]. Nobody writes the elements of `from` meanwhile; the
/// two do not overlap.
pub(crate) unsafe fn fetch(transfer: &Transfer, element: usize, from: *const u8, to: *mut u8) {
    transfer.panels(|panel| {
        // SAFETY: all places of panels are below `reach` and `span`.
        unsafe {
            let (from, to) = (from.add(panel.from * element), to.add(panel.to * element));
            match element {
                _ if is_run(&panel) => fetch_run(from, to, panel.columns * element),
                4 => gather::<u32>(&panel, from.cast(), to.cast()),
                8 => gather::<u64>(&panel, from.cast(), to.cast()),
                16 => gather::<u128>(&panel, from.cast(), to.cast()),
                _ => each(&panel, |there, here| {
                    let (from, to) = (from.add(there * element), to.add(here * element));
                    from.copy_to_nonoverlapping(to, element);
                }),
            }
        }
    });
}

/// Copies elements of a tile to memory; with `past`, long runs by non-temporal stores.
///
/// # Safety
/// As [`fetch`], with reading and writing exchanged; nobody reads the written elements meanwhile.
pub(crate) unsafe fn store(
    transfer: &Transfer,
    element: usize,
    from: *const u8,
    to: *mut u8,
    past: bool,
) {
    transfer.panels(|panel| {
        // SAFETY: as in `fetch`.
        unsafe {
            let (from, to) = (from.add(panel.to * element), to.add(panel.from * element));
            match element {
                _ if is_run(&panel) => store_run(from, to, panel.columns * element, past),
                4 => scatter::<u32>(&panel, from.cast(), to.cast()),
                8 => scatter::<u64>(&panel, from.cast(), to.cast()),
                16 => scatter::<u128>(&panel, from.cast(), to.cast()),
                _ => each(&panel, |there, here| {
                    let (from, to) = (from.add(here * element), to.add(there * element));
                    from.copy_to_nonoverlapping(to, element);
                }),
            }
        }
    });
}

/// Copies a run to a tile.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `bytes` bytes, and they do not overlap.
unsafe fn fetch_run(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe {
        if bytes >= fft_stream::LONG_BYTES {
            fft_stream::near(from, to, bytes)
        } else {
            from.copy_to_nonoverlapping(to, bytes)
        }
    }
}

/// Copies a run from a tile.
///
/// # Safety
/// As [`fetch_run`].
unsafe fn store_run(from: *const u8, to: *mut u8, bytes: usize, past: bool) {
    // SAFETY: the caller's.
    unsafe {
        if !past || bytes < fft_stream::LONG_BYTES {
            return from.copy_to_nonoverlapping(to, bytes);
        }
        fft_stream::past(from, to, bytes);
    }
    fft_stream::fence();
}

/// Whether its elements are contiguous on both sides.
fn is_run(panel: &Panel) -> bool {
    panel.rows == 1 && panel.pitch == 1
}

/// Offsets of all elements of a panel from its first, in memory and in the tile.
fn each(panel: &Panel, mut element: impl FnMut(usize, usize)) {
    for row in 0..panel.rows {
        for column in 0..panel.columns {
            element(row * panel.jump + column, column * panel.pitch + row);
        }
    }
}

/// Calls `ahead` for the next rows after those from `first` on, once for each cache line.
#[inline(always)]
fn prefetch<E>(first: usize, whole: usize, column: usize, ahead: impl FnMut(usize)) {
    if column.is_multiple_of((fft_stream::LINE / size_of::<E>()).max(1)) && first + BY_TURNS < whole
    {
        (first + BY_TURNS..first + 2 * BY_TURNS).for_each(ahead);
    }
}

/// Transposes rows of memory to lines of the tile.
///
/// # Safety
/// Both pointers are valid for all of the panel's offsets; they need not be aligned.
unsafe fn gather<E: Copy>(panel: &Panel, from: *const E, to: *mut E) {
    let Panel { rows, columns, jump, pitch, .. } = *panel;
    let whole = rows - rows % BY_TURNS;
    for first in (0..whole).step_by(BY_TURNS) {
        for column in 0..columns {
            prefetch::<E>(first, whole, column, |next| {
                fft_stream::ahead(from.wrapping_add(next * jump + column).cast())
            });
            // SAFETY: the caller's; row and column are the panel's.
            unsafe {
                let (from, to) = (from.add(first * jump + column), to.add(column * pitch + first));
                let taken: [E; BY_TURNS] =
                    std::array::from_fn(|row| from.add(row * jump).read_unaligned());
                to.cast::<[E; BY_TURNS]>().write_unaligned(taken);
            }
        }
    }
    for row in whole..rows {
        for column in 0..columns {
            // SAFETY: as above.
            unsafe {
                let taken = from.add(row * jump + column).read_unaligned();
                to.add(column * pitch + row).write_unaligned(taken);
            }
        }
    }
}

/// Transposes lines of the tile to rows of memory.
///
/// # Safety
/// As [`gather`].
unsafe fn scatter<E: Copy>(panel: &Panel, from: *const E, to: *mut E) {
    let Panel { rows, columns, jump, pitch, .. } = *panel;
    let whole = rows - rows % BY_TURNS;
    for first in (0..whole).step_by(BY_TURNS) {
        for column in 0..columns {
            prefetch::<E>(first, whole, column, |next| {
                fft_stream::ahead(to.wrapping_add(next * jump + column).cast());
            });
            // SAFETY: as in `gather`.
            unsafe {
                let (from, to) = (from.add(column * pitch + first), to.add(first * jump + column));
                let taken: [E; BY_TURNS] = from.cast::<[E; BY_TURNS]>().read_unaligned();
                for (row, element) in taken.into_iter().enumerate() {
                    to.add(row * jump).write_unaligned(element);
                }
            }
        }
    }
    for row in whole..rows {
        for column in 0..columns {
            // SAFETY: as in `gather`.
            unsafe {
                let taken = from.add(column * pitch + row).read_unaligned();
                to.add(row * jump + column).write_unaligned(taken);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fft_core::{DynBrick, Placed};

    /// Bytes around all memory, so that nothing is aligned and writes outside it are detected.
    const AROUND: usize = 3;
    const UNTOUCHED: u8 = 0;

    fn surrounded(bytes: usize) -> Vec<u8> {
        vec![UNTOUCHED; bytes + 2 * AROUND]
    }

    /// A part of a brick, to tiles with several orders of axes, there and back.
    fn goes_there_and_back(brick: [usize; 3], part: [[usize; 2]; 3], batch: usize, element: usize) {
        for past in [false, true] {
            goes_there_and_back_past(brick, part, batch, element, past);
        }
    }

    fn goes_there_and_back_past(
        brick: [usize; 3],
        part: [[usize; 2]; 3],
        batch: usize,
        element: usize,
        past: bool,
    ) {
        let brick = DynBrick::new([0; 3], brick);
        let part = DynBrick::new(part.map(|[lo, _]| lo), part.map(|[_, hi]| hi));
        let order = [0, 1, 2];
        let mut memory = surrounded(brick.points() * batch * element);
        let end = memory.len() - AROUND;
        memory[AROUND..end].iter_mut().zip((1..=251).cycle()).for_each(|(byte, i)| *byte = i);
        for turned in [order, [0, 2, 1], [1, 2, 0], [2, 1, 0]] {
            let from = Placed::new(brick, order, batch);
            let to = Placed::new(part, turned, batch);
            let transfer = Transfer::new(&part, 0..batch, &from, &to);
            let mut tile = surrounded(part.points() * batch * element);
            // SAFETY: both have all elements of the transfer, after the bytes before.
            unsafe {
                let (from, to) = (memory.as_ptr().add(AROUND), tile.as_mut_ptr().add(AROUND));
                fetch(&transfer, element, from, to);
            }
            let (mut lines, mut back) =
                (surrounded(tile.len() - 2 * AROUND), surrounded(end - AROUND));
            let place = |brick: &DynBrick, order: [usize; 3], item: usize, index: [usize; 3]| {
                let at = |at, &axis: &usize| at * brick.len(axis) + index[axis] - brick.lo[axis];
                AROUND + order.iter().fold(item, at) * element
            };
            let [columns, layers] = [1, 2].map(|axis| part.len(axis));
            for i in 0..batch * part.points() {
                let (item, i) = (i / part.points(), i % part.points());
                let index = [i / layers / columns, i / layers % columns, i % layers];
                let index = std::array::from_fn(|axis| part.lo[axis] + index[axis]);
                let there = place(&brick, order, item, index);
                let here = place(&part, turned, item, index);
                lines[here..][..element].copy_from_slice(&memory[there..][..element]);
                back[there..][..element].copy_from_slice(&memory[there..][..element]);
            }
            assert_eq!(tile, lines, "{turned:?}");
            let mut written = surrounded(end - AROUND);
            // SAFETY: as above.
            unsafe {
                let (from, to) = (tile.as_ptr().add(AROUND), written.as_mut_ptr().add(AROUND));
                store(&transfer, element, from, to, past);
            }
            assert_eq!(written, back, "{turned:?}");
        }
    }

    #[test]
    fn tiles_are_what_the_definition_says_and_nothing_beside_is_touched() {
        for element in [1, 4, 8, 12, 16, 20] {
            for lens in [[5, 7, 6], [17, 9, 8], [8, 16, 24], [1, 1, 3], [19, 1, 1]] {
                for batch in [1, 2] {
                    goes_there_and_back(lens, lens.map(|n| [0, n]), batch, element);
                    goes_there_and_back(lens, lens.map(|n| [n / 3, n - n / 4]), batch, element);
                }
                goes_there_and_back(lens, lens.map(|n| [n / 2, n / 2]), 1, element);
            }
            // Long runs.
            goes_there_and_back([2, 96, 64], [[0, 2], [9, 96], [0, 64]], 1, element);
            // One row, and one column.
            goes_there_and_back([9, 7, 6], [[4, 5], [0, 7], [0, 6]], 1, element);
            goes_there_and_back([9, 7, 6], [[0, 9], [0, 7], [3, 4]], 1, element);
        }
    }
}
