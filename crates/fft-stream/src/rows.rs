//! Rows at equal distances, whose bounds are checked once for all.

use std::marker::PhantomData;

use bytemuck::{AnyBitPattern, NoUninit};

/// `R` rows of numbers to be read.
pub struct Rows<'a, T, const R: usize> {
    first: *const T,
    step: usize,
    len: usize,
    numbers: PhantomData<&'a [T]>,
}

/// `R` rows of numbers to be written, in one of three orders.
pub struct RowsMut<'a, T, const R: usize> {
    numbers: *mut T,
    /// Row 0, and where row 0 would be if it had the distance of the others.
    zeroth: *mut T,
    before_first: *mut T,
    step: isize,
    len: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

/// Which row is called `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// `k`.
    Forward,
    /// `R - 1 - k`.
    Backward,
    /// `R - k`, but 0 for 0.
    Negative,
}

/// Checks `R` rows of `len` numbers at distances of `step`.
#[inline(always)]
fn check<const R: usize>(total: usize, step: usize, len: usize) {
    let last = (R - 1).checked_mul(step).expect("rows are in memory");
    assert!(last <= total && len <= total - last, "rows are inside");
}

/// Checks that a row of `len` numbers has a `V` at `at`.
#[inline(always)]
fn check_inside<T, V>(len: usize, at: usize) {
    const { assert!(size_of::<V>().is_multiple_of(size_of::<T>())) };
    let count = size_of::<V>() / size_of::<T>();
    assert!(count <= len && at <= len - count, "numbers are inside of a row");
}

impl<'a, T: AnyBitPattern, const R: usize> Rows<'a, T, R> {
    /// Rows of `len` numbers, of which each begins `step` after the one before.
    ///
    /// # Panics
    /// If the last is not inside.
    #[inline(always)]
    pub fn new(numbers: &'a [T], step: usize, len: usize) -> Self {
        check::<R>(numbers.len(), step, len);
        Self { first: numbers.as_ptr(), step, len, numbers: PhantomData }
    }

    /// The numbers from `at` on in row `k`.
    ///
    /// # Panics
    /// If they are not inside.
    #[inline(always)]
    pub fn load<V: AnyBitPattern>(&self, k: usize, at: usize) -> V {
        assert!(k < R);
        check_inside::<T, V>(self.len, at);
        // SAFETY: `new` and both checks: all numbers are inside of the slice. `V` may have any
        // bits.
        unsafe { self.first.add(k * self.step + at).cast::<V>().read_unaligned() }
    }
}

impl<'a, T: AnyBitPattern + NoUninit, const R: usize> RowsMut<'a, T, R> {
    /// As [`Rows::new`].
    ///
    /// # Panics
    /// If the last row is not inside.
    #[inline(always)]
    pub fn new(numbers: &'a mut [T], step: usize, len: usize) -> Self {
        check::<R>(numbers.len(), step, len);
        let first = numbers.as_mut_ptr();
        Self {
            numbers: first,
            zeroth: first,
            before_first: first,
            step: step as isize,
            len,
            lifetime: PhantomData,
        }
    }

    /// Changes the order, which is forward at first.
    #[inline(always)]
    pub fn set_order(&mut self, order: RowOrder) {
        let step = self.step.unsigned_abs();
        let at = |row: usize| self.numbers.wrapping_add(row * step);
        let (zeroth, before_first, is_forward) = match order {
            RowOrder::Forward => (at(0), at(0), true),
            RowOrder::Backward => (at(R - 1), at(R - 1), false),
            RowOrder::Negative => (at(0), at(R), false),
        };
        (self.zeroth, self.before_first) = (zeroth, before_first);
        self.step = if is_forward { step as isize } else { -(step as isize) };
    }

    #[inline(always)]
    fn place<V>(&self, k: usize, at: usize) -> *mut V {
        assert!(k < R);
        check_inside::<T, V>(self.len, at);
        let row = match k {
            0 => self.zeroth,
            _ => self.before_first.wrapping_offset(k as isize * self.step),
        };
        row.wrapping_add(at).cast()
    }

    /// The numbers from `at` on in row `k`.
    ///
    /// # Panics
    /// If they are not inside.
    #[inline(always)]
    pub fn load<V: AnyBitPattern>(&self, k: usize, at: usize) -> V {
        // SAFETY: `new` checked that all rows are inside of the slice, each order has these rows,
        // and `place` checked the index. `V` may have any bits.
        unsafe { self.place::<V>(k, at).read_unaligned() }
    }

    /// Writes the numbers from `at` on in row `k`.
    ///
    /// # Panics
    /// If they are not inside.
    #[inline(always)]
    pub fn store<V: NoUninit>(&mut self, k: usize, at: usize, x: V) {
        // SAFETY: as in `load`; the slice is borrowed exclusively, and numbers may have any bits.
        unsafe { self.place::<V>(k, at).write_unaligned(x) };
    }
}
