//! Plans whose types have been forgotten: bytes in, bytes out.

use std::path::Path;

use bytemuck::PodCastError;
use thriffty::{
    Brick, C2c, Comm, Complex, Direction, Draft, Element, Error, Field, Grid, Plan, Precision, R2c,
    R2r, Reduce, Spectral, WireError, agree,
};

#[cfg(feature = "cuda")]
use crate::device::OnDevice;
use crate::request::{Bounds, MAX_AXES, Request};
use crate::values::{self, Sizes, Transform};

/// Numbers that can be transformed wherever this library can.
#[cfg(not(feature = "cuda"))]
pub(crate) use thriffty::Real as Number;
#[cfg(feature = "cuda")]
pub(crate) use thriffty::gpu::GpuReal as Number;

/// A plan, by where its data is.
pub(crate) enum AnyPlan {
    Host(Box<dyn OnHost>),
    #[cfg(feature = "cuda")]
    Device(Box<dyn OnDevice>),
}

impl AnyPlan {
    /// What plans do wherever their data is.
    pub(crate) fn itself(&self) -> &dyn Transformer {
        match self {
            Self::Host(plan) => plan.as_ref(),
            #[cfg(feature = "cuda")]
            Self::Device(plan) => plan.as_ref(),
        }
    }
}

/// What a program can do with a plan on the host. Arrays are bytes; of those that are longer than they must be, the beginning is
/// used.
pub(crate) trait OnHost: Transformer {
    /// Transforms from one array to another. What is wrong with this rank's may be known already: then all ranks hear of it.
    /// Collective.
    fn run(
        &mut self,
        direction: Direction,
        arrays: Result<(&[u8], &mut [u8]), Error>,
    ) -> Result<(), Error>;

    /// The same within one array. Collective.
    fn run_in_place(
        &mut self,
        direction: Direction,
        array: Result<&mut [u8], Error>,
    ) -> Result<(), Error>;

    /// An array of zeros to be transformed in place, or shorter ones, where ranks of the host can see it; it lives as long as the
    /// plan. What is wrong with this rank may be known already. Collective.
    fn allocate(&mut self, ready: Result<(), Error>) -> Result<*mut u8, Error>;
}

/// What a program can do with any plan.
pub(crate) trait Transformer: Send {
    fn sizes(&self) -> Sizes;

    fn recipe(&self) -> String;

    /// What the last transform lost on the wire.
    fn lost(&self) -> Option<WireError>;

    /// What there is no path to may be known already. Collective.
    fn save_wisdom(&self, path: Result<&Path, Error>) -> Result<(), Error>;
}

/// A plan and the arrays that were made for it, which it is told of as pointers only.
struct Held<K: thriffty::Transform, const D: usize> {
    arrays: Vec<Field<Spectral, K, D>>,
    plan: Plan<K, D>,
}

impl<K: thriffty::Transform, const D: usize> OnHost for Held<K, D> {
    fn run(
        &mut self,
        direction: Direction,
        arrays: Result<(&[u8], &mut [u8]), Error>,
    ) -> Result<(), Error> {
        let rank = self.plan.comm().rank();
        let (physical, spectral) = (self.plan.input_len(), self.plan.output_len());
        // What a transform begins with is that all ranks agree: who cannot go on has its say there.
        let refused = |held: &mut Self, error| held.plan.agree(Err(error));
        match direction {
            Direction::Forward => {
                let arrays = arrays.and_then(|(input, output)| {
                    let input = elements(rank, "input", input, physical)?;
                    Ok((input, elements_mut(rank, "output", output, spectral)?))
                });
                match arrays {
                    Ok((input, output)) => self.plan.forward_into(input, output),
                    Err(error) => refused(self, error),
                }
            }
            Direction::Inverse => {
                let arrays = arrays.and_then(|(input, output)| {
                    let input = elements(rank, "input", input, spectral)?;
                    Ok((input, elements_mut(rank, "output", output, physical)?))
                });
                match arrays {
                    Ok((input, output)) => self.plan.inverse_into(input, output),
                    Err(error) => refused(self, error),
                }
            }
        }
    }

    fn run_in_place(
        &mut self,
        direction: Direction,
        array: Result<&mut [u8], Error>,
    ) -> Result<(), Error> {
        let (rank, len) = (self.plan.comm().rank(), self.plan.in_place_len());
        let array = array.and_then(|array| elements_mut(rank, "array in place", array, len));
        match (direction, array) {
            (_, Err(error)) => self.plan.agree(Err(error)),
            (Direction::Forward, Ok(array)) => self.plan.forward_in_place(array),
            (Direction::Inverse, Ok(array)) => self.plan.inverse_in_place(array),
        }
    }

    fn allocate(&mut self, ready: Result<(), Error>) -> Result<*mut u8, Error> {
        self.plan.agree(ready)?;
        let mut field = self.plan.shared_output()?;
        let array = field.as_mut_slice().as_mut_ptr();
        self.arrays.push(field);
        Ok(array.cast())
    }
}

impl<K: thriffty::Transform, const D: usize> Transformer for Held<K, D> {
    fn sizes(&self) -> Sizes {
        Sizes {
            struct_size: size_of::<Sizes>(),
            input: told(self.plan.input_brick()),
            output: told(self.plan.output_brick()),
            input_points: self.plan.input_len(),
            output_points: self.plan.output_len(),
            input_bytes: self.plan.input_len() * size_of::<K::Physical>(),
            output_bytes: self.plan.output_len() * size_of::<K::Spectral>(),
            in_place_bytes: self.plan.in_place_len() * size_of::<K::Spectral>(),
            workspace_bytes: self.plan.memory(),
        }
    }

    fn recipe(&self) -> String {
        self.plan.recipe().to_string()
    }

    fn lost(&self) -> Option<WireError> {
        self.plan.last_error()
    }

    fn save_wisdom(&self, path: Result<&Path, Error>) -> Result<(), Error> {
        self.plan.save_wisdom(agree(self.plan.comm(), path)?)
    }
}

/// The first `len` elements of an array.
fn elements<'a, E: Element>(
    rank: usize,
    what: &'static str,
    bytes: &'a [u8],
    len: usize,
) -> Result<&'a [E], Error> {
    if len == 0 {
        return Ok(&[]); // wherever the array is said to be
    }
    let used = bytes.get(..len * size_of::<E>()).ok_or_else(|| short::<E>(rank, what, bytes, len));
    bytemuck::try_cast_slice(used?).map_err(|why| misplaced::<E>(what, why))
}

/// The same of an array that is written.
fn elements_mut<'a, E: Element>(
    rank: usize,
    what: &'static str,
    bytes: &'a mut [u8],
    len: usize,
) -> Result<&'a mut [E], Error> {
    if len == 0 {
        return Ok(&mut []);
    }
    let error = short::<E>(rank, what, bytes, len);
    let used = bytes.get_mut(..len * size_of::<E>()).ok_or(error);
    bytemuck::try_cast_slice_mut(used?).map_err(|why| misplaced::<E>(what, why))
}

fn short<E>(rank: usize, what: &'static str, bytes: &[u8], expected: usize) -> Error {
    Error::Length { what, rank, found: bytes.len() / size_of::<E>(), expected }
}

fn misplaced<E>(what: &str, why: PodCastError) -> Error {
    let expected = format!("a multiple of {}", align_of::<E>());
    Error::argument(format!("address of the {what}"), why, expected)
}

/// A brick as programs are told it.
pub(crate) fn told<const D: usize>(brick: Brick<D>) -> values::Brick {
    let mut told = values::Brick::default();
    for axis in 0..D {
        (told.lo[axis], told.hi[axis]) = (brick.lo[axis] as i64, brick.hi[axis] as i64);
    }
    told
}

/// Makes the plan that all ranks ask for, unless what one of them asks for has no meaning. Collective.
///
/// # Errors
/// The same on every rank: see [`Draft::build`].
pub(crate) fn build(comm: &dyn Comm, asked: Result<Request, Error>) -> Result<AnyPlan, Error> {
    let asked = asked.and_then(|request| tables_fit(comm, &request).map(|()| request));
    let request = agree(comm, asked)?;
    same_place(comm, request.place.is_some())?;
    match request.precision {
        Precision::F32 => with_precision::<f32>(comm, &request),
        Precision::F64 => with_precision::<f64>(comm, &request),
    }
}

/// Whether the data of all ranks is on the host, or all of it on devices. Collective.
fn same_place(comm: &dyn Comm, device: bool) -> Result<(), Error> {
    let mut some = [f64::from(device), f64::from(!device)];
    comm.allreduce(Reduce::Max, &mut some)?;
    match some {
        [1.0, 1.0] => Err(Error::argument("device", "one on some ranks", "one on all, or on none")),
        _ => Ok(()),
    }
}

type Built = Result<AnyPlan, Error>;

fn with_precision<T: Number>(comm: &dyn Comm, request: &Request) -> Built
where
    Complex<T>: Element<Real = T>,
{
    match request.transform {
        Transform::C2c => with_family::<C2c<T>>(comm, request),
        Transform::R2c => with_family::<R2c<T>>(comm, request),
        Transform::R2r => with_family::<R2r<T>>(comm, request),
    }
}

fn with_family<K: thriffty::Transform<Real: Number>>(comm: &dyn Comm, request: &Request) -> Built {
    match request.axes {
        1 => with_axes::<K, 1>(comm, request),
        2 => with_axes::<K, 2>(comm, request),
        3 => with_axes::<K, 3>(comm, request),
        _ => with_axes::<K, 4>(comm, request),
    }
}

fn with_axes<K: thriffty::Transform<Real: Number>, const D: usize>(
    comm: &dyn Comm,
    request: &Request,
) -> Built {
    let usual = K::kinds::<D>();
    // Every rank may have another shape, so that one may be wrong.
    let grid = agree(comm, Grid::new(first::<D>(request.shape)))?;
    let mut draft = Draft::<K, D>::new(comm, grid)
        .kinds(std::array::from_fn(|axis| request.kinds[axis].unwrap_or(usual[axis])))
        .input_order(first(request.orders[0]))
        .output_order(first(request.orders[1]))
        .scale(request.scales[0], request.scales[1])
        .howmany(request.howmany)
        .memory(request.memory)
        .tune(request.tune.clone());
    let brick = |[lo, hi]: Bounds| Brick { lo: first(lo), hi: first(hi) };
    if let Some(bounds) = request.input {
        draft = draft.input_brick(brick(bounds));
    }
    if let Some(bounds) = request.output {
        draft = draft.output_brick(brick(bounds));
    }
    if let Some(exchange) = request.exchange {
        draft = draft.exchange(exchange);
    }
    if let Some(wire) = request.wire {
        draft = draft.wire(wire);
    }
    if let Some(tolerance) = request.tolerance {
        draft = draft.tolerance(tolerance);
    }
    if request.everywhere {
        draft = draft.wire_everywhere();
    }
    if request.shared_arrays {
        draft = draft.shared_arrays();
    }
    match &request.place {
        None => Ok(AnyPlan::Host(Box::new(Held { arrays: Vec::new(), plan: draft.build()? }))),
        #[cfg(feature = "cuda")]
        Some(place) => Ok(AnyPlan::Device(place.build(draft)?)),
        #[cfg(not(feature = "cuda"))]
        Some(place) => match *place {},
    }
}

/// The entries of as many axes as there are.
fn first<const D: usize>(all: [usize; MAX_AXES]) -> [usize; D] {
    std::array::from_fn(|axis| all[axis])
}

/// Whether there is memory for the tables of the longest axis: who makes them ends the process where there is none.
fn tables_fit(comm: &dyn Comm, request: &Request) -> Result<(), Error> {
    // That an axis has no points at all is said elsewhere.
    let longest = request.shape[..request.axes].iter().max().map_or(1, |len| (*len).max(1));
    // A line and two tables; where no fast algorithm is written for the length, several lines of up to four times it.
    let fast = [2, 3, 5, 7, 11].into_iter().fold(longest, |mut rest, prime| {
        while rest.is_multiple_of(prime) {
            rest /= prime;
        }
        rest
    });
    let bytes = longest.saturating_mul(if fast == 1 { 3 * 16 } else { 16 * 16 });
    let error = |_| Error::Memory { rank: comm.rank(), bytes };
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(error)
}
