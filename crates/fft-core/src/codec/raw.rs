//! [`Wire::Raw`](super::Wire::Raw): the numbers as they are, without a header.

use super::codec::{BadMessage, Codec, Packed, copy};
use crate::base::Real;
use crate::geometry::Transfer;

pub(super) struct Raw;

impl<T: Real> Codec<T> for Raw {
    fn fixed(&self, elements: usize, width: usize) -> Option<usize> {
        Some(Codec::<T>::bound(self, elements * width))
    }

    fn random_access(&self) -> bool {
        true
    }

    fn pack(
        &self,
        src: &[T],
        gather: &Transfer,
        width: usize,
        _: f64,
        message: &mut [u8],
    ) -> Packed {
        let bytes = Codec::<T>::bound(self, gather.elements() * width);
        copy(gather, width, src, bytemuck::cast_slice_mut(&mut message[..bytes]));
        Packed { bytes, squared_error: 0.0 }
    }

    fn unpack(
        &self,
        message: &[u8],
        scatter: &Transfer,
        width: usize,
        dst: &mut [T],
    ) -> Result<(), BadMessage> {
        let expected = Codec::<T>::bound(self, scatter.reach() * width);
        if message.len() < expected {
            return Err(BadMessage::Length { found: message.len(), expected });
        }
        copy(scatter, width, bytemuck::cast_slice(&message[..expected]), dst);
        Ok(())
    }
}
