//! Batches of coded messages, and the buffers of their kernels.

use cudarc::driver::CudaSlice;
use fft_core::Transfer;

use super::batch::{Batch, Reach};
use super::boxes::Items;
use super::form::{ALIGN, Form};
use super::message::MessageRecord;
use crate::base::GpuError;

/// A message: the box of the array that it contains, and its place.
#[derive(Clone, Copy, Debug)]
pub struct PlacedTransfer<'a> {
    /// The box, as [`fft_core::Codec::pack`] or [`fft_core::Codec::unpack`] takes it.
    pub transfer: &'a Transfer,
    /// The first byte in the memory of messages: a multiple of 8, or of 16 if the message may be
    /// raw. It has as many bytes as [`fft_core::Codec::fixed`] or [`fft_core::Codec::bound`] says.
    pub place: usize,
}

/// Which messages are raw, as `kernels/settle.cu` reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
pub(crate) enum RawMessages {
    /// None, whatever the data.
    None,
    /// Some perhaps.
    Some,
    /// All.
    All,
}

impl RawMessages {
    /// The value that holds for any step.
    pub(crate) fn of(form: &Form, messages: &[MessageRecord]) -> Self {
        let some = form.varies() || messages.iter().any(MessageRecord::never_shrinks);
        if some { Self::Some } else { Self::None }
    }

    /// The answer for this step.
    pub(crate) fn with(self, form: &Form, step: f64) -> Self {
        let unset = form.varies() && !(step.is_normal() && step > 0.0);
        if unset { Self::All } else { self }
    }
}

/// Messages and their tiles, listed along the array. Encoders list tiles by number if tiles have
/// rows, which is faster, and for `tolerance`, because each tile waits for the ones before it.
pub(crate) fn messages(
    form: &Form,
    parts: &[PlacedTransfer<'_>],
    sends: bool,
) -> Result<Items<MessageRecord>, GpuError> {
    let mut all = Items::new();
    for PlacedTransfer { transfer, place } in parts {
        all.add(|item, tiles| form.message(transfer, *place, sends, (item, tiles)))?;
    }
    let transposes = all.items.iter().any(|one| one.tiled.transposes());
    let numbered = sends && (form.varies() || transposes);
    Ok(if numbered { all } else { all.along(|one, tile| one.tiled.source_of(tile)) })
}

/// The part of the message memory that is used.
pub(crate) fn slots(form: &Form, messages: &[MessageRecord]) -> Result<Reach, GpuError> {
    let mut order: Vec<usize> = (0..messages.len()).collect();
    order.sort_by_key(|&i| messages[i].place);
    let begin = |i: usize| messages[i].place as usize;
    let end = |i: usize| begin(i) + form.bound(messages[i].tiled.elements());
    for pair in order.windows(2) {
        let (first, second) = (pair[0], pair[1]);
        if begin(second) < end(first) {
            let found = format!("message {second} at byte {}", begin(second));
            let expected = format!("{} or more, behind message {first}", end(first));
            return Err(GpuError::argument("the place of a message", found, expected));
        }
    }
    Ok(Reach { bytes: order.last().map_or(0, |&last| end(last)), align: ALIGN })
}

pub(crate) struct EncodeBuffers {
    pub(crate) batch: Batch,
    pub(crate) states: CudaSlice<u8>,
    pub(crate) errors: CudaSlice<f64>,
    pub(crate) queue: CudaSlice<u64>,
}

pub(crate) struct DecodeBuffers {
    pub(crate) batch: Batch,
    pub(crate) states: CudaSlice<u8>,
    pub(crate) queue: CudaSlice<u64>,
    /// For `tolerance`: where the codes of each tile begin.
    pub(crate) begins: CudaSlice<u64>,
    /// Where the codes of each group of elements begin, if not all tiles are runs of their
    /// messages.
    pub(crate) groups: Option<CudaSlice<u32>>,
    /// Bytes of each message.
    pub(crate) lengths: CudaSlice<u64>,
}

impl EncodeBuffers {
    pub(crate) fn memory(&self) -> usize {
        let Self { batch, states, errors, queue } = self;
        batch.memory() + states.num_bytes() + errors.num_bytes() + queue.num_bytes()
    }
}

impl DecodeBuffers {
    pub(crate) fn memory(&self) -> usize {
        let Self { batch, states, queue, begins, groups, lengths } = self;
        let groups = groups.as_ref().map_or(0, CudaSlice::num_bytes);
        let told = lengths.num_bytes() + states.num_bytes() + groups;
        batch.memory() + told + queue.num_bytes() + begins.num_bytes()
    }
}
#[cfg(test)]
mod tests {
    use fft_core::{Brick, Placed, Wire};

    use super::*;
    use crate::abi::boxes::TileRecord;

    /// Whether tiles of the halves of rows of an array are listed as they are numbered; and along
    /// the array.
    fn listed(wire: Wire, order: [usize; 3], sends: bool) -> [bool; 2] {
        let shape = [4, 64, 512];
        let array = Placed::new(Brick { lo: [0; 3], hi: shape }, [0, 1, 2], 1);
        let half = |i: usize| {
            let brick = Brick { lo: [0, 0, 256 * i], hi: [4, 64, 256 * (i + 1)] };
            let message = Placed::new(brick, order, 1);
            let [from, to] = if sends { [&array, &message] } else { [&message, &array] };
            Transfer::new(&brick.into(), 0..1, from, to)
        };
        let halves = [half(0), half(1)];
        let form = Form::new::<f64>(wire, 2).unwrap();
        let parts = [(&halves[0], 0), (&halves[1], 1 << 21)];
        let parts = parts.map(|(transfer, place)| PlacedTransfer { transfer, place });
        let all = messages(&form, &parts, sends).unwrap();
        let place = |tile: &TileRecord| all.items[tile.item as usize].tiled.source_of(tile);
        [all.tiles.is_sorted_by_key(|tile| tile.number), all.tiles.is_sorted_by_key(place)]
    }

    #[test]
    fn messages_are_made_along_the_array_unless_they_turn_or_wait_and_read_along_it() {
        let (as_it_is, transposed) = ([0, 1, 2], [0, 2, 1]);
        assert_eq!(listed(Wire::Bits(16), as_it_is, true), [false, true]);
        assert_eq!(listed(Wire::Bits(16), transposed, true), [true, false]);
        assert_eq!(listed(Wire::Tolerance, as_it_is, true), [true, false]);
        for (wire, order) in [(Wire::Bits(16), transposed), (Wire::Tolerance, as_it_is)] {
            assert_eq!(listed(wire, order, false), [false, true], "{wire}");
        }
    }
}
