//! What all ranks must be told alike, and what each tells of its bricks.

use fft_core::{DynBrick, Error, MAX_AXES, PerAxis, Tolerance};

use super::DynDraft;
use crate::tune::fingerprint;

/// Reshapes with wires of their own that ranks compare; of more, only how many.
pub(super) const MAX_WIRES: usize = 12;
/// Room for all options, in words, of four axes.
const OPTIONS: usize = 33 + 1 + 2 * MAX_WIRES;
/// Room for options and two bricks.
const WORDS: usize = OPTIONS + 4 * MAX_AXES;
/// A draft as it travels: as long whatever the number of axes, so that even ranks that disagree on that can
/// compare.
pub(super) type Words = [u64; WORDS];

impl DynDraft<'_> {
    /// Everything that must be equal, in words, with names; all options but bricks.
    fn options(&self) -> [(&'static str, Vec<u64>); 18] {
        let words = |list: &[usize]| list.iter().map(|&x| x as u64).collect();
        [
            ("number of axes", vec![self.grid.axes() as u64]),
            ("precision in bytes", vec![self.precision.bytes() as u64]),
            ("numbers per point", {
                let width = |complex| if complex { 2 } else { 1 };
                let transform = self.transform;
                vec![width(transform.is_complex()), width(transform.has_complex_spectrum())]
            }),
            ("grid", words(&self.grid.shape())),
            ("kinds", self.kinds.iter().map(|kind| *kind as u64).collect()),
            ("input order", words(&self.orders[0])),
            ("output order", words(&self.orders[1])),
            ("howmany", words(&[self.howmany])),
            ("scales", self.scales.map(|scale| scale as u64).to_vec()),
            ("exchange", vec![self.exchange.map_or(0, |exchange| 1 + exchange.code())]),
            ("tuning", self.tune.code().to_vec()),
            ("machine", vec![self.machine.as_deref().map_or(0, fingerprint)]),
            ("wire", vec![self.wire.map_or(0, |wire| 1 + wire.code())]),
            ("memory", vec![self.memory as u64]),
            ("shared arrays", vec![u64::from(self.shared_arrays)]),
            ("wire everywhere", vec![u64::from(self.everywhere)]),
            ("tolerance", {
                let of = |tolerance: Tolerance| {
                    [tolerance.value().to_bits(), u64::from(tolerance.is_strict())]
                };
                self.tolerated().map_or([0; 2], of).to_vec()
            }),
            ("wires of reshapes", {
                let mut words = [0; 1 + 2 * MAX_WIRES];
                words[0] = self.wires.len() as u64;
                let pairs = self.wires.iter().flat_map(|(n, wire)| [*n as u64, wire.code()]);
                words[1..].iter_mut().zip(pairs).for_each(|(place, word)| *place = word);
                words.to_vec()
            }),
        ]
    }

    /// What every rank was given.
    pub(super) fn gather(&self) -> Result<Vec<Words>, Error> {
        let (rank, ranks) = (self.comm.rank(), self.comm.size());
        let input = self.input.unwrap_or_else(|| self.grid.brick(rank, ranks));
        let output = self.output.unwrap_or_else(|| self.spectral_grid().brick(rank, ranks));
        let mut mine: Words = [0; WORDS];
        let options: Vec<_> = self.options().into_iter().flat_map(|(_, words)| words).collect();
        debug_assert!(options.len() <= OPTIONS, "{} words of options", options.len());
        mine.iter_mut().zip(options).for_each(|(place, word)| *place = word);
        for (side, brick) in [input, output].iter().enumerate() {
            for axis in 0..brick.axes() {
                let place = OPTIONS + 2 * MAX_AXES * side + 2 * axis;
                mine[place] = brick.lo[axis] as u64;
                mine[place + 1] = brick.hi[axis] as u64;
            }
        }
        let mut all = vec![[0; WORDS]; ranks];
        self.comm.allgather(bytemuck::bytes_of(&mine), bytemuck::cast_slice_mut(&mut all))?;
        Ok(all)
    }

    /// Whether all ranks were given the same options; the same answer on each.
    pub(super) fn compare(&self, drafts: &[Words]) -> Result<(), Error> {
        let first = &drafts[0];
        let differs = |draft: &Words| draft[..OPTIONS] != first[..OPTIONS];
        let Some(rank_b) = drafts.iter().position(differs) else { return Ok(()) };
        // Both drafts are cut up as this rank's own is: as long as the number of axes is equal, so are the
        // places of everything else.
        let mut place = 0;
        for (what, words) in self.options() {
            let at = place..place + words.len();
            place = at.end;
            let (a, b) = (&first[at.clone()], &drafts[rank_b][at]);
            if a != b {
                let text = |words: &[u64]| match (what, words) {
                    ("tolerance", [0, _]) => "none".into(),
                    ("tolerance", [bits, strict]) => {
                        let strict = if *strict == 0 { "" } else { " strict" };
                        format!("{:e}{strict}", f64::from_bits(*bits))
                    }
                    _ => words.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
                };
                let (a, b) = (text(a), text(b));
                return Err(Error::Disagreement { what: what.into(), rank_a: 0, a, rank_b, b });
            }
        }
        unreachable!("options that differ were found to differ");
    }
}

/// The brick of input or output that a draft names.
pub(super) fn brick_of(axes: usize, draft: &Words, side: usize) -> DynBrick {
    let words = &draft[OPTIONS + 2 * MAX_AXES * side..];
    let bounds = |which: usize| PerAxis::from_fn(axes, |axis| words[2 * axis + which] as usize);
    DynBrick::new(bounds(0), bounds(1))
}
