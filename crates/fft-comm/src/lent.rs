//! Copies between memory that several ranks write at the same time, each elsewhere, and a tile. No reference may lead there:
//! these go by pointers.
//!
//! Where the axes of a tile are not those of the memory, lines of it are rows of memory that lie far apart. Some rows are read side by
//! side, or written: then what a line of the tile gets of them is together, and the processor fetches all of them ahead, where of one
//! after the other it would come to know when each is over. (256³ complex numbers by two ranks, lines along the slowest axis, each
//! rank to memory of its own, with their transforms: 65 ms by way of a tile in the order of memory, 41 straight.)
#![allow(unsafe_code)]

use fft_core::{Panel, Transfer};

/// Rows that are read or written side by side.
const ROWS: usize = 8;

/// Copies from memory, `from`, to a tile, `to`, elements of so many bytes.
///
/// # Safety
/// `from` is valid for reads of [`Transfer::reach`] elements, as far as the transfer reads them, and `to` for writes of
/// [`Transfer::span`]. What is read nobody writes meanwhile; the two do not overlap.
pub(crate) unsafe fn fetch(transfer: &Transfer, element: usize, from: *const u8, to: *mut u8) {
    transfer.panels(|panel| {
        // SAFETY: all places of panels are below `reach` and `span`.
        unsafe {
            let (from, to) = (from.add(panel.from * element), to.add(panel.to * element));
            match element {
                _ if is_run(&panel) => from.copy_to_nonoverlapping(to, panel.columns * element),
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

/// Copies back: from a tile, `from`, to memory, `to`.
///
/// # Safety
/// As [`fetch`], with reading and writing exchanged; what is written nobody reads meanwhile.
pub(crate) unsafe fn store(transfer: &Transfer, element: usize, from: *const u8, to: *mut u8) {
    transfer.panels(|panel| {
        // SAFETY: as in `fetch`.
        unsafe {
            let (from, to) = (from.add(panel.to * element), to.add(panel.from * element));
            match element {
                _ if is_run(&panel) => from.copy_to_nonoverlapping(to, panel.columns * element),
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

/// Whether its elements are neighbours on both sides.
fn is_run(panel: &Panel) -> bool {
    panel.rows == 1 && panel.pitch == 1
}

/// Places of all elements of a panel, from its first.
fn each(panel: &Panel, mut element: impl FnMut(usize, usize)) {
    for row in 0..panel.rows {
        for column in 0..panel.columns {
            element(row * panel.jump + column, column * panel.pitch + row);
        }
    }
}

/// Rows become lines of the tile.
///
/// # Safety
/// Both pointers are valid for all of the panel's places, counted from its first; they need not be aligned.
unsafe fn gather<E: Copy>(panel: &Panel, from: *const E, to: *mut E) {
    let Panel { rows, columns, jump, pitch, .. } = *panel;
    let whole = rows - rows % ROWS;
    for first in (0..whole).step_by(ROWS) {
        for column in 0..columns {
            // SAFETY: the caller's; row and column are the panel's.
            unsafe {
                let (from, to) = (from.add(first * jump + column), to.add(column * pitch + first));
                let taken: [E; ROWS] =
                    std::array::from_fn(|row| from.add(row * jump).read_unaligned());
                to.cast::<[E; ROWS]>().write_unaligned(taken);
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

/// Lines of the tile become rows.
///
/// # Safety
/// As [`gather`].
unsafe fn scatter<E: Copy>(panel: &Panel, from: *const E, to: *mut E) {
    let Panel { rows, columns, jump, pitch, .. } = *panel;
    let whole = rows - rows % ROWS;
    for first in (0..whole).step_by(ROWS) {
        for column in 0..columns {
            // SAFETY: as in `gather`.
            unsafe {
                let (from, to) = (from.add(column * pitch + first), to.add(first * jump + column));
                let taken: [E; ROWS] = from.cast::<[E; ROWS]>().read_unaligned();
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
    use fft_core::{Brick, Placed};

    /// A tile of a brick, in both orders of axes and as memory is, there and back.
    fn goes_there_and_back(lens: [usize; 3], part: [[usize; 2]; 3], element: usize) {
        let brick = Brick { lo: [0; 3], hi: lens };
        let part = Brick { lo: part.map(|[lo, _]| lo), hi: part.map(|[_, hi]| hi) };
        let (all, order) = (element * lens.iter().product::<usize>(), [0, 1, 2]);
        let memory: Vec<u8> = (0..all).map(|i| (i % 251) as u8 + 1).collect();
        for turned in [order, [0, 2, 1], [1, 2, 0], [2, 1, 0]] {
            let from = Placed { brick, order, howmany: 1 };
            let to = Placed { brick: part, order: turned, howmany: 1 };
            let transfer = Transfer::new(&part, 0..1, &from, &to);
            let mut tile = vec![0; part.points() * element];
            // SAFETY: both have all elements of the transfer.
            unsafe { fetch(&transfer, element, memory.as_ptr(), tile.as_mut_ptr()) };
            let mut expected = vec![0; all];
            let at = |lens: [usize; 3], index: [usize; 3], order: [usize; 3]| {
                order.iter().fold(0, |at, &axis| at * lens[axis] + index[axis]) * element
            };
            let sides: [usize; 3] = std::array::from_fn(|axis| part.len(axis));
            for i in 0..part.points() {
                let index = [i / sides[2] / sides[1], i / sides[2] % sides[1], i % sides[2]];
                let there = std::array::from_fn(|axis| part.lo[axis] + index[axis]);
                let (there, here) = (at(lens, there, order), at(sides, index, turned));
                assert_eq!(tile[here..][..element], memory[there..][..element], "{index:?}");
                expected[there..][..element].copy_from_slice(&memory[there..][..element]);
            }
            let mut back = vec![0; all];
            // SAFETY: as above.
            unsafe { store(&transfer, element, tile.as_ptr(), back.as_mut_ptr()) };
            assert_eq!(back, expected, "{turned:?}");
        }
    }

    #[test]
    fn tiles_are_what_the_definition_says_and_nothing_beside_is_touched() {
        for element in [1, 4, 8, 12, 16, 20] {
            for lens in [[5, 7, 6], [17, 9, 8], [8, 16, 24], [1, 1, 3], [19, 1, 1]] {
                goes_there_and_back(lens, lens.map(|n| [0, n]), element);
                goes_there_and_back(lens, lens.map(|n| [n / 3, n - n / 4]), element);
            }
        }
    }
}
