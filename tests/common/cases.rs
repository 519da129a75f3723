//! The transforms that are compared with the definition, on any communicator.

use std::cell::Cell;

use Kind::{C2C, Dct1, Dct2, Dct3, Dct4, Dst1, Dst2, Dst3, Dst4, R2C};
use thriffty::planning::{Epochs, Exchange};
use thriffty::{C2c, Comm, Error, Kind, R2c, R2r, Scale};

use super::check::{Case, Make, check};

type Done = Result<(), Error>;

/// The exchanges to check on this communicator. Threads cannot put, so both kinds of `ring` are the
/// same there. If threads can access no arrays but their own, only `shared` differs from what is
/// checked elsewhere.
fn exchanges(comm: &dyn Comm) -> Result<Vec<Exchange>, Error> {
    if comm.name() != "threads" {
        return Ok(Exchange::ALL.to_vec());
    }
    if comm.node_memory()?.is_some_and(|node_memory| !node_memory.exposes_all()) {
        return Ok(vec![Exchange::Shared, Exchange::P2p]);
    }
    let flush = Exchange::Ring(Epochs::Flush);
    Ok(Exchange::ALL.into_iter().filter(|exchange| *exchange != flush).collect())
}

thread_local! {
    /// Cases that this rank has checked.
    static TURNS: Cell<usize> = const { Cell::new(0) };
}

/// All exchanges. Exchanges do not depend on the precision, so the other precision uses each in
/// turn, from case to case. Along one axis cases differ only in kind and length. A few lengths use
/// all exchanges, and others two in turn.
fn both<A: Make, B: Make, const D: usize>(comm: &dyn Comm, case: Case<D>) -> Done {
    let exchanges = exchanges(comm)?;
    let lens = case.shape.iter().sum::<usize>();
    // Ranks are threads or processes, and each calls this as often as the others.
    let turn = comm.size() + TURNS.replace(TURNS.get() + 1);
    let few = D == 1 && case.tiling.is_none() && ![5, 60].contains(&lens);
    for (number, exchange) in exchanges.iter().enumerate() {
        let [first, second] = [turn, turn + exchanges.len() / 2].map(|turn| turn % exchanges.len());
        let case = case.clone().exchange(*exchange);
        if !few || number == first || number == second {
            check::<A, D>(comm, &case)?;
        }
        if number == first {
            check::<B, D>(comm, &case)?;
        }
    }
    Ok(())
}

fn complex<const D: usize>(comm: &dyn Comm, case: Case<D>) -> Done {
    both::<C2c<f64>, C2c<f32>, D>(comm, case)
}

fn halved<const D: usize>(comm: &dyn Comm, case: Case<D>) -> Done {
    both::<R2c<f64>, R2c<f32>, D>(comm, case)
}

fn real<const D: usize>(comm: &dyn Comm, case: Case<D>) -> Done {
    both::<R2r<f64>, R2r<f32>, D>(comm, case)
}

/// Every kind along a single axis: short and long, odd and even, a prime large enough for the
/// algorithms of primes, and, if it exists, a single point.
pub(crate) fn one_axis(comm: &dyn Comm) -> Done {
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Tridiagonal) {
        for n in [1, 2, 3, 4, 5, 16, 27, 60, 101] {
            if kind == Dct1 && n < 2 {
                continue;
            }
            let case = Case::new([n], [kind]);
            if kind == R2C {
                halved(comm, case)?;
            } else {
                complex(comm, case.clone())?;
                if kind != C2C {
                    real(comm, case)?;
                }
            }
        }
    }
    Ok(())
}

/// Every kind along each of two axes, with a kind of another family along the other.
pub(crate) fn two_axes(comm: &dyn Comm) -> Done {
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Tridiagonal) {
        for kinds in [[kind, Dct3], [Dst2, kind]] {
            let case = Case::new([7, 10], kinds);
            if kind == R2C {
                halved(comm, case)?;
            } else {
                complex(comm, case.clone())?;
                if kind != C2C {
                    real(comm, case)?;
                }
            }
        }
    }
    complex(comm, Case::new([1, 101], [C2C; 2]))?;
    complex(comm, Case::new([12, 1], [C2C; 2]))?;
    halved(comm, Case::new([101, 2], [R2C, C2C]))?;
    halved(comm, Case::new([5, 1], [C2C, R2C]).batch(3))?;
    real(comm, Case::new([13, 11], [Kind::None; 2]))
}

/// Three axes: mixed kinds, the halved axis anywhere, orders of axes, batches, scales.
pub(crate) fn three_axes(comm: &dyn Comm) -> Done {
    let fortran = [2, 1, 0];
    complex(comm, Case::new([6, 7, 5], [C2C; 3]).orders(fortran, [0, 1, 2]))?;
    complex(comm, Case::new([8, 4, 6], [C2C, Dct2, Kind::None]).batch(3))?;
    complex(comm, Case::new([1, 9, 1], [C2C; 3]).scales(Scale::Symmetric, Scale::Symmetric))?;
    for axis in 0..3 {
        let mut kinds = [C2C; 3];
        kinds[axis] = R2C;
        halved(comm, Case::new([6, 5, 7], kinds))?;
        halved(comm, Case::new([4, 5, 6], kinds).orders([1, 2, 0], fortran).batch(3))?;
        let mut kinds = [Dct2, Kind::None, Dst4];
        kinds[axis] = R2C;
        halved(comm, Case::new([3, 4, 8], kinds).scales(Scale::Full, Scale::None))?;
    }
    for halved in 0..3 {
        // Also with ranks that hold nothing.
        for (shape, batch) in [([8, 7, 6], 1), ([5, 6, 7], 3), ([2, 2, 3], 1), ([1, 3, 4], 2)] {
            if let Some(case) = pencils(shape, halved, batch, comm) {
                check::<R2c<f64>, 3>(comm, &case)?;
            }
        }
    }
    halved(comm, Case::new([5, 6, 4], [Dct1, R2C, C2C]).orders([1, 0, 2], [2, 0, 1]))?;
    real(comm, Case::new([5, 6, 7], [Dct1, Dst3, Dct4]).orders([2, 0, 1], fortran).batch(3))?;
    real(comm, Case::new([4, 3, 8], [Dst1, Kind::None, Dct2]).scales(Scale::Symmetric, Scale::Full))
}

/// With this many peers, lines across ranks are brought together one by one, for elements of all
/// sizes; owners have whole groups of eight rows, fewer rows, one and none.
pub(crate) fn many_neighbours(comm: &dyn Comm) -> Done {
    let grids = [[18, 3, 140], [5, 4, 130], [3, 2, 70]];
    for (shape, batch) in grids.into_iter().zip([1, 2, 1]) {
        for orders in [[0, 1, 2], [1, 0, 2]] {
            let case = |kinds| Case::new(shape, kinds).batch(batch).orders(orders, orders);
            check::<C2c<f64>, 3>(comm, &case([C2C; 3]))?;
            check::<C2c<f32>, 3>(comm, &case([C2C; 3]))?;
        }
    }
    for shape in [[18, 3, 270], [4, 3, 140]] {
        check::<R2r<f64>, 3>(comm, &Case::new(shape, [Dct2, Dst3, Dct4]))?;
        check::<R2r<f32>, 3>(comm, &Case::new(shape, [Dct2, Dst3, Dct4]))?;
        check::<R2c<f64>, 3>(comm, &Case::new(shape, [C2C, C2C, R2C]))?;
    }
    Ok(())
}

/// Planes so large that they are not in cache when their transforms begin: the axis with the
/// largest stride comes first, but after a halved one.
pub(crate) fn large_planes(comm: &dyn Comm) -> Done {
    let case = |kinds| Case::new([2, 130, 128], kinds).scales(Scale::Symmetric, Scale::Symmetric);
    check::<C2c<f64>, 3>(comm, &case([C2C; 3]))?;
    check::<C2c<f64>, 3>(comm, &case([C2C, Dct2, C2C]))?;
    check::<R2c<f64>, 3>(comm, &Case::new([2, 130, 260], [C2C, C2C, R2C]))?;
    check::<R2c<f64>, 4>(comm, &Case::new([2, 6, 24, 240], [C2C, C2C, C2C, R2C]))
}

/// Real transforms from and to bricks, where lines are whole only along the halved axis, by a
/// recipe that leaves data where it is, several of them scaled; on one host, if there are enough
/// ranks.
pub(crate) fn pencils(
    shape: [usize; 3],
    halved: usize,
    batch: usize,
    comm: &dyn Comm,
) -> Option<Case<3>> {
    let ranks = comm.size();
    if (0..ranks).any(|rank| comm.host(rank) != comm.host(0)) {
        return None;
    }
    let mut cut = match ranks {
        4 => [2, 2, 1],
        6 => [3, 2, 1],
        _ => return None,
    };
    cut.swap(halved, 2);
    let [p, q] = match halved {
        0 => [1, 2],
        1 => [0, 2],
        _ => [0, 1],
    };
    let slabs = |axis: usize| std::array::from_fn(|a| if a == axis { ranks } else { 1 });
    let by = |[a, b, c]: [usize; 3]| format!("{a}x{b}x{c}");
    let to = |cut| format!("(exchange [{}] shared raw)", by(cut));
    let [h, p_name, q_name] = [halved, p, q].map(|axis| ['x', 'y', 'z'][axis]);
    let steps = [
        format!("(r2c {h})"),
        to(slabs(p)),
        format!("(fft {q_name})"),
        to(slabs(q)),
        format!("(fft {p_name})"),
        if batch > 1 { "(scale both)" } else { "(scale inverse)" }.into(),
        to(cut),
    ];
    let mut kinds = [C2C; 3];
    kinds[halved] = R2C;
    let name = if halved == 2 { "r2c".into() } else { kinds.map(Kind::name).join(",") };
    let several = if batch > 1 { format!(" batch={batch}") } else { String::new() };
    let (grid, bricks, steps) = (by(shape), by(cut), steps.join(" "));
    let text = format!("({name} {grid} f64{several} ranks={ranks} [{bricks}] {steps})");
    let case = Case::new(shape, kinds).cuts(cut, cut).batch(batch).exactly(text);
    Some(if batch > 1 { case.scales(Scale::Full, Scale::Symmetric) } else { case })
}

/// Four axes.
pub(crate) fn four_axes(comm: &dyn Comm) -> Done {
    let order = [3, 0, 2, 1];
    complex(comm, Case::new([3, 4, 5, 2], [C2C; 4]).orders([3, 2, 1, 0], order))?;
    halved(comm, Case::new([2, 3, 4, 5], [C2C, R2C, Dct2, C2C]).orders(order, [1, 0, 3, 2]))?;
    halved(comm, Case::new([4, 3, 1, 6], [C2C, C2C, C2C, R2C]).batch(3))?;
    real(
        comm,
        Case::new([3, 2, 4, 3], [Dct2, Dst2, Kind::None, Dst4]).scales(Scale::Full, Scale::None),
    )
}

/// Irregular bricks, with ranks that hold nothing on one side or both.
pub(crate) fn random_tilings(comm: &dyn Comm) -> Done {
    for seed in 0..3 {
        let fortran = [2, 1, 0];
        complex(comm, Case::new([5, 9, 7], [C2C; 3]).tiling(seed))?;
        halved(
            comm,
            Case::new([7, 6, 5], [R2C, C2C, Dct3]).tiling(seed).orders(fortran, [1, 2, 0]),
        )?;
        real(comm, Case::new([11, 8], [Dct2, Dst1]).tiling(seed).batch(3))?;
        halved(comm, Case::new([3, 4, 2, 5], [C2C, C2C, C2C, R2C]).tiling(seed))?;
        complex(comm, Case::new([30], [C2C]).tiling(seed).batch(3))?;
    }
    Ok(())
}

/// Data that ends in its first layout: irregular bricks, ranks that hold nothing, and a recipe that
/// returns to the layout in between.
pub(crate) fn returning(comm: &dyn Comm) -> Done {
    for seed in 0..3 {
        let turned = [1, 2, 0];
        complex(comm, Case::new([5, 9, 7], [C2C; 3]).returning(seed))?;
        complex(
            comm,
            Case::new([7, 6, 8], [C2C, Dct3, C2C]).returning(seed).orders(turned, turned).batch(3),
        )?;
        real(comm, Case::new([11, 8], [Dct2, Dst1]).returning(seed).batch(2))?;
        complex(comm, Case::new([3, 4, 2, 5], [C2C; 4]).returning(seed))?;
        complex(comm, Case::new([30], [C2C]).returning(seed).batch(3))?;
    }
    let near = (0..comm.size()).all(|rank| comm.host(rank) == comm.host(0));
    if near && comm.size() == 4 {
        let steps = "(exchange [4x1x1] shared raw) (fft y) (exchange [2x2x1] shared raw) (fft z) \
                     (exchange [1x4x1] shared raw) (fft x) (scale inverse) (exchange [2x2x1] shared raw)";
        let recipe = format!("(c2c 8x6x10 f64 ranks=4 [2x2x1] {steps})");
        let case = Case::new([8, 6, 10], [C2C; 3]).cuts([2, 2, 1], [2, 2, 1]).exactly(recipe);
        check::<C2c, 3>(comm, &case)?;
    }
    Ok(())
}

/// All of them.
pub(crate) fn all(comm: &dyn Comm) -> Done {
    one_axis(comm)?;
    two_axes(comm)?;
    three_axes(comm)?;
    four_axes(comm)?;
    random_tilings(comm)?;
    returning(comm)
}
