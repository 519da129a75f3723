//! Transforms that share one pass over memory: their data must be in cache together.

use crate::base::cache_sizes::{BLOCK_BYTES, CHUNK_RUN_BYTES, LINE_BYTES};
use crate::geometry::Layout;
use crate::recipe::Node;

/// Bytes of the smallest box with whole lines along `axes` and `run` bytes of each row.
fn tile_bytes(layout: &Layout, axes: &[usize], element: usize, run: usize) -> usize {
    let row = match axes.contains(&layout.order().contiguous()) {
        true => element,
        false => element.max(run),
    };
    axes.iter().map(|axis| layout.grid().len(*axis)).product::<usize>() * row
}

/// Whether tiles with whole lines along `axes`, gathered from all ranks, fit into cache.
pub(crate) fn fit_in_cache(layout: &Layout, axes: &[usize], element: usize) -> bool {
    tile_bytes(layout, axes, element, LINE_BYTES) <= BLOCK_BYTES
}

/// The longest suffix of `axes`, in order of transforms, that fits into a chunk and into cache.
pub(crate) fn fusable_suffix(
    layout: &Layout,
    axes: &[usize],
    element: usize,
    most: usize,
) -> Vec<usize> {
    let fits = |first: &usize| {
        let bytes = tile_bytes(layout, &axes[*first..], element, CHUNK_RUN_BYTES);
        bytes <= most.min(BLOCK_BYTES)
    };
    let first = (0..axes.len()).find(fits).unwrap_or(axes.len().saturating_sub(1));
    axes[first..].to_vec()
}

/// Whether local blocks with whole lines along `axes` fit into cache on every rank.
pub(crate) fn fit_in_block(ends: [&Node; 2], axes: &[usize], real_bytes: usize) -> bool {
    ends.iter().all(|node| {
        let order = node.layout.order();
        let outermost = order.iter().position(|axis| axes.contains(axis)).unwrap_or(order.len());
        let inner = &order[outermost..];
        node.layout.bricks().iter().all(|brick| {
            let points: usize = inner.iter().map(|axis| brick.len(*axis)).product();
            points * node.width() * real_bytes <= BLOCK_BYTES
        })
    })
}
