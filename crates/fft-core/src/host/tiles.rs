//! Local transforms of boxes that are read into cache one after the other.

use std::ops::Range;

use super::cpu::{Cpu, CpuFft};
use crate::base::{Error, Real};
use crate::geometry::{DynBrick, PerAxis};
use crate::recipe::{LocalFft, Pass};

#[derive(Clone, Copy)]
pub(crate) struct Lines<'a> {
    pub(crate) rank: usize,
    /// The order of axes in a tile, slowest first.
    pub(crate) order: PerAxis<usize>,
    pub(crate) batch: usize,
    /// The axes and their transforms. One that changes the length of lines is alone.
    pub(crate) axes: &'a [(usize, Pass)],
    /// Whether boxes are in cache before their transforms.
    pub(crate) cached: bool,
}

/// Transforms of boxes of one shape, each with its blocks.
pub(crate) type Ffts<T> = Vec<(CpuFft<T>, Range<usize>)>;

#[derive(Default)]
pub(crate) struct TileFfts<T: Real> {
    boxes: Vec<DynBrick>,
    pub(crate) plans: Vec<Ffts<T>>,
}

impl Lines<'_> {
    /// The transforms of a box, joined if they fit into cache together.
    fn local(&self, tile: &DynBrick, real_bytes: usize) -> Vec<LocalFft> {
        let mut ffts: Vec<LocalFft> = Vec::new();
        for (axis, pass) in self.axes {
            let along = LocalFft::along(*axis, tile, self.order, self.batch, pass.clone());
            let fft = LocalFft { cached: self.cached, to_cache: true, ..along };
            if !ffts.last_mut().is_some_and(|last| last.join(&fft, real_bytes)) {
                ffts.push(fft);
            }
        }
        ffts
    }
}

impl<T: Real> TileFfts<T> {
    /// The index of the transforms for this box. Boxes of the same shape share them, unless they
    /// have twiddles, which depend on the place.
    pub(crate) fn plan(
        &mut self,
        lines: Lines<'_>,
        tile: &DynBrick,
        device: &mut Cpu<T>,
    ) -> Result<usize, Error> {
        let has_twiddles = lines.axes.iter().any(|(_, pass)| pass.twiddles.is_some());
        let is_same =
            |known: &DynBrick| known == tile || !has_twiddles && known.shape() == tile.shape();
        if let Some(known) = self.boxes.iter().position(is_same) {
            return Ok(known);
        }
        let local = lines.local(tile, T::PRECISION.bytes());
        let plan = |fft: &LocalFft| Ok((device.plan_fft(fft, lines.rank)?, 0..fft.blocks));
        self.plans.push(local.iter().map(plan).collect::<Result<_, Error>>()?);
        self.boxes.push(*tile);
        Ok(self.boxes.len() - 1)
    }
}
