//! Transforms that share one pass over memory: their data must be in cache together.

use crate::base::cache_sizes::{BLOCK_BYTES, CHUNK_RUN_BYTES, LINE_BYTES};
use crate::geometry::{DynGrid, Layout, PerAxis};
use crate::recipe::Node;

/// Bytes of the smallest box with whole lines along `axes` and `run` bytes of each row.
pub(crate) fn tile_bytes(
    grid: &DynGrid,
    order: &PerAxis<usize>,
    axes: &[usize],
    element: usize,
    run: usize,
) -> usize {
    let row = if axes.contains(&order.contiguous()) { element } else { element.max(run) };
    axes.iter().fold(row, |bytes, axis| bytes.saturating_mul(grid.len(*axis)))
}

/// The axes of the dense blocks with whole lines along `axes`.
pub(crate) fn block_axes<'a>(order: &'a PerAxis<usize>, axes: &[usize]) -> &'a [usize] {
    let outermost = order.iter().position(|axis| axes.contains(axis)).unwrap_or(order.len());
    &order[outermost..]
}

/// Whether tiles with whole lines along `axes`, gathered from all ranks, fit into cache.
pub(crate) fn fit_in_cache(layout: &Layout, axes: &[usize], element: usize) -> bool {
    tile_bytes(&layout.grid(), &layout.order(), axes, element, LINE_BYTES) <= BLOCK_BYTES
}

/// The longest suffix of `axes`, in order of transforms, that fits into a chunk and into cache.
pub(crate) fn fusable_suffix(
    layout: &Layout,
    axes: &[usize],
    element: usize,
    most: usize,
) -> Vec<usize> {
    let fits = |first: &usize| {
        let (grid, order) = (layout.grid(), layout.order());
        let bytes = tile_bytes(&grid, &order, &axes[*first..], element, CHUNK_RUN_BYTES);
        bytes <= most.min(BLOCK_BYTES)
    };
    let first = (0..axes.len()).find(fits).unwrap_or(axes.len().saturating_sub(1));
    axes[first..].to_vec()
}

/// Whether local blocks with whole lines along `axes` fit into cache on every rank.
pub(crate) fn fit_in_block(ends: [&Node; 2], axes: &[usize], real_bytes: usize) -> bool {
    ends.iter().all(|node| {
        let points = node.layout.most_along(block_axes(&node.layout.order(), axes));
        points * node.width() * real_bytes <= BLOCK_BYTES
    })
}
