//! The local arrays of a rank, and copies of their elements.

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::copy_plan::OwnCopy;
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
    pub(super) fn copy(&mut self, OwnCopy { from, to, transfer }: &OwnCopy, bytes: usize) {
        let (source, target) = match self {
            Self::Apart(sources, targets) => (sources[*from], &mut *targets[*to]),
            Self::InPlace(arrays) if from == to => {
                return copy_within(transfer, bytes, cast_slice_mut(arrays[*to]));
            }
            Self::InPlace(arrays) => {
                let both = arrays.get_disjoint_mut([*from, *to]);
                let [source, target] = both.expect("two arrays of the plan");
                (&**source, &mut **target)
            }
        };
        copy_elements(transfer, bytes, cast_slice(source), cast_slice_mut(target));
    }
}

/// Copies elements of 4, 8 or 16 bytes. Panics if an array is too short or not aligned.
pub(super) fn copy_elements(transfer: &Transfer, bytes: usize, src: &[u8], dst: &mut [u8]) {
    fn copy<E: Pod>(transfer: &Transfer, src: &[u8], dst: &mut [u8]) {
        let read = src.len() / size_of::<E>() * size_of::<E>();
        transfer.run::<E>(cast_slice(&src[..read]), elements_mut(dst));
    }
    match bytes {
        4 => copy::<u32>(transfer, src, dst),
        8 => copy::<u64>(transfer, src, dst),
        _ => copy::<[u64; 2]>(transfer, src, dst),
    }
}

/// Copies elements of an array to other elements of it, which are not copied themselves.
fn copy_within(transfer: &Transfer, bytes: usize, array: &mut [u8]) {
    fn copy<E: Pod>(transfer: &Transfer, array: &mut [E]) {
        transfer.runs(|from, to, len| {
            if len * size_of::<E>() <= SHORT_RUN_BYTES {
                (0..len).for_each(|i| array[to + i] = array[from + i])
            } else {
                array.copy_within(from..from + len, to)
            }
        });
    }
    match bytes {
        4 => copy::<u32>(transfer, elements_mut(array)),
        8 => copy::<u64>(transfer, elements_mut(array)),
        _ => copy::<[u64; 2]>(transfer, elements_mut(array)),
    }
}

/// The whole elements of an array.
fn elements_mut<E: Pod>(bytes: &mut [u8]) -> &mut [E] {
    let whole = bytes.len() / size_of::<E>() * size_of::<E>();
    cast_slice_mut(&mut bytes[..whole])
}
