//! The form of messages of a wire: sizes, places and headers. `docs/wire.md` has the format.

use fft_core::{Precision, Real, Transfer, TransposedWhenRead, Wire};

use super::boxes::TileRecord;
use super::message::{HEADER, MessageRecord};
use super::tiling::{Placement, Rows, SHORT, TileRules, few};
use crate::base::GpuError;

/// The version of the format.
const VERSION: u64 = 2;
/// The alignment of message memory, and of messages that may be raw.
pub(crate) const ALIGN: usize = 16;
/// Bytes of a line of the second-level cache, which merges stores.
const LINE_BYTES: usize = 128;
/// Numbers in a block.
pub(crate) const BLOCK: usize = 64;
/// Real numbers that share a scale of `f32`.
const SPAN: usize = 256;
/// Bytes of the step, and bits of the width of a block, of `tolerance`.
const STEP: usize = 8;
const WIDTH_BITS: usize = 6;

/// Which messages of [`Wire::Tolerance`] the reader should transpose, by bytes of an element.
///
/// Its codes vary in length, so the writer can place the second row of a tile only after all of the
/// first, whereas the reader can compute all places. Only short rows are transposed by the writer.
/// If rows have no whole blocks, most blocks are decoded twice; for elements of 16 bytes that costs
/// more than it saves.
pub const fn transposed_when_read(element: usize) -> TransposedWhenRead {
    let short = if element < 16 { SHORT } else { usize::MAX };
    TransposedWhenRead { block: BLOCK, short, few: few(element) }
}

/// A wire in names of kernels, if there are any. `f32` keeps numbers of single precision as they
/// are.
fn kernel_name(wire: Wire, precision: Precision) -> Option<&'static str> {
    match (wire, precision) {
        (Wire::F32, Precision::F64) => Some("f32"),
        (Wire::Bits(_), _) => Some("bits"),
        (Wire::Tolerance, _) => Some("tolerance"),
        _ => None,
    }
}

/// Whether the host encodes messages of this wire.
pub(crate) fn is_coded_by_host(wire: Wire) -> bool {
    !matches!(wire, Wire::Raw | Wire::F32 | Wire::Bits(_) | Wire::Tolerance)
}

/// The wire of messages on the device: raw, if numbers stay as they are or the host encodes them.
pub(crate) fn on_device<T: Real>(wire: Wire) -> Wire {
    kernel_name(wire, T::PRECISION).map_or(Wire::Raw, |_| wire)
}

/// The form of messages of a wire, of elements of `width` numbers of one precision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) wire: Wire,
    /// The wire in names of kernels.
    pub(crate) name: &'static str,
    precision: Precision,
    pub(crate) width: usize,
}

impl Form {
    pub(crate) fn new<T: Real>(wire: Wire, width: usize) -> Result<Self, GpuError> {
        if !(1..=2).contains(&width) {
            return Err(GpuError::argument("reals per element", width, "1 or 2"));
        }
        let precision = T::PRECISION;
        let name = kernel_name(wire, precision).ok_or(GpuError::Wire(wire))?;
        if wire.check().is_err() {
            return Err(GpuError::argument("the wire", wire, "bits from 2 to 52"));
        }
        Ok(Self { wire, name, precision, width })
    }

    /// The bits of a code of `bits`.
    pub(crate) fn bits(&self) -> u32 {
        match self.wire {
            Wire::Bits(bits) => bits.into(),
            _ => 0,
        }
    }

    /// For `bits`: one over the largest integer, or for few bits over the clipping bound.
    pub(crate) fn part(&self) -> f64 {
        match self.wire {
            Wire::Bits(bits) => {
                1.0 / ((1u64 << (bits - 1)) as f64 - if bits <= 5 { 0.5 } else { 1.0 })
            }
            _ => 0.0,
        }
    }

    /// Blocks of numbers in a tile, of one plane.
    pub(crate) fn tile_groups(&self) -> usize {
        self.rules(false).tile() / BLOCK
    }

    pub(crate) fn element_bytes(&self) -> usize {
        self.width * self.precision.bytes()
    }

    /// Whether the length of a message depends on the data.
    pub(crate) fn varies(&self) -> bool {
        self.wire == Wire::Tolerance
    }

    fn raw(&self, elements: usize) -> usize {
        elements * self.element_bytes()
    }

    /// The smallest and the largest length of a message; equal unless it varies. Any length in
    /// between is possible.
    pub(crate) fn lengths(&self, elements: usize) -> (usize, usize) {
        let raw = self.raw(elements);
        let least = raw.min(HEADER + self.fixed(elements));
        (least, if self.varies() { raw } else { least })
    }

    pub(crate) fn bound(&self, elements: usize) -> usize {
        self.lengths(elements).1
    }

    /// Blocks of a message.
    fn blocks(&self, elements: usize) -> usize {
        match self.wire {
            Wire::F32 => (elements * self.width).div_ceil(BLOCK),
            _ => elements.div_ceil(BLOCK) * self.width,
        }
    }

    /// Bytes of the table in front, without the padding to 8 that only `settle` writes.
    fn filled(&self, elements: usize) -> usize {
        match self.wire {
            Wire::F32 => 2 * (elements * self.width).div_ceil(SPAN),
            Wire::Tolerance => {
                STEP + (WIDTH_BITS * self.blocks(elements)).div_ceil(8).next_multiple_of(8)
            }
            _ => 2 * self.blocks(elements),
        }
    }

    /// Bytes of the body whose places do not depend on the data.
    fn fixed(&self, elements: usize) -> usize {
        let code_bits = if self.wire == Wire::F32 { 32 } else { self.bits() as usize };
        self.filled(elements).next_multiple_of(8) + self.blocks(elements) * code_bits * BLOCK / 8
    }

    /// The alignment of a message: the alignment of codes, or of raw numbers if it may be raw.
    fn align(&self, elements: usize) -> usize {
        if self.lengths(elements).1 == self.raw(elements) { ALIGN } else { HEADER }
    }

    /// The first place from this byte on at which the codes of a message begin a line of memory. A
    /// message that may be raw is 8 bytes off.
    pub(crate) fn place(&self, elements: usize, from: usize) -> usize {
        let (before, align) =
            (HEADER + self.filled(elements).next_multiple_of(8), self.align(elements));
        let behind = |place: usize| (place + before) % LINE_BYTES;
        let mut places = (from.next_multiple_of(align)..).step_by(align);
        places.find(|place| behind(*place) < align).expect("one in a line")
    }

    /// The rules of tiles, to be sent or received: whole lines of the array where possible.
    fn rules(&self, sends: bool) -> TileRules {
        let quantum = if self.wire == Wire::F32 { SPAN / self.width } else { BLOCK };
        TileRules {
            quantum,
            rows: match (self.wire, sends) {
                // The place of a second row is unknown before all codes between are measured.
                (Wire::Tolerance, true) => Rows::Folded,
                (Wire::Tolerance, false) => Rows::Twice,
                (_, true) => Rows::Once,
                // Other messages come in the receiver's order.
                (_, false) => Rows::One,
            },
            bytes: self.element_bytes(),
        }
    }

    /// A message at a place in memory, as item number `item`, and its tiles.
    pub(crate) fn message(
        &self,
        part: &Transfer,
        place: usize,
        sends: bool,
        (item, tiles): (u32, &mut Vec<TileRecord>),
    ) -> Result<MessageRecord, GpuError> {
        let elements = part.elements();
        GpuError::aligned("the place of a message", place as u64, self.align(elements))?;
        let placement = Placement::new(part, 0, 0);
        // Kernels treat the array as the source.
        let placement = if sends { placement } else { placement.reversed() };
        let tiled = placement.tiled(&self.rules(sends), item, tiles)?;
        let kind = self.width << 4 | self.precision.bytes();
        let code = self.wire.code();
        let head = VERSION | code >> 8 << 8 | (code & 0xFF) << 16 | (kind as u64) << 24;
        let filled = self.filled(elements);
        Ok(MessageRecord {
            tiled,
            place: place as u64,
            room: self.raw(elements) as u64,
            fixed: self.fixed(elements) as u64,
            table: filled.next_multiple_of(8) as u64,
            filled: filled as u64,
            head: head | u64::from(elements as u32) << 32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRES: [Wire; 6] =
        [Wire::F32, Wire::Bits(2), Wire::Bits(16), Wire::Bits(31), Wire::Bits(52), Wire::Tolerance];

    /// Compares with a message that the CPU makes.
    fn same_form<T: Real>(wire: Wire, width: usize, elements: usize) {
        let codec = wire.codec::<T>();
        let Ok(form) = Form::new::<T>(wire, width) else {
            assert_eq!(codec.fixed(elements, width), Some(codec.bound(elements * width)), "{wire}");
            return;
        };
        let part = Transfer::run_of(elements);
        let message = form.message(&part, 64, true, (0, &mut Vec::new())).unwrap();
        let mut bytes = vec![0; codec.bound(elements * width)];
        assert_eq!(message.room as usize, bytes.len());
        let x: Vec<T> = (0..elements * width).map(|i| T::of((i % 50) as f64)).collect();
        let found = codec.pack(&x, &part, width, 0.5, &mut bytes).bytes;
        let what = format!("{wire} {elements}x{width}");
        let (least, most) = form.lengths(elements);
        let fixed = codec.fixed(elements, width);
        assert_eq!(fixed, (!form.varies()).then_some(least), "{what}");
        assert_eq!(most, fixed.unwrap_or(bytes.len()), "{what}");
        assert!((least..=most).contains(&found), "{what}: {found}");
        if found < bytes.len() {
            let head: u64 = bytemuck::pod_read_unaligned(&bytes[..HEADER]);
            assert_eq!(message.head, head, "{what}");
        }
    }

    #[test]
    fn sizes_and_heads_are_those_of_the_codecs() {
        for wire in WIRES {
            for elements in [1, 63, 64, 65, 127, 128, 129, 1000, 4096] {
                for width in [1, 2] {
                    same_form::<f32>(wire, width, elements);
                    same_form::<f64>(wire, width, elements);
                }
            }
        }
    }

    #[test]
    fn places_put_codes_at_lines_of_memory() {
        for wire in WIRES {
            let form = Form::new::<f64>(wire, 2).unwrap();
            for (elements, from) in [(1, 0), (100, 1), (4096, 96), (5000, 4096)] {
                let place = form.place(elements, from);
                assert!(place >= from && place < from + LINE_BYTES + ALIGN, "{wire}: {place}");
                let message = form
                    .message(&Transfer::run_of(elements), place, true, (0, &mut Vec::new()))
                    .unwrap();
                let codes = place + HEADER + message.table as usize;
                assert!(codes % LINE_BYTES < form.align(elements), "{wire}: {codes}");
            }
        }
    }

    #[test]
    fn what_cannot_be_had_is_an_error() {
        for wire in [Wire::Raw, Wire::F16, Wire::Bf16, Wire::Mantissa(20), Wire::Lossless] {
            assert_eq!(Form::new::<f64>(wire, 1).unwrap_err(), GpuError::Wire(wire));
            assert_eq!(on_device::<f64>(wire), Wire::Raw);
            assert_eq!(is_coded_by_host(wire), wire != Wire::Raw, "{wire}");
        }
        for wire in WIRES {
            let single = if wire == Wire::F32 { Wire::Raw } else { wire };
            assert_eq!((on_device::<f64>(wire), on_device::<f32>(wire)), (wire, single));
            assert!(!is_coded_by_host(wire), "{wire}");
        }
        let error = Form::new::<f64>(Wire::Bits(1), 2).unwrap_err().to_string();
        assert!(error.contains("bits:1"), "{error}");
        let error = Form::new::<f32>(Wire::Bits(16), 3).unwrap_err().to_string();
        assert_eq!(error, "reals per element: found 3, expected 1 or 2");
        // Five numbers do not shrink.
        let form = Form::new::<f32>(Wire::Bits(16), 2).unwrap();
        let error = form
            .message(&Transfer::run_of(5), 8, true, (0, &mut Vec::new()))
            .unwrap_err()
            .to_string();
        assert_eq!(error, "the place of a message: found 8, expected a multiple of 16 bytes");
    }
}
