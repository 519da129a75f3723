//! Packing and unpacking as it is, against `Transfer::run`.

use bytemuck::Pod;
use fft_core::{Complex, Transfer};
use fft_gpu::cudarc::driver::{DeviceRepr, ValidAsZeroBits};
use fft_gpu::{Gpu, GpuError, Move, Transfers};

use super::{data, gpu};

/// Copies all boxes of each case one after the other, and back, as elements `E` of numbers `N`.
fn copies<E: Pod + PartialEq + std::fmt::Debug, N: Pod + DeviceRepr + ValidAsZeroBits>(
    gpu: &Gpu,
    element: impl Fn(usize) -> E,
) {
    let stream = gpu.stream();
    let numbers = size_of::<E>() / size_of::<N>();
    for case in data::all() {
        let src: Vec<E> = (1..=case.elements).map(&element).collect();
        let mut packed = vec![E::zeroed(); case.elements];
        let mut unpacked = vec![E::zeroed(); case.scattered];
        let (mut packs, mut unpacks, mut at) = (Vec::new(), Vec::new(), 0);
        for (gather, scatter) in case.gathers.iter().zip(&case.scatters) {
            gather.run(&src, &mut packed[at..]);
            scatter.run(&packed[at..], &mut unpacked);
            packs.push(Move { transfer: gather, from: 0, to: at });
            unpacks.push(Move { transfer: scatter, from: at, to: 0 });
            at += gather.elements();
        }
        let pack = Transfers::new(gpu, &stream, size_of::<E>(), &packs).unwrap();
        let unpack = Transfers::new(gpu, &stream, size_of::<E>(), &unpacks).unwrap();
        let on_device = stream.clone_htod(bytemuck::cast_slice::<E, N>(&src)).unwrap();
        let mut message = stream.alloc_zeros::<N>(case.elements * numbers).unwrap();
        let mut result = stream.alloc_zeros::<N>(case.scattered * numbers).unwrap();
        pack.run(&stream, &on_device, &mut message).unwrap();
        unpack.run(&stream, &message, &mut result).unwrap();
        let (message, result) =
            (stream.clone_dtoh(&message).unwrap(), stream.clone_dtoh(&result).unwrap());
        stream.synchronize().unwrap();
        assert!(bytemuck::cast_slice::<N, E>(&message) == packed, "{} packed", case.name);
        assert!(bytemuck::cast_slice::<N, E>(&result) == unpacked, "{} unpacked", case.name);
    }
}

#[test]
fn boxes_with_any_order_of_axes_are_copied() {
    let Some(gpu) = gpu() else { return };
    copies::<f32, f32>(&gpu, |i| i as f32);
    copies::<f64, f64>(&gpu, |i| i as f64);
    copies::<Complex<f32>, f32>(&gpu, |i| Complex::new(i as f32, -(i as f32)));
    copies::<Complex<f64>, f64>(&gpu, |i| Complex::new(i as f64, -(i as f64)));
}

#[test]
fn boxes_that_reach_outside_are_refused() {
    let Some(gpu) = gpu() else { return };
    let stream = gpu.stream();
    let transfer = Transfer::run_of(1000);
    let one = Move { transfer: &transfer, from: 24, to: 0 };
    let copies = Transfers::new(&gpu, &stream, 8, &[one]).unwrap();
    let [short, mut long] = [1023, 1024].map(|n| stream.alloc_zeros::<f64>(n).unwrap());
    let error = copies.run(&stream, &short, &mut long).unwrap_err();
    assert_eq!(error, GpuError::Short { what: "the source", found: 8184, expected: 8192 });
    let mut shorter = stream.alloc_zeros::<f64>(999).unwrap();
    let error = copies.run(&stream, &long, &mut shorter).unwrap_err();
    assert_eq!(error, GpuError::Short { what: "the destination", found: 7992, expected: 8000 });
    // Two adjacent elements are copied as one, which must be aligned.
    let error = copies.run(&stream, &long.slice(..), &mut shorter).unwrap_err();
    assert!(matches!(error, GpuError::Short { .. }));
    let mut odd = stream.alloc_zeros::<f64>(1025).unwrap();
    let error = copies.run(&stream, &long, &mut odd.slice_mut(1..)).unwrap_err();
    assert!(error.to_string().contains("a multiple of 16 bytes"), "{error}");
    assert!(Transfers::new(&gpu, &stream, 12, &[]).is_err());
}
