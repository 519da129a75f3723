//! Equal values on all ranks.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::agreement::prefix;
use super::comm::Comm;
use crate::base::Error;

/// Bytes of a value that an error shows.
const TEXT: usize = 1024;

/// Compares named values over all ranks, which pass the same names in the same order.
///
/// Collective: one allgather of a hash per value. Values are sent only if they differ.
///
/// # Errors
/// [`Error::Disagreement`] on every rank, of rank 0 and the lowest rank that differs.
pub fn assert_same(comm: &dyn Comm, what: &[(&'static str, String)]) -> Result<(), Error> {
    let hash = |(_, value): &(_, String)| {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    };
    let mine: Vec<u64> = what.iter().map(hash).collect();
    let mut all = vec![0u64; mine.len() * comm.size()];
    comm.allgather(bytemuck::cast_slice(&mine), bytemuck::cast_slice_mut(&mut all))?;
    let Some(at) = (0..all.len()).find(|at| all[*at] != all[at % mine.len()]) else {
        return Ok(());
    };
    let (rank_b, entry) = (at / mine.len(), at % mine.len());
    let (name, value) = &what[entry];
    let value = prefix(value, TEXT);
    let mut text = [0; TEXT];
    text[..value.len()].copy_from_slice(value.as_bytes());
    let mut texts = vec![0; TEXT * comm.size()];
    comm.allgather(&text, &mut texts)?;
    let [a, b] = [0, rank_b].map(|rank| {
        let text = String::from_utf8_lossy(&texts[rank * TEXT..][..TEXT]);
        text.trim_end_matches('\0').to_owned()
    });
    Err(Error::Disagreement { what: (*name).to_owned(), rank_a: 0, a, rank_b, b })
}
