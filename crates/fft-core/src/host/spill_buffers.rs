//! The buffers of data held in two pieces.

/// The two buffers of a node's data, to be read.
pub(crate) type Read<'a, T> = [&'a [T]; 2];
pub(crate) type Written<'a, T> = [&'a mut [T]; 2];

/// Spare memory as the second buffer of the source or of the destination; the other one is empty.
pub(crate) fn split_spare<T>(spare: &mut [T], is_read: bool) -> (&[T], &mut [T]) {
    if is_read { (spare, &mut []) } else { (&[], spare) }
}
