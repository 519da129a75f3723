//! Sums without rounding: their bits do not depend on the order of terms, and thus not on ranks.

use thriffty::planning::Reduce;
use thriffty::{Comm, Error};

/// Bits of a limb. The others of its 64 bits are for carries.
const LIMB: usize = 32;
/// The exponent of the lowest bit of the first limb. No number has a lower bit.
const LOWEST: i32 = -1088;
/// Enough for the largest number, and for carries of many.
const LIMBS: usize = 70;
/// Terms before a limb could overflow.
const MOST_TERMS: usize = 1 << 30;

/// A sum as a whole number of many limbs, of which each counts 2^32 of the one before.
#[derive(Clone, Debug)]
pub(crate) struct ExactSum {
    limbs: [i64; LIMBS],
    /// Terms since carries were last moved.
    terms: usize,
    /// The sum of terms that are not finite.
    special: f64,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self { limbs: [0; LIMBS], terms: 0, special: 0.0 }
    }
}

impl ExactSum {
    /// Adds a term.
    pub(crate) fn add(&mut self, term: f64) {
        if !term.is_finite() {
            self.special += term;
            return;
        }
        let bits = term.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        // A number is a whole number of 53 bits, times a power of two.
        let (mantissa, exponent) =
            if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
        let place = (exponent - LOWEST) as usize;
        let shifted = i128::from(mantissa) << (place % LIMB);
        let signed = if term < 0.0 { -shifted } else { shifted };
        let first = place / LIMB;
        self.limbs[first] += (signed & 0xffff_ffff) as i64;
        self.limbs[first + 1] += (signed >> LIMB & 0xffff_ffff) as i64;
        self.limbs[first + 2] += (signed >> (2 * LIMB)) as i64;
        self.terms += 1;
        if self.terms == MOST_TERMS {
            self.carry();
        }
    }

    /// Leaves 32 bits in each limb but the last, which has the sign.
    fn carry(&mut self) {
        for at in 0..LIMBS - 1 {
            self.limbs[at + 1] += self.limbs[at] >> LIMB;
            self.limbs[at] &= 0xffff_ffff;
        }
        self.terms = 0;
    }

    /// The sum.
    pub(crate) fn value(&self) -> f64 {
        let mut sum = self.clone();
        sum.carry();
        let is_negative = sum.limbs[LIMBS - 1] < 0;
        if is_negative {
            sum.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            sum.carry();
        }
        let Some(top) = sum.limbs.iter().rposition(|limb| *limb != 0) else { return self.special };
        // A double has fewer bits than three limbs.
        let first = top.saturating_sub(3);
        let limbs = sum.limbs[first..=top].iter().rev();
        let whole = limbs.fold(0.0, |whole, limb| whole * 2.0_f64.powi(LIMB as i32) + *limb as f64);
        // In two steps, as the power alone may be too large or too small.
        let exponent = (LIMB * first) as i32 + LOWEST;
        let [low, high] = [exponent / 2, exponent - exponent / 2].map(|e| 2.0_f64.powi(e));
        let size = whole * low * high;
        self.special + if is_negative { -size } else { size }
    }

    /// The sums of all ranks. Collective.
    ///
    /// # Errors
    /// The errors of [`Comm::allreduce`].
    pub(crate) fn over_ranks(comm: &dyn Comm, sums: &mut [Self]) -> Result<(), Error> {
        sums.iter_mut().for_each(Self::carry);
        // Limbs of 32 bits add up exactly in double precision.
        let parts = |sum: &Self| sum.limbs.map(|limb| limb as f64).into_iter().chain([sum.special]);
        let mut all: Vec<f64> = sums.iter().flat_map(parts).collect();
        comm.allreduce(Reduce::Sum, &mut all)?;
        for (sum, all) in sums.iter_mut().zip(all.chunks_exact(LIMBS + 1)) {
            sum.limbs = std::array::from_fn(|at| all[at] as i64);
            sum.special = all[LIMBS];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(terms: impl IntoIterator<Item = f64>) -> f64 {
        let mut sum = ExactSum::default();
        terms.into_iter().for_each(|term| sum.add(term));
        sum.value()
    }

    #[test]
    fn sums_are_exact() {
        assert_eq!(sum([]), 0.0);
        assert_eq!(sum([1e100, 1.0, -1e100, 2.0]), 3.0);
        assert_eq!(sum([-0.75, 0.5]), -0.25);
        let extremes = [f64::MIN_POSITIVE, 5e-324, f64::MAX / 4.0, -1e-300, f64::MIN / 8.0];
        for x in extremes {
            assert_eq!(sum([x]), x);
            assert_eq!(sum([x, 1.0, -x, -1.0]), 0.0);
        }
        assert_eq!(sum([f64::INFINITY, 1.0]), f64::INFINITY);
        assert!(sum([f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    }

    #[test]
    fn sums_do_not_depend_on_ranks() {
        let terms: Vec<f64> =
            (1..2000).map(|i| (i as f64).sin() * 10f64.powi(i % 40 - 20)).collect();
        let expected = sum(terms.iter().copied());
        for ranks in [1, 2, 3, 7] {
            thriffty::threads(ranks, |comm| {
                let mut sums = [ExactSum::default(), ExactSum::default()];
                for term in terms.iter().skip(comm.rank()).step_by(ranks) {
                    sums[0].add(*term);
                    sums[1].add(-*term);
                }
                ExactSum::over_ranks(&comm, &mut sums)?;
                assert_eq!(sums.each_ref().map(ExactSum::value), [expected, -expected]);
                Ok::<_, Error>(())
            })
            .unwrap();
        }
    }
}
