//! Plans on a CUDA device against the definition. Ranks share a GPU; without one tests pass.

use crate::common::check::{Case, Make};
use crate::common::data::{C64, bound, cut, distance, norm, random, widen};
use crate::common::on_hosts;
use crate::common::tiling::Rng;
use crate::gpu::{few, gpu, gpu_of};
use fft_core::{Element, Real};
use thriffty::Kind::{C2C, R2C};
use thriffty::gpu::GpuTransport;
use thriffty::gpu::cudarc::driver::{CudaSlice, CudaStream};
use thriffty::gpu::{DeviceDraft, DevicePlan};
use thriffty::gpu::{Gpu, GpuReal};
use thriffty::planning::{Direction, DynTransform, Exchange, Reduce};
use thriffty::{
    C2c, Comm, Draft, Error, ErrorKind, Kind, R2c, R2r, Scale, ThreadComm, Tolerance, Tuning, Wire,
};

/// Rank counts: one, even and odd, and a power of two that cuts all three axes.
const RANKS: [usize; 5] = [1, 2, 3, 4, 8];

type Done = Result<(), Error>;

/// The GPU and stream of a plan.
trait Place: Sync {
    fn plan<'a, K: Make, const D: usize>(&self, draft: Draft<'a, K, D>) -> DeviceDraft<'a, K, D>
    where
        K::Real: GpuReal;
}

impl Place for Gpu {
    fn plan<'a, K: Make, const D: usize>(&self, draft: Draft<'a, K, D>) -> DeviceDraft<'a, K, D>
    where
        K::Real: GpuReal,
    {
        draft.on(self)
    }
}

/// An array on the device; an empty one has a number that is not used.
struct Array<T> {
    numbers: CudaSlice<T>,
    len: usize,
}

impl<T: GpuReal> Array<T> {
    fn of<E: Element<Real = T>>(stream: &std::sync::Arc<CudaStream>, data: &[E]) -> Self {
        let numbers: &[T] = bytemuck::cast_slice(data);
        let some = if numbers.is_empty() { &[T::default()][..] } else { numbers };
        Self { numbers: stream.clone_htod(some).unwrap(), len: numbers.len() }
    }

    fn data<E: Element<Real = T>>(&self, stream: &std::sync::Arc<CudaStream>) -> Vec<E> {
        let numbers = stream.clone_dtoh(&self.numbers).unwrap();
        stream.synchronize().unwrap();
        bytemuck::cast_slice(&numbers[..self.len]).to_vec()
    }
}

/// Runs a plan from data to data.
fn transform<K: Make, A, B, const D: usize>(
    plan: &mut DevicePlan<K, D>,
    direction: Direction,
    data: &[A],
    len: usize,
) -> Result<Vec<B>, Error>
where
    K::Real: GpuReal,
    A: Element<Real = K::Real>,
    B: Element<Real = K::Real>,
{
    let stream = plan.stream().clone();
    let src = Array::of(&stream, data);
    let found = transform_from(plan, direction, &src, len)?;
    assert_eq!(
        bytemuck::cast_slice::<A, u8>(&src.data(&stream)),
        bytemuck::cast_slice::<A, u8>(data),
        "the input stays"
    );
    Ok(found)
}

/// Runs a plan from an array to data.
fn transform_from<K: Make, B, const D: usize>(
    plan: &mut DevicePlan<K, D>,
    direction: Direction,
    src: &Array<K::Real>,
    len: usize,
) -> Result<Vec<B>, Error>
where
    K::Real: GpuReal,
    B: Element<Real = K::Real>,
{
    let stream = plan.stream().clone();
    let mut dst = Array::of(&stream, &random::<B>(len, 3));
    let (from, mut to) = (src.numbers.slice(0..src.len), dst.numbers.slice_mut(0..dst.len));
    match direction {
        Direction::Forward => plan.forward_into(&from, &mut to)?,
        Direction::Inverse => plan.inverse_into(&from, &mut to)?,
    }
    Ok(dst.data(&stream))
}

/// Both directions against the definition, out of place, twice, and in place.
fn check<K: Make, const D: usize>(comm: &dyn Comm, gpu: &impl Place, case: &Case<D>) -> Done
where
    K::Real: GpuReal,
{
    let (rank, ranks) = (comm.rank(), comm.size());
    let [physical, spectral] = case.grids()?;
    let [input, output] = case.bricks(ranks)?;
    let x: Vec<K::Physical> = random(physical.points() * case.batch, 1);
    let y: Vec<K::Spectral> = random(spectral.points() * case.batch, 2);
    let x_here = cut(&x, physical.shape(), input[rank], case.orders[0]);
    let y_here = cut(&y, spectral.shape(), output[rank], case.orders[1]);
    let mut plan = gpu.plan(case.draft::<K>(comm)?).build()?;
    let what = format!("rank {rank} of {ranks}, {}", plan.recipe());
    let compare = |way: &str, found: &[C64], all: &[C64], expected: Vec<C64>| {
        let error = distance(found, &expected) / norm(all).max(f64::MIN_POSITIVE);
        let bound = bound(K::Real::EPSILON, physical.points());
        assert!(error <= bound, "{way}: error {error:.2e} exceeds {bound:.2e}: {what}");
    };
    let forward = case.expected(Direction::Forward, &widen(&x));
    let inverse = case.expected(Direction::Inverse, &widen(&y));
    let y_there = || cut(&forward, spectral.shape(), output[rank], case.orders[1]);
    let x_there = || cut(&inverse, physical.shape(), input[rank], case.orders[0]);
    for _ in 0..2 {
        let found: Vec<K::Spectral> =
            transform(&mut plan, Direction::Forward, &x_here, y_here.len())?;
        compare("forward_into", &widen(&found), &forward, y_there());
        let found: Vec<K::Physical> =
            transform(&mut plan, Direction::Inverse, &y_here, x_here.len())?;
        compare("inverse_into", &widen(&found), &inverse, x_there());
    }
    let stream = plan.stream().clone();
    let mut data: Vec<K::Spectral> = random(plan.in_place_len(), 5);
    bytemuck::cast_slice_mut(&mut data)[..x_here.len()].copy_from_slice(&x_here);
    let mut array = Array::of(&stream, &data);
    let len = array.len;
    plan.forward_in_place(&mut array.numbers.slice_mut(0..len))?;
    let found: Vec<K::Spectral> = array.data(&stream);
    compare("forward_in_place", &widen(&found[..y_here.len()]), &forward, y_there());
    data[..y_here.len()].copy_from_slice(&y_here);
    let mut array = Array::of(&stream, &data);
    plan.inverse_in_place(&mut array.numbers.slice_mut(0..len))?;
    let found: Vec<K::Spectral> = array.data(&stream);
    let found: &[K::Physical] = bytemuck::cast_slice(&found);
    compare("inverse_in_place", &widen(&found[..x_here.len()]), &inverse, x_there());
    Ok(())
}

fn complex<const D: usize>(comm: &dyn Comm, gpu: &impl Place, case: &Case<D>) -> Done {
    check::<C2c<f64>, D>(comm, gpu, case)?;
    check::<C2c<f32>, D>(comm, gpu, case)
}

fn halved<const D: usize>(comm: &dyn Comm, gpu: &impl Place, case: &Case<D>) -> Done {
    check::<R2c<f64>, D>(comm, gpu, case)?;
    check::<R2c<f32>, D>(comm, gpu, case)
}

/// One to four axes, any halved axis, orders of axes, batches, scales, uneven and empty bricks.
fn everything(comm: &dyn Comm, gpu: &impl Place) -> Done {
    let p2p = Exchange::P2p;
    complex(comm, gpu, &Case::new([16, 12, 20], [C2C; 3]).exchange(p2p))?;
    halved(comm, gpu, &Case::new([16, 12, 20], [C2C, C2C, R2C]).exchange(p2p))?;
    for n in [1, 2, 5, 60, 101] {
        complex(comm, gpu, &Case::new([n], [C2C]).exchange(p2p))?;
        halved(comm, gpu, &Case::new([n], [R2C]).exchange(p2p))?;
    }
    complex(comm, gpu, &Case::new([12, 1], [C2C; 2]).exchange(p2p))?;
    halved(comm, gpu, &Case::new([7, 10], [R2C, C2C]).exchange(p2p))?;
    halved(comm, gpu, &Case::new([5, 1], [C2C, R2C]).batch(3).exchange(p2p))?;
    let fortran = [2, 1, 0];
    complex(comm, gpu, &Case::new([6, 7, 5], [C2C; 3]).orders(fortran, [0, 1, 2]).exchange(p2p))?;
    let scaled = Case::new([8, 4, 6], [C2C, C2C, Kind::None]).batch(3).exchange(p2p);
    complex(comm, gpu, &scaled.scales(Scale::Symmetric, Scale::Symmetric))?;
    for axis in 0..3 {
        let mut kinds = [C2C; 3];
        kinds[axis] = R2C;
        halved(comm, gpu, &Case::new([6, 5, 7], kinds).exchange(p2p))?;
        let turned = Case::new([4, 5, 6], kinds).orders([1, 2, 0], fortran).batch(3);
        halved(comm, gpu, &turned.exchange(p2p))?;
    }
    let order = [3, 0, 2, 1];
    complex(
        comm,
        gpu,
        &Case::new([3, 4, 5, 2], [C2C; 4]).orders([3, 2, 1, 0], order).exchange(p2p),
    )?;
    halved(comm, gpu, &Case::new([4, 3, 1, 6], [C2C, C2C, C2C, R2C]).batch(3).exchange(p2p))?;
    for seed in 0..if few() { 1 } else { 6 } {
        let case = Case::new([5, 9, 7], [C2C; 3]).tiling(seed).exchange(p2p);
        complex(comm, gpu, &case)?;
        let case = Case::new([7, 6, 5], [R2C, C2C, C2C]).tiling(seed).exchange(p2p);
        halved(comm, gpu, &case.orders(fortran, [1, 2, 0]))?;
        complex(comm, gpu, &Case::new([30], [C2C]).tiling(seed).batch(3).exchange(p2p))?;
    }
    Ok(())
}

#[test]
fn ranks_that_share_a_device_transform_as_defined() {
    let Some(gpu) = gpu() else { return };
    for ranks in if few() { &RANKS[1..3] } else { &RANKS[..] } {
        thriffty::threads(*ranks, |comm| everything(&comm, &gpu)).unwrap();
    }
}

#[test]
fn ranks_with_devices_of_their_own_transform_as_defined() {
    let (Some(one), Some(other)) = (gpu(), gpu_of(1)) else { return };
    if one.context().ordinal() == other.context().ordinal() {
        return println!("not run: there is one GPU");
    }
    for ranks in [2, 3, 4] {
        let body = |comm: ThreadComm| {
            let gpu = gpu_of(comm.rank()).expect("asked before");
            everything(&comm, &gpu)?;
            fetched::cases(&comm, &gpu, false)?;
            resized::cases(&comm, &gpu, 30..34)?;
            shared::cases(&comm, &gpu, fetched::joined(&comm, &gpu)?, false)
        };
        thriffty::threads(ranks, body).unwrap();
    }
}

/// Arrays whose scale is linked into cuFFT's kernels, also of a length with a large prime factor.
#[test]
fn a_scale_of_large_arrays_is_as_defined() {
    let Some(gpu) = gpu() else { return };
    for ranks in [1, 2] {
        thriffty::threads(ranks, |comm| {
            let case = Case::new([34, 64, 74], [C2C; 3]).exchange(Exchange::P2p);
            complex(&comm, &gpu, &case.scales(Scale::Symmetric, Scale::Full))?;
            let case = Case::new([64, 62, 75], [C2C, C2C, R2C]).exchange(Exchange::P2p);
            halved(&comm, &gpu, &case.scales(Scale::Symmetric, Scale::Full))
        })
        .unwrap();
    }
}

#[test]
fn ranks_of_other_hosts_transform_as_defined() {
    let Some(gpu) = gpu() else { return };
    let hosts = [&[0, 1][..], &[0, 0, 1], &[0, 1, 2, 3], &[1, 0, 0, 1, 2, 1]];
    for hosts in if few() { &hosts[..2] } else { &hosts[..] } {
        on_hosts(hosts, |comm| everything(&comm, &gpu));
    }
    on_hosts(&[0, 1, 1], |comm| {
        for exchange in Exchange::ALL {
            let case = Case::new([9, 12, 10], [C2C; 3]).tiling(3).exchange(exchange);
            complex(&comm, &gpu, &case)?;
            let case = Case::new([9, 12, 10], [C2C, C2C, R2C]).exchange(exchange);
            halved(&comm, &gpu, &case)?;
        }
        Ok(())
    });
}

#[test]
fn errors_are_the_same_on_all_ranks() {
    let Some(gpu) = gpu() else { return };
    thriffty::threads(3, |comm| {
        let case = Case::new([6, 5, 4], [C2C; 3]).exchange(Exchange::P2p);
        let mut plan = case.draft::<C2c<f64>>(&comm)?.on(&gpu).build()?;
        let stream = plan.stream().clone();
        let lens = [2 * plan.input_len(), 2 * plan.output_len()];
        let short = usize::from(comm.rank() == 1);
        let x = stream.clone_htod(&vec![1.0; lens[0]]).unwrap();
        let mut y = stream.alloc_zeros::<f64>(lens[1]).unwrap();
        let error = plan.forward_into(&x.slice(short..), &mut y).unwrap_err();
        assert!(error.to_string().starts_with("the input of rank 1 has"), "{error}");
        // A slice that does not begin at a multiple of 16 bytes, on one rank.
        let long = stream.clone_htod(&vec![1.0; lens[0] + 1]).unwrap();
        let odd = long.slice(short..lens[0] + short);
        let error = plan.forward_into(&odd, &mut y).unwrap_err();
        assert!(matches!(&error, Error::OnRank { rank: 1, .. }), "{error}");
        // The plan stays usable.
        plan.forward_into(&x, &mut y)?;
        let y = stream.clone_dtoh(&y).unwrap();
        stream.synchronize().unwrap();
        assert!(comm.rank() != 0 || (y[0] - 120.0).abs() < 1e-12);
        // Threads send nothing from a device.
        let draft = case.draft::<C2c<f64>>(&comm)?.on(&gpu).transport(GpuTransport::GpuDirect);
        let error = draft.build().map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// Shapes, bricks, orders, ranks and hosts at random.
#[test]
fn any_transform_is_as_defined() {
    let Some(gpu) = gpu() else { return };
    for seed in 0..if few() { 2 } else { 40 } {
        let mut rng = Rng(seed);
        let ranks = RANKS[rng.below(RANKS.len())];
        let hosts: Vec<_> = (0..ranks).map(|_| rng.below(2) * (seed as usize % 2)).collect();
        let shape = [0; 3].map(|_| 1 + rng.below(18));
        let orders = [rng.order(), rng.order()];
        let axis = rng.below(3);
        let batch = 1 + rng.below(2);
        on_hosts(&hosts, |comm| {
            let case = |kinds| {
                let case = Case::new(shape, kinds).tiling(seed).orders(orders[0], orders[1]);
                case.batch(batch).exchange(Exchange::P2p)
            };
            complex(&comm, &gpu, &case([C2C; 3]))?;
            halved(&comm, &gpu, &case(std::array::from_fn(|a| if a == axis { R2C } else { C2C })))
        });
    }
}

mod arrays;
mod damaged;
mod fetched;
mod lossy;
mod resized;
mod shared;
mod trig;

#[cfg(feature = "mpi")]
mod processes;
