//! Plots of a few curves, as characters for a terminal and as SVG.

mod axis;
mod frame;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;

pub(crate) use axis::Axis;
pub(crate) use frame::Plot;
pub(crate) use svg::{COLOURS, begin_svg, escape};
