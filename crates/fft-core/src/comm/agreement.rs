//! Agreement of all ranks on errors.

use super::comm::{Comm, Reduce};
use super::node_memory::NodeMemory;
use crate::base::{Error, ErrorKind};

type Result<T, E = Error> = std::result::Result<T, E>;

/// Bytes of an error on the wire.
const TEXT: usize = 1024;

/// Makes a result equal on all ranks: `mine` if all have `Ok`, otherwise [`Error::OnRank`].
///
/// Collective: one small allreduce, or [`FailureDetector::sync`](super::FailureDetector::sync),
/// when all ranks succeed. Any fallible step between two collectives needs it, because a rank that
/// returned early would leave the others waiting.
///
/// # Errors
/// The error of the lowest failing rank; [`Error::Left`] when a rank has dropped the communicator.
pub fn agree<T>(comm: &dyn Comm, mine: Result<T>) -> Result<T> {
    if let Some(detector) = comm.failure_detector()
        && detector.sync(mine.is_ok())?
    {
        return mine;
    }
    let least = |value: &mut [f64]| comm.allreduce(Reduce::Min, value);
    agree_by((comm.rank(), comm.size()), least, |mine, all| comm.allgather(mine, all), mine)
}

/// [`agree`], through shared memory if all ranks share it and succeed.
///
/// # Errors
/// The errors of [`agree`] and [`NodeMemory::sync`].
pub fn agree_by_memory(
    comm: &dyn Comm,
    node_memory: Option<&mut (dyn NodeMemory + 'static)>,
    mine: Result<(), Error>,
) -> Result<(), Error> {
    match node_memory.map(|node_memory| node_memory.sync(mine.is_ok())).transpose()? {
        Some(true) => mine,
        _ => agree(comm, mine),
    }
}

/// Which facts hold on every rank. Collective; the same result on every rank.
///
/// # Errors
/// The errors of [`Comm::allreduce`].
pub fn on_all_ranks<const N: usize>(comm: &dyn Comm, facts: [bool; N]) -> Result<[bool; N]> {
    reduced(comm, Reduce::Min, facts)
}

/// Which facts hold on at least one rank. Collective; the same result on every rank.
///
/// # Errors
/// The errors of [`Comm::allreduce`].
pub fn on_any_rank<const N: usize>(comm: &dyn Comm, facts: [bool; N]) -> Result<[bool; N]> {
    reduced(comm, Reduce::Max, facts)
}

fn reduced<const N: usize>(comm: &dyn Comm, by: Reduce, facts: [bool; N]) -> Result<[bool; N]> {
    let mut values = facts.map(f64::from);
    comm.allreduce(by, &mut values)?;
    Ok(values.map(|value| value == 1.0))
}

/// [`agree`] with other collectives: `ranks` is the rank and their number, `least` a minimum.
///
/// # Errors
/// The error of the lowest failing rank; the errors of the collectives.
#[doc(hidden)]
pub fn agree_by<T>(
    ranks: (usize, usize),
    mut least: impl FnMut(&mut [f64]) -> Result<()>,
    mut allgather: impl FnMut(&[u8], &mut [u8]) -> Result<()>,
    mine: Result<T>,
) -> Result<T> {
    lowest_error(ranks, &mut least, &mut allgather, mine.as_ref().err())?;
    mine
}

type Allgather<'a> = &'a mut dyn FnMut(&[u8], &mut [u8]) -> Result<()>;

/// The error of the lowest failing rank. Not generic, so that it is compiled once.
fn lowest_error(
    (own, size): (usize, usize),
    least: &mut dyn FnMut(&mut [f64]) -> Result<()>,
    allgather: Allgather<'_>,
    mine: Option<&Error>,
) -> Result<()> {
    let mut lowest = [if mine.is_none() { size } else { own } as f64];
    least(&mut lowest)?;
    let rank = lowest[0] as usize;
    if rank == size {
        return Ok(());
    }
    let mut text = [0u8; TEXT];
    if let Some(error) = mine {
        // An agreed error keeps its rank.
        let (of, said) = match error {
            Error::OnRank { rank, message, .. } => (*rank, message.clone()),
            other => (own, other.to_string()),
        };
        let said =
            if said.len() > TEXT - 11 { format!("{}...", prefix(&said, TEXT - 14)) } else { said };
        let bytes = said.as_bytes();
        text[0] = error.kind() as u8;
        text[1..3].copy_from_slice(&(bytes.len() as u16).to_le_bytes());
        text[3..11].copy_from_slice(&(of as u64).to_le_bytes());
        text[11..11 + bytes.len()].copy_from_slice(bytes);
    }
    let mut all = vec![0u8; TEXT * size];
    allgather(&text, &mut all)?;
    let text = &all[rank * TEXT..][..TEXT];
    let len = usize::from(u16::from_le_bytes([text[1], text[2]]));
    let mut of = [0; 8];
    of.copy_from_slice(&text[3..11]);
    let rank = u64::from_le_bytes(of) as usize;
    let message = String::from_utf8_lossy(&text[11..11 + len]).into_owned();
    Err(Error::OnRank { rank, kind: ErrorKind::from_code(text[0]), message })
}

/// The longest prefix of a text that fits into `bytes` bytes.
pub(super) fn prefix(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}
