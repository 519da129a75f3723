//! Every element is in one tile, at the place that the transfer gives. `kernels/box.cuh` has the
//! same arithmetic.

use fft_core::{Brick, Placed};
use proptest::prelude::*;

use bytemuck::Zeroable;

use super::*;
use crate::abi::boxes::Items;

/// `distance` of the kernel.
fn distance(tiled: &TiledBox, side: &BoxSide, mut index: usize, last: usize, low: usize) -> usize {
    let mut at = 0;
    for axis in (0..DIMS).rev().filter(|axis| *axis <= last && *axis > low) {
        let above = tiled.by[axis].of(index);
        at += (index - above * tiled.shape[axis] as usize) * side.stride[axis] as usize;
        index = above;
    }
    at + index * side.stride[low] as usize
}

/// Calls `see` for every element of a tile with its row and column, and its places in the source,
/// the message and the destination. Skewed and folded rows have none of the latter.
fn visit(
    tiled: &TiledBox,
    tile: &TileRecord,
    rows: Rows,
    mut see: impl FnMut([usize; 2], [usize; 3]),
) {
    let (low, inner) = (tiled.low as usize, tiled.inner as usize);
    let (pitch, skew) = (tiled.pitch as usize, tiled.skew as usize);
    let within_row =
        |side: &BoxSide, index: usize| distance(tiled, side, index, DIMS - 1, inner.max(low));
    let (first, start) = (tile.element as usize, tile.start as usize);
    for r in 0..tile.rows as usize {
        for c in 0..tile.cols as usize {
            let from = tiled.from.offset as usize;
            if tiled.height > 0 {
                let (row, col) = ((start + c) / pitch, (start + c) % pitch);
                assert!(row < tiled.height as usize);
                let row = distance(tiled, &tiled.from, first / pitch + row, inner - 1, low);
                see([r, c], [from + row + within_row(&tiled.from, col), first + c, usize::MAX]);
                continue;
            }
            if skew > 0 && rows == Rows::Once {
                let whole = |element: usize| (element + skew) & !skew;
                let begin = first + r * pitch;
                let (element, behind) = (whole(begin) + c, begin - start + pitch);
                if element >= whole(behind).min(tiled.elements()) {
                    continue;
                }
                let row = match (element < behind, r + 1 < tile.rows as usize) {
                    (true, _) => tile.from as usize + r,
                    (false, true) => tile.from as usize + r + 1,
                    (false, false) => tile.to as usize,
                };
                let col = (start + element - begin) % pitch;
                see([r, c], [from + row + within_row(&tiled.from, col), element, usize::MAX]);
                continue;
            }
            let at = |side: &BoxSide, tile_at: u64| {
                (side.offset + tile_at) as usize
                    + r * side.row as usize
                    + within_row(side, start + c)
            };
            let (begin, from) = (first + r * pitch, at(&tiled.from, tile.from));
            let to = if skew > 0 { usize::MAX } else { at(&tiled.to, tile.to) };
            see([r, (begin & skew) + c], [from, begin + c, to]);
        }
    }
}

/// Whether the units of 16 bytes of both sides are where `tile.cuh` has them: contiguous behind the
/// first, aligned, and none in part.
fn units_stand_together(tiled: &TiledBox, tile: &TileRecord, rows: Rows, bytes: usize) -> bool {
    let wide = 16 / bytes;
    let mut places = std::collections::HashMap::new();
    visit(tiled, tile, rows, |place, [from, _, to]| {
        places.insert(place, [from, to]);
    });
    let whole = |log: u32, n: u32| log == APART || (n as usize).is_multiple_of(wide);
    let transposed = tiled.log_rows != 0;
    whole(tiled.log_from, if transposed { tile.rows } else { tile.cols })
        && whole(tiled.log_to, tile.cols)
        && places.iter().all(|(&[r, c], &[from, to])| {
            let from_there = tiled.log_from == APART || {
                let run = wide << tiled.log_from;
                let (first, behind) =
                    if transposed { ([0, c], r) } else { ([0, c / run * run], c % run) };
                from == places[&first][0] + behind && places[&first][0].is_multiple_of(wide)
            };
            from_there
                && (tiled.log_to == APART || {
                    let run = wide << tiled.log_to;
                    let first = places[&[0, c / run * run]][1] + r * tiled.to.row as usize;
                    to == first + c % run && first.is_multiple_of(wide)
                })
        })
}

/// The places of all elements of a message on one side.
fn places(placement: &Placement, view: &View) -> Vec<usize> {
    let place = |element: usize| {
        let (mut rest, mut at) = (element, view.offset);
        for d in (0..DIMS).rev() {
            at += rest % placement.shape[d] * view.stride[d];
            rest /= placement.shape[d];
        }
        at
    };
    (0..placement.elements()).map(place).collect()
}

fn brick() -> impl Strategy<Value = Brick<3>> {
    [(0..3usize, 1..40usize), (0..3, 1..40), (0..3, 1..70)]
        .prop_map(|sides| Brick { lo: sides.map(|(lo, _)| lo), hi: sides.map(|(lo, n)| lo + n) })
}

fn order() -> impl Strategy<Value = [usize; 3]> {
    Just([0, 1, 2]).prop_shuffle()
}

proptest! {
    #[test]
    fn tiles_copy_what_the_transfer_copies(
        a in brick(), b in brick(), oa in order(), ob in order(), batch in 1..3usize,
        bytes in prop::sample::select(vec![4usize, 8, 16]), quantum in prop::sample::select(vec![1usize, 64, 128, 256]),
        rows in prop::sample::select(vec![Rows::One, Rows::Folded, Rows::Once, Rows::Twice]), offset in 0..3usize,
    ) {
        let part = a.intersect(&b);
        prop_assume!(!part.is_empty());
        let from = Placed::new(a, oa, batch);
        let to = Placed::new(b, ob, batch);
        let transfer = Transfer::new(&part.into(), 0..batch, &from, &to);
        let source: Vec<u32> = (1..=(a.points() * batch) as u32).collect();
        let mut expected = vec![0; b.points() * batch];
        transfer.run(&source, &mut expected);

        let placement = Placement::new(&transfer, offset, 0);
        prop_assert_eq!(placement.end(&placement.from), offset + transfer.reach());
        let rules = TileRules { quantum, rows, bytes };
        let mut tiles = Vec::new();
        let tiled = placement.tiled(&rules, 0, &mut tiles).unwrap();
        let mut found = vec![0; expected.len()];
        let mut elements = vec![0; tiled.elements()];
        let [sources, targets] = [placement.from, placement.to].map(|view| places(&placement, &view));
        for (number, tile) in tiles.iter().enumerate() {
            prop_assert_eq!([tile.number, tile.first], [number as u32, 0]);
            let (mut alike, mut whole) = (true, true);
            visit(&tiled, tile, rows, |[row, col], [from, element, to]| {
                found[targets[element]] = source[from - offset];
                alike &= from == sources[element] && (to == targets[element] || to == usize::MAX);
                // What must not be torn apart is not.
                whole &= element % quantum == ((row << tiled.log_cols) + col) % quantum;
                elements[element] += 1;
            });
            prop_assert!(alike && whole);
            prop_assert!(units_stand_together(&tiled, tile, rows, bytes));
        }
        prop_assert_eq!(found, expected);
        prop_assert!(elements.iter().all(|times| *times == 1));
    }

    #[test]
    fn joined_elements_are_the_same_bytes(a in brick(), b in brick(), many in prop::sample::select(vec![2usize, 4])) {
        // Multiples of four along the last axis, so that something can be joined.
        let four = |brick: Brick<3>| Brick {
            lo: [brick.lo[0], brick.lo[1], brick.lo[2] * 4],
            hi: [brick.hi[0], brick.hi[1], brick.hi[2] * 4],
        };
        let (a, b) = (four(a), four(b));
        let part = a.intersect(&b);
        prop_assume!(!part.is_empty());
        let placed = |brick: Brick<3>| Placed::new(brick, [0, 1, 2], 1);
        let transfer = Transfer::new(&part.into(), 0..1, &placed(a), &placed(b));
        let placement = Placement::new(&transfer, 0, 0);
        prop_assert!(placement.joins(many));
        let rules = TileRules { quantum: 1, rows: Rows::Once, bytes: 4 * many };
        let pairs = |placement: &Placement, rules: &TileRules, many: usize| {
            let (mut tiles, mut pairs) = (Vec::new(), Vec::new());
            let tiled = placement.tiled(rules, 0, &mut tiles).unwrap();
            for tile in &tiles {
                visit(&tiled, tile, Rows::Once, |_, [from, _, to]| {
                    pairs.extend((0..many).map(|i| (from * many + i, to * many + i)));
                });
            }
            pairs
        };
        let apart = TileRules { bytes: 4, ..rules };
        prop_assert_eq!(pairs(&placement.joined(many), &rules, many), pairs(&placement, &apart, 1));
    }

    #[test]
    fn divisions_are_exact(divisor in 1..1usize << 31, n in 0..1usize << 31) {
        let by = Divisor::by(divisor);
        for n in [n, n / divisor * divisor, (n / divisor * divisor).saturating_sub(1), (1 << 31) - 1] {
            prop_assert_eq!(by.of(n), n / divisor);
        }
    }
}

#[test]
fn rows_are_whole_lines_of_memory() {
    let brick = Brick { lo: [0; 3], hi: [64, 64, 64] };
    let from = Placed::new(brick, [0, 1, 2], 1);
    let to = Placed::new(brick, [0, 2, 1], 1);
    let placement = Placement::new(&Transfer::new(&brick.into(), 0..1, &from, &to), 0, 0);
    let rows = |bytes, quantum, rows| {
        let rules = TileRules { quantum, rows, bytes };
        1 << placement.tiled(&rules, 0, &mut Vec::new()).unwrap().log_rows
    };
    // Rows have 64 elements; a tile has 16 rows of large elements, and a line 64 small ones.
    assert_eq!(
        [rows(16, 1, Rows::Once), rows(4, 1, Rows::Once), rows(16, 64, Rows::Once)],
        [16, 64, 16]
    );
    // Rows that are shorter than a quantum are folded.
    assert_eq!([rows(16, 256, Rows::Once), rows(16, 1, Rows::One)], [1, 1]);
}

#[test]
fn empty_boxes_have_no_tiles() {
    for axis in 0..3 {
        let mut brick = Brick { lo: [0; 3], hi: [6, 5, 7] };
        brick.hi[axis] = 0;
        let whole = Brick { lo: [0; 3], hi: [6, 5, 7] };
        let placed = |order: [usize; 3]| Placed::new(whole, order, 1);
        let transfer = Transfer::new(&brick.into(), 0..1, &placed([0, 1, 2]), &placed([2, 1, 0]));
        for rows in [Rows::One, Rows::Folded, Rows::Once, Rows::Twice] {
            let (mut tiles, rules) = (Vec::new(), TileRules { quantum: 64, rows, bytes: 8 });
            Placement::new(&transfer, 0, 0).tiled(&rules, 0, &mut tiles).unwrap();
            assert!(tiles.is_empty(), "{axis}, {rows:?}");
        }
    }
}

#[test]
fn too_large_is_an_error() {
    let rules = TileRules { quantum: 1, rows: Rows::Once, bytes: 16 };
    let placement = Placement::new(&Transfer::run_of(1 << 31), 0, 0);
    let error = placement.tiled(&rules, 0, &mut Vec::new()).unwrap_err();
    let text = "the number of elements of a box: found 2147483648, expected at most 2147483647";
    assert_eq!(error.to_string(), text);
}

#[test]
fn tiles_are_listed_along_the_array_that_boxes_are_of() {
    // Three parts of each row, not in their order.
    let brick = |lo: usize, hi: usize| Brick { lo: [0, 0, lo], hi: [4, 5, hi] };
    let whole = Placed::new(brick(0, 6), [0, 1, 2], 1);
    let rules = TileRules { quantum: 1, rows: Rows::Once, bytes: 16 };
    for order in [[0, 1, 2], [2, 1, 0], [0, 2, 1]] {
        let mut all = Items::new();
        for (lo, hi) in [(3, 6), (2, 3), (0, 2)] {
            let brick = brick(lo, hi);
            let message = Placed::new(brick, order, 1);
            let placement =
                Placement::new(&Transfer::new(&brick.into(), 0..1, &whole, &message), 1000, 0);
            let make = |item, tiles: &mut Vec<TileRecord>| {
                let tiled = placement.tiled(&rules, item, &mut Vec::new())?;
                // As if a tile had six elements.
                let elements = (0..placement.elements() as u32).step_by(6);
                let number = tiles.len() as u32..;
                tiles.extend(elements.zip(number).map(|(element, number)| TileRecord {
                    element,
                    item,
                    number,
                    ..TileRecord::zeroed()
                }));
                Ok(tiled)
            };
            all.add(make).unwrap_or_else(|why| panic!("{lo}: {why}"));
        }
        let numbered = all.tiles.clone();
        // Where a tile begins, by the definition.
        let begins = |tile: &TileRecord| {
            let (lo, hi) = [(3, 6), (2, 3), (0, 2)][tile.item as usize];
            let n = [4, 5, hi - lo];
            let (mut rest, mut at) = (tile.element as usize, [0; 3]);
            for axis in order.into_iter().rev() {
                (at[axis], rest) = (rest % n[axis], rest / n[axis]);
            }
            (1000 + (at[0] * 5 + at[1]) * 6 + lo + at[2]) as u64
        };
        let all = all.along(|tiled, tile| tiled.source_of(tile));
        let found: Vec<_> = all.tiles.iter().map(&begins).collect();
        assert!(found.is_sorted(), "{order:?}: {found:?}");
        let mut numbers: Vec<_> = all.tiles.iter().map(|tile| tile.number).collect();
        assert_ne!(numbers, numbered.iter().map(|tile| tile.number).collect::<Vec<_>>());
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..numbered.len() as u32), "{order:?}");
        // In the message it is where its elements are.
        let to = |tile: &TileRecord| all.items[tile.item as usize].destination_of(tile);
        assert!(numbered.iter().all(|tile| to(tile) == u64::from(tile.element)), "{order:?}");
        assert_eq!(all.firsts, [0, 10, 14, 21]);
    }
}

#[test]
fn tiles_of_torn_rows_are_listed_by_the_axes_that_they_have_parts_of() {
    let whole = Brick { lo: [0; 3], hi: [62, 40, 40] };
    let array = Placed::new(whole, [0, 1, 2], 1);
    let rules = TileRules { quantum: 64, rows: Rows::Twice, bytes: 8 };
    let mut all = Items::new();
    let parts = [(20, 40), (0, 20)];
    for (lo, hi) in parts {
        let brick = Brick { lo: [0, 0, lo], hi: [62, 40, hi] };
        let message = Placed::new(brick, [2, 1, 0], 1);
        let placement = Placement::new(&Transfer::new(&brick.into(), 0..1, &array, &message), 0, 0);
        all.add(|item, tiles| placement.tiled(&rules, item, tiles)).unwrap();
    }
    let all = all.along(|tiled, tile| tiled.source_of(tile));
    // Where a tile begins: along the first axis, which each has whole, and in one of its planes.
    let begins = |tile: &TileRecord| {
        let (row, within) = (tile.element as usize / (40 * 62), tile.element as usize % (40 * 62));
        (within % 62, within / 62 * 40 + parts[tile.item as usize].0 + row)
    };
    let found: Vec<_> = all.tiles.iter().map(begins).collect();
    assert!(all.items.iter().all(|tiled| tiled.skew > 0));
    // Except for tiles at a row's end, which have less of it.
    let (last, others): (Vec<_>, Vec<_>) = all.tiles.iter().partition(|tile| tile.cols < 62);
    assert!(others.iter().map(|tile| begins(tile).1).is_sorted(), "{found:?}");
    assert!(last.len() < others.len() && !found.is_sorted_by_key(|place| place.0), "{found:?}");
}

#[test]
fn what_packs_is_told_from_other_copies() {
    let brick = Brick { lo: [0; 3], hi: [4, 5, 6] };
    let part = Brick { lo: [0, 1, 0], hi: [4, 3, 6] };
    let packs = |to: Brick<3>, order: [usize; 3], apart: usize| {
        let from = Placed::new(brick, [0, 1, 2], 1);
        let to = Placed::new(to, order, 1);
        Placement::new(&Transfer::new(&part.into(), 0..1, &from, &to), 7, 9).packs(apart)
    };
    assert!(packs(part, [0, 1, 2], 1));
    assert!(packs(part, [0, 2, 1], 6) && !packs(part, [0, 2, 1], 5));
    assert!(!packs(brick, [0, 1, 2], 100), "into an array");
}
