//! Solutions beside those of dense systems.

use super::*;
use crate::base::Precision;
use crate::geometry::{DynGrid, Layout, ProcGrid};
use crate::problem::{Ends, Kind};
use crate::spectral::{Modes, Spectrum};

/// A spectrum on one rank, with 5 and 9 modes along the axes that are transformed.
fn modes(n: usize, order: [usize; 3], kind: Kind, precision: Precision) -> Modes {
    let grid = DynGrid::new([5, n, 9]).unwrap();
    let layout = Layout::even(grid, ProcGrid::new([1, 1, 1]), 1).ordered(order).unwrap();
    let complex = kind == Kind::C2C;
    let kinds = [kind, Kind::Tridiagonal, kind].into();
    let spectrum = Spectrum { kinds, modes: grid.shape(), layout, complex, precision };
    Modes::new(spectrum, 0, &[5.0, 1.0, 9.0]).unwrap()
}

/// Elimination with pivoting.
fn dense(mut rows: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let n = right.len();
    for k in 0..n {
        let largest = (k..n).max_by(|a, b| rows[*a][k].abs().total_cmp(&rows[*b][k].abs()));
        let pivot = largest.unwrap();
        rows.swap(k, pivot);
        right.swap(k, pivot);
        for j in k + 1..n {
            let by = rows[j][k] / rows[k][k];
            let above = rows[k].clone();
            rows[j].iter_mut().zip(&above).for_each(|(x, y)| *x -= by * y);
            right[j] -= by * right[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| rows[k][j] * right[j]).sum();
        right[k] = (right[k] - known) / rows[k][k];
    }
    right
}

fn noise(len: usize) -> Vec<f64> {
    (0..len).map(|i| ((i * 7919 + 13) % 1009) as f64 / 504.5 - 1.0).collect()
}

/// Of every mode, in all orders of memory, whatever the number of lanes.
#[test]
fn solutions_are_those_of_dense_systems() {
    for (number, ends) in Ends::ALL.into_iter().enumerate() {
        if !ends.kind().is_transform() {
            continue;
        }
        let faces: Vec<f64> = (0..8).map(|i| (i * i + 3 * i) as f64 / 10.0).collect();
        for cells in [1, 2, 3, 7] {
            let Ok(scheme) = Tridiagonal::second_derivative(&faces[..=cells], ends) else {
                continue;
            };
            let n = scheme.len();
            let order = [[0, 1, 2], [1, 0, 2], [0, 2, 1], [2, 1, 0]][number % 4];
            let kind = if number % 2 == 0 { Kind::C2C } else { Kind::Dct2 };
            let modes = modes(n, order, kind, Precision::F64);
            let modes = modes.with_tridiagonal(scheme.clone()).unwrap();
            let width = modes.width();
            let before = noise(2 * modes.points() * width);
            let mut after = vec![0.0; before.len()];
            let bytes = bytemuck::cast_slice_mut(&mut after);
            modes
                .apply(Operator::Helmholtz(0.1), Ok(()), bytemuck::cast_slice(&before), bytes)
                .unwrap();
            let strides = [0, 1, 2].map(|axis| {
                let place = order.iter().position(|other| *other == axis).unwrap();
                order[place + 1..].iter().map(|axis| [5, n, 9][*axis]).product::<usize>()
            });
            for (a, c, part) in
                (0..5).flat_map(|a| (0..9).flat_map(move |c| [(a, c, 0), (a, c, width - 1)]))
            {
                let shift = 0.1 + modes.along(0).k[a].powi(2) + modes.along(2).k[c].powi(2);
                let at =
                    |j: usize| (a * strides[0] + j * strides[1] + c * strides[2]) * width + part;
                let row = |j: usize| {
                    let mut row = vec![0.0; n];
                    let [below, here, above] = scheme.row(j);
                    row[(j + n - 1) % n] -= below;
                    row[j] += shift - here;
                    row[(j + 1) % n] -= above;
                    row
                };
                let expected =
                    dense((0..n).map(row).collect(), (0..n).map(|j| before[at(j)]).collect());
                for j in 0..n {
                    let error = (after[at(j)] - expected[j]).abs();
                    assert!(error < 1e-12, "{error:e} at {a} {j} {c} of {n}, {ends}, {order:?}");
                }
            }
        }
    }
}

/// Where nothing holds the mean, it is 0 by the widths of cells, and what is uniform in the
/// right-hand side is ignored.
#[test]
fn means_are_those_of_cells() {
    let faces = [0.0, 1.0, 1.5, 4.0, 4.5, 6.0];
    for ends in [Ends::Neumann, Ends::Periodic] {
        let scheme = Tridiagonal::second_derivative(&faces, ends).unwrap();
        let widths: Vec<_> = faces.windows(2).map(|pair| (pair[1] - pair[0]) / 6.0).collect();
        scheme.weights.iter().zip(&widths).for_each(|(x, y)| assert!((x - y).abs() < 1e-15));
        let modes = modes(5, [0, 2, 1], Kind::Dct2, Precision::F32);
        let modes = modes.with_tridiagonal(scheme).unwrap();
        let mut data: Vec<f32> = noise(225).into_iter().map(|x| x as f32).collect();
        let mut more: Vec<f32> = data.iter().map(|x| x + 3.0).collect();
        for data in [&mut data, &mut more] {
            modes
                .apply_in_place(Operator::Poisson, Ok(()), bytemuck::cast_slice_mut(data))
                .unwrap();
        }
        let mean: f64 = data.iter().zip(&widths).map(|(x, w)| f64::from(*x) * w).sum();
        assert!(mean.abs() < 1e-6, "{mean}");
        data[..5].iter().zip(&more).for_each(|(x, y)| assert!((x - y).abs() < 1e-5));
    }
}
