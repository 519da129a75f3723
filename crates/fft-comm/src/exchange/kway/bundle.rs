//! Bundles: several messages, each after a header with its origin, destination and length.
//!
//! Both ends compute from the plan which messages a bundle has, and in which order. Only lengths
//! are new; the rest of a header is for checks.

use fft_core::Slot;

/// Bytes of a header: origin and destination as 32-bit numbers, the length as a 64-bit number,
/// little-endian. Messages begin at multiples of it, aligned for numbers of any type.
pub(super) const HEADER: usize = 16;

/// The length of a message that did not reach the sender of the bundle.
const LOST: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) origin: usize,
    pub(super) destination: usize,
    /// Its bytes, at most.
    pub(super) bound: usize,
}

/// Bytes of a message of at most `bound` bytes in a bundle, with its header.
pub(super) fn room(bound: usize) -> usize {
    HEADER + bound.next_multiple_of(HEADER)
}

/// The first byte and the length of a message in a bundle; `None` when it is lost.
pub(super) type Span = Option<(usize, usize)>;

/// Fills a slot with messages, one after another.
pub(super) struct Writer {
    slot: Slot,
    at: usize,
}

impl Writer {
    /// The slot must have room for all messages.
    pub(super) fn new(slot: Slot) -> Self {
        Self { slot, at: 0 }
    }

    /// Appends a message. `write` gets as many bytes as the bound and returns the length, or `None`
    /// for a lost message.
    pub(super) fn push(&mut self, label: &Label, write: impl FnOnce(&mut [u8]) -> Option<usize>) {
        let (header, content) = self.slot.bytes_mut()[self.at..].split_at_mut(HEADER);
        let len = write(&mut content[..label.bound]);
        header[..4].copy_from_slice(&(label.origin as u32).to_le_bytes());
        header[4..8].copy_from_slice(&(label.destination as u32).to_le_bytes());
        header[8..].copy_from_slice(&len.map_or(LOST, |len| len as u64).to_le_bytes());
        self.at += room(len.unwrap_or(0));
    }

    pub(super) fn finish(mut self) -> Slot {
        self.slot.set_len(self.at);
        self.slot
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) found: String,
    pub(super) expected: String,
}

/// Finds the messages of a bundle and stores their ranges in `spans`. Those from a wrong header on
/// are lost.
pub(super) fn open(
    bytes: &[u8],
    labels: impl Iterator<Item = Label>,
    spans: &mut [Span],
) -> Result<(), Wrong> {
    spans.fill(None);
    let mut at = 0;
    for (label, span) in labels.zip(spans) {
        let len = header(bytes, at, &label)?;
        *span = len.map(|len| (at + HEADER, len));
        at += room(len.unwrap_or(0));
    }
    if bytes.len() == at {
        Ok(())
    } else {
        Err(Wrong { found: format!("{} bytes", bytes.len()), expected: at.to_string() })
    }
}

/// The length in the header at `at`, if the header is right and the bundle long enough.
fn header(bytes: &[u8], at: usize, label: &Label) -> Result<Option<usize>, Wrong> {
    let Label { origin, destination, bound } = *label;
    let ends = |at: usize| Wrong {
        found: format!("{} bytes", bytes.len()),
        expected: format!("at least {at} for the message of rank {origin} to rank {destination}"),
    };
    let (header, rest) = bytes[at.min(bytes.len())..]
        .split_first_chunk::<HEADER>()
        .ok_or_else(|| ends(at.saturating_add(HEADER)))?;
    let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| header[at + i])) as usize;
    let announced = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| header[8 + i]));
    let (from, to, lost) = (number(0), number(4), announced == LOST);
    if (from, to) != (origin, destination) || !lost && announced > bound as u64 {
        return Err(Wrong {
            found: format!("a message of rank {from} to rank {to} of {announced} bytes"),
            expected: format!("rank {origin} to rank {destination} and at most {bound}"),
        });
    }
    // At most the bound, so that it fits.
    let len = if lost { None } else { Some(announced as usize) };
    if rest.len() >= len.unwrap_or(0).next_multiple_of(HEADER) {
        Ok(len)
    } else {
        Err(ends(at + room(len.unwrap_or(0))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: [Label; 3] = [
        Label { origin: 3, destination: 1, bound: 40 },
        Label { origin: 70_000, destination: 2, bound: 5 },
        Label { origin: 0, destination: 9, bound: 0 },
    ];

    fn bundle(lens: [Option<usize>; 3]) -> Slot {
        let mut bundle =
            Writer::new(Slot::new(LABELS.iter().map(|l| room(l.bound)).sum(), 0).unwrap());
        for (label, len) in LABELS.iter().zip(lens) {
            bundle.push(label, |bytes| {
                bytes.fill(label.destination as u8);
                len
            });
        }
        bundle.finish()
    }

    fn opened(bytes: &[u8]) -> (Result<(), Wrong>, [Span; 3]) {
        let mut spans = [Some((1, 1)); 3];
        (open(bytes, LABELS.into_iter(), &mut spans), spans)
    }

    #[test]
    fn what_is_put_in_comes_out() {
        for lens in [[Some(40), Some(5), Some(0)], [Some(17), None, Some(0)], [None; 3]] {
            let bundle = bundle(lens);
            let (result, spans) = opened(bundle.bytes());
            assert_eq!(result, Ok(()));
            for ((label, span), len) in LABELS.iter().zip(spans).zip(lens) {
                assert_eq!(span.map(|(_, len)| len), len);
                let Some((first, len)) = span else { continue };
                assert_eq!(first % HEADER, 0, "numbers of any type may begin there");
                let expected = vec![label.destination as u8; len];
                assert_eq!(bundle.bytes()[first..first + len], expected);
            }
        }
    }

    #[test]
    fn cut_off_at_any_byte_it_is_an_error_and_what_came_before_is_there() {
        let bundle = bundle([Some(40), Some(5), Some(0)]);
        let whole = bundle.bytes();
        for end in 0..whole.len() {
            let (result, spans) = opened(&whole[..end]);
            assert!(result.is_err(), "{end} of {} bytes", whole.len());
            assert_eq!(spans[0].is_some(), end >= room(40));
            assert_eq!(spans[1].is_some(), end >= room(40) + room(5));
        }
        let longer = [whole, &[0]].concat();
        assert!(opened(&longer).0.is_err());
    }

    #[test]
    fn a_wrong_bit_in_a_header_is_an_error() {
        let bundle = bundle([Some(40), None, Some(0)]);
        for bit in 0..8 * HEADER {
            let mut bytes = bundle.bytes().to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (result, spans) = opened(&bytes);
            // A length that is shorter leads to the wrong place for the next header.
            assert!(result.is_err(), "bit {bit}");
            assert!(spans[1].is_none() && spans[2].is_none(), "bit {bit}");
        }
    }

    #[test]
    fn errors_name_both_values() {
        let mut bytes = bundle([Some(40), Some(5), Some(0)]).bytes().to_vec();
        bytes[0] = 4;
        let wrong = opened(&bytes).0.unwrap_err();
        assert_eq!(wrong.found, "a message of rank 4 to rank 1 of 40 bytes");
        assert_eq!(wrong.expected, "rank 3 to rank 1 and at most 40");
        let wrong = opened(&bytes[..3]).0.unwrap_err();
        assert_eq!(wrong.found, "3 bytes");
        assert_eq!(wrong.expected, "at least 16 for the message of rank 3 to rank 1");
    }
}
