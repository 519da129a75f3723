//! Scaling and operators on spectra, against the same of the host.

use std::f64::consts::TAU;

use fft_core::{Ends, Grid, Kind, Layout, Modes, Operator, Precision, Spectrum, Tridiagonal};
use fft_gpu::{DeviceModes, Gpu, GpuError, GpuReal, Scaling, lend, lend_mut};

use super::{data, gpu};

/// A brick of a spectrum of two ranks, with the kinds of its axes.
fn modes<T: GpuReal>(kinds: [Kind; 3]) -> Modes {
    let complex = kinds.iter().any(|kind| matches!(kind, Kind::C2C | Kind::R2C));
    let grid = Grid::new([10, 12, 9]).unwrap();
    let spectral = fft_core::Problem::spectral_grid(grid, kinds);
    let layout = Layout::even(spectral, fft_core::ProcGrid::new([2, 1, 1]), 2);
    let layout = layout.ordered([1, 2, 0]).unwrap();
    let precision = if T::EPSILON < 1e-10 { Precision::F64 } else { Precision::F32 };
    let spectrum =
        Spectrum { kinds: kinds.into(), modes: grid.shape().into(), layout, complex, precision };
    Modes::new(spectrum, 1, &[1.0, TAU, 5.0]).unwrap()
}

fn close<T: GpuReal>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().map(|x| x.as_f64().abs()).fold(0.0, f64::max);
    for (i, (x, y)) in found.iter().zip(expected).enumerate() {
        // Sums of a few terms, in another order.
        let bound = 8.0 * T::EPSILON * (y.as_f64().abs() + 0.1 * largest);
        assert!((x.as_f64() - y.as_f64()).abs() <= bound, "{what} {i}: {x:?}, not {y:?}");
    }
}

/// All operators on modes, between two arrays and within one, of two operands.
fn operators<T: GpuReal>(gpu: &Gpu, modes: Modes, operators: &[Operator]) {
    let (stream, kinds) = (gpu.stream(), modes.spectrum().kinds);
    let on_device = DeviceModes::new(gpu, &stream, &modes).unwrap();
    let reals = modes.points() * modes.width();
    let (_, source) = data::fields::<T>(6 * reals).swap_remove(0);
    for operator in operators {
        let [before, after] = operator.components(modes.dimensions()).unwrap();
        let what = format!("{operator:?} of {kinds:?}");
        let x = &source[..2 * before * reals];
        let mut expected = vec![T::default(); 2 * after * reals];
        let bytes = bytemuck::cast_slice_mut(&mut expected);
        modes.apply(*operator, Ok(()), bytemuck::cast_slice(x), bytes).unwrap();
        let from = stream.clone_htod(bytemuck::cast_slice::<T, u8>(x)).unwrap();
        let mut to = stream.alloc_zeros::<u8>(2 * after * reals * size_of::<T>()).unwrap();
        let call = (*operator, [before, after]);
        let (lent, mut place) = (lend(&from, &stream), lend_mut(&mut to, &stream));
        on_device.apply(&stream, &modes, call, Some(&lent), &mut place).unwrap();
        drop((lent, place));
        let found = stream.clone_dtoh(&to).unwrap();
        close::<T>(bytemuck::cast_slice(&found), &expected, &what);
        if before == after {
            let mut data = from;
            let mut lent = lend_mut(&mut data, &stream);
            on_device.apply(&stream, &modes, call, None, &mut lent).unwrap();
            drop(lent);
            assert_eq!(stream.clone_dtoh(&data).unwrap(), found, "{what} in place");
        }
    }
}

fn multiplies<T: GpuReal>(gpu: &Gpu) {
    use Kind::{C2C, Dct2, Dst3, R2C};
    use Operator::{Curl, Cutoff, Derivative, Divergence, Gaussian, Gradient, Helmholtz};
    use Operator::{Laplacian, Poisson, Project};
    let scalars = [Laplacian, Poisson, Helmholtz(0.3), Gaussian(0.1), Cutoff(2.0 / 3.0)];
    let vectors = [Derivative(1), Gradient, Divergence, Curl, Project];
    for kinds in [[C2C; 3], [C2C, C2C, R2C], [C2C, Kind::None, C2C]] {
        let all: Vec<_> = scalars.into_iter().chain(vectors).collect();
        let all = if kinds[1] == Kind::None { [&scalars[..], &vectors[1..]].concat() } else { all };
        operators::<T>(gpu, modes::<T>(kinds), &all);
    }
    for kinds in [[Dct2, C2C, Dst3], [Dct2, Kind::None, Dst3]] {
        operators::<T>(gpu, modes::<T>(kinds), &scalars);
    }
    for (kinds, ends) in [
        ([C2C, Kind::Tridiagonal, C2C], Ends::Neumann),
        ([Dct2, Kind::Tridiagonal, Dst3], Ends::Dirichlet),
        ([C2C, C2C, Kind::Tridiagonal], Ends::Periodic),
    ] {
        let modes = modes::<T>(kinds);
        let n = if kinds[1] == Kind::Tridiagonal { 12 } else { 9 };
        let faces: Vec<f64> = (0..=n).map(|i| (i * i + 5 * i) as f64 / 20.0).collect();
        let scheme = Tridiagonal::second_derivative(&faces, ends).unwrap();
        operators::<T>(gpu, modes.with_tridiagonal(scheme).unwrap(), &scalars[..3]);
    }
    let stream = gpu.stream();
    for kinds in [[C2C; 3], [Dct2; 3]] {
        let modes = modes::<T>(kinds);
        let on_device = DeviceModes::new(gpu, &stream, &modes).unwrap();
        let reals = modes.points() * modes.width();
        let (_, source) = data::fields::<T>(3 * reals).swap_remove(0);
        let (kernel, x) = source.split_at(reals);
        for conjugate in [false, true] {
            let mut expected = x.to_vec();
            let [by, data] = [kernel, x].map(bytemuck::cast_slice::<T, u8>);
            modes.multiply(by, conjugate, bytemuck::cast_slice_mut(&mut expected)).unwrap();
            let (by, mut data) = (stream.clone_htod(by).unwrap(), stream.clone_htod(data).unwrap());
            let (lent, mut place) = (lend(&by, &stream), lend_mut(&mut data, &stream));
            on_device.multiply(&stream, &lent, conjugate, &mut place).unwrap();
            drop((lent, place));
            let found = stream.clone_dtoh(&data).unwrap();
            close::<T>(bytemuck::cast_slice(&found), &expected, "a product");
        }
    }
    let (_, x) = data::fields::<T>(1000).swap_remove(0);
    // Of any length, from any number on.
    let scaling = Scaling::<T>::new(gpu).unwrap();
    let mut on_device = stream.clone_htod(&x).unwrap();
    scaling.run(&stream, &mut on_device.slice_mut(3..600), T::of(-0.25)).unwrap();
    scaling.run(&stream, &mut on_device.slice_mut(4..601), T::of(2.0)).unwrap();
    let factor = |i| {
        [(3..600, -0.25), (4..601, 2.0)]
            .iter()
            .filter(|f| f.0.contains(&i))
            .map(|f| f.1)
            .product::<f64>()
    };
    let expected: Vec<_> =
        x.iter().enumerate().map(|(i, x)| T::of(x.as_f64() * factor(i))).collect();
    close(&stream.clone_dtoh(&on_device).unwrap(), &expected, "scale");

    let modes = modes::<T>([C2C; 3]);
    let on_device = DeviceModes::new(gpu, &stream, &modes).unwrap();
    let bytes = modes.component_bytes();
    let mut short = stream.alloc_zeros::<u8>(bytes - 1).unwrap();
    let kernel = stream.alloc_zeros::<u8>(bytes - 1).unwrap();
    let (lent, mut place) = (lend(&kernel, &stream), lend_mut(&mut short, &stream));
    let error = on_device.multiply(&stream, &lent, false, &mut place).unwrap_err();
    assert!(matches!(error, GpuError::Short { what: "the kernel", .. }), "{error}");
}

#[test]
fn spectra_are_those_of_the_host() {
    let Some(gpu) = gpu() else { return };
    multiplies::<f64>(&gpu);
    multiplies::<f32>(&gpu);
}
