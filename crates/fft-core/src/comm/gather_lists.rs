//! Lists of all ranks, of any lengths.

use bytemuck::Pod;

use super::comm::Comm;
use crate::base::Error;

/// Gathers a list from each rank. Collective: two allgathers, and memory as if each list were as
/// long as the longest.
///
/// # Errors
/// When the transport fails.
pub fn gather_lists<N: Pod>(comm: &dyn Comm, mine: &[N]) -> Result<Vec<Vec<N>>, Error> {
    let mut lens = vec![0u64; comm.size()];
    let len = mine.len() as u64;
    comm.allgather(bytemuck::bytes_of(&len), bytemuck::cast_slice_mut(&mut lens))?;
    let most = lens.iter().max().map_or(1, |most| (*most).max(1) as usize);
    let mut padded = mine.to_vec();
    padded.resize(most, N::zeroed());
    let mut all = vec![N::zeroed(); most * comm.size()];
    comm.allgather(bytemuck::cast_slice(&padded), bytemuck::cast_slice_mut(&mut all))?;
    let lists = all.chunks_exact(most).zip(lens);
    Ok(lists.map(|(list, len)| list[..len as usize].to_vec()).collect())
}
