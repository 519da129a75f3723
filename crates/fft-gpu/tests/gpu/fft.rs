//! cuFFT's plans, against the CPU's transforms.

use fft_core::{Direction, Kind, LinePlanner, Real};
use fft_gpu::cudarc::driver::CudaSlice;
use fft_gpu::{ColumnFft, Fft, FftPlan, FftRun, Gpu, GpuError, GpuReal, lend, lend_mut};

use super::{data, gpu};

/// Whether cuFFT is there as well.
fn has_cufft(gpu: &Gpu) -> bool {
    match FftPlan::<f32>::new(gpu, FftRun::Forward, &Fft::rows([8], 1)) {
        Err(GpuError::NoCuFft) => {
            println!("not run: {}", GpuError::NoCuFft);
            false
        }
        other => other.map(|_| true).unwrap(),
    }
}

/// Transforms the rows of an array on the CPU.
fn rows<T: Real>(kind: Kind, direction: Direction, n: usize, x: &[T], width: usize) -> Vec<T> {
    let complex = kind == Kind::C2C;
    let line = LinePlanner::<T>::default().plan(kind, direction, n, complex).unwrap();
    let (before, after) = (line.len_in(), line.len_out());
    assert_eq!(before % width, 0);
    let (mut tile, mut scratch) =
        (vec![T::default(); line.pitch()], vec![T::default(); line.scratch_len()]);
    let transform = |row: &[T]| {
        tile[..before].copy_from_slice(row);
        line.run(&mut tile, &mut scratch, T::of(1.0));
        tile[..after].to_vec()
    };
    x.chunks(before).flat_map(transform).collect()
}

fn turned<T: Real>(x: &[T], rows: usize, columns: usize) -> Vec<T> {
    let pair = |i: usize| x[2 * i..][..2].to_vec();
    (0..columns).flat_map(|c| (0..rows).flat_map(move |r| pair(r * columns + c))).collect()
}

fn error<T: Real>(x: &[T], y: &[T]) -> f64 {
    assert_eq!(x.len(), y.len());
    let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
    norm(&mut x.iter().zip(y).map(|(x, y)| x.as_f64() - y.as_f64()))
        / norm(&mut y.iter().map(|y| y.as_f64()))
}

fn numbers<T: Real>(n: usize) -> Vec<T> {
    data::fields(n).swap_remove(0).1
}

fn plans<T: GpuReal>(gpu: &Gpu) {
    let (stream, most) = (gpu.stream(), 40.0 * T::EPSILON);
    let upload = |x: &[T]| stream.clone_htod(x).unwrap();
    let zeros = |n: usize| stream.alloc_zeros::<T>(n).unwrap();
    let (n, many) = (60, 33);
    let x = numbers::<T>(2 * n * many);
    let (mut a, mut b) = (upload(&x), zeros(2 * n * many));
    let mut work = stream.alloc_zeros::<u8>(1 << 22).unwrap();

    // Complex rows, there and back.
    let plan = |run, fft: &Fft<1>| FftPlan::<T>::new(gpu, run, fft).unwrap();
    let normalized = |x: Vec<T>, n: usize| -> Vec<T> {
        x.iter().map(|x| T::of(x.as_f64() / n as f64)).collect()
    };
    let fft = Fft::rows([n], many);
    plan(FftRun::Forward, &fft).run(&stream, &a, &mut b, &mut work).unwrap();
    let expected = rows(Kind::C2C, Direction::Forward, n, &x, 2);
    assert!(error(&stream.clone_dtoh(&b).unwrap(), &expected) < most);
    plan(FftRun::Inverse, &fft).run(&stream, &b, &mut a, &mut work).unwrap();
    assert!(error(&normalized(stream.clone_dtoh(&a).unwrap(), n), &x) < most);

    // Columns, in place.
    let mut a = upload(&x);
    let mut columns = plan(FftRun::Forward, &Fft::columns(n, many));
    columns.run_in_place(&stream, &mut a, &mut work).unwrap();
    let expected = rows(Kind::C2C, Direction::Forward, n, &turned(&x, n, many), 2);
    assert!(error(&stream.clone_dtoh(&a).unwrap(), &turned(&expected, many, n)) < most);

    // Real rows, there and back, of even and odd length.
    for n in [60, 45] {
        let (x, fft) = (numbers::<T>(n * many), Fft::rows([n], many));
        let spectrum = (n / 2 + 1) * many * 2;
        let (mut real, mut half) = (upload(&x), zeros(spectrum));
        plan(FftRun::RealToComplex, &fft).run(&stream, &real, &mut half, &mut work).unwrap();
        let expected = rows(Kind::R2C, Direction::Forward, n, &x, 1);
        assert!(error(&stream.clone_dtoh(&half).unwrap(), &expected) < most);
        plan(FftRun::ComplexToReal, &fft).run(&stream, &half, &mut real, &mut work).unwrap();
        assert!(error(&normalized(stream.clone_dtoh(&real).unwrap(), n), &x) < most);
    }

    // Three axes at once are rows, then columns of planes, then columns of all.
    let shape = [12, 10, 14];
    let x = numbers::<T>(2 * 12 * 10 * 14);
    let (mut a, mut b) = (upload(&x), upload(&x));
    let mut cube = FftPlan::<T>::new(gpu, FftRun::Forward, &Fft::rows(shape, 1)).unwrap();
    cube.run_in_place(&stream, &mut a, &mut work).unwrap();
    let planes = Fft::rows([10, 14], 12);
    let mut planes = FftPlan::<T>::new(gpu, FftRun::Forward, &planes).unwrap();
    planes.run_in_place(&stream, &mut b, &mut work).unwrap();
    let mut columns = plan(FftRun::Forward, &Fft::columns(12, 140));
    columns.run_in_place(&stream, &mut b, &mut work).unwrap();
    let (a, b) = (stream.clone_dtoh(&a).unwrap(), stream.clone_dtoh(&b).unwrap());
    assert!(error(&a, &b) < most);
    // The mean of all, and nothing is scaled.
    let sum: f64 = x.chunks(2).map(|z| z[0].as_f64()).sum();
    assert!((a[0].as_f64() - sum).abs() < most * sum.abs().max(100.0));
}

/// Kernels for columns of one length, for all radices, batches, and columns at the edge of a block.
fn columns<T: GpuReal>(gpu: &Gpu) {
    if !ColumnFft::<T>::has_length(gpu, 16) {
        return println!("not run: no libnvrtc.so on this machine");
    }
    let (stream, most) = (gpu.stream(), 40.0 * T::EPSILON);
    let (outer, inner) = (3, 21);
    for n in [2, 3, 4, 5, 7, 8, 9, 11, 13, 14, 15, 16, 30, 121, 128, 360, 500, 768, 1000, 1024] {
        let x = numbers::<T>(2 * outer * n * inner);
        let forward = |x: &[T]| -> Vec<T> {
            let plane = |x: &[T]| {
                let lines = turned(x, n, inner);
                turned(&rows(Kind::C2C, Direction::Forward, n, &lines, 2), inner, n)
            };
            x.chunks(2 * n * inner).flat_map(plane).collect()
        };
        for row_bytes in ColumnFft::<T>::ROWS {
            let shape = [outer, n, inner];
            let found = ColumnFft::<T>::new(gpu, &stream, shape, row_bytes).unwrap();
            // Blocks with long rows of long columns would have too many threads.
            assert!(found.is_some() || row_bytes > ColumnFft::<T>::ROWS[0], "{n} points");
            let Some(fft) = found else { continue };
            let src = stream.clone_htod(&x).unwrap();
            let mut dst = stream.alloc_zeros::<T>(x.len()).unwrap();
            let run = |direction, factor, dst: &mut CudaSlice<T>| {
                let (from, mut to) = (lend(&src, &stream), lend_mut(dst, &stream));
                fft.run(&stream, direction, Some(&from), &mut to, factor).unwrap();
            };
            run(Direction::Forward, 1.0, &mut dst);
            assert!(error(&stream.clone_dtoh(&dst).unwrap(), &forward(&x)) < most, "{n} points");
            // Back in place.
            let mut back = lend_mut(&mut dst, &stream);
            fft.run(&stream, Direction::Inverse, None, &mut back, 1.0 / n as f64).unwrap();
            drop(back);
            assert!(error(&stream.clone_dtoh(&dst).unwrap(), &x) < most, "{n} points, back");
        }
    }
    apart::<T>(gpu);
    let none = |n, inner| ColumnFft::<T>::new(gpu, &stream, [1, n, inner], 64).unwrap().is_none();
    assert!(none(17, 8) && none(1 << 17, 8) && none(16, 0), "lengths that have no kernel");
}

/// Some columns of an array, against the same ones side by side. Others stay as they are.
fn apart<T: GpuReal>(gpu: &Gpu) {
    let (stream, [outer, n, inner, pitch]) = (gpu.stream(), [2, 60, 5, 13]);
    let fft = || ColumnFft::<T>::new(gpu, &stream, [outer, n, inner], 64).unwrap().unwrap();
    assert!(fft().with_pitch(inner - 1).is_none(), "columns that overlap");
    let (dense, apart) = (fft(), fft().with_pitch(pitch).expect("a distance"));
    let whole = numbers::<T>(2 * outer * n * pitch);
    let some = |rows: &[T]| -> Vec<T> {
        rows.chunks(2 * pitch).flat_map(|row| &row[..2 * inner]).copied().collect()
    };
    let run = |fft: &ColumnFft<T>, src: &[T]| {
        let src = stream.clone_htod(src).unwrap();
        let mut dst = stream.alloc_zeros::<T>(src.len()).unwrap();
        let (from, mut to) = (lend(&src, &stream), lend_mut(&mut dst, &stream));
        fft.run(&stream, Direction::Forward, Some(&from), &mut to, 1.0).unwrap();
        drop(to);
        stream.clone_dtoh(&dst).unwrap()
    };
    let (found, expected) = (run(&apart, &whole), run(&dense, &some(&whole)));
    assert!(some(&found) == expected, "the same kernel, the same numbers");
    let others = found.chunks(2 * pitch).flat_map(|row| &row[2 * inner..]);
    assert!(others.copied().all(|x| x == T::of(0.0)));
}

/// Plans with a factor against those without: of all kinds, by rows and columns, in place and not.
fn scaled<T: GpuReal>(gpu: &Gpu) {
    let (stream, most, factor) = (gpu.stream(), 40.0 * T::EPSILON, T::of(0.3));
    let (n, many) = (60, 33);
    let x = numbers::<T>(2 * n * many);
    let times = |x: Vec<T>| -> Vec<T> { x.iter().map(|x| *x * factor).collect() };
    let mut work = stream.alloc_zeros::<u8>(1 << 22).unwrap();
    let plan = |run, fft: &Fft<1>| FftPlan::<T>::new(gpu, run, fft).unwrap();
    let scaled = |run, fft: &Fft<1>, by| FftPlan::<T>::scaled(gpu, run, fft, by).unwrap();
    for fft in [Fft::rows([n], many), Fft::columns(n, many)] {
        let begin = std::time::Instant::now();
        let Some(mut product) = scaled(FftRun::Inverse, &fft, factor) else {
            return println!("this cuFFT does not link what it is given");
        };
        println!("linked in {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
        let [mut a, mut b] = [0; 2].map(|_| stream.clone_htod(&x).unwrap());
        plan(FftRun::Inverse, &fft).run_in_place(&stream, &mut a, &mut work).unwrap();
        product.run_in_place(&stream, &mut b, &mut work).unwrap();
        let expected = times(stream.clone_dtoh(&a).unwrap());
        assert!(error(&stream.clone_dtoh(&b).unwrap(), &expected) < most);
        let (src, mut to) = (stream.clone_htod(&x).unwrap(), b);
        let product = scaled(FftRun::Forward, &fft, factor);
        product.expect("as above").run(&stream, &src, &mut to, &mut work).unwrap();
        plan(FftRun::Forward, &fft).run(&stream, &src, &mut a, &mut work).unwrap();
        let expected = times(stream.clone_dtoh(&a).unwrap());
        assert!(error(&stream.clone_dtoh(&to).unwrap(), &expected) < most);
    }
    for n in [60, 45] {
        let rows = Fft::rows([n], many);
        let src = stream.clone_htod(&x[..n * many]).unwrap();
        let [mut a, mut b] =
            [0; 2].map(|_| stream.alloc_zeros::<T>((n / 2 + 1) * many * 2).unwrap());
        plan(FftRun::RealToComplex, &rows).run(&stream, &src, &mut a, &mut work).unwrap();
        let product = scaled(FftRun::RealToComplex, &rows, factor);
        product.expect("as above").run(&stream, &src, &mut b, &mut work).unwrap();
        let expected = times(stream.clone_dtoh(&a).unwrap());
        assert!(error(&stream.clone_dtoh(&b).unwrap(), &expected) < most);
        let mut back = stream.alloc_zeros::<T>(n * many).unwrap();
        let product = scaled(FftRun::ComplexToReal, &rows, T::of(1.0 / n as f64));
        product.expect("as above").run(&stream, &a, &mut back, &mut work).unwrap();
        assert!(error(&stream.clone_dtoh(&back).unwrap(), &x[..n * many]) < most);
    }
}

#[test]
fn columns_are_transformed_as_the_cpu_does() {
    let Some(gpu) = gpu() else { return };
    columns::<f64>(&gpu);
    columns::<f32>(&gpu);
}

#[test]
fn plans_with_a_factor_multiply_by_it() {
    let Some(gpu) = gpu() else { return };
    if has_cufft(&gpu) {
        scaled::<f64>(&gpu);
        scaled::<f32>(&gpu);
    }
}

#[test]
fn plans_transform_as_the_cpu_does() {
    let Some(gpu) = gpu() else { return };
    if has_cufft(&gpu) {
        plans::<f64>(&gpu);
        plans::<f32>(&gpu);
    }
}

#[test]
fn short_buffers_are_refused() {
    let Some(gpu) = gpu() else { return };
    if !has_cufft(&gpu) {
        return;
    }
    let stream = gpu.stream();
    let mut plan = FftPlan::<f64>::new(&gpu, FftRun::Forward, &Fft::rows([100], 10)).unwrap();
    let mut work = stream.alloc_zeros::<u8>(plan.work_bytes().max(1)).unwrap();
    let [src, mut dst] = [1999, 2000].map(|n| stream.alloc_zeros::<f64>(n).unwrap());
    let error = plan.run(&stream, &src, &mut dst, &mut work).unwrap_err();
    assert_eq!(error, GpuError::Short { what: "the source", found: 15992, expected: 16000 });
    let odd = stream.alloc_zeros::<f64>(2001).unwrap();
    let error = plan.run(&stream, &odd.slice(1..), &mut dst, &mut work).unwrap_err();
    assert!(error.to_string().contains("the source: found"), "{error}");
    // A large prime wants memory to work with.
    let mut plan = FftPlan::<f64>::new(&gpu, FftRun::Forward, &Fft::rows([100_003], 1)).unwrap();
    let [src, mut dst] = [(); 2].map(|()| stream.alloc_zeros::<f64>(200_006).unwrap());
    let error =
        plan.run(&stream, &src, &mut dst, &mut stream.alloc_zeros::<u8>(16).unwrap()).unwrap_err();
    assert!(matches!(error, GpuError::Short { what: "the work area", .. }), "{error}");
}
