//! Grids, bricks, layouts, hosts, and strided copies between boxes.

pub(crate) mod brick;
pub(crate) mod brick_index;
pub(crate) mod cut;
pub(crate) mod exclusive;
pub(crate) mod grid;
pub(crate) mod layout;
pub(crate) mod per_axis;
pub(crate) mod placed_cut;
pub(crate) mod process_grid;
pub(crate) mod stride;
pub(crate) mod strided_copy;
pub(crate) mod topology;

pub use brick::{Brick, DynBrick};
pub(crate) use brick_index::BrickIndex;
pub use grid::{DynGrid, Grid};
pub use layout::Layout;
pub use per_axis::{MAX_AXES, PerAxis, check_axes};
pub use process_grid::ProcGrid;
pub(crate) use stride::Stride;
pub(crate) use strided_copy::SHORT_RUN_BYTES;
pub use strided_copy::{DIMS, Panel, Placed, Transfer, View};
pub use topology::Topology;
