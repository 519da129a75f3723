//! heFFTe's boxes as thriffty's bricks.

use thriffty::{Brick, Comm, Error, Grid};

/// A box of heFFTe: inclusive bounds along dimensions 0, 1 and 2, and the order of dimensions in
/// memory, fastest first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extent {
    pub(crate) low: [i32; 3],
    pub(crate) high: [i32; 3],
    pub(crate) order: [i32; 3],
}

pub(crate) const ORDER: [i32; 3] = [0, 1, 2];

/// Grid and bricks; axis 0 is heFFTe's dimension 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Geometry {
    pub(crate) grid: Grid<3>,
    pub(crate) input: Brick<3>,
    pub(crate) output: Brick<3>,
    pub(crate) orders: [[usize; 3]; 2],
}

impl Extent {
    fn is_empty(&self) -> bool {
        (0..3).any(|d| self.low[d] > self.high[d])
    }

    /// As a brick of a grid that begins at `origin`.
    fn brick(&self, origin: [i64; 3]) -> Result<Brick<3>, Error> {
        if self.is_empty() {
            return Ok(Brick::EMPTY);
        }
        let at = |d: usize, bound: i64| {
            let below = || Error::argument(format!("bound along dimension {d}"), bound, origin[d]);
            usize::try_from(bound - origin[d]).map_err(|_| below())
        };
        let mut brick = Brick::EMPTY;
        for d in 0..3 {
            brick.lo[2 - d] = at(d, self.low[d].into())?;
            brick.hi[2 - d] = at(d, i64::from(self.high[d]) + 1)?;
        }
        Ok(brick)
    }

    /// The order of axes in memory, slowest first.
    fn order(&self) -> Result<[usize; 3], Error> {
        let mut order = [0; 3];
        for place in 0..3 {
            let d = self.order[2 - place];
            let axis = usize::try_from(d).ok().and_then(|d| 2usize.checked_sub(d));
            order[place] =
                axis.ok_or_else(|| Error::argument("dimension of an order", d, "0, 1 or 2"))?;
        }
        Ok(order)
    }
}

impl Geometry {
    /// The grid that the input boxes of all ranks cover, and this rank's bricks. Collective.
    ///
    /// # Errors
    /// [`Error::Argument`] when all input boxes are empty or, on this rank alone, its boxes are
    /// invalid; [`Error::TooLarge`].
    pub(crate) fn of(comm: &dyn Comm, boxes: [Extent; 2]) -> Result<Self, Error> {
        let mine: Vec<u8> = [boxes[0].low, boxes[0].high]
            .into_iter()
            .flatten()
            .flat_map(|bound| if boxes[0].is_empty() { i32::MIN } else { bound }.to_ne_bytes())
            .collect();
        let mut all = vec![0; mine.len() * comm.size()];
        comm.allgather(&mine, &mut all)?;
        let bounds = |bytes: &[u8]| {
            let (words, _) = bytes.as_chunks::<4>();
            std::array::from_fn::<i64, 6, _>(|i| i32::from_ne_bytes(words[i]).into())
        };
        let present = |bounds: &[i64; 6]| bounds[0] != i64::from(i32::MIN);
        let found: Vec<_> = all.chunks_exact(mine.len()).map(bounds).filter(present).collect();
        let least = |i: usize| found.iter().map(|bounds| bounds[i]).min();
        let most = |i: usize| found.iter().map(|bounds| bounds[i]).max();
        let nothing = || Error::argument("input boxes", "empty ones only", "points of a grid");
        let (mut origin, mut shape) = ([0; 3], [0; 3]);
        for d in 0..3 {
            origin[d] = least(d).ok_or_else(nothing)?;
            shape[2 - d] = (most(3 + d).ok_or_else(nothing)? + 1 - origin[d]) as usize;
        }
        let [input, output] = boxes;
        Ok(Self {
            grid: Grid::new(shape)?,
            input: input.brick(origin)?,
            output: output.brick(origin)?,
            orders: [input.order()?, output.order()?],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_what_all_input_boxes_cover() {
        let whole = Extent { low: [-1, 0, 5], high: [2, 1, 9], order: ORDER };
        let halves = thriffty::threads(3, |comm| {
            let mut own = whole;
            match comm.rank() {
                0 => own.high[2] = 6,
                1 => own.low[2] = 7,
                _ => own.high[1] = -1,
            }
            Geometry::of(&comm, [own, Extent { order: [2, 0, 1], ..own }])
        })
        .unwrap();
        assert_eq!(halves[0].grid.shape(), [5, 2, 4]);
        assert_eq!(halves[0].input, Brick { lo: [0, 0, 0], hi: [2, 2, 4] });
        assert_eq!(halves[1].input, Brick { lo: [2, 0, 0], hi: [5, 2, 4] });
        assert_eq!(halves[2].input, Brick::EMPTY);
        // Nearest first 2, 0, 1: slowest first 1, 0, 2, which are axes 1, 2, 0.
        assert_eq!(halves[1].orders, [[0, 1, 2], [1, 2, 0]]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let empty = Extent { low: [0; 3], high: [-1; 3], order: ORDER };
        let some = Extent { low: [0; 3], high: [1; 3], order: ORDER };
        let outside = Extent { low: [-1; 3], ..some };
        let odd = Extent { order: [0, 1, 3], ..some };
        for boxes in [[empty, empty], [some, outside], [some, odd]] {
            thriffty::threads(1, |comm| {
                assert!(Geometry::of(&comm, boxes).is_err(), "{boxes:?}");
                Ok::<(), Error>(())
            })
            .unwrap();
        }
    }
}
