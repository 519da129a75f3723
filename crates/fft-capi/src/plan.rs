//! Plans whose types have been forgotten: bytes in, bytes out.

use std::path::Path;

use thriffty::{
    Comm, Direction, DynArray, DynBrick, DynDraft, DynGrid, DynPlan, Error, PerAxis, Reduce,
    WireError, agree,
};

#[cfg(feature = "cuda")]
use crate::device::OnDevice;
use crate::request::{Bounds, MAX_AXES, Request};
use crate::values::{self, Sizes};

/// A plan, by where its data is.
pub(crate) enum AnyPlan {
    Host(Box<Held>),
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

/// What a program can do with any plan.
pub(crate) trait Transformer: Send {
    fn sizes(&self) -> Sizes;

    fn recipe(&self) -> String;

    /// What the last transform lost on the wire.
    fn lost(&self) -> Option<WireError>;

    /// What there is no path to may be known already. Collective.
    fn save_wisdom(&self, path: Result<&Path, Error>) -> Result<(), Error>;
}

/// A plan on the host, and the arrays that were made for it, which it is told of as pointers only.
/// Arrays of programs are bytes; of
/// those that are longer than they must be, the beginning is used.
pub(crate) struct Held {
    arrays: Vec<DynArray>,
    plan: DynPlan,
}

impl Held {
    /// Transforms from one array to another. What is wrong with this rank's may be known already:
    /// then all ranks hear of it.
    /// Collective.
    pub(crate) fn run(
        &mut self,
        direction: Direction,
        arrays: Result<(&[u8], &mut [u8]), Error>,
    ) -> Result<(), Error> {
        let rank = self.plan.comm().rank();
        let physical = (self.plan.physical_bytes(), self.plan.input_len());
        let spectral = (self.plan.spectral_bytes(), self.plan.output_len());
        let (reads, writes) = direction.choose((physical, spectral), (spectral, physical));
        let arrays = arrays.and_then(|(input, output)| {
            let input = beginning(rank, "input", input, reads)?;
            Ok((input, beginning_mut(rank, "output", output, writes)?))
        });
        match arrays {
            Ok((input, output)) => self.plan.run(direction, input, output),
            // What a transform begins with is that all ranks agree: who cannot go on has its say
            // there.
            Err(error) => self.plan.agree(Err(error)),
        }
    }

    /// The same within one array. Collective.
    pub(crate) fn run_in_place(
        &mut self,
        direction: Direction,
        array: Result<&mut [u8], Error>,
    ) -> Result<(), Error> {
        let points = (self.plan.spectral_bytes(), self.plan.in_place_len());
        let rank = self.plan.comm().rank();
        match array.and_then(|array| beginning_mut(rank, "array in place", array, points)) {
            Ok(array) => self.plan.run_in_place(direction, array),
            Err(error) => self.plan.agree(Err(error)),
        }
    }

    /// An array of zeros to be transformed in place, or shorter ones, where ranks of the host can
    /// see it; it lives as long as the
    /// plan. What is wrong with this rank may be known already. Collective.
    pub(crate) fn allocate(&mut self, ready: Result<(), Error>) -> Result<*mut u8, Error> {
        self.plan.agree(ready)?;
        let mut array = self.plan.shared_zeros()?;
        let at = array.bytes_mut().as_mut_ptr();
        self.arrays.push(array);
        Ok(at)
    }
}

impl Transformer for Held {
    fn sizes(&self) -> Sizes {
        Sizes {
            struct_size: size_of::<Sizes>(),
            input: told(self.plan.input_brick()),
            output: told(self.plan.output_brick()),
            input_points: self.plan.input_len(),
            output_points: self.plan.output_len(),
            input_bytes: self.plan.input_len() * self.plan.physical_bytes(),
            output_bytes: self.plan.output_len() * self.plan.spectral_bytes(),
            in_place_bytes: self.plan.in_place_len() * self.plan.spectral_bytes(),
            workspace_bytes: self.plan.memory(),
        }
    }

    fn recipe(&self) -> String {
        self.plan.recipe().to_string()
    }

    fn lost(&self) -> Option<WireError> {
        self.plan.wire_error()
    }

    fn save_wisdom(&self, path: Result<&Path, Error>) -> Result<(), Error> {
        self.plan.save_wisdom(agree(self.plan.comm(), path)?)
    }
}

/// The first points of an array, of so many bytes each.
fn beginning<'a>(
    rank: usize,
    what: &'static str,
    bytes: &'a [u8],
    (point, expected): (usize, usize),
) -> Result<&'a [u8], Error> {
    let found = bytes.len() / point;
    bytes.get(..expected * point).ok_or(Error::Length { what, rank, found, expected })
}

/// The same of an array that is written.
fn beginning_mut<'a>(
    rank: usize,
    what: &'static str,
    bytes: &'a mut [u8],
    (point, expected): (usize, usize),
) -> Result<&'a mut [u8], Error> {
    let found = bytes.len() / point;
    bytes.get_mut(..expected * point).ok_or(Error::Length { what, rank, found, expected })
}

/// A brick as programs are told it.
pub(crate) fn told(brick: DynBrick) -> values::Brick {
    let mut told = values::Brick::default();
    for axis in 0..brick.axes() {
        (told.lo[axis], told.hi[axis]) = (brick.lo[axis] as i64, brick.hi[axis] as i64);
    }
    told
}

/// Makes the plan that all ranks ask for, unless what one of them asks for has no meaning. Collective.
///
/// # Errors
/// The same on every rank: see [`DynDraft::build`].
pub(crate) fn build(comm: &dyn Comm, asked: Result<Request, Error>) -> Result<AnyPlan, Error> {
    let asked = asked.and_then(|request| tables_fit(comm, &request).map(|()| request));
    let request = agree(comm, asked)?;
    same_place(comm, request.place.is_some())?;
    let axes = request.axes;
    // Every rank may have another shape, so that one may be wrong.
    let grid = agree(comm, DynGrid::new(first(&request.shape, axes)))?;
    let usual = request.transform.kinds(axes);
    let kinds = PerAxis::from_fn(axes, |axis| request.kinds[axis].unwrap_or(usual[axis]));
    let mut draft = DynDraft::new(comm, grid, request.transform, request.precision)
        .kinds(kinds)
        .input_order(first(&request.orders[0], axes))
        .output_order(first(&request.orders[1], axes))
        .scale(request.scales[0], request.scales[1])
        .howmany(request.howmany)
        .memory(request.memory)
        .tune(request.tune.clone());
    let brick = |[lo, hi]: Bounds| DynBrick::new(first(&lo, axes), first(&hi, axes));
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
        draft = draft.ignore_shared_memory();
    }
    if request.shared_arrays {
        draft = draft.shared_arrays();
    }
    match &request.place {
        None => Ok(AnyPlan::Host(Box::new(Held { arrays: Vec::new(), plan: draft.build()? }))),
        #[cfg(feature = "cuda")]
        Some(place) => Ok(AnyPlan::Device(place.build(draft, request.precision)?)),
        #[cfg(not(feature = "cuda"))]
        Some(place) => match *place {},
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

/// The entries of as many axes as there are.
fn first(all: &[usize; MAX_AXES], axes: usize) -> PerAxis<usize> {
    PerAxis::from_fn(axes, |axis| all[axis])
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
