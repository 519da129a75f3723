//! Whether all ranks expect what others send to them, before anything is sent.

use crate::{Comm, Error, Reduce, Traffic};

/// Compares the messages of reshapes: how many there are between two ranks, of which chunks, and how long each is or can be, for its
/// sender and for its receiver. Ranks whose plans differ would send more than there is room for, which ends the job with some MPIs,
/// put beyond a message's place, or wait for what never comes. [`Executor::bind`](crate::Executor::bind) does so for all reshapes
/// of a plan, before exchanges are told of them; who uses an [`Exchange`](crate::Exchange) by itself should, too.
///
/// Collective. One reduction of two numbers, O(messages) time; a few more reductions, of as many numbers as there are ranks, only
/// where there is a difference.
///
/// # Errors
/// On every rank the same: [`Error::Disagreement`] on the first message that differs, by reshape, sender, receiver and place among
/// those of the same ends; what the communicator returns.
pub fn matching<'a>(
    comm: &dyn Comm,
    reshapes: impl IntoIterator<Item = &'a Traffic>,
) -> Result<(), Error> {
    let mut all = Vec::new();
    for traffic in reshapes {
        for (parcels, sent) in [(&traffic.sends, true), (&traffic.recvs, false)] {
            let mut before = vec![0; comm.size()];
            all.extend(parcels.iter().map(|parcel| {
                let (own, number) = (comm.rank(), before[parcel.peer]);
                before[parcel.peer] += 1;
                let (from, to) = if sent { (own, parcel.peer) } else { (parcel.peer, own) };
                let what = [parcel.bytes, parcel.chunk, traffic.chunks];
                Known { sent, reshape: traffic.reshape, from, to, number, what }
            }));
        }
    }
    match sums(comm, 1, &all, |_| 0)?[..] {
        [0] => Ok(()),
        _ => Err(difference(comm, all)?),
    }
}

/// What one end knows of a message.
struct Known {
    /// Whether it is the sender.
    sent: bool,
    reshape: usize,
    from: usize,
    to: usize,
    /// Its place among those of the reshape between the same ranks.
    number: usize,
    what: What,
}

/// Bytes, the chunk and how many there are.
type What = [usize; 3];

/// A number for some, of which sums and differences are 0 by chance only: each bit depends on all bits of all of them. (The last step of
/// SplitMix64, by Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, which is one-to-one.)
fn mixed(words: [usize; 7]) -> u64 {
    words.into_iter().fold(0, |before, word| {
        let mut z = (before ^ word as u64).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    })
}

/// What senders know less what receivers know, by place: 0 where they know the same. Collective.
fn sums(
    comm: &dyn Comm,
    places: usize,
    all: &[Known],
    place: impl Fn(&Known) -> usize,
) -> Result<Vec<u64>, Error> {
    let mut mine = vec![0u64; places];
    for known in all {
        let Known { reshape, from, to, number, what: [bytes, chunk, chunks], .. } = *known;
        let message = mixed([reshape, from, to, number, bytes, chunk, chunks]);
        let sum = &mut mine[place(known)];
        *sum = if known.sent { sum.wrapping_add(message) } else { sum.wrapping_sub(message) };
    }
    // In halves, of which sums over all ranks are exact.
    let halves = |sum: u64| [sum as u32, (sum >> 32) as u32].map(f64::from);
    let mut halves: Vec<[f64; 2]> = mine.into_iter().map(halves).collect();
    comm.allreduce(Reduce::Sum, halves.as_flattened_mut())?;
    let whole = |[low, high]: [f64; 2]| (low as u64).wrapping_add((high as u64) << 32);
    Ok(halves.into_iter().map(whole).collect())
}

/// The largest of all ranks' numbers. Collective.
fn most(comm: &dyn Comm, mine: Option<usize>) -> Result<usize, Error> {
    let mut most = [mine.unwrap_or(0) as f64];
    comm.allreduce(Reduce::Max, &mut most)?;
    Ok(most[0] as usize)
}

/// The first message that its ends know differently: all ranks narrow it down together. Collective.
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
    let [_, from, to] = found;
    // What both ends have, and whether they have it, on all ranks.
    let messages = 1 + most(comm, all.iter().map(|known| known.number).max())?;
    let mut lists = vec![[[0.0; 4]; 2]; messages];
    for Known { sent, number, what: [bytes, chunk, chunks], .. } in all {
        let there = [1, bytes, chunk, chunks].map(|n| n as f64);
        lists[number][usize::from(!sent)] = there;
    }
    comm.allreduce(Reduce::Max, lists.as_flattened_mut().as_flattened_mut())?;
    let differs = lists.iter().position(|[sent, expected]| sent != expected);
    let number = differs.expect("of messages that are all the same the sum is 0");
    let ends = lists[number];
    let alike = ends[0][2..] == ends[1][2..] || ends[0][0] != ends[1][0];
    let [a, b] = ends.map(|[there, bytes, chunk, chunks]| match there == 1.0 {
        true if alike => format!("{bytes} bytes"),
        true => format!("{bytes} bytes in chunk {chunk} of {chunks}"),
        false => "none".into(),
    });
    let which = if messages > 1 { format!("message {number}") } else { "message".into() };
    let what = format!("{which} from rank {from} to rank {to}");
    Ok(Error::Disagreement { what, rank_a: from, a, rank_b: to, b })
}
