//! Fields on a CUDA device against fields of the host. Without a GPU tests print why and pass.

use std::f64::consts::TAU;

use crate::common::check::{Case, Make};
use crate::common::data::{bound, distance, norm, widen};
use crate::gpu::{few, gpu};
use fft_core::{Element, Real};
use thriffty::Kind::{C2C, R2C};
use thriffty::gpu::DevicePlan;
use thriffty::gpu::{Gpu, GpuReal};
use thriffty::planning::{Exchange, Location, Side, Transform};
use thriffty::spectral::{Operator, Scheme};
use thriffty::{C2c, Comm, Complex, Error, ErrorKind, Field, Kind, Physical, Plan, R2c, Spectral};

/// Some value for an index.
fn value<E: Element, const D: usize>(index: [usize; D]) -> E {
    let mut value = E::default();
    let sum = (0..D).map(|axis| (index[axis] * (axis + 2)) as f64).sum::<f64>();
    let parts = [(0.7 * sum).sin() + 0.3, (0.2 * sum * sum).cos()];
    let numbers: &mut [E::Real] = bytemuck::cast_slice_mut(std::slice::from_mut(&mut value));
    numbers.iter_mut().zip(parts).for_each(|(number, part)| *number = E::Real::of(part));
    value
}

/// A complex number times another.
fn times<K: Transform>(v: K::Spectral, by: Complex<f64>) -> K::Spectral {
    let mut v = [v];
    let numbers: &mut [K::Real] = bytemuck::cast_slice_mut(&mut v);
    let product = Complex::new(numbers[0].as_f64(), numbers[1].as_f64()) * by;
    (numbers[0], numbers[1]) = (K::Real::of(product.re), K::Real::of(product.im));
    v[0]
}

/// Whether a rank's field equals the host's up to rounding.
fn same<S: Side, K: Transform, const D: usize>(
    what: &str,
    found: &Field<S, K, D>,
    expected: &Field<S, K, D>,
) {
    assert_eq!(found.brick(), expected.brick());
    let [found, expected] = [found, expected].map(|field| widen(field.as_slice()));
    let error = distance(&found, &expected) / norm(&expected).max(1.0);
    // A rank's own part may be small compared with rounding errors of other parts.
    let bound = 10.0 * bound(K::Real::EPSILON, found.len().max(2));
    assert!(error <= bound, "{what}: error {error:.2e} exceeds {bound:.2e}");
}

/// Poisson's equation and derivatives, on the device and on the host.
fn compare<K: Make, const D: usize>(comm: &dyn Comm, gpu: &Gpu, case: &Case<D>) -> Result<(), Error>
where
    K::Real: GpuReal,
{
    let lengths: [f64; D] = std::array::from_fn(|axis| TAU * (1.0 + 0.5 * axis as f64));
    let mut host = case.plan::<K>(comm)?;
    let mut plan = case.draft::<K>(comm)?.on(gpu).build()?;
    let what = format!("rank {} of {}, {}", comm.rank(), comm.size(), plan.recipe());
    let (kinds, shape) = (case.kinds, case.shape);
    let waves = |mode: [i64; D]| -> [f64; D] {
        std::array::from_fn(|axis| match kinds[axis] {
            Kind::None | Kind::Tridiagonal => 0.0,
            _ => mode[axis] as f64 * TAU / lengths[axis],
        })
    };

    let mut rho = plan.input();
    rho.fill(value::<K::Physical, D>);
    let mut rho_there = host.input();
    rho_there.fill(value::<K::Physical, D>);
    assert_eq!(rho.brick(), rho_there.brick());
    assert_eq!(
        bytemuck::cast_slice::<_, u8>(plan.download(&rho)?.as_slice()),
        bytemuck::cast_slice::<_, u8>(rho_there.as_slice()),
        "filled alike: {what}"
    );

    let rho_hat = plan.forward(rho)?;
    let rho_hat_there = host.forward(rho_there)?;
    same(&what, &plan.download(&rho_hat)?, &rho_hat_there);

    for axis in (0..D).filter(|axis| kinds[*axis] != Kind::None) {
        let slope = plan.inverse(rho_hat.gradient(axis, lengths))?;
        let slope_there = rho_hat_there.clone().map_modes(|mode, v| {
            let middle = 2 * mode[axis].unsigned_abs() as usize == shape[axis];
            times::<K>(v, Complex::new(0.0, if middle { 0.0 } else { waves(mode)[axis] }))
        });
        let slope_there = host.inverse(slope_there)?;
        same(&format!("derivative {axis}, {what}"), &plan.download(&slope)?, &slope_there);
    }

    let phi = plan.inverse(rho_hat.poisson(lengths))?;
    let phi_there = rho_hat_there.clone().map_modes(|mode, v| {
        let square: f64 = waves(mode).map(|k| k * k).iter().sum();
        times::<K>(v, Complex::new(if square == 0.0 { 0.0 } else { 1.0 / square }, 0.0))
    });
    let phi_there = host.inverse(phi_there)?;
    same(&format!("Poisson, {what}"), &plan.download(&phi)?, &phi_there);

    for scheme in [Scheme::Exact, Scheme::Central2, Scheme::Central4] {
        operators(comm, gpu, case, (&rho_hat_there, scheme))?;
    }

    // Fields from the host and back, spectral ones as well.
    let up = plan.upload(&rho_hat_there);
    let reals = host.output_len() * K::Spectral::WIDTH;
    assert_eq!(up.as_slice()?.len(), reals);
    let back = plan.inverse(up)?;
    same(&what, &plan.download(&back)?, &host.inverse(rho_hat_there)?);
    let nothing: Field<Spectral, K, D> = plan.download(&plan.output())?;
    assert!(widen(nothing.as_slice()).iter().all(|v| *v == Complex::default()));
    Ok(())
}

/// Operators and products of fields on the device equal the host's.
fn operators<K: Make, const D: usize>(
    comm: &dyn Comm,
    gpu: &Gpu,
    case: &Case<D>,
    (there, scheme): (&Field<Spectral, K, D>, Scheme),
) -> Result<(), Error>
where
    K::Real: GpuReal,
{
    let host = case.plan::<K>(comm)?;
    let plan = case.draft::<K>(comm)?.on(gpu).build()?;
    let lengths = [1.5; D];
    let domain = plan.domain(lengths)?.with_schemes(&[scheme; D])?;
    let domain_there = host.domain(lengths)?.with_schemes(&[scheme; D])?;
    let dimensions = domain.dimensions();
    for operator in crate::common::operators::all(D) {
        let Ok([before, after]) = operator.components(dimensions) else { continue };
        if before != 1 || matches!(operator, Operator::Derivative(a) if case.kinds[a] == Kind::None)
        {
            continue;
        }
        let batch = case.batch * after;
        let vector = case.clone().batch(batch);
        let draft = case.draft::<K>(comm)?.like(&plan).batch(batch);
        let (host, plan) = (vector.plan::<K>(comm)?, draft.on(gpu).build()?);
        let (mut found, mut expected) = (plan.output(), host.output());
        let here = case.draft::<K>(comm)?.on(gpu).build()?.upload(there);
        domain.apply(operator, &here, &mut found);
        domain_there.apply(operator, there, &mut expected);
        same(&format!("{operator:?}, {scheme:?}, {case:?}"), &plan.download(&found)?, &expected);
    }
    if case.batch == 1 {
        let (mut found, mut expected) = (plan.upload(there), there.clone());
        domain.correlate(&plan.upload(there), &mut found);
        domain_there.correlate(there, &mut expected);
        same(&format!("a product, {case:?}"), &plan.download(&found)?, &expected);
    }
    Ok(())
}

fn everything(comm: &dyn Comm, gpu: &Gpu) -> Result<(), Error> {
    let p2p = |case: Case<3>| case.exchange(Exchange::P2p);
    let cube = p2p(Case::new([8, 12, 10], [C2C; 3]));
    if few() {
        let real = Case::new([8, 12, 10], [C2C, C2C, R2C]);
        return compare::<R2c<f64>, 3>(comm, gpu, &p2p(real));
    }
    compare::<C2c<f64>, 3>(comm, gpu, &cube)?;
    compare::<C2c<f32>, 3>(comm, gpu, &cube.clone().tiling(3).batch(3))?;
    let real = p2p(Case::new([8, 7, 10], [C2C, C2C, R2C]));
    compare::<R2c<f64>, 3>(comm, gpu, &real)?;
    compare::<R2c<f64>, 3>(comm, gpu, &real.clone().orders([2, 1, 0], [1, 2, 0]).batch(2))?;
    compare::<R2c<f32>, 3>(comm, gpu, &p2p(Case::new([9, 6, 5], [R2C, C2C, C2C]).tiling(1)))?;
    compare::<C2c<f64>, 3>(comm, gpu, &p2p(Case::new([6, 5, 4], [C2C, Kind::None, C2C])))?;
    // More ranks than points: some have none.
    compare::<R2c<f64>, 1>(comm, gpu, &Case::new([2], [R2C]).exchange(Exchange::P2p))
}

#[test]
fn fields_on_a_device_are_those_of_the_host() {
    let Some(gpu) = gpu() else { return };
    for ranks in if few() { &[2][..] } else { &[1, 2, 4] } {
        thriffty::threads(*ranks, |comm| everything(&comm, &gpu)).unwrap();
    }
}

/// A failure in one rank's field is an error on all when a plan takes it; the plan stays usable.
#[test]
fn failures_stay_in_the_field() {
    let Some(gpu) = gpu() else { return };
    thriffty::threads(3, |comm| {
        let case = Case::new([6, 5, 4], [C2C, C2C, Kind::None]).exchange(Exchange::P2p);
        let last = comm.rank() == 2;
        let mut plan: DevicePlan<C2c, 3> = case.draft::<C2c>(&comm)?.on(&gpu).build()?;
        let refused = |found: Result<(), Error>, word: &str| {
            let error = found.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
            assert!(matches!(error, Error::OnRank { rank: 2, .. }), "{error}");
            assert!(error.to_string().contains(word), "{error}");
        };
        for wrong in [0.0, -1.0, f64::NAN] {
            let lengths = [1.0, if last { wrong } else { 1.0 }, 1.0];
            let field = plan.output().poisson(lengths);
            refused(plan.download(&field).map(drop), "length of axis 1");
            refused(plan.inverse(field).map(drop), "length of axis 1");
        }
        let field = plan.output().gradient(if last { 2 } else { 0 }, [1.0; 3]);
        assert_eq!(field.as_slice().is_err(), last);
        refused(plan.inverse(field.gradient(0, [1.0; 3])).map(drop), "kind of axis 2");
        // A field of another plan, on one rank.
        let other = Case::new([6, 5, 3], [Kind::C2C; 3]).exchange(Exchange::P2p);
        let strange = other.draft::<C2c>(&comm)?.on(&gpu).build()?.input();
        let field = if last { strange } else { plan.input() };
        refused(plan.forward(field).map(drop), "another plan");
        let strange: Field<Physical, C2c, 3> = other.plan::<C2c>(&comm)?.input();
        let ours = case.plan::<C2c>(&comm)?.input();
        refused(
            plan.forward(plan.upload(if last { &strange } else { &ours })).map(drop),
            "another",
        );
        let mut ones = plan.input();
        ones.fill(|_| Complex::new(1.0, 0.0));
        let sums = plan.forward(ones)?;
        let sums = plan.download(&sums)?;
        assert!(comm.rank() != 0 || sums.as_slice()[0] == Complex::new(30.0, 0.0));
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// The potential of charges in open space.
fn potential<L: Location>(
    plan: &mut Plan<R2c, 3, L>,
    rho: Field<Physical, R2c, 3, L>,
) -> Result<Field<Physical, R2c, 3, L>, Error> {
    let (green, domain) = (plan.green_function([0.1, 0.2, 0.1])?, plan.domain([1.0; 3])?);
    let mut rho_hat = plan.forward(rho)?;
    domain.convolve(&green, &mut rho_hat);
    plan.inverse(rho_hat)
}

#[test]
fn potentials_in_open_space_are_those_of_the_host() {
    let Some(gpu) = gpu() else { return };
    for ranks in if few() { &[2][..] } else { &[1, 2, 3] } {
        thriffty::threads(*ranks, |comm| {
            let draft = || thriffty::r2c(&comm, [6, 5, 8]).zero_padded([12, 10, 16]);
            let mut host = draft().transposed_output(true).build()?;
            let mut plan = draft().transposed_output(true).on(&gpu).build()?;
            let (mut rho, mut rho_there) = (plan.input(), host.input());
            rho.fill(value::<f64, 3>);
            rho_there.fill(value::<f64, 3>);
            let (phi, phi_there) = (potential(&mut plan, rho)?, potential(&mut host, rho_there)?);
            same("a potential", &plan.download(&phi)?, &phi_there);
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

/// The square of a field whose modes are two thirds of its points has no aliases among them.
#[test]
fn products_without_aliases_are_those_of_the_host() {
    let Some(gpu) = gpu() else { return };
    for ranks in if few() { &[2][..] } else { &[1, 2, 3] } {
        thriffty::threads(*ranks, |comm| {
            let draft = || thriffty::r2c(&comm, [12, 9, 12]).modes([8, 6, 8]);
            let (mut host, mut plan) = (draft().build()?, draft().on(&gpu).build()?);
            let (mut u, mut u_there) = (plan.input(), host.input());
            u.fill(value::<f64, 3>);
            u_there.fill(value::<f64, 3>);
            let (u_hat, u_hat_there) = (plan.forward(u)?, host.forward(u_there)?);
            same("modes", &plan.download(&u_hat)?, &u_hat_there);
            let (u, mut u_there) = (plan.inverse(u_hat)?, host.inverse(u_hat_there)?);
            let mut square = plan.download(&u)?;
            same("a field of few modes", &square, &u_there);
            for field in [&mut square, &mut u_there] {
                field.as_mut_slice().iter_mut().for_each(|u| *u *= *u);
            }
            let square = plan.forward(plan.upload(&square))?;
            same("a square", &plan.download(&square)?, &host.forward(u_there)?);
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}
