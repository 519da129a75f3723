//! An axis: its range and its ticks.

/// The largest value shown: differences of larger ones would overflow.
const LARGEST: f64 = 1e300;

/// The range of an axis, in decades if it is logarithmic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    log: bool,
    lo: f64,
    hi: f64,
}

#[derive(Debug)]
pub(crate) struct Tick {
    /// The position on the axis, from 0 to 1.
    pub(crate) at: f64,
    pub(crate) label: Option<String>,
}

impl Axis {
    pub(super) fn can_show(value: f64, log: bool) -> bool {
        value.abs() <= LARGEST && (!log || value > 0.0)
    }

    /// An axis around these values, with a margin. Without values it has the range from 0 to 1, or
    /// one decade.
    pub(super) fn around(values: impl Iterator<Item = f64>, log: bool) -> Self {
        let scaled = values.map(|value| if log { value.log10() } else { value });
        let range = scaled.fold(None, |range, v| match range {
            None => Some((v, v)),
            Some((lo, hi)) => Some((v.min(lo), v.max(hi))),
        });
        let Some((lo, hi)) = range else {
            return Self { log, lo: 0.0, hi: 1.0 };
        };
        let size = lo.abs().max(hi.abs());
        let margin = if hi - lo > size * 1e-9 && hi - lo > 1e-300 {
            0.04 * (hi - lo)
        } else if log || size < 1e-290 {
            1.0
        } else {
            size / 2.0
        };
        Self { log, lo: lo - margin, hi: hi + margin }
    }

    /// A linear axis from 0 to `hi`.
    pub(crate) fn from_zero(hi: f64) -> Self {
        Self { log: false, lo: 0.0, hi }
    }

    /// The position of a value: 0 at the start of the axis, 1 at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let scaled = if self.log { value.log10() } else { value };
        (scaled - self.lo) / (self.hi - self.lo)
    }

    /// Ticks at round values, about `most` or fewer with a label.
    pub(crate) fn ticks(&self, most: usize) -> Vec<Tick> {
        if !self.log {
            return self.round_ticks(self.lo, self.hi, most);
        }
        let (first, last) = (self.lo.ceil() as i32, self.hi.floor() as i32);
        let every = (last - first) / most.max(1) as i32 + 1;
        if every > 1 {
            return self.decade_ticks(first, last, every);
        }
        // If there is room, 2 and 5 times powers of ten have labels, too.
        let roomy = 3.0 * (self.hi - self.lo) <= most as f64 && !self.scientific();
        let digits: &[i32] = if first >= last || roomy { &[1, 2, 5] } else { &[1] };
        let ticks = self.digit_ticks(digits);
        match ticks.iter().filter(|tick| tick.label.is_some()).count() {
            0..2 => self.round_ticks(10f64.powf(self.lo), 10f64.powf(self.hi), most),
            _ => ticks,
        }
    }

    /// Ticks at powers of ten; one of `every` has a label.
    fn decade_ticks(&self, first: i32, last: i32, every: i32) -> Vec<Tick> {
        let tick = |exponent: i32| {
            let label = (exponent % every == 0).then(|| power_of_ten(1, exponent, true));
            Tick { at: (f64::from(exponent) - self.lo) / (self.hi - self.lo), label }
        };
        let all = every <= 5;
        (first..=last).filter(|exponent| all || exponent % every == 0).map(tick).collect()
    }

    /// Ticks at each digit times each power of ten, with labels at some digits.
    fn digit_ticks(&self, labelled: &[i32]) -> Vec<Tick> {
        let scientific = self.scientific();
        let exponents = self.lo.floor() as i32..=self.hi.floor() as i32;
        let values = exponents.flat_map(|exponent| (1..10).map(move |digit| (digit, exponent)));
        let ticks = values.map(|(digit, exponent)| Tick {
            at: (f64::from(digit).log10() + f64::from(exponent) - self.lo) / (self.hi - self.lo),
            label: labelled.contains(&digit).then(|| power_of_ten(digit, exponent, scientific)),
        });
        ticks.filter(|tick| (0.0..=1.0).contains(&tick.at)).collect()
    }

    /// Whether labels are powers of ten rather than plain numbers.
    fn scientific(&self) -> bool {
        self.lo < -2.1 || self.hi >= 4.0
    }

    /// Labels at multiples of 1, 2 or 5 times a power of ten, for values from `lo` to `hi`.
    fn round_ticks(&self, lo: f64, hi: f64, most: usize) -> Vec<Tick> {
        let least = (hi - lo) / most.max(1) as f64;
        let exponent = least.log10().floor() as i32;
        let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * 10f64.powi(exponent) >= least);
        let (digit, exponent) = digit.map_or((1.0, exponent + 1), |digit| (digit, exponent));
        let step = digit * 10f64.powi(exponent);
        let largest = lo.abs().max(hi.abs());
        let multiples =
            (0..=most).map(|i| (lo / step).ceil() + i as f64).take_while(|i| i * step <= hi);
        let tick = |multiple: f64| {
            let value = multiple * step + 0.0; // + 0.0: never "-0"
            Tick { at: self.place(value), label: Some(number(value, largest, exponent)) }
        };
        multiples.map(tick).collect()
    }
}

/// A multiple of `10^exponent`, on an axis that goes up to `largest`.
fn number(value: f64, largest: f64, exponent: i32) -> String {
    if largest < 1e6 && exponent >= -4 {
        return format!("{value:.*}", (-exponent).max(0) as usize);
    }
    let digits = (largest.log10().floor() as i32 - exponent).clamp(0, 15) as usize;
    let text = format!("{value:.digits$e}");
    match text.split_once('e') {
        Some((digits, exponent)) if value != 0.0 => format!("{digits}×10{}", superscript(exponent)),
        _ => "0".to_owned(),
    }
}

fn power_of_ten(digit: i32, exponent: i32, scientific: bool) -> String {
    match (digit, exponent) {
        (digit, exponent) if !scientific || exponent == 0 => {
            let value = f64::from(digit) * 10f64.powi(exponent);
            format!("{value:.*}", (-exponent).max(0) as usize)
        }
        (1, exponent) => format!("10{}", superscript(&exponent.to_string())),
        (digit, exponent) => format!("{digit}×10{}", superscript(&exponent.to_string())),
    }
}

fn superscript(digits: &str) -> String {
    let raised = |c: char| match c {
        '-' => '⁻',
        _ => {
            ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][c.to_digit(10).unwrap_or(0) as usize]
        }
    };
    digits.chars().map(raised).collect()
}
