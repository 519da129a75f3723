//! Numbers at two equal distances, whose bounds are checked once for all.
//!
//! Kernels that access many rows at the same place would check each access, or hold a slice for
//! each row, which takes time to make and more registers than there are.

use std::marker::PhantomData;

use bytemuck::{AnyBitPattern, NoUninit};

/// Rows to be read: `[i, k]` begins at `i * steps[0] + k * steps[1]`.
pub struct Strided<'a, T> {
    first: *const T,
    shape: Shape,
    numbers: PhantomData<&'a [T]>,
}

/// Rows to be written, as [`Strided`].
pub struct StridedMut<'a, T> {
    first: *mut T,
    shape: Shape,
    numbers: PhantomData<&'a mut [T]>,
}

#[derive(Clone, Copy)]
struct Shape {
    counts: [usize; 2],
    steps: [usize; 2],
    /// Numbers of a row.
    len: usize,
}

impl Shape {
    /// Checks that the last row is among `total` numbers.
    #[inline(always)]
    fn new(total: usize, counts: [usize; 2], steps: [usize; 2], len: usize) -> Self {
        let last = |side: usize| counts[side].saturating_sub(1).checked_mul(steps[side]);
        let end = |first: usize, second: usize| first.checked_add(second)?.checked_add(len);
        let end = last(0).zip(last(1)).and_then(|(first, second)| end(first, second));
        assert!(end.is_some_and(|end| end <= total), "the last row is outside");
        Self { counts, steps, len }
    }

    /// The place of a `V` at `at` in a row.
    #[inline(always)]
    fn place<T, V>(&self, [i, k]: [usize; 2], at: usize) -> usize {
        const { assert!(size_of::<V>().is_multiple_of(size_of::<T>())) };
        let count = size_of::<V>() / size_of::<T>();
        let is_row = i < self.counts[0] && k < self.counts[1];
        assert!(is_row && count <= self.len && at <= self.len - count, "outside of the rows");
        i * self.steps[0] + k * self.steps[1] + at
    }
}

impl<'a, T: AnyBitPattern> Strided<'a, T> {
    /// `counts[0] * counts[1]` rows of `len` numbers.
    ///
    /// # Panics
    /// If the last is not inside.
    #[inline(always)]
    pub fn new(numbers: &'a [T], counts: [usize; 2], steps: [usize; 2], len: usize) -> Self {
        let shape = Shape::new(numbers.len(), counts, steps, len);
        Self { first: numbers.as_ptr(), shape, numbers: PhantomData }
    }

    /// The numbers from `at` on in a row.
    ///
    /// # Panics
    /// If they are not inside.
    #[inline(always)]
    pub fn load<V: AnyBitPattern>(&self, row: [usize; 2], at: usize) -> V {
        let place = self.shape.place::<T, V>(row, at);
        // SAFETY: no place is after the last of the last row, which `new` found to be inside of
        // the slice. `V` may have any bits.
        unsafe { self.first.add(place).cast::<V>().read_unaligned() }
    }
}

impl<'a, T: AnyBitPattern + NoUninit> StridedMut<'a, T> {
    /// As [`Strided::new`].
    ///
    /// # Panics
    /// If the last row is not inside.
    #[inline(always)]
    pub fn new(numbers: &'a mut [T], counts: [usize; 2], steps: [usize; 2], len: usize) -> Self {
        let shape = Shape::new(numbers.len(), counts, steps, len);
        Self { first: numbers.as_mut_ptr(), shape, numbers: PhantomData }
    }

    /// The numbers from `at` on in a row.
    ///
    /// # Panics
    /// If they are not inside.
    #[inline(always)]
    pub fn load<V: AnyBitPattern>(&self, row: [usize; 2], at: usize) -> V {
        let place = self.shape.place::<T, V>(row, at);
        // SAFETY: as `Strided::load`.
        unsafe { self.first.add(place).cast::<V>().read_unaligned() }
    }

    /// Writes the numbers from `at` on in a row.
    ///
    /// # Panics
    /// If they are not inside.
    #[inline(always)]
    pub fn store<V: NoUninit>(&mut self, row: [usize; 2], at: usize, x: V) {
        let place = self.shape.place::<T, V>(row, at);
        // SAFETY: as `Strided::load`. The slice is borrowed exclusively, and its numbers may have
        // any bits.
        unsafe { self.first.add(place).cast::<V>().write_unaligned(x) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_are_those_of_the_slice(
            counts in [1..5_usize, 1..5_usize], steps in [0..40_usize, 0..40_usize],
            len in 2..9_usize, at in 0..9_usize, value: u32, missing in 0..2_usize,
        ) {
            let last = (counts[0] - 1) * steps[0] + (counts[1] - 1) * steps[1];
            let mut numbers: Vec<u32> = (0..(last + len - missing) as u32).collect();
            let make = std::panic::catch_unwind(|| {
                let rows = Strided::new(&numbers, counts, steps, len);
                rows.load::<[u32; 2]>([counts[0] - 1, counts[1] - 1], at)
            });
            let first = (last + at) as u32;
            match make {
                Ok(found) => prop_assert_eq!(found, [first, first + 1]),
                Err(_) => prop_assert!(missing > 0 || at + 2 > len),
            }
            if missing == 0 && at + 2 <= len {
                let mut rows = StridedMut::new(&mut numbers, counts, steps, len);
                rows.store([counts[0] - 1, counts[1] - 1], at, [value, !value]);
                prop_assert_eq!(rows.load::<u32>([counts[0] - 1, counts[1] - 1], at), value);
                prop_assert_eq!(&numbers[last + at..][..2], &[value, !value]);
            }
        }
    }
}
