//! Boxes with any order of axes, on any instruction set.

use proptest::prelude::*;

use super::bits::Bits;
use super::codec::{Codec, copy};
use super::frame::{Frame, Scheme};
use super::rounded::{Format, Rounded};
use super::tolerance::Tolerance;
use super::wire::Wire;
use crate::base::Real;
use crate::geometry::Placed;
use crate::geometry::{DynBrick, Transfer};

fn brick() -> impl Strategy<Value = DynBrick> {
    [(0..4usize, 1..18usize), (0..4, 1..18), (0..4, 1..18)]
        .prop_map(|sides| DynBrick::new(sides.map(|(lo, _)| lo), sides.map(|(lo, n)| lo + n)))
}

fn order() -> impl Strategy<Value = [usize; 3]> {
    Just([0, 1, 2]).prop_shuffle()
}

fn wire() -> impl Strategy<Value = Wire> {
    let names = ["raw", "f32", "f16", "mantissa:11", "bits:7", "bits:16", "tolerance", "lossless"];
    prop::sample::select(names.map(|name| name.parse::<Wire>().unwrap()).to_vec())
}

/// Numbers that wires keep apart.
fn numbers<T: Real>(n: usize) -> Vec<T> {
    (0..n).map(|i| T::of((i as f64 * 0.7).sin() * 1000.0)).collect()
}

/// Packs a box and unpacks it elsewhere. A dense copy of the box must make the same message.
fn through<T: Real>(
    (wire, width): (Wire, usize),
    part: &DynBrick,
    from: &Placed,
    to: &Placed,
) -> Result<(), TestCaseError> {
    let message = Placed { brick: *part, ..*to };
    let batch = from.batch;
    let gather = Transfer::new(part, 0..batch, from, &message);
    let scatter = Transfer::new(part, 0..batch, &message, to);
    let (reals, step) = (gather.elements() * width, 1e-3);
    let codec = wire.codec::<T>();
    let aligned = |bytes: usize| vec![0u64; bytes.div_ceil(8)];
    let mut slots = [aligned(codec.bound(reals)), aligned(codec.bound(reals))];

    let src = numbers::<T>(from.brick.points() * batch * width);
    let [boxed, plain] = slots.each_mut().map(|slot| bytemuck::cast_slice_mut::<u64, u8>(slot));
    let packed = codec.pack(&src, &gather, width, step, boxed);
    let mut dense = vec![T::default(); reals];
    copy(&gather, width, &src, &mut dense);
    let whole = Transfer::run_of(reals / width);
    prop_assert_eq!(codec.pack(&dense, &whole, width, step, plain), packed);
    let bytes = packed.bytes;
    prop_assert!(boxed[..bytes] == plain[..bytes]);

    // Elements outside the box do not change.
    let mut dst = vec![T::of(0.5); to.brick.points() * batch * width];
    let mut expected = dst.clone();
    codec.unpack(&boxed[..bytes], &scatter, width, &mut dst).unwrap();
    codec.unpack(&plain[..bytes], &whole, width, &mut dense).unwrap();
    copy(&scatter, width, &dense, &mut expected);
    prop_assert_eq!(dst, expected);
    Ok(())
}

proptest! {
    #[test]
    fn boxes_go_through_as_dense_sequences_do(
        a in brick(), b in brick(), oa in order(), ob in order(), batch in 1..3usize,
        wire in wire(), width in 1..3usize, single in any::<bool>(),
    ) {
        let part = a.intersect(&b);
        prop_assume!(!part.is_empty());
        let from = Placed::new(a, oa, batch);
        let to = Placed::new(b, ob, batch);
        if single {
            through::<f32>((wire, width), &part, &from, &to)?;
        } else {
            through::<f64>((wire, width), &part, &from, &to)?;
        }
    }
}

fn same_bits<T: Real, S: Scheme<T>>(wire: Wire, scheme: impl Fn() -> S) {
    let mut x = numbers::<T>(5000);
    (x[77], x[2000]) = (T::of(f64::NAN), T::of(1e-30));
    let here = Frame::new(wire.code(), scheme());
    let mut plain = Frame::new(wire.code(), scheme());
    plain.arch = pulp::Arch::Scalar;
    let transfer = Transfer::run_of(2500);
    let [mut a, mut b] = [(); 2].map(|()| vec![0; Codec::<T>::bound(&here, 5000)]);
    let packed = here.pack(&x, &transfer, 2, 1e-3, &mut a);
    assert_eq!(packed, plain.pack(&x, &transfer, 2, 1e-3, &mut b));
    assert!(a == b);
    let [mut y, mut z] = [(); 2].map(|()| vec![T::default(); 5000]);
    here.unpack(&a[..packed.bytes], &transfer, 2, &mut y).unwrap();
    plain.unpack(&a[..packed.bytes], &transfer, 2, &mut z).unwrap();
    assert!(bytemuck::cast_slice::<T, u8>(&y) == bytemuck::cast_slice::<T, u8>(&z));
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    for bits in [3, 8, 15, 16, 32, 43] {
        same_bits::<f64, _>(Wire::Bits(16), || Bits::new(bits));
        same_bits::<f32, _>(Wire::Bits(16), || Bits::new(bits));
    }
    for format in [Format::F32, Format::F16, Format::Bf16, Format::Mantissa(16)] {
        same_bits::<f64, _>(Wire::Mantissa(16), || Rounded(format));
        same_bits::<f32, _>(Wire::Mantissa(16), || Rounded(format));
    }
    same_bits::<f64, _>(Wire::Tolerance, || Tolerance);
    same_bits::<f32, _>(Wire::Tolerance, || Tolerance);
}
