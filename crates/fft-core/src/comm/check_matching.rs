//! Matching send and receive lists of all ranks, before anything is sent.

use super::comm::{Comm, Reduce};
use super::exchange::MessagePlan;
use crate::base::Error;

/// Checks that the receivers of all messages expect what their senders send.
///
/// It compares chunks, numbers and lengths of messages. A mismatch would overflow buffers, abort
/// some MPIs or wait forever. [`Executor::bind`](crate::Executor::bind) calls it for all reshapes
/// of a plan; if you use an [`Exchanger`](crate::Exchanger) directly, call it, too.
///
/// Collective: a reduction of two numbers and O(messages + reshapes · ranks) time.
///
/// # Errors
/// [`Error::Disagreement`] on every rank, of the first mismatch by reshape, sender and receiver.
pub fn matching<'a>(
    comm: &dyn Comm,
    reshapes: impl IntoIterator<Item = &'a MessagePlan>,
) -> Result<(), Error> {
    let (rank, size) = (comm.rank(), comm.size());
    let mut all = Vec::new();
    for (reshape, message_plan) in reshapes.into_iter().enumerate() {
        // Values of a whole reshape are compared between each rank and the next.
        let way = usize::from(message_plan.shorter) | usize::from(message_plan.buffers_all) << 1;
        let what = [message_plan.reshape, message_plan.chunks, way];
        let next =
            Known { sent: true, reshape, from: rank, to: (rank + 1) % size, number: 0, what };
        let last = Known { sent: false, from: (rank + size - 1) % size, to: rank, ..next };
        all.extend([next, last]);
        for (specs, sent) in [(&message_plan.sends, true), (&message_plan.recvs, false)] {
            let mut before = vec![0; size];
            all.extend(specs.iter().map(|spec| {
                before[spec.peer] += 1;
                let (from, to) = if sent { (rank, spec.peer) } else { (spec.peer, rank) };
                let what = [spec.bytes, spec.chunk, 0];
                Known { sent, reshape, from, to, number: before[spec.peer], what }
            }));
        }
    }
    match sums(comm, 1, &all, |_| 0)?[..] {
        [0] => Ok(()),
        _ => Err(difference(comm, all)?),
    }
}

/// One end's view of a message. A whole reshape counts as a message to the next rank.
#[derive(Clone, Copy)]
struct Known {
    /// Whether this is the sender's view.
    sent: bool,
    reshape: usize,
    from: usize,
    to: usize,
    /// The number of the message among all between the same ranks, from 1; 0 for the whole reshape.
    number: usize,
    what: What,
}

/// Bytes and chunk; for a whole reshape its number, its chunks and its flags.
type What = [usize; 3];

/// A hash of seven words by the last step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). It is a
/// bijection that mixes all bits, so that sums of hashes cancel by chance only.
fn mixed(words: [usize; 7]) -> u64 {
    words.into_iter().fold(0, |before, word| {
        let mut z = (before ^ word as u64).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    })
}

/// For each place, the hashes of senders minus the hashes of receivers: 0 if they match.
/// Collective.
fn sums(
    comm: &dyn Comm,
    places: usize,
    all: &[Known],
    place: impl Fn(&Known) -> usize,
) -> Result<Vec<u64>, Error> {
    let mut mine = vec![0u64; places];
    for known in all {
        let Known { reshape, from, to, number, what: [a, b, c], .. } = *known;
        let message = mixed([reshape, from, to, number, a, b, c]);
        let sum = &mut mine[place(known)];
        *sum = if known.sent { sum.wrapping_add(message) } else { sum.wrapping_sub(message) };
    }
    // Halves of 32 bits, whose sums over all ranks are exact.
    let halves = |sum: u64| [sum as u32, (sum >> 32) as u32].map(f64::from);
    let mut halves: Vec<[f64; 2]> = mine.into_iter().map(halves).collect();
    comm.allreduce(Reduce::Sum, halves.as_flattened_mut())?;
    let whole = |[low, high]: [f64; 2]| (low as u64).wrapping_add((high as u64) << 32);
    Ok(halves.into_iter().map(whole).collect())
}

/// The maximum over all ranks. Collective.
fn most(comm: &dyn Comm, mine: Option<usize>) -> Result<usize, Error> {
    let mut most = [mine.unwrap_or(0) as f64];
    comm.allreduce(Reduce::Max, &mut most)?;
    Ok(most[0] as usize)
}

/// Finds the first mismatch by reshape, then sender, then receiver. Collective.
fn difference(comm: &dyn Comm, mut all: Vec<Known>) -> Result<Error, Error> {
    let reshapes = 1 + most(comm, all.iter().map(|known| known.reshape).max())?;
    let by: [fn(&Known) -> usize; 3] =
        [|known| known.reshape, |known| known.from, |known| known.to];
    let mut found = [reshapes, comm.size(), comm.size()];
    for (place, found) in by.into_iter().zip(&mut found) {
        let sums = sums(comm, *found, &all, place)?;
        let differs = sums.iter().position(|sum| *sum != 0);
        *found = differs.expect("of a sum that is not 0 some part is not");
        all.retain(|known| place(known) == *found);
    }
    let [reshape, from, to] = found;
    // The views of both ends, on all ranks.
    let last = most(comm, all.iter().map(|known| known.number).max())?;
    let mut lists = vec![[[0.0; 4]; 2]; last + 1];
    for Known { sent, number, what: [a, b, c], .. } in all {
        lists[number][usize::from(!sent)] = [1, a, b, c].map(|n| n as f64);
    }
    comm.allreduce(Reduce::Max, lists.as_flattened_mut().as_flattened_mut())?;
    let differs = lists.iter().position(|[sent, expected]| sent != expected);
    let number = differs.expect("of messages that are all the same the sum is 0");
    let ends = lists[number];
    let both = ends[0][0] == ends[1][0];
    let [a, b] = ends.map(|[there, a, b, c]| match number {
        _ if there == 0.0 => "none".into(),
        0 => {
            let way = ["", ", shorter or not", ", at once", ", shorter or not, at once"];
            format!("{b} chunks{} (number {a})", way[c as usize])
        }
        _ if both && ends[0][2] != ends[1][2] => format!("{a} bytes in chunk {b}"),
        _ => format!("{a} bytes"),
    });
    let what = match number {
        0 => format!("messages of reshape {reshape}"),
        1 if last == 1 => format!("message from rank {from} to rank {to}"),
        _ => format!("message {number} from rank {from} to rank {to}"),
    };
    Ok(Error::Disagreement { what, rank_a: from, a, rank_b: to, b })
}
