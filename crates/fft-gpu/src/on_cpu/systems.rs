//! Systems are solved as the host solves them.

use std::path::Path;

use fft_core::{
    Ends, Grid, Kind, Layout, Modes, Operator, Precision, ProcGrid, Spectrum, SystemTask,
    Tridiagonal,
};

use super::data::uniform;
use super::{Races, compile, run};
use crate::abi::systems::{SystemTables, room_of_thread};
use crate::base::GpuReal;

/// The modes of a rank of two, with coefficients of a stretched grid along an axis.
fn modes<T: GpuReal>(
    axis: usize,
    (ends, cells): (Ends, usize),
    order: [usize; 3],
    complex: bool,
) -> Option<Modes> {
    let mut random = uniform(cells as u64);
    let mut faces = vec![0.0];
    (0..cells).for_each(|cell| faces.push(faces[cell] + 0.2 + random()));
    let scheme = Tridiagonal::second_derivative(&faces, ends).ok()?;
    let mut shape = [5, 19, 31];
    shape[axis] = scheme.len();
    let mut kinds = [if complex { Kind::C2C } else { Kind::Dct2 }; 3];
    kinds[axis] = Kind::Tridiagonal;
    let mut cuts = [1; 3];
    cuts[if axis == 0 { 1 } else { 0 }] = 2;
    let layout = Layout::even(Grid::new(shape).unwrap(), ProcGrid::new(cuts), 2);
    let precision = if size_of::<T>() == 4 { Precision::F32 } else { Precision::F64 };
    let layout = layout.ordered(order).unwrap();
    let (kinds, modes) = (kinds.into(), shape.into());
    let spectrum = Spectrum { kinds, modes, layout, complex, precision };
    // Rank 0 has the modes without a wave vector.
    Some(Modes::new(spectrum, 0, &[5.0, 4.0, 7.0]).unwrap().with_tridiagonal(scheme).unwrap())
}

/// The kernel's result of an operator on an array.
fn by_kernel<T: GpuReal>(
    program: &Path,
    modes: &Modes,
    operator: Operator,
    (x, seed): (&[T], usize),
) -> Vec<T> {
    let systems = modes.systems().unwrap();
    let SystemTables { record, rows, squares } = SystemTables::new(systems).unwrap();
    let periodic = systems.are_periodic();
    let (task, more) = match SystemTask::of(operator).unwrap() {
        SystemTask::Laplacian => (2, 0.0),
        SystemTask::Solve(shift) => (u64::from(periodic), shift),
    };
    let width = modes.width();
    let room = room_of_thread(systems.scheme().len(), width, periodic);
    // Fewer threads than systems, or more.
    let (blocks, in_place) = (1 + seed % 2, seed / 2 % 2);
    let head = [size_of::<T>(), width, task as usize, in_place, blocks, seed, room];
    let head = head.map(|n| n as u64);
    let mut made = vec![T::default(); x.len()];
    let input = [
        bytemuck::cast_slice(&head),
        bytemuck::bytes_of(&more),
        bytemuck::bytes_of(&record),
        bytemuck::cast_slice(&rows),
        bytemuck::cast_slice(&squares),
        bytemuck::cast_slice(x),
    ];
    let what = format!("{operator:?} of {modes:?}");
    run(program, &what, &input, &mut [bytemuck::cast_slice_mut(&mut made)]);
    made
}

/// All ends, along all axes, in several orders of memory.
fn as_the_host<T: GpuReal>(complex: bool) {
    let Some(program) = compile("systems", Races::Unseen) else { return };
    let orders = [[0, 1, 2], [1, 0, 2], [0, 2, 1], [2, 1, 0]];
    let conditions = Ends::ALL.into_iter().filter(|ends| ends.kind().is_transform());
    let mut random = uniform(1);
    for (turn, ends) in conditions.enumerate() {
        for (number, cells) in [1, 2, 3, 8, 13].into_iter().enumerate() {
            let seed = turn * 5 + number;
            let order = orders[seed % orders.len()];
            let Some(modes) = modes::<T>(seed % 3, (ends, cells), order, complex) else { continue };
            let x: Vec<T> =
                (0..modes.points() * modes.width()).map(|_| T::of(random() - 0.5)).collect();
            for (more, operator) in
                [Operator::Poisson, Operator::Helmholtz(0.3), Operator::Laplacian]
                    .into_iter()
                    .enumerate()
            {
                let mut expected = vec![T::default(); x.len()];
                let bytes = bytemuck::cast_slice_mut(&mut expected);
                modes.apply(operator, Ok(()), bytemuck::cast_slice(&x), bytes).unwrap();
                let found = by_kernel(&program, &modes, operator, (&x, seed + more));
                let most = expected.iter().map(|x| x.as_f64().abs()).fold(0.0, f64::max);
                for (i, (x, y)) in found.iter().zip(&expected).enumerate() {
                    // Both compute in double precision, in the same order.
                    let bound = T::EPSILON * y.as_f64().abs() + 1e-13 * most;
                    let error = (x.as_f64() - y.as_f64()).abs();
                    assert!(
                        error <= bound,
                        "{operator:?}, {ends}, {cells} cells: {error:e} at {i}"
                    );
                }
            }
        }
    }
}

#[test]
fn systems_are_solved_as_by_the_host() {
    as_the_host::<f64>(true);
    as_the_host::<f64>(false);
    as_the_host::<f32>(true);
    as_the_host::<f32>(false);
}
