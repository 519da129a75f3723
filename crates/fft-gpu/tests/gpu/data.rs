//! Boxes and numbers for tests.

use fft_core::{Brick, Placed, Real, Transfer};

/// Numbers between 0 and 1, the same every time.
pub(crate) fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

/// Named arrays to encode.
pub(crate) fn fields<T: Real>(n: usize) -> Vec<(&'static str, Vec<T>)> {
    let mut u = uniform(n as u64);
    let mut normal = || (-2.0 * u().ln()).sqrt() * (std::f64::consts::TAU * u()).cos();
    let gaussian: Vec<T> = (0..n).map(|_| T::of(normal())).collect();
    let most = if size_of::<T>() == 4 { 30.0 } else { 300.0 };
    let mut u = uniform(7);
    let wild = |_| T::of((u() - 0.5) * 10f64.powf((2.0 * u() - 1.0) * most));
    let wild = (0..n).map(wild).collect();
    let smooth = |i: usize| {
        if (200..900).contains(&i) {
            0.0
        } else {
            (0.1 * i as f64).sin() * (-0.01 * i as f64).exp()
        }
    };
    let smooth = (0..n).map(|i| T::of(smooth(i))).collect();
    let mut strange = gaussian.clone();
    let at = |i: usize| i * n / 4096;
    let (largest, least) = match size_of::<T>() {
        4 => (f64::from(f32::MAX), 1e-45),
        _ => (f64::MAX, 5e-324),
    };
    strange[at(3)] = T::of(f64::INFINITY);
    strange[at(5)] = T::of(f64::NEG_INFINITY);
    strange[at(600)..at(900)].fill(T::of(largest));
    strange[at(700)] = T::of(-0.99 * largest);
    strange[at(900)..at(1300)].fill(T::of(-0.0));
    strange[at(1300)..at(1700)].fill(T::of(least));
    strange[at(1400)] = T::of(-3.0 * least);
    strange[at(2000)..at(2600)].fill(T::of(0.0));
    strange[at(2100)] = T::of(largest / 2.1);
    strange[at(2101)] = T::of(least);
    let mut with_nan = strange.clone();
    with_nan[at(2500)] = T::of(f64::NAN);
    with_nan[at(4000)] = T::of(-f64::NAN);
    // Memory filled with ones is NaNs.
    bytemuck::bytes_of_mut(&mut with_nan[at(3000)]).fill(0xFF);
    vec![
        ("gaussian", gaussian),
        ("wild", wild),
        ("smooth", smooth),
        ("strange", strange),
        ("with NaN", with_nan),
    ]
}

/// The boxes of a reshape: parts of one array, and dense messages in another order of axes.
pub(crate) struct Boxes {
    pub(crate) name: &'static str,
    /// Elements of the array.
    pub(crate) elements: usize,
    pub(crate) gathers: Vec<Transfer>,
    /// From the messages to the places in an array of the receiver's.
    pub(crate) scatters: Vec<Transfer>,
    /// Elements of that array.
    pub(crate) scattered: usize,
}

pub(crate) fn boxes(
    name: &'static str,
    shape: [usize; 3],
    cuts: [usize; 3],
    orders: [[usize; 3]; 2],
    batch: usize,
) -> Boxes {
    cut(name, shape, cuts, orders, (batch, orders[1]))
}

/// The same with messages in the order of the sender's array.
pub(crate) fn boxes_as_sent(
    name: &'static str,
    shape: [usize; 3],
    cuts: [usize; 3],
    orders: [[usize; 3]; 2],
    batch: usize,
) -> Boxes {
    cut(name, shape, cuts, orders, (batch, orders[0]))
}

fn cut(
    name: &'static str,
    shape: [usize; 3],
    cuts: [usize; 3],
    orders: [[usize; 3]; 2],
    (batch, order): (usize, [usize; 3]),
) -> Boxes {
    let whole = Brick { lo: [0; 3], hi: shape };
    let from = Placed::new(whole, orders[0], batch);
    let to = Placed::new(whole, orders[1], batch);
    let (mut gathers, mut scatters) = (Vec::new(), Vec::new());
    let part =
        |axis: usize, i: usize| shape[axis] * i / cuts[axis]..shape[axis] * (i + 1) / cuts[axis];
    for i in 0..cuts[0] {
        for j in 0..cuts[1] {
            for k in 0..cuts[2] {
                let ranges = [part(0, i), part(1, j), part(2, k)];
                let brick =
                    Brick { lo: ranges.clone().map(|r| r.start), hi: ranges.map(|r| r.end) };
                let message = Placed::new(brick, order, batch);
                gathers.push(Transfer::new(&brick.into(), 0..batch, &from, &message));
                scatters.push(Transfer::as_read(&brick.into(), 0..batch, &message, &to));
            }
        }
    }
    let elements = shape.iter().product::<usize>() * batch;
    Boxes { name, elements, gathers, scatters, scattered: elements }
}

/// Runs, bricks, transposed rows, whole or not, reversed axes, uneven and small ones, batches.
pub(crate) fn all() -> Vec<Boxes> {
    const SAME: [usize; 3] = [0, 1, 2];
    vec![
        boxes("one run", [8, 32, 64], [1, 1, 1], [SAME, SAME], 1),
        boxes("bricks", [16, 32, 64], [2, 2, 2], [SAME, SAME], 1),
        boxes("long rows", [5, 13, 301], [1, 2, 2], [SAME, SAME], 1),
        // Rows that begin anywhere, but whose length divides tiles.
        boxes("even long rows", [5, 13, 321], [1, 2, 2], [SAME, SAME], 1),
        boxes("rows of 16", [9, 41, 33], [1, 1, 2], [SAME, SAME], 1),
        boxes("rows turned", [8, 96, 64], [2, 1, 1], [SAME, [0, 2, 1]], 1),
        // Tiles of several whole rows of the message.
        boxes("whole rows turned", [8, 64, 64], [1, 1, 1], [SAME, [0, 2, 1]], 1),
        boxes("last axis first", [16, 64, 64], [1, 2, 1], [SAME, [2, 0, 1]], 1),
        boxes("reversed", [16, 64, 48], [1, 1, 2], [SAME, [2, 1, 0]], 1),
        boxes("first axis last", [64, 16, 24], [2, 1, 1], [SAME, [1, 2, 0]], 1),
        boxes("uneven", [17, 23, 29], [3, 2, 2], [SAME, [1, 0, 2]], 2),
        boxes("uneven turned", [13, 31, 37], [2, 3, 1], [[1, 0, 2], [2, 1, 0]], 1),
        boxes("small", [6, 5, 7], [3, 5, 7], [SAME, [2, 1, 0]], 1),
        // Skewed rows, and short ones, which are folded.
        boxes("skewed", [25, 17, 40], [1, 2, 1], [SAME, [2, 1, 0]], 1),
        boxes("skewed rows", [3, 150, 37], [1, 1, 1], [SAME, [0, 2, 1]], 2),
        boxes("short rows", [7, 21, 45], [1, 1, 1], [SAME, [0, 2, 1]], 2),
        // Transposed by the receiver: groups are rows of a tile, or parts of rows, or span rows.
        boxes_as_sent("reversed when read", [64, 16, 64], [1, 2, 1], [SAME, [2, 1, 0]], 1),
        boxes_as_sent("swapped when read", [3, 40, 192], [1, 1, 1], [SAME, [0, 2, 1]], 2),
        boxes_as_sent("first last when read", [9, 32, 96], [1, 2, 1], [SAME, [1, 2, 0]], 1),
        boxes_as_sent("uneven when read", [17, 23, 29], [3, 2, 2], [SAME, [2, 1, 0]], 2),
        boxes_as_sent("skewed when read", [33, 17, 21], [1, 1, 1], [SAME, [2, 1, 0]], 1),
        boxes_as_sent("skewed rows when read", [3, 40, 150], [1, 1, 1], [SAME, [0, 2, 1]], 1),
        boxes_as_sent("short rows when read", [7, 45, 21], [1, 1, 1], [SAME, [0, 2, 1]], 2),
        boxes_as_sent("some when read", [20, 129, 7], [1, 2, 1], [SAME, [2, 1, 0]], 1),
        boxes("batches", [3, 20, 50], [1, 2, 1], [SAME, [0, 2, 1]], 5),
    ]
}
