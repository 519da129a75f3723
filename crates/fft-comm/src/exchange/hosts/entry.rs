//! Entries of a bundle: one for each message, before the messages.

/// Bytes of an entry: origin and destination as 32-bit numbers, then chunk, length and offset in
/// the bundle as 64-bit numbers, little-endian.
pub(super) const ENTRY: usize = 32;

/// Messages begin at multiples of it, aligned for numbers of any type.
const ALIGN: usize = 16;

/// The length of a message whose origin has gone.
const LOST: u64 = u64::MAX;

/// Which message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) origin: usize,
    pub(super) destination: usize,
    pub(super) chunk: usize,
    /// Its bytes, at most.
    pub(super) bound: usize,
}

/// Bytes that a message of `bytes` bytes takes in a bundle.
pub(super) fn room(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN)
}

/// Writes an entry of a message with this length and offset.
pub(super) fn write(entry: &mut [u8], label: &Label, len: usize, offset: usize) {
    entry[..4].copy_from_slice(&(label.origin as u32).to_le_bytes());
    entry[4..8].copy_from_slice(&(label.destination as u32).to_le_bytes());
    let words = [label.chunk, len, offset];
    for (place, word) in entry[8..ENTRY].chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&(word as u64).to_le_bytes());
    }
}

/// Marks the messages of these entries as lost.
pub(super) fn lose(entries: &mut [u8]) {
    entries
        .chunks_exact_mut(ENTRY)
        .for_each(|entry| entry[16..24].copy_from_slice(&LOST.to_le_bytes()));
}

/// Reduces the offsets of these entries.
pub(super) fn advance(entries: &mut [u8], by: usize) {
    for entry in entries.chunks_exact_mut(ENTRY) {
        let offset = word(entry, 24).wrapping_sub(by as u64);
        entry[24..].copy_from_slice(&offset.to_le_bytes());
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) found: String,
    pub(super) expected: String,
}

/// The message of the entry at `at` of a bundle; `None` when it is lost.
pub(super) fn read<'m>(
    bundle: &'m [u8],
    at: usize,
    label: &Label,
) -> Result<Option<&'m [u8]>, Wrong> {
    let Label { origin, destination, chunk, bound } = *label;
    let Some(entry) = bundle.get(at..at + ENTRY) else {
        let expected = format!("at least {} for {}", at + ENTRY, shown(origin, destination, chunk));
        return Err(Wrong { found: format!("{} bytes", bundle.len()), expected });
    };
    let number = |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|i| entry[at + i])));
    let (from, to, of) = (number(0), number(4), word(entry, 8));
    let (len, offset) = (word(entry, 16), word(entry, 24));
    let is_it = [from, to, of] == [origin, destination, chunk].map(|it| it as u64);
    // The rest may be of an earlier run, or of none.
    if len == LOST {
        return Ok(None);
    }
    let message = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
    let message = message.and_then(|(offset, len)| bundle.get(offset..offset.checked_add(len)?));
    match message.filter(|message| is_it && message.len() <= bound) {
        Some(message) if offset.is_multiple_of(ALIGN as u64) => Ok(Some(message)),
        _ => Err(Wrong {
            found: format!(
                "{} of {len} bytes at {offset} of {}",
                shown(from, to, of),
                bundle.len()
            ),
            expected: format!("{} of at most {bound}", shown(origin, destination, chunk)),
        }),
    }
}

fn shown<N: std::fmt::Display>(origin: N, destination: N, chunk: N) -> String {
    format!("chunk {chunk} of rank {origin} to rank {destination}")
}

fn word(entry: &[u8], at: usize) -> u64 {
    u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| entry[at + i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: Label = Label { origin: 70_000, destination: 2, chunk: 5, bound: 40 };

    fn bundle() -> Vec<u8> {
        let mut bundle = vec![7; 2 * ENTRY + room(40)];
        write(&mut bundle[ENTRY..], &LABEL, 33, 2 * ENTRY);
        bundle
    }

    #[test]
    fn what_is_written_is_read() {
        let bundle = bundle();
        assert_eq!(read(&bundle, ENTRY, &LABEL), Ok(Some(&[7; 33][..])));
        for label in [
            Label { origin: 1, ..LABEL },
            Label { destination: 1, ..LABEL },
            Label { chunk: 1, ..LABEL },
            Label { bound: 32, ..LABEL },
        ] {
            assert!(read(&bundle, ENTRY, &label).is_err(), "{label:?}");
        }
    }

    #[test]
    fn what_is_moved_is_read_and_what_is_lost_is_known() {
        let mut bundle = bundle();
        bundle.extend([9; 16]);
        bundle.copy_within(2 * ENTRY..2 * ENTRY + 48, 2 * ENTRY + 16);
        write(&mut bundle[ENTRY..], &LABEL, 33, 2 * ENTRY + 16);
        bundle[2 * ENTRY..2 * ENTRY + 16].fill(9);
        bundle.copy_within(2 * ENTRY + 16.., 2 * ENTRY);
        advance(&mut bundle[ENTRY..2 * ENTRY], 16);
        assert_eq!(read(&bundle, ENTRY, &LABEL), Ok(Some(&[7; 33][..])));
        lose(&mut bundle[ENTRY..2 * ENTRY]);
        assert_eq!(read(&bundle, ENTRY, &LABEL), Ok(None));
    }

    #[test]
    fn cut_off_at_any_byte_it_is_an_error() {
        let bundle = bundle();
        for end in 0..2 * ENTRY + 33 {
            assert!(read(&bundle[..end], ENTRY, &LABEL).is_err(), "{end}");
        }
    }

    #[test]
    fn no_bit_of_an_entry_leads_astray() {
        for bit in 0..8 * ENTRY {
            let mut bundle = bundle();
            bundle[ENTRY + bit / 8] ^= 1 << (bit % 8);
            // The message that was read lies within the bundle and is no longer than the bound.
            if let Ok(Some(message)) = read(&bundle, ENTRY, &LABEL) {
                assert!(message.len() <= LABEL.bound && bit >= 128, "bit {bit}");
            }
        }
    }
}
