//! Measurements of lines: one after the other, and several at once.

use std::time::Instant;

use fft_core::{
    Costs, Cpu, CpuFft, Direction, Error, Kind, LineCosts, LineLayout as Layout, LocalFft,
    OneByOne, Pass, RADICES, Real, TransportOptions,
};

use super::links::Links;

/// Lengths of lines that are timed.
const LENGTHS: [usize; 35] = [
    16, 24, 32, 36, 48, 50, 60, 64, 72, 80, 96, 100, 120, 125, 128, 144, 150, 160, 180, 192, 200,
    216, 240, 250, 256, 300, 320, 360, 384, 400, 500, 512, 1000, 1024, 2048,
];
/// Transforms and places of lines. Type II stands for all cosine and sine transforms.
const CASES: [(Kind, Layout); 9] = [
    (Kind::C2C, Layout::Rows),
    (Kind::C2C, Layout::Columns),
    (Kind::C2C, Layout::FarColumns),
    (Kind::C2C, Layout::ConflictingColumns),
    (Kind::Dct2, Layout::Rows),
    (Kind::Dct2, Layout::Columns),
    (Kind::Dct2, Layout::FarColumns),
    (Kind::Dct2, Layout::ConflictingColumns),
    (Kind::R2C, Layout::Rows),
];
/// Bytes from row to row that evict each other from the first-level cache.
const CONFLICT_BYTES: usize = 1 << 10;
/// Bytes of lines that are far.
const FAR_BYTES: usize = 3 << 19;
/// Timings per case; the shortest one counts.
const ROUNDS: usize = 5;
/// The factor by which lines must be faster one after the other.
const CLEARLY: f64 = 1.05;

const OF_PRECISION: usize = RADICES.len() + CASES.len() * LENGTHS.len();

/// Which lines are transformed several at once, and by which radices, as the first rank measures
/// it. Collective.
pub(super) fn lines(links: &mut Links<'_>) -> Result<LineCosts, Error> {
    let found = links.while_others_sleep(&[0], |_| {
        let mut found = [0.0; 2 * OF_PRECISION];
        let (single, double) = found.split_at_mut(OF_PRECISION);
        measure::<f32>(single, |f32| LineCosts { f32, ..LineCosts::default() })?;
        measure::<f64>(double, |f64| LineCosts { f64, ..LineCosts::default() })?;
        Ok(found)
    })?;
    let (single, double) = found.split_at(OF_PRECISION);
    let LineCosts { f32, f64 } = LineCosts::default();
    Ok(LineCosts { f32: costs(single, f32), f64: costs(double, f64) })
}

/// Costs from the measurements, or the default for what was not measured.
fn costs(found: &[f64], default: Costs) -> Costs {
    let (radices, ratios) = found.split_at(RADICES.len());
    if radices[0] == 0.0 {
        return default;
    }
    let mut ratios = ratios.chunks_exact(LENGTHS.len()).map(|ratios| {
        let all = LENGTHS.iter().zip(ratios);
        all.filter_map(|(n, ratio)| (*ratio > CLEARLY).then_some(*n)).collect()
    });
    let mut next = || ratios.next().expect("as many as cases");
    let mut all = || OneByOne {
        rows: next(),
        columns: next(),
        far_columns: next(),
        conflicting_columns: next(),
    };
    let (complex, trigonometric) = (all(), all());
    Costs {
        radices: RADICES.into_iter().zip(radices.iter().copied()).collect(),
        complex,
        trigonometric,
        real: OneByOne { rows: next(), ..OneByOne::default() },
        ..default
    }
}

/// The costs of radices, then for each case and length the time of lines several at once relative
/// to one after the other. Zeros on processors that have no such transforms.
fn measure<T: Real>(found: &mut [f64], of: impl Fn(Costs) -> LineCosts) -> Result<(), Error> {
    let Some(radices) = T::time_radices() else { return Ok(()) };
    let (costs, ratios) = found.split_at_mut(RADICES.len());
    for (cost, (_, seconds)) in costs.iter_mut().zip(&radices) {
        *cost = *seconds;
    }
    let mut devices: [Cpu<T>; 2] = [usize::MAX, 0].map(|longest| {
        let [complex, real, trigonometric] = std::array::from_fn(|_| OneByOne::default());
        let costs = Costs { radices: radices.clone(), longest, complex, real, trigonometric };
        Cpu::new(&TransportOptions::default(), &of(costs))
    });
    let (mut src, mut dst) = (Vec::new(), Vec::new());
    let cases = CASES.into_iter().flat_map(|case| LENGTHS.map(|n| (case, n)));
    for (ratio, ((kind, layout), n)) in ratios.iter_mut().zip(cases) {
        let shape = lines_of::<T>(kind, layout, n);
        src.resize(shape.block_before().max(src.len()), T::default());
        dst.resize(shape.block_after().max(dst.len()), T::default());
        let (src, dst) = (&src[..shape.block_before()], &mut dst[..shape.block_after()]);
        let mut least = [f64::INFINITY; 2];
        let plan = |device: &mut Cpu<T>| device.plan_fft(&shape, 0);
        let [several, one] = &mut devices;
        let ffts: [CpuFft<T>; 2] = [plan(several)?, plan(one)?];
        // By turns, so that other load affects both alike.
        for _ in 0..ROUNDS {
            for ((device, fft), least) in devices.iter_mut().zip(&ffts).zip(&mut least) {
                let start = Instant::now();
                device.fft(fft, 0..1, Some(src), dst);
                *least = least.min(start.elapsed().as_secs_f64());
            }
        }
        *ratio = least[0] / least[1].max(1e-9);
    }
    Ok(())
}

/// A pass over lines in this layout.
fn lines_of<T: Real>(kind: Kind, layout: Layout, n: usize) -> LocalFft {
    let width = if kind.is_real() { 1 } else { 2 };
    let far = FAR_BYTES / (width * n * size_of::<T>());
    // The numbers of lines are not powers of two, except for planes whose rows are meant to evict
    // each other.
    let (outer, inner) = match layout {
        Layout::Rows => (72, 1),
        Layout::Columns => (1, 72),
        Layout::FarColumns => (1, far | 1),
        Layout::ConflictingColumns => {
            let planes = FAR_BYTES / (n * CONFLICT_BYTES);
            (planes.max(1), CONFLICT_BYTES / (width * size_of::<T>()))
        }
    };
    let pass = Pass {
        kind,
        direction: Direction::Forward,
        n,
        resized: None,
        complex_before: kind == Kind::C2C,
        complex_after: width == 2,
        outer,
        inner,
        factor: 1.0,
    };
    let cached = matches!(layout, Layout::Rows | Layout::Columns);
    LocalFft { blocks: 1, passes: vec![pass], cached, to_cache: cached }
}
