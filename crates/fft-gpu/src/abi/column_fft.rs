//! How a block of threads transforms columns: `kernels/column_fft.cuh` for one length.

use std::collections::BTreeSet;
use std::f64::consts::TAU;
use std::fmt::Write;

use fft_core::Precision;

/// The kernel's source, which is compiled for each length.
const SOURCE: &str = include_str!("../../kernels/src/column_fft.cuh");

/// The largest radix: more points do not fit into registers.
const MOST_RADIX: usize = 16;
/// The most threads of a block.
const MOST_THREADS: usize = 1024;

/// A kernel for columns of one length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ColumnKernel {
    /// Points of a column.
    pub(crate) n: usize,
    /// The radices of the stages, whose product is `n`.
    radices: Vec<usize>,
    /// Threads that share a column.
    lanes: usize,
    /// Columns of a block.
    pub(crate) columns: usize,
    pub(crate) precision: Precision,
}

impl ColumnKernel {
    /// The kernel whose blocks take `row_bytes` of neighbouring columns; `None` for lengths with
    /// large prime factors, and if it needs more than `shared_bytes` of shared memory.
    pub(crate) fn new(
        n: usize,
        row_bytes: usize,
        precision: Precision,
        shared_bytes: usize,
    ) -> Option<Self> {
        let radices = radices(n)?;
        let columns = row_bytes / (2 * precision.bytes());
        // Each thread has one transform of the largest radix.
        let lanes = n / radices[0];
        let kernel = Self { n, radices, lanes, columns, precision };
        let fits = kernel.threads() <= MOST_THREADS && kernel.shared_bytes() <= shared_bytes;
        fits.then_some(kernel)
    }

    /// Threads of a block.
    pub(crate) fn threads(&self) -> usize {
        self.lanes * self.columns
    }

    /// Shared memory of a block.
    pub(crate) fn shared_bytes(&self) -> usize {
        self.n * self.columns * 2 * self.precision.bytes()
    }

    /// `exp(-2πi j/n)` for each j below n, as pairs of numbers.
    pub(crate) fn roots(&self) -> Vec<[f64; 2]> {
        let root = |j: usize| {
            let (s, c) = (TAU * j as f64 / self.n as f64).sin_cos();
            [c, -s]
        };
        (0..self.n).map(root).collect()
    }

    /// The source, with all the parameters that it is compiled for.
    pub(crate) fn source(&self) -> String {
        let Self { n, lanes, columns, .. } = self;
        let real = match self.precision {
            Precision::F32 => "float",
            Precision::F64 => "double",
        };
        let list = self.radices.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let mut text = format!(
            "using Real = {real};\nconstexpr int N = {n}, LANES = {lanes}, COLUMNS = {columns};\n\
             #define RADICES {list}\ntemplate <int R> struct Roots;\n"
        );
        let mut tables = BTreeSet::new();
        self.radices.iter().for_each(|radix| with_tables(*radix, &mut tables));
        for radix in tables {
            let numbers = |of: fn(f64) -> f64| -> String {
                let number = |j| format!("{:e}, ", of(TAU * f64::from(j as u32) / radix as f64));
                (0..radix).map(number).collect()
            };
            let table = |name: &str, of| {
                format!(
                    "    static constexpr __device__ Real {name}(int j)\n    {{\n        \
                     constexpr Real at[] = {{{}}};\n        return at[j];\n    }}\n",
                    numbers(of)
                )
            };
            let (c, s) = (table("c", f64::cos), table("s", f64::sin));
            write!(text, "template <> struct Roots<{radix}> {{\n{c}{s}}};\n").expect("a string");
        }
        text + SOURCE
    }
}

/// The radices for which the transform of this radix has tables: it and its factors.
fn with_tables(radix: usize, found: &mut BTreeSet<usize>) {
    if radix <= 2 || radix == 4 {
        return;
    }
    found.insert(radix);
    let factor = factor_of(radix);
    if factor < radix {
        with_tables(factor, found);
        with_tables(radix / factor, found);
    }
}

/// As in the kernel.
fn factor_of(radix: usize) -> usize {
    if radix.is_multiple_of(4) && radix > 4 {
        4
    } else {
        (2..radix).find(|p| radix.is_multiple_of(*p)).unwrap_or(radix)
    }
}

/// The fewest radices with this product, as equal as possible, the largest first.
fn radices(n: usize) -> Option<Vec<usize>> {
    fn search(rest: usize, most: usize, stages: usize) -> Option<Vec<usize>> {
        if stages == 0 {
            return (rest == 1).then(Vec::new);
        }
        // The smallest that can be the largest of all.
        let mut candidates = (2..=most).filter(|radix| rest.is_multiple_of(*radix));
        candidates.find_map(|radix| {
            let mut others = search(rest / radix, radix, stages - 1)?;
            others.insert(0, radix);
            Some(others)
        })
    }
    (1..=4).find_map(|stages| search(n, MOST_RADIX, stages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_few_and_alike() {
        for (n, expected) in [
            (16, &[16][..]),
            (512, &[8, 8, 8]),
            (500, &[10, 10, 5]),
            (768, &[12, 8, 8]),
            (1000, &[10, 10, 10]),
            (1024, &[16, 8, 8]),
            (1001, &[13, 11, 7]),
            (720, &[10, 9, 8]),
            (13 * 14 * 15 * 16, &[16, 15, 14, 13]),
            (4096, &[16, 16, 16]),
        ] {
            assert_eq!(radices(n).as_deref(), Some(expected), "{n}");
        }
        assert_eq!(radices(17 * 16), None);
        assert_eq!(radices(1 << 20), None);
    }

    #[test]
    fn kernels_fit_into_blocks() {
        let kernel = |n, row| ColumnKernel::new(n, row, Precision::F64, 227 << 10);
        let found = kernel(1000, 128).unwrap();
        assert_eq!((found.threads(), found.shared_bytes()), (800, 128_000));
        assert!(kernel(4096, 64).is_none(), "too much shared memory");
        assert!(kernel(1 << 14, 16).is_none(), "too many threads");
        let source = kernel(15, 64).unwrap().source();
        for text in
            ["N = 15, LANES = 1, COLUMNS = 4;", "RADICES 15\n", "Roots<3>", "Roots<5>", "Roots<15>"]
        {
            assert!(source.contains(text), "{text}");
        }
        assert!(!source.contains("Roots<4>"));
    }
}
