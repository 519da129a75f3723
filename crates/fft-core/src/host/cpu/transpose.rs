//! Transposition between columns of an array and lines of a tile.

use std::ops::Range;

use crate::geometry::strided_copy::lines_of;

/// Rows read or written in turn; with few cached columns, the processor prefetches them.
const BY_TURNS: usize = 8;

/// Adjacent columns of a row-major array whose rows have `inner` elements.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    pub(crate) start: usize,
    pub(crate) inner: usize,
    pub(crate) columns: usize,
    /// Whether rows are not in cache; then several are processed in turn.
    pub(crate) far: bool,
}

impl Columns {
    /// Copies each column to a line of the tile.
    pub(crate) fn gather<E: Copy>(self, n: usize, array: &[E], tile: &mut [E], pitch: usize) {
        match self.columns {
            8 if !self.far => self.gather_few::<E, 8>(n, array, tile, pitch),
            16 if !self.far => self.gather_few::<E, 16>(n, array, tile, pitch),
            _ => {
                let whole = n - n % BY_TURNS;
                self.gather_many::<E, BY_TURNS>(0..whole, array, tile, pitch);
                self.gather_many::<E, 1>(whole..n, array, tile, pitch);
            }
        }
    }

    /// Copies each line of the tile to a column.
    pub(crate) fn scatter<E: Copy>(self, n: usize, tile: &[E], pitch: usize, array: &mut [E]) {
        match self.columns {
            8 if !self.far => self.scatter_few::<E, 8>(n, tile, pitch, array),
            16 if !self.far => self.scatter_few::<E, 16>(n, tile, pitch, array),
            _ => {
                let whole = n - n % BY_TURNS;
                self.scatter_many::<E, BY_TURNS>(0..whole, tile, pitch, array);
                self.scatter_many::<E, 1>(whole..n, tile, pitch, array);
            }
        }
    }

    /// A fixed number of columns. Not inlined, so that the loop has all registers.
    #[inline(never)]
    fn gather_few<E: Copy, const COLUMNS: usize>(
        self,
        n: usize,
        array: &[E],
        tile: &mut [E],
        pitch: usize,
    ) {
        let lines = lines_of::<E, COLUMNS>(tile, pitch, n);
        for i in 0..n {
            let row: &[E; COLUMNS] =
                array[self.start + i * self.inner..].first_chunk().expect("inside the array");
            for column in 0..COLUMNS {
                lines[column][i] = row[column];
            }
        }
    }

    #[inline(never)]
    fn scatter_few<E: Copy, const COLUMNS: usize>(
        self,
        n: usize,
        tile: &[E],
        pitch: usize,
        array: &mut [E],
    ) {
        let lines: [&[E]; COLUMNS] = std::array::from_fn(|column| &tile[column * pitch..][..n]);
        for i in 0..n {
            let row: &mut [E; COLUMNS] =
                array[self.start + i * self.inner..].first_chunk_mut().expect("inside the array");
            for column in 0..COLUMNS {
                row[column] = lines[column][i];
            }
        }
    }

    /// Any number of columns, several rows at a time, so that writes to a line are adjacent.
    #[inline(never)]
    fn gather_many<E: Copy, const ROWS: usize>(
        self,
        rows: Range<usize>,
        array: &[E],
        tile: &mut [E],
        pitch: usize,
    ) {
        for i in rows.step_by(ROWS) {
            let taken: [&[E]; ROWS] = std::array::from_fn(|row| {
                &array[self.start + (i + row) * self.inner..][..self.columns]
            });
            for (column, line) in tile.chunks_exact_mut(pitch).take(self.columns).enumerate() {
                let place: &mut [E; ROWS] = line[i..].first_chunk_mut().expect("inside the line");
                for row in 0..ROWS {
                    place[row] = taken[row][column];
                }
            }
        }
    }

    #[inline(never)]
    fn scatter_many<E: Copy, const ROWS: usize>(
        self,
        rows: Range<usize>,
        tile: &[E],
        pitch: usize,
        array: &mut [E],
    ) {
        for i in rows.step_by(ROWS) {
            let mut rest = array[self.start + i * self.inner..].chunks_mut(self.inner);
            let taken: [&mut [E]; ROWS] = std::array::from_fn(|_| {
                &mut rest.next().expect("inside the array")[..self.columns]
            });
            for (column, line) in tile.chunks_exact(pitch).take(self.columns).enumerate() {
                let place: &[E; ROWS] = line[i..].first_chunk().expect("inside the line");
                for row in 0..ROWS {
                    taken[row][column] = place[row];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks every column by its definition, and back; other elements stay unchanged.
    fn follows<E: Copy + PartialEq + std::fmt::Debug>(
        far: bool,
        [first, columns, after, n, slack]: [usize; 5],
        number: impl Fn(usize) -> E,
    ) {
        let (inner, pitch) = (first + columns + after, n + slack);
        let at = Columns { start: first, inner, columns, far };
        let array: Vec<E> = (1..=n * inner).map(&number).collect();
        let mut tile = vec![number(0); columns * pitch];
        at.gather(n, &array, &mut tile, pitch);
        for (place, x) in tile.iter().enumerate() {
            let (column, i) = (place / pitch, place % pitch);
            let expected = if i < n { array[i * inner + first + column] } else { number(0) };
            assert_eq!(*x, expected, "line {column}, element {i}");
        }
        let mut back = vec![number(0); n * inner];
        at.scatter(n, &tile, pitch, &mut back);
        for (place, x) in back.iter().enumerate() {
            let inside = (first..first + columns).contains(&(place % inner));
            assert_eq!(*x, if inside { array[place] } else { number(0) }, "element {place}");
        }
    }

    proptest! {
        #[test]
        fn columns_are_lines_and_lines_columns(
            first in 0..5usize, columns in prop_oneof![Just(8), Just(16), Just(64), 1..70usize], after in 0..5usize,
            n in 1..40usize, slack in 0..4usize, far: bool,
        ) {
            let shape = [first, columns, after, n, slack];
            follows(far, shape, |x| x as u32);
            follows(far, shape, |x| x as u64);
            follows(far, shape, |x| [x, 2 * x]);
        }
    }
}
