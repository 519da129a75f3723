//! The local arrays of a rank, and copies of their elements.

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::matches::OwnCopy;
use crate::geometry::{SHORT_RUN_BYTES, Transfer};

/// Source and target arrays of a copy.
pub(super) enum Arrays<'a, 'b, E> {
    Apart(&'a [&'a [E]], &'a mut [&'b mut [E]]),
    InPlace(&'a mut [&'b mut [E]]),
}

impl<E: Pod> Arrays<'_, '_, E> {
    pub(super) fn source(&self, array: usize) -> &[u8] {
        match self {
            Self::Apart(sources, _) => cast_slice(sources[array]),
            Self::InPlace(arrays) => cast_slice(arrays[array]),
        }
    }

    pub(super) fn target(&mut self, array: usize) -> &mut [u8] {
        match self {
            Self::Apart(_, targets) | Self::InPlace(targets) => cast_slice_mut(targets[array]),
        }
    }

    /// Copies from one array to another, or within one.
    pub(super) fn copy(&mut self, own: &OwnCopy, bytes: usize) {
        let OwnCopy { from, to, transfer } = own;
        match self {
            Self::Apart(sources, targets) => {
                let (from, to) = (cast_slice(sources[*from]), cast_slice_mut(targets[*to]));
                copy_elements(transfer, bytes, from, to);
            }
            Self::InPlace(arrays) if from == to => {
                copy_within(transfer, bytes, cast_slice_mut(arrays[*to]));
            }
            Self::InPlace(arrays) => {
                let both = arrays.get_disjoint_mut([*from, *to]);
                let [from, to] = both.expect("two arrays of the plan");
                copy_elements(transfer, bytes, cast_slice(from), cast_slice_mut(to));
            }
        }
    }
}

/// Copies elements of 4, 8 or 16 bytes. Panics if an array is too short or not aligned.
pub(super) fn copy_elements(transfer: &Transfer, bytes: usize, src: &[u8], dst: &mut [u8]) {
    fn copy<E: Pod>(transfer: &Transfer, src: &[u8], dst: &mut [u8]) {
        let whole = |bytes: &[u8]| bytes.len() / size_of::<E>() * size_of::<E>();
        let (read, written) = (whole(src), whole(dst));
        transfer.run::<E>(cast_slice(&src[..read]), cast_slice_mut(&mut dst[..written]));
    }
    match bytes {
        4 => copy::<u32>(transfer, src, dst),
        8 => copy::<u64>(transfer, src, dst),
        _ => copy::<[u64; 2]>(transfer, src, dst),
    }
}

/// Copies elements of an array to others that are not copied.
fn copy_within(transfer: &Transfer, bytes: usize, array: &mut [u8]) {
    fn copy<E: Pod>(transfer: &Transfer, array: &mut [u8]) {
        let whole = array.len() / size_of::<E>() * size_of::<E>();
        let array = cast_slice_mut::<u8, E>(&mut array[..whole]);
        transfer.runs(|from, to, len| match len * size_of::<E>() <= SHORT_RUN_BYTES {
            true => (0..len).for_each(|i| array[to + i] = array[from + i]),
            false => array.copy_within(from..from + len, to),
        });
    }
    match bytes {
        4 => copy::<u32>(transfer, array),
        8 => copy::<u64>(transfer, array),
        _ => copy::<[u64; 2]>(transfer, array),
    }
}
