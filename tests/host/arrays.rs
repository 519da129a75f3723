//! Copies between local arrays, ghost points, and fields loaded from several bricks.

use proptest::prelude::*;
use proptest::sample::select;
use thriffty::arrays::{CopyPlan, FieldCopy, Ghosts, GridData, Subarray, bind_by, copy, halo};
use thriffty::planning::{Direction, Exchange, Step};
use thriffty::{Brick, C2c, Comm, Error, Grid, R2c, ThreadComm};

use crate::allocations::calls;
use crate::common::RANKS;
use crate::common::check::Make;
use crate::common::data::{cut, distance, norm, place, random, widen};
use crate::common::oracle;
use crate::common::tiling::Rng;
use crate::subarrays::{Item, Runner, bricks, copies, element, halos, placed, points};

/// Runs copies on the host, by an exchange.
struct OnHost(Exchange);

impl Runner for OnHost {
    fn run<E: Item>(
        &self,
        comm: &dyn Comm,
        plan: CopyPlan,
        sources: &[Vec<E>],
        targets: &mut [Vec<E>],
    ) -> Result<(), Error> {
        let sources: Vec<_> = sources.iter().map(|it| &it[..]).collect();
        let mut targets: Vec<_> = targets.iter_mut().map(|it| &mut it[..]).collect();
        bind_by(comm, self.0, plan)?.run(&sources, &mut targets)
    }

    fn run_in_place<E: Item>(
        &self,
        comm: &dyn Comm,
        plan: CopyPlan,
        arrays: &mut [Vec<E>],
    ) -> Result<(), Error> {
        let mut arrays: Vec<_> = arrays.iter_mut().map(|it| &mut it[..]).collect();
        bind_by(comm, self.0, plan)?.run_in_place(&mut arrays)
    }
}

/// Fields loaded from several bricks and stored to others, transformed in between.
fn transforms<K: Make, const D: usize>(ranks: usize, seed: u64) {
    let mut rng = Rng(seed);
    let shape: [usize; D] = std::array::from_fn(|_| 1 + rng.below(7));
    let grid = Grid::new(shape).unwrap();
    let batch = 1 + rng.below(2);
    let transposed = [rng.below(2) == 0, rng.below(2) == 0];
    let whole: usize = shape.iter().product();
    let x: Vec<K::Physical> = random(batch * whole, seed);
    let spectral: [usize; D] =
        thriffty::threads(1, |comm| Ok::<_, Error>(K::draft(&comm, grid).spectral_grid().shape()))
            .unwrap()[0];
    let kinds = std::array::from_fn(|axis| {
        if K::DYN.is_complex() || axis + 1 < D { thriffty::Kind::C2C } else { thriffty::Kind::R2C }
    });
    let expected: Vec<_> = widen(&x)
        .chunks(whole)
        .flat_map(|x| oracle::transform(Direction::Forward, shape, kinds, x))
        .collect();
    let scale = norm(&expected);
    let sides =
        [bricks(grid, ranks, &mut rng), bricks(Grid::new(spectral).unwrap(), ranks, &mut rng)];
    let rng = &rng;
    thriffty::threads(ranks, |comm: ThreadComm| {
        let mut rng = Rng(rng.clone().next() ^ comm.rank() as u64);
        let mut draft = K::draft(&comm, grid).batch(batch);
        if transposed[0] {
            draft = draft.transposed_input(true);
        }
        if transposed[1] {
            draft = draft.transposed_output(true);
        }
        let mut plan = draft.build()?;
        let [inputs, outputs] = [0, 1].map(|side: usize| {
            let one = |(array, brick): (usize, &Brick<D>)| {
                placed(*brick, batch, &mut rng).in_array(array)
            };
            sides[side][comm.rank()].iter().enumerate().map(one).collect::<Vec<_>>()
        });
        let mut input = FieldCopy::input(&plan, &inputs)?;
        let mut output = FieldCopy::output(&plan, &outputs)?;
        let points = |shape: [usize; D], it: &Subarray| {
            let mut found = vec![(0, 0); 0];
            for item in 0..batch {
                for index in points(&it.brick) {
                    let at = element(it, item, &index);
                    let index = std::array::from_fn(|axis| index[axis] as usize);
                    let of_item = item * shape.iter().product::<usize>();
                    found.push((at, of_item + place(shape, index)));
                }
            }
            found
        };
        let mut physical: Vec<Vec<K::Physical>> = Vec::new();
        for it in &inputs {
            let mut array = vec![K::Physical::default(); it.least_len(batch)?];
            points(shape, it).into_iter().for_each(|(at, from)| array[at] = x[from]);
            physical.push(array);
        }
        let mut field = plan.input();
        input.load(&physical.iter().map(|it| &it[..]).collect::<Vec<_>>(), &mut field)?;
        let field = plan.forward(field)?;
        let mut stored: Vec<_> = Vec::new();
        for it in &outputs {
            stored.push(vec![K::Spectral::default(); it.least_len(batch)?]);
        }
        output.store(&field, &mut stored.iter_mut().map(|it| &mut it[..]).collect::<Vec<_>>())?;
        for (it, array) in outputs.iter().zip(&stored) {
            let (found, wanted): (Vec<_>, Vec<_>) = points(spectral, it)
                .into_iter()
                .map(|(at, from)| (array[at], expected[from]))
                .unzip();
            let error = distance(&widen(&found), &wanted);
            assert!(error <= 1e-13 * scale, "{error:e} of {scale:e}: {}", plan.recipe());
        }
        output.load(&stored.iter().map(|it| &it[..]).collect::<Vec<_>>(), &mut plan.output())?;
        let field = plan.inverse(field)?;
        let before = cut(&x, shape, plan.input_brick(), plan.input_order().array());
        let error = distance(&widen(field.as_slice()), &widen(&before));
        assert!(error <= 1e-13 * norm(&widen(&x)), "{error:e}: {}", plan.recipe());
        Ok::<_, Error>(())
    })
    .unwrap_or_else(|error| panic!("{error}: {sides:?}"));
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(30)
    })]

    #[test]
    fn copies_bring_each_point_from_where_it_is(
        ranks in select(&RANKS[..]),
        exchange in select(Exchange::ALL.to_vec()),
        seed in any::<u64>().no_shrink(),
    ) {
        let on_host = OnHost(exchange);
        thriffty::threads(ranks, |comm| match seed % 4 {
            0 => copies::<u32, 1>(&comm, &on_host, seed),
            1 => copies::<u64, 2>(&comm, &on_host, seed),
            2 => copies::<[u64; 2], 3>(&comm, &on_host, seed),
            _ => copies::<u32, 4>(&comm, &on_host, seed),
        }).unwrap();
    }

    #[test]
    fn ghost_points_are_those_of_the_grid(
        ranks in select(&RANKS[..]),
        exchange in select(Exchange::ALL.to_vec()),
        seed in any::<u64>().no_shrink(),
    ) {
        let on_host = OnHost(exchange);
        thriffty::threads(ranks, |comm| match seed % 3 {
            0 => halos::<u32, 1>(&comm, &on_host, seed),
            1 => halos::<u64, 2>(&comm, &on_host, seed),
            _ => halos::<[u64; 2], 3>(&comm, &on_host, seed),
        }).unwrap();
    }

    #[test]
    fn fields_are_loaded_from_several_bricks(
        ranks in select(&RANKS[..]),
        seed in any::<u64>().no_shrink(),
    ) {
        match seed % 3 {
            0 => transforms::<C2c<f64>, 2>(ranks, seed),
            1 => transforms::<R2c<f64>, 3>(ranks, seed),
            _ => transforms::<C2c<f64>, 3>(ranks, seed),
        }
    }
}

#[test]
fn transposed_inputs_cost_fewer_exchanges() {
    thriffty::threads(8, |comm| {
        let shape = [16, 16, 16];
        let draft = || thriffty::c2c(&comm, shape).ignore_shared_memory(true);
        let reshapes = |draft: thriffty::Draft<'_, _, 3>| {
            let recipe = draft.recipe()?;
            let is_reshape = |step: &&Step| matches!(step, Step::Reshape { .. });
            Ok::<_, Error>(recipe.steps().iter().filter(is_reshape).count())
        };
        let all = reshapes(draft())?;
        assert_eq!(reshapes(draft().transposed_input(true))?, all - 1);
        assert_eq!(reshapes(draft().transposed_input(true).transposed_output(true))?, all - 2);
        let error = draft().transposed_input(true).input_order([1, 0, 2]).build().unwrap_err();
        assert!(error.to_string().contains("transposed_input"), "{error}");
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// Two bricks on each rank, side by side in one array, and their ghost points.
#[test]
fn bricks_may_share_an_array() {
    thriffty::threads(2, |comm| {
        let grid = Grid::new([4, 2])?;
        let rank = comm.rank();
        // Rows of five: a brick of one column, a ghost point, the other column, a ghost point.
        let column = |j: usize| Brick { lo: [2 * rank, j], hi: [2 * rank + 2, j + 1] };
        let here = [0, 1].map(|j| Subarray {
            offset: 2 * j,
            strides: [5, 1].into(),
            ..Subarray::dense(column(j))
        });
        let ghosts =
            Ghosts { lower: [0; 2].into(), upper: [0, 1].into(), periodic: [true; 2].into() };
        let mut halo = halo(&comm, GridData::of::<f64>(grid), ghosts, &here)?;
        let row = |i: usize| [10 * i, 99, 10 * i + 1, 99, 99].map(|v| v as f64);
        let mut array = [row(2 * rank), row(2 * rank + 1)].concat();
        halo.run_in_place(&mut [&mut array])?;
        let row = |i: usize| [10 * i, 10 * i + 1, 10 * i + 1, 10 * i, 99].map(|v| v as f64);
        assert_eq!(array, [row(2 * rank), row(2 * rank + 1)].concat());
        assert_eq!(halo.plan().sends.len(), 0);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_run_allocates_nothing() {
    thriffty::threads(3, |comm| {
        let grid = Grid::new([6, 7, 8])?;
        let here = Subarray::with_ghosts(grid.brick(comm.rank(), 3), [1; 3], [1; 3]);
        let around = Ghosts::new([1; 3], [1; 3], [true; 3]);
        let mut halo = halo(&comm, GridData::of::<f64>(grid), around, &[here])?;
        let mut array: Vec<f64> = vec![1.0; 8 * 9 * 10];
        halo.run_in_place(&mut [&mut array])?;
        assert_eq!(calls(|| halo.run_in_place(&mut [&mut array])), Ok(0));
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn faults_of_one_rank_are_errors_of_all() {
    let text = |ranks: usize, body: &(dyn Fn(&ThreadComm) -> Result<(), Error> + Sync)| {
        let found = thriffty::threads(ranks, |comm| Ok::<_, Error>(body(&comm))).unwrap();
        assert!(found.iter().all(|it| *it == found[0]), "{found:?}");
        found[0].clone().unwrap_err().to_string()
    };
    let grid = Grid::new([4, 4]).unwrap();
    let data = GridData::of::<f64>(grid);
    let rows = |lo, hi| Subarray::dense(Brick { lo: [lo, 0], hi: [hi, 4] });
    // What rank 1 has, of the rows of a grid.
    let planned = |on_one: &[Subarray]| {
        text(2, &|comm| {
            let on_zero = [rows(0, 2)];
            let sources = [&on_zero, on_one][comm.rank()];
            copy(comm, data, sources, &[rows(0, 4)]).map(drop)
        })
    };
    let cases = [
        (vec![rows(1, 4)], "disjoint bricks"),
        (vec![rows(3, 4)], "found 12 points of [0..4, 0..4]"),
        (vec![rows(2, 5)], "one inside the grid 4x4"),
        (vec![Subarray { strides: [1, 1].into(), ..rows(2, 4) }], "no two points in one element"),
        (vec![Subarray { strides: [usize::MAX, 1].into(), ..rows(2, 4) }], "can be counted"),
        (
            vec![Subarray { strides: [1, 1, 1].into(), ..rows(2, 4) }],
            "strides of a subarray: found 3",
        ),
    ];
    for (on_one, expected) in cases {
        let found = planned(&on_one);
        assert!(found.contains(expected), "{found}: {expected}");
    }
    let around = |upper| Ghosts { lower: [1; 2].into(), upper, periodic: [true; 2].into() };
    let here =
        |rank: usize| Subarray::with_ghosts(rows(2 * rank, 2 * rank + 2).brick, [1; 2], [1; 2]);
    let halos = [
        (around([1; 2].into()), 1, "an offset with room for ghost points"),
        (around([1; 3].into()), 0, "axes of ghost points"),
        (around([usize::MAX, 0].into()), 0, "ghost points along axis 0"),
    ];
    for (ghosts, dense, expected) in halos {
        let found = text(2, &|comm| {
            let rank = comm.rank();
            let array = if rank == dense { rows(2 * rank, 2 * rank + 2) } else { here(rank) };
            halo(comm, data, ghosts, &[array]).map(drop)
        });
        assert!(found.contains(expected), "{found}: {expected}");
    }
    let found = text(2, &|comm| copy(comm, data.batch(1 + comm.rank()), &[], &[]).map(drop));
    assert!(found.contains("the ranks disagree on the data of a copy"), "{found}");
    // A rank that leaves is an error on the others.
    let found = thriffty::threads(3, |comm| {
        let rows = Subarray::dense(Brick { lo: [comm.rank(), 0], hi: [comm.rank() + 1, 4] });
        let data = GridData::of::<f64>(Grid::new([3, 4])?);
        let mut copy =
            copy(&comm, data, &[rows], &[Subarray::dense(Brick { lo: [0, 0], hi: [3, 4] })])?;
        if comm.rank() == 1 {
            return Ok(None);
        }
        Ok::<_, Error>(copy.run(&[&[0.0; 4]], &mut [&mut [0.0; 12]]).err())
    });
    let left = Some(Error::Left { gone: 1 });
    assert_eq!(found, Ok(vec![left.clone(), None, left]));
    // A run after a failed one is right.
    thriffty::threads(2, |comm| {
        let rank = comm.rank();
        let mut halo = halo(&comm, data, around([1; 2].into()), &[here(rank)])?;
        let mut array = vec![rank as f64; 4 * 6];
        let short = if rank == 1 { 23 } else { 24 };
        let error = halo.run_in_place(&mut [&mut array[..short]]).unwrap_err().to_string();
        assert!(error.contains("array of rank 1 has 23 elements, expected 24"), "{error}");
        let error = halo.run_in_place::<f64>(&mut []).unwrap_err().to_string();
        assert!(error.contains("arrays of a copy: found 0, expected 1"), "{error}");
        array.fill(rank as f64);
        halo.run_in_place(&mut [&mut array])?;
        let other = [1.0 - rank as f64; 6];
        assert_eq!([&array[..6], &array[18..]], [&other; 2]);
        assert_eq!(array[6..18], [rank as f64; 12]);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn ranks_name_one_exchange() {
    thriffty::threads(3, |comm| {
        let grid = Grid::new([6, 4])?;
        let here = [Subarray::dense(grid.brick(comm.rank(), 3))];
        let plan = || CopyPlan::new(&comm, GridData::of::<f64>(grid), &here, &here);
        for culprit in 0..3 {
            let other = if comm.rank() == culprit { Exchange::KWay(2) } else { Exchange::P2p };
            let error = bind_by(&comm, other, plan()?).unwrap_err().to_string();
            assert!(error.contains("exchange of a copy"), "{error}");
            let error = bind_by(&comm, Exchange::KWay(1), plan()?).unwrap_err().to_string();
            assert!(error.contains("kway1"), "{error}");
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}
